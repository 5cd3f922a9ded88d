"""From what is given to the settings of a run: defaults, then the preset, then a file, then what is said outright."""

from __future__ import annotations

import dataclasses
import json
import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from raceway.algos.hyperparameters import ALIASES, resolve_names
from raceway.envs.catalog import native_arguments, tasks
from raceway.errors import SettingError
from raceway.training.config import TrainConfig
from raceway.training.presets import preset_for
from raceway.training.settings import nearest, paths_of, replaced

GROUPS = ("ppo", "network", "evaluation", "log")
_FLAT = ("ppo", "network")
"""Groups whose settings may be given without the group's name."""

OTHER_NAMES = {
    "env_id": "env",
    "env_kwargs": "env_args",
    "n_envs": "num_envs",
    "n_timesteps": "total_steps",
    "total_timesteps": "total_steps",
    "total_env_steps": "total_steps",
    "workers": "num_workers",
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
    environments and steps that somebody did.
    """
    from_file = paths_in(read_config(config_file), f"{config_file}: ") if config_file is not None else {}
    from_file.pop("log.name", None)  # another run's own
    given = paths_in(settings)
    name = name_of(env) if env is not None else given.get("env", from_file.get("env"))
    if name is None:
        raise SettingError("No environment is named. Name one, such as CartPole-v1 (raceway list envs).")
    said = {**from_file, **given, "env": name}
    config = TrainConfig(env=name)
    preset = preset_for(name, said.get("algo", config.algo)) if said.get("preset", True) else None
    num_envs = said.get("num_envs", preset.settings.get("num_envs") if preset else None) or config.num_envs
    for layer in (paths_in(preset.settings) if preset else {}, from_file, {**given, "env": name}):
        config = _with_layer(config, layer, num_envs)
    if not any(_field(path) == "ppo.batch_size" for path in said):
        config = _with_fitting_batch(config)
    _check(config)
    return config


def _with_layer(config: TrainConfig, layer: Mapping[str, Any], num_envs: int) -> TrainConfig:
    """`config` with the settings of `layer`, other libraries' names turned into ours."""
    ppo = {path.removeprefix("ppo."): value for path, value in layer.items() if path.startswith("ppo.")}
    # Some of the other names are worked out from settings that may be in lower layers.
    fields = {_field(f"ppo.{name}").removeprefix("ppo.") for name in ppo}
    known = {name: getattr(config.ppo, name) for name in ("n_steps", "clip_range") if name not in fields}
    try:
        found = resolve_names({**known, **ppo}, _names_of_ppo(), num_envs=num_envs)
        rest = {path: value for path, value in layer.items() if not path.startswith("ppo.")}
        return replaced(config, {**rest, **{f"ppo.{name}": found[name] for name in found if name not in known}})
    except SettingError:
        raise
    except ValueError as error:  # of the algorithm, which knows nothing of ours
        raise SettingError(str(error)) from None


def _field(path: str) -> str:
    """The field of ours that a path means."""
    group, _, name = path.rpartition(".")
    return f"ppo.{ALIASES[name][0]}" if group == "ppo" and name in ALIASES else path


def _names_of_ppo() -> list[str]:
    return [path.removeprefix("ppo.") for path in paths_of(TrainConfig) if path.startswith("ppo.")]


def _with_fitting_batch(config: TrainConfig) -> TrainConfig:
    rows, size = config.ppo.n_steps * config.num_envs, config.ppo.batch_size
    fitting = next(n for n in range(min(rows, size), 0, -1) if rows % n == 0)
    if fitting < min(rows, size) / 4:
        raise SettingError(
            f"A round of n_steps={config.ppo.n_steps} x num_envs={config.num_envs} = {rows} rows has no divisor near "
            f"batch_size={size} to make minibatches of. Change n_steps or num_envs, or give a batch_size."
        )
    return replaced(config, {"ppo.batch_size": fitting})


def name_of(env: Any) -> str:
    """An environment by a name that tells it: its id, or `module:callable`."""
    if isinstance(env, str):
        return env
    spec = getattr(env, "spec", None)
    if spec is not None and hasattr(spec, "id"):
        return str(spec.id)
    if callable(env):
        named = env if hasattr(env, "__qualname__") else type(env)
        return f"{named.__module__}:{named.__qualname__}"
    return type(env).__name__


def read_config(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A JSON or TOML file, such as the config.json of a run."""
    file = Path(path)
    readers: dict[str, Callable[[str], Any]] = {".json": json.loads, ".toml": tomllib.loads}
    if file.suffix.lower() not in readers:
        raise SettingError(f"{file}: settings are read from .json or .toml files, not from {file.suffix or 'this'}.")
    try:
        values = readers[file.suffix.lower()](file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingError(f"{file}: the settings cannot be read: {error.strerror}.") from None
    except ValueError as error:  # what either reader raises
        raise SettingError(f"{file}: this is not {file.suffix[1:].upper()}: {error}.") from None
    if not isinstance(values, dict):
        raise SettingError(f"{file}: the settings must be names with values, not a {type(values).__name__}.")
    return values


def paths_in(settings: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """`settings`, nested, dotted or flat, each by its path: `{"ppo.gamma": 0.9}`. Two values for one are refused."""
    found: dict[str, Any] = {}
    said: dict[str, str] = {}
    for name, value in _leaves(settings):
        path = path_of(name, where)
        if _field(path) in said:
            raise SettingError(f"{where}{said[_field(path)]!r} and {name!r} are the same setting. Give one of them.")
        found[path], said[_field(path)] = value, name
    return found


def path_of(name: str, where: str = "") -> str:
    """The path of a setting that may be given flat, or under the name that others have for it."""
    paths = paths_of(TrainConfig)
    group, _, leaf = name.rpartition(".")
    for candidate in [OTHER_NAMES.get(name, name), *(f"{each}.{leaf}" for each in ([group] if group else _FLAT))]:
        if candidate in paths or _field(candidate) in paths:
            return candidate
    near = nearest(name, known_names())
    hint = f" Did you mean {near!r}?" if near else ""
    raise SettingError(f"{where}No setting {name!r}.{hint} All settings: raceway train --help.")


def known_names() -> list[str]:
    """Every setting's path, and what others call them."""
    return [*paths_of(TrainConfig), *OTHER_NAMES, *(f"ppo.{alias}" for alias in ALIASES)]


def _leaves(settings: Mapping[str, Any]) -> list[tuple[str, Any]]:
    found = []
    for name, value in settings.items():
        if name in GROUPS:
            if dataclasses.is_dataclass(value) and not isinstance(value, type):
                value = dataclasses.asdict(value)
            if not isinstance(value, Mapping):
                raise SettingError(f"{name}={value!r} is not a dict of settings.")
            found += [(f"{name}.{each}", part) for each, part in value.items()]
        else:
            found.append((name, value))
    return found


def _check(config: TrainConfig) -> None:
    """Finds what does not go together before anything is started."""
    try:
        config.ppo.check_num_envs(config.num_envs)
        task = tasks().get(config.env.removeprefix("raceway/"))
        if task is not None:
            args = {name: value for name, value in config.env_args.items() if name != "max_episode_steps"}
            native_arguments(task, args)
    except (TypeError, ValueError, OSError) as error:
        raise SettingError(str(error)) from None
