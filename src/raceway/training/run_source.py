"""The environment and the network that a finished or stopped run is played, evaluated or resumed with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import gymnasium
from gymnasium import Space
from gymnasium.vector import VectorEnv

from raceway.algos.spaces import different_spaces
from raceway.envs.python.makers import Registered, check_known, find_callable, find_spec, names_callable
from raceway.envs.user_native import is_path, plain
from raceway.errors import EnvError, SettingError, UserError
from raceway.messages import printable, quoted
from raceway.training.advice import Verb, how_to, is_found_by_command
from raceway.training.config import TrainConfig, lost_arguments, savable
from raceway.training.environments import EnvSource
from raceway.training.folder import RunFolder
from raceway.training.resolve import check_native_arguments
from raceway.training.trust import check_code, check_code_is_there
from raceway.training.user_network import network_of


def source_of_run(
    folder: RunFolder,
    config: TrainConfig,
    verb: Verb,
    *,
    env: Any = None,
    env_args: Mapping[str, Any] | None = None,
    trust: bool = False,
) -> EnvSource:
    """The environment of a run, or `env` in its place; `env_args` go over the run's own arguments.

    Code that only the folder names is checked; what the caller gives is trusted. What cannot be found is refused with
    the call that would work.
    """
    given = dict(env_args or {})
    lost = [name for name in lost_arguments(config.env_args) if name not in given]
    args = {name: value for name, value in {**config.env_args, **given}.items() if name not in lost}
    if env is not None:
        return _checked(EnvSource(given_env(env, given), {} if isinstance(env, VectorEnv) else args), config)
    if lost:
        raise SettingError(
            f"{folder.path} was begun with arguments for its environment that a file cannot hold: {', '.join(lost)}. "
            f"Give them again: {how_to(verb, folder.path, config)}."
        )
    if not trust and _is_of_a_script(config.env):  # its name means nothing here, so there is nothing to trust
        raise SettingError(_not_found(folder, config, verb))
    with _told_with_call(folder, config, verb):
        check_code_is_there(config)
    check_code(folder, savable(config), trust, given)
    with _told_with_call(folder, config, verb):
        check_env(config.env)
    return _checked(EnvSource(portable(config.env), args), config)


def _is_of_a_script(name: str) -> bool:
    """Whether it names something in a script, inside a function, or several things: what no other process finds."""
    return names_callable(name) and ("<" in name or name.startswith("__main__:"))


@contextmanager
def _told_with_call(folder: RunFolder, config: TrainConfig, verb: Verb) -> Iterator[None]:
    """What is not found is told with the call that gives it."""
    try:
        yield
    except UserError as error:
        raise SettingError(_not_found(folder, config, verb, error)) from None


def _not_found(folder: RunFolder, config: TrainConfig, verb: Verb, error: UserError | None = None) -> str:
    call = how_to(verb, folder.path, config)
    if error is None or call.startswith("raceway."):
        return (
            f"The environment of {folder.path} ({printable(config.env, 200)}) cannot be found by name. Give it in "
            f"Python: {call}. Or put it into a module and name that: --env my_task:MyTask."
        )
    return f"The environment of {folder.path} is not found. {error} To give another: {call} --env NAME."


def _checked(source: EnvSource, config: TrainConfig) -> EnvSource:
    """Refuses arguments that a native task does not take."""
    if isinstance(source.target, str):
        check_native_arguments(source.target, source.args, with_lane_for(source, config).lane)
    return source


def given_env(env: Any, env_args: Mapping[str, Any]) -> Any:
    """What a caller gives for an environment, if there is such a thing."""
    env = plain(env)
    if isinstance(env, str):
        check_env(env)
    check_is_made(env, env_args)
    return portable(env)


def check_is_made(env: Any, env_args: Mapping[str, Any]) -> None:
    """Refuses arguments for a vector environment, which has been made already."""
    if isinstance(env, VectorEnv) and env_args:
        raise SettingError(
            f"env_args={quoted(dict(env_args))}, but the vector environment that was given is there already. Give them "
            "where it is made."
        )


def portable(env: Any) -> Any:
    """The same environment for other processes: what makes it, if it is an id that a script has registered."""
    if not isinstance(env, str) or env not in gymnasium.registry or is_found_by_command(env):
        return env
    return Registered(gymnasium.spec(env))


def with_lane_for(source: EnvSource, config: TrainConfig) -> TrainConfig:
    """The settings of a run, but for a lane that is for native tasks if what is given in their place is none."""
    is_native = replace(source, lane="native").is_native
    return replace(config, lane="auto") if config.lane == "native" and not is_native else config


def check_env(env: str) -> None:
    """Refuses the name of an environment that there is not, before anything is started."""
    if is_path(env):  # it is loaded, and checked, where it is used
        return
    try:
        if names_callable(env):
            find_callable(env)
        elif ":" in env:
            find_spec(env)
        else:
            check_known(env)
    except ValueError as error:
        raise SettingError(str(error)) from None


def network_of_run(folder: RunFolder, config: TrainConfig, verb: Verb, network: Any, *, is_needed: bool = False) -> Any:
    """The (init, apply) pair that is given for a run. One that needs it is refused without.

    is_needed: whether something else than the settings says so: they do not in runs of older versions.
    """
    if network is None and (is_needed or config.network.custom is not None):
        name = "" if config.network.custom is None else f" ({printable(config.network.custom)})"
        call = how_to(verb, folder.path, config)
        if config.network.custom is None and not call.startswith("raceway."):
            call = f"{call} --network package.module:pair"
        raise SettingError(
            f"{folder.path} was trained with a network of your own{name}, which the folder does not hold. To give it: "
            f"{call}."
        )
    return network_of(network)


@contextmanager
def without_advice() -> Iterator[None]:
    """Leaves out advice on arguments of `raceway.train`, for calls that do not have them."""
    try:
        yield
    except EnvError as error:
        raise error.without_advice() from error.__cause__


def check_spaces(what: str, trained: tuple[Space, Space], found: tuple[Space, Space]) -> None:
    """Refuses an environment whose observations or actions are of another kind than those a policy was trained with.

    Bounds may differ.
    """
    for name, wanted, has in different_spaces(trained, found):
        raise SettingError(f"The policy was trained with {name}s of {wanted}, but {what} has {has}.")
