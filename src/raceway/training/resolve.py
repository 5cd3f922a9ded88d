"""From what is given to the settings of a run: defaults, then the preset, then a file, then what is said outright."""

from __future__ import annotations

import dataclasses
import json
import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from raceway import _core
from raceway.algos.configs import A2CConfig, PPOConfig, PQNConfig
from raceway.algos.hyperparameters import ALIASES, divisors, renamed, resolve_names
from raceway.envs import user_native
from raceway.envs.catalog import native_arguments, tasks, with_whole_path
from raceway.errors import RunFolderError, SettingError, UserError
from raceway.files import MOST_SETTINGS, check_depth, read_whole
from raceway.messages import printable, quoted
from raceway.training.config import ALGORITHMS, SCHEDULES, TrainConfig, check_algorithm, lost_arguments
from raceway.training.environments import name_of
from raceway.training.presets import preset_for
from raceway.training.settings import fitted, nearest, paths_of, replaced, types_of
from raceway.training.trust import check_code_of_file

GROUPS = (*ALGORITHMS, "network", "evaluation", "checkpoint", "log")

OTHER_NAMES = {
    "env_id": "env",
    "env_kwargs": "env_args",
    "n_envs": "num_envs",
    "n_timesteps": "total_steps",
    "total_timesteps": "total_steps",
    "total_env_steps": "total_steps",
    "workers": "num_workers",
    "network": "network.custom",
    "algorithm": "algo",
}
"""What others call the settings of a run; the algorithm's are in ALIASES."""


def resolve(
    env: Any = None,
    config_file: str | os.PathLike[str] | None = None,
    **settings: Any,
) -> TrainConfig:
    """The settings of a run.

    Defaults give way to the environment's preset, that to the file (JSON or TOML), that to `settings`. Those are nested
    (`ppo={"gamma": 0.9}`), dotted (`"ppo.gamma"`) or, for what belongs to algorithm and network, flat (`gamma=0.9`);
    names of SB3 and CleanRL are understood. A batch size that nobody asked for is made to fit the number of
    environments and steps that somebody did. Code that only the file names is refused unless it was trained with here.
    """
    file = {} if config_file is None else read_config(config_file)
    algo = _algo_in(settings, file)
    from_file = paths_in(file, algo, f"{config_file}: ")
    from_file.pop("log.name", None)  # another run's own
    # A file may have settings for every algorithm; what is said outright is for the one that is chosen.
    from_file = {path: value for path, value in from_file.items() if not _is_of_another(path, algo)}
    given = paths_in(settings, algo)
    if other := next((path for path in given if _is_of_another(path, algo)), None):
        group = other.partition(".")[0]
        raise SettingError(f"{other!r} is a setting of {group}, but the algorithm is {algo}. Set algo to {group!r}.")
    name = name_of(env) if env is not None else given.get("env", from_file.get("env"))
    if name is None:
        raise SettingError("No environment is named. Name one, such as CartPole-v1 (raceway list envs).")
    name = user_native.source_of(fitted("env", name, str))
    said = {**from_file, **given, "env": name}
    config = TrainConfig(env=name, algo=algo, schedule=SCHEDULES.get(algo, "concurrent"))
    preset = preset_for(name, algo) if said.get("preset", True) else None
    num_envs = said.get("num_envs", preset.settings.get("num_envs") if preset else config.num_envs)
    num_envs = fitted("num_envs", num_envs, int)
    for layer in (paths_in(preset.settings, algo) if preset else {}, from_file, {**given, "env": name}):
        config = _with_layer(config, layer, num_envs)
    if not any(_field(path) == f"{algo}.batch_size" for path in said):
        config = _with_fitting_batch(config)
    if config_file is not None:
        given_too = {*given, "env"} if env is not None else {*given}
        only_there = from_file.keys() - given_too
        if "env_args" in only_there:
            _check_arguments_of_file(config_file, config)
        check_code_of_file(config_file, config, only_there)
    _check(config)
    return dataclasses.replace(config, env_args=with_whole_paths(config, config.env_args))


def _check_arguments_of_file(file: str | os.PathLike[str], config: TrainConfig) -> None:
    """Refuses a settings file that does not hold all arguments of the environment, as that of a run may not."""
    if lost := lost_arguments(config.to_dict()["env_args"]):
        raise SettingError(
            f"{file} names arguments of the environment that a file cannot hold: {printable(', '.join(lost))}. Give "
            "all of them yourself, in Python: env_args={...}."
        )


def _algo_in(*layers: Mapping[str, Any]) -> str:
    """The algorithm: what flat names mean depends on it."""
    names = [layer[name] for layer in layers for name in ("algo", "algorithm") if name in layer]
    algo = names[0] if names else "ppo"
    check_algorithm(algo)
    return str(algo)


def _is_of_another(path: str, algo: str) -> bool:
    """Whether a setting is of an algorithm that was not chosen."""
    group, dot, _ = path.partition(".")
    return bool(dot) and group in ALGORITHMS and group != algo


def _with_layer(config: TrainConfig, layer: Mapping[str, Any], num_envs: int) -> TrainConfig:
    """`config` with the settings of `layer`, other libraries' names turned into ours."""
    group = f"{config.algo}."
    own = {path.removeprefix(group): value for path, value in layer.items() if path.startswith(group)}
    kind: Any = type(config.algorithm)
    types = types_of(kind)
    for name, value in own.items():
        if (field := renamed(name)) in types:
            own[name] = fitted(group + name, value, types[field])
    # Some of the other names are worked out from settings that may be in lower layers.
    fields = {_field(group + name).removeprefix(group) for name in own}
    names = [*types]
    context: list[str] = [name for name in ("n_steps", "clip_range") if name in names and name not in fields]
    known = {name: getattr(config.algorithm, name) for name in context}
    try:
        found = resolve_names({**known, **own}, names, algo=config.algo, num_envs=num_envs)
        rest = {path: value for path, value in layer.items() if not path.startswith(group)}
        return replaced(config, {**rest, **{group + name: found[name] for name in found if name not in known}})
    except SettingError:
        raise
    except ValueError as error:  # of the algorithm, which knows nothing of ours
        raise SettingError(str(error)) from None


def _field(path: str) -> str:
    """The field of ours that a path means."""
    group, _, name = path.rpartition(".")
    return f"{group}.{ALIASES[name][0]}" if group in ALGORITHMS and name in ALIASES else path


def _with_fitting_batch(config: TrainConfig) -> TrainConfig:
    algorithm = config.algorithm
    if not isinstance(algorithm, PPOConfig | PQNConfig):
        return config
    rows, size = algorithm.n_steps * config.num_envs, algorithm.batch_size
    if config.network.gru is not None:  # whole environments, one at least
        envs = max(n for n in divisors(config.num_envs) if n <= max(1, size // algorithm.n_steps))
        return replaced(config, {f"{config.algo}.batch_size": envs * algorithm.n_steps})
    fitting = max(n for n in divisors(rows) if n <= size)
    if fitting < min(rows, size) / 4:
        raise SettingError(
            f"A round of n_steps={algorithm.n_steps} x num_envs={config.num_envs} = {rows} rows has no divisor near "
            f"batch_size={size} to make minibatches of. Change n_steps or num_envs, or give a batch_size."
        )
    return replaced(config, {f"{config.algo}.batch_size": fitting})


def read_config(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A JSON or TOML file, such as the config.json of a run."""
    file = Path(path)
    readers: dict[str, Callable[[str], Any]] = {".json": json.loads, ".toml": tomllib.loads}
    if file.suffix.lower() not in readers:
        raise SettingError(f"{file}: settings are read from .json or .toml files, not from {file.suffix or 'this'}.")
    try:
        values = readers[file.suffix.lower()](read_whole(file, MOST_SETTINGS).decode())
        check_depth(values, file)
    except RunFolderError as error:
        raise SettingError(f"The settings in {error}") from None
    except (ValueError, RecursionError) as error:  # what either reader raises
        raise SettingError(f"{file}: this is not {file.suffix[1:].upper()}: {error}.") from None
    if not isinstance(values, dict):
        raise SettingError(f"{file}: the settings must be names with values, not a {type(values).__name__}.")
    return values


def paths_in(settings: Mapping[str, Any], algo: str = "ppo", where: str = "") -> dict[str, Any]:
    """`settings`, nested, dotted or flat, each by its path: `{"ppo.gamma": 0.9}`. Two values for one are refused."""
    found: dict[str, Any] = {}
    said: dict[str, str] = {}
    for name, value in _leaves(settings):
        path = path_of(name, algo, where)
        if _field(path) in said:
            both = f"{said[_field(path)]!r} and {quoted(name)}"
            raise SettingError(f"{where}{both} are the same setting. Give one of them.")
        found[path], said[_field(path)] = value, name
    return found


def path_of(name: str, algo: str = "ppo", where: str = "") -> str:
    """The path of a setting that may be given under another name and, if of network or `algo`, without the group's."""
    paths = paths_of(TrainConfig)
    group, _, leaf = name.rpartition(".")
    groups = [group] if group else [algo, "network"]
    for candidate in [OTHER_NAMES.get(name, name), *(f"{each}.{leaf}" for each in groups)]:
        if candidate in paths or _field(candidate) in paths:
            return candidate
    if others := algorithms_with(leaf) if group in ("", algo) else []:
        raise SettingError(
            f"{where}No setting {quoted(name)} in {algo}: it is one of {' and '.join(others)}. Leave it out, or choose "
            f"that algorithm: algo={others[0]!r}."
        )
    near = nearest(name, known_names(algo))
    hint = f" Did you mean {near!r}?" if near else ""
    own = "" if near or group else f" An argument of the environment is given as env_args={{{quoted(name)}: ...}}."
    raise SettingError(f"{where}No setting {quoted(name)}.{hint} All settings: raceway train --help.{own}")


def algorithms_with(name: str) -> list[str]:
    """The algorithms that have a hyperparameter of this name."""
    paths = paths_of(TrainConfig)
    return [algo for algo in ALGORITHMS if _field(f"{algo}.{name}") in paths]


def known_names(algo: str = "ppo") -> list[str]:
    """The path of every setting that a run of `algo` may have, and what others call them."""
    paths = [path for path in paths_of(TrainConfig) if not _is_of_another(path, algo)]
    return [*paths, *OTHER_NAMES, *(f"{algo}.{alias}" for alias in ALIASES if _field(f"{algo}.{alias}") in paths)]


def _leaves(settings: Mapping[str, Any]) -> list[tuple[str, Any]]:
    found = []
    for name, value in settings.items():
        if name == "network" and isinstance(value, str):
            found.append((name, value))
        elif name in GROUPS:
            if dataclasses.is_dataclass(value) and not isinstance(value, type):
                value = dataclasses.asdict(value)
            if not isinstance(value, Mapping):
                raise SettingError(f"{name}={quoted(value)} is not a dict of settings.")
            found += [(f"{name}.{each}", part) for each, part in value.items()]
        else:
            found.append((name, value))
    return found


def _check(config: TrainConfig) -> None:
    """Finds what does not go together before anything is started."""
    if (
        config.schedule == "async"
        and isinstance(config.algorithm, A2CConfig)
        and config.algorithm.correction == "delayed"
    ):
        raise SettingError(
            "correction='delayed' takes gradients where a round was collected, at most one update ago; under "
            "schedule='async' that may be longer ago. Use correction='ratio', or the concurrent or serial schedule."
        )
    try:
        recurrent = config.network.gru is not None
        if isinstance(config.algorithm, PPOConfig):
            config.algorithm.check_num_envs(config.num_envs, recurrent=recurrent)
        elif isinstance(config.algorithm, PQNConfig):
            config.algorithm.check_num_envs(config.num_envs)
        if recurrent and config.algo != "ppo":
            raise SettingError(
                f"network.gru={config.network.gru}, but {config.algo} has no memory. Use ppo, or no GRU."
            )
    except (TypeError, ValueError) as error:
        raise SettingError(str(error)) from None
    check_native_arguments(config.env, config.env_args, config.lane)


def check_native_arguments(env: str, env_args: Mapping[str, Any], lane: str) -> None:
    """Refuses arguments that a native task does not take. Those of others are checked where one is made."""
    try:
        task = tasks().get(user_native.resolve(env) or env.removeprefix("raceway/"))
        if task is None or lane not in ("auto", "native"):
            return
        given = native_arguments(task, {name: it for name, it in env_args.items() if name != "max_episode_steps"})
        if not task.is_built_in:  # it may refuse them, or be wrong itself
            _core.Configurations(task.id, [given])
    except UserError:
        raise
    except (TypeError, ValueError, OSError) as error:
        raise SettingError(str(error)) from None


def with_whole_paths(config: TrainConfig, env_args: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of an environment, a model of the user's own by its whole path, which other folders understand too.

    No header is loaded for it: none of a user's takes a model.
    """
    task = tasks().get(config.env.removeprefix("raceway/")) if config.lane in ("auto", "native") else None
    try:
        return dict(env_args) if task is None else with_whole_path(task, env_args)
    except (TypeError, ValueError, OSError) as error:
        raise SettingError(str(error)) from None
