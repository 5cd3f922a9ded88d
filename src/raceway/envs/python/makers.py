"""From what is given to one maker per environment: a Gymnasium id, a class, a callable, or a list of callables."""

from __future__ import annotations

import copy
import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import TimeLimit

from raceway.envs.catalog import positive, tasks
from raceway.envs.python.stage import Maker
from raceway.errors import SettingError
from raceway.names import did_you_mean


@dataclass(frozen=True)
class Makers:
    """How to make the environments of a pool, in whichever process."""

    name: str
    makers: list[Maker]
    spec: EnvSpec | None = None
    """Of what has a name in Gymnasium."""


def makers_of(
    target: Any,
    num_envs: int | None,
    *,
    shared: Mapping[str, Any],
    own: Sequence[Mapping[str, Any]] | None = None,
    max_episode_steps: int | None = None,
) -> Makers:
    """Joins the arguments given to all environments with each one's own."""
    if isinstance(target, (list, tuple)):
        return _from_list(target, num_envs, shared, own, max_episode_steps)
    count = positive("num_envs", 1 if num_envs is None else num_envs)
    name, spec, make = _named(target)
    each = _arguments(count, shared, own, max_episode_steps)
    makers = [make(arguments, limit, index) for index, (arguments, limit) in enumerate(each)]
    return Makers(name, makers, copy.deepcopy(spec) if spec is not None else None)


_Make = Callable[[Mapping[str, Any], int | None, int], Maker]


def _named(target: Any) -> tuple[str, EnvSpec | None, _Make]:
    if isinstance(target, str) and not _names_callable(target):
        spec = _portable(find_spec(target))
        return spec.id, spec, partial(_by_spec, spec)
    found = find_callable(target) if isinstance(target, str) else target
    return _name_of(found), None, lambda arguments, limit, index: _limited(called_with(found, arguments), limit)


def _name_of(target: Any) -> str:
    while isinstance(target, partial):
        target = target.func
    return str(getattr(target, "__name__", type(target).__name__))


def _portable(spec: EnvSpec) -> EnvSpec:
    """What is in the main script has no module that another process could find it in."""
    entry = spec.entry_point
    if not isinstance(entry, str) or not entry.startswith("__main__:"):
        return spec
    spec = copy.deepcopy(spec)
    spec.entry_point = find_callable(entry)
    return spec


def _names_callable(name: str) -> bool:
    """`package.module:callable`, where Gymnasium has `package.module:Id-v0`."""
    _, colon, rest = name.partition(":")
    return bool(colon) and ("<" in rest or all(part.isidentifier() for part in rest.split(".")))


def _by_spec(spec: EnvSpec, arguments: Mapping[str, Any], limit: int | None, index: int) -> Maker:
    arguments = dict(arguments)
    if limit is not None:
        arguments["max_episode_steps"] = limit
    if index > 0:  # the first of so many equal ones is looked at; it would only be said again
        arguments.setdefault("disable_env_checker", True)
    return partial(gymnasium.make, spec, **arguments)


def _from_list(
    target: Sequence[Any],
    num_envs: int | None,
    shared: Mapping[str, Any],
    own: Sequence[Mapping[str, Any]] | None,
    max_episode_steps: int | None,
) -> Makers:
    if not target:
        raise SettingError("The list of environments is empty. Give one callable per environment.")
    if num_envs not in (None, len(target)):
        raise SettingError(
            f"num_envs={num_envs}, but the list has {len(target)} callables, one per environment. Leave num_envs out."
        )
    each = _arguments(len(target), shared, own, max_episode_steps)
    makers = [
        _limited(called_with(one, arguments), limit) for one, (arguments, limit) in zip(target, each, strict=True)
    ]
    names = {_name_of(one) for one in target}
    return Makers(names.pop() if len(names) == 1 else "environments", makers)


def _arguments(
    count: int, shared: Mapping[str, Any], own: Sequence[Mapping[str, Any]] | None, limit: int | None
) -> list[tuple[dict[str, Any], int | None]]:
    """The keyword arguments and the step limit of each environment."""
    if own is not None and (not isinstance(own, Sequence) or not all(isinstance(each, Mapping) for each in own)):
        raise TypeError(
            "env_kwargs must be a list with one dict per environment. For all alike, pass keyword arguments."
        )
    if own is not None and len(own) != count:
        raise ValueError(f"env_kwargs has {len(own)} entries for num_envs={count}. Give one dict per environment.")
    results = []
    for each in own or [{}] * count:
        arguments = {**shared, **each}
        results.append((arguments, _step_limit(arguments.pop("max_episode_steps", limit))))
    return results


def _step_limit(limit: Any) -> int | None:
    """-1 for none at all, None for the environment's own."""
    return limit if limit is None or (limit == -1 and limit is not True) else positive("max_episode_steps", limit)


def _limited(maker: Maker, limit: int | None) -> Maker:
    return maker if limit in (None, -1) else partial(_make_limited, maker, limit)


def _make_limited(maker: Maker, limit: int) -> gymnasium.Env:
    return TimeLimit(maker(), limit)


def called_with(target: Any, args: Mapping[str, Any]) -> Maker:
    """Refuses arguments that it does not take, with a near name."""
    if isinstance(target, gymnasium.Env):
        raise SettingError(
            f"env={target!r} is one environment that is there already, and no second can be made of it. Give what "
            f"makes one: its class, or a function such as lambda: {type(target.unwrapped).__name__}(...)."
        )
    if not callable(target):
        raise SettingError(
            f"env={target!r} is no environment. Give a name (raceway list envs), 'package.module:callable', a callable "
            "that makes one, or a vector environment."
        )
    try:
        names = inspect.signature(target).parameters
    except (TypeError, ValueError):  # some that are not written in Python do not tell
        return partial(target, **args)
    takes_all = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in names.values())
    for name in args:
        if name not in names and not takes_all:
            there_are = f"It takes: {', '.join(names)}." if names else "It takes none."
            raise SettingError(f"The environment has no argument {name!r}.{did_you_mean(name, names)} {there_are}")
    return partial(target, **args) if args else target


def find_callable(target: str) -> Callable[..., Any]:
    """What `package.module:callable` names."""
    if "<" in target or target.startswith("functools:"):
        raise SettingError(
            f"The environment of this run was made by {target!r}, which no name leads to. From Python it can be "
            "given again: raceway.evaluate(run, env=...). A function with a name in a module is found."
        )
    module_name, _, path = target.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not module_name.startswith(error.name):
            raise
        raise SettingError(
            f"No module {module_name!r} for the environment {target!r}. Modules are looked for in the current folder "
            "and among installed packages."
        ) from None
    for part in path.split("."):
        if not hasattr(found, part):
            names = [name for name in vars(found) if not name.startswith("_")]
            raise SettingError(f"Module {module_name!r} has no {path!r}.{did_you_mean(part, names)}")
        found = getattr(found, part)
    if not callable(found):
        raise SettingError(f"{target!r} is a {type(found).__name__}, not something to call for an environment.")
    return found


def find_spec(name: str) -> EnvSpec:
    """What Gymnasium knows of an id; near names if it knows none of it."""
    module, _, id_ = name.rpartition(":")
    if module:
        importlib.import_module(module)
    check_known(id_)
    return gymnasium.spec(id_)


def check_known(name: str) -> None:
    """Refuses an id that neither Raceway nor Gymnasium knows, and suggests near ones."""
    if name.removeprefix("raceway/") in tasks() or name in gymnasium.registry:
        return
    known = sorted({*tasks(), *(id_ for id_ in gymnasium.registry if "/" not in id_)})
    raise SettingError(f"No environment {name!r}.{did_you_mean(name, known)} All native names: raceway list envs.")
