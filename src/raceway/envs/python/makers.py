"""From what is given to one maker per environment: a Gymnasium id, a class, a callable, or a list of callables."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec, load_env_creator
from gymnasium.error import DependencyNotInstalled
from gymnasium.wrappers import TimeLimit

from raceway.envs.catalog import no_such_env, positive, tasks
from raceway.envs.packages import missing, refuse_elsewhere
from raceway.envs.python.signatures import argument_names, wrong_arguments
from raceway.envs.python.stage import Maker
from raceway.errors import MissingPackageError, SettingError, UserError
from raceway.local_code import import_named
from raceway.memory import require_memory
from raceway.messages import quoted
from raceway.names import did_you_mean

_OF_GYMNASIUM = ("max_episode_steps", "disable_env_checker")
"""Arguments of `gymnasium.make` itself."""
_LEAST_BYTES = 4096
"""What an object with its maker and its entries takes at least."""


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
    require_memory(count * _LEAST_BYTES, f"num_envs={count} environments in Python", "Use fewer.")
    name, spec, make = _named(target)
    each = _arguments(count, shared, own, max_episode_steps)
    makers: list[Maker] = [partial(_installed, name, make(*its, index)) for index, its in enumerate(each)]
    return Makers(name, makers, copy.deepcopy(spec) if spec is not None else None)


_Make = Callable[[Mapping[str, Any], int | None, int], Maker]


def _named(target: Any) -> tuple[str, EnvSpec | None, _Make]:
    if isinstance(target, str) and not names_callable(target):
        spec = _portable(find_spec(target))
        return spec.id, spec, partial(_by_spec, spec)
    found = find_callable(target) if isinstance(target, str) else target
    return _name_of(found), None, lambda arguments, limit, index: _limited(called_with(found, arguments), limit)


def _installed(name: str, maker: Maker) -> gymnasium.Env:
    """Makes one, and says what to install if a package is missing."""
    try:
        return maker()
    except (ImportError, DependencyNotInstalled) as error:
        is_own = isinstance(error, ImportError) and error.name is None and name not in gymnasium.registry
        if is_own or isinstance(error, MissingPackageError):
            raise  # words of the user's own, which need not be about a package
        raise missing(name, error) from error


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


class Registered:
    """Makes environments of a specification that other processes do not know: its id was registered in a script."""

    def __init__(self, spec: EnvSpec) -> None:
        self.spec = _portable(spec)
        self.__name__ = spec.id

    def __call__(self, **kwargs: Any) -> gymnasium.Env:
        """One environment."""
        return _make_registered(self.spec, kwargs)


def names_callable(name: str) -> bool:
    """`package.module:callable`, where Gymnasium has `package.module:Id-v0`."""
    _, colon, rest = name.partition(":")
    return bool(colon) and ("<" in rest or all(part.isidentifier() for part in rest.split(".")))


def _by_spec(spec: EnvSpec, arguments: Mapping[str, Any], limit: int | None, index: int) -> Maker:
    arguments = dict(arguments)
    if limit is not None:
        arguments["max_episode_steps"] = limit
    if index > 0:  # the first of so many equal ones is looked at; it would only be said again
        arguments.setdefault("disable_env_checker", True)
    return partial(_make_registered, spec, arguments)


def _make_registered(spec: EnvSpec, arguments: Mapping[str, Any]) -> gymnasium.Env:
    """Makes a registered environment. Arguments that its constructor does not take, or lacks, are named."""
    try:
        return gymnasium.make(spec, **arguments)
    except TypeError as error:
        own = {name: value for name, value in arguments.items() if name not in _OF_GYMNASIUM}
        creator = _creator(spec)
        if creator is not None and (wrong := wrong_arguments(spec.id, creator, own, spec.kwargs)):
            raise SettingError(wrong) from error
        raise


def _creator(spec: EnvSpec) -> Callable[..., Any] | None:
    """The class or function of a registered environment; None if it cannot be imported."""
    try:
        return load_env_creator(spec.entry_point) if isinstance(spec.entry_point, str) else spec.entry_point
    except Exception:  # the error is reported when an environment is made
        return None


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
    makers: list[Maker] = [
        partial(_installed, _name_of(one), _limited(called_with(one, arguments), limit))
        for one, (arguments, limit) in zip(target, each, strict=True)
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
            f"env={target!r} is an environment instance, but more copies are needed. Give what makes one: its class, "
            f"or a function such as lambda: {type(target.unwrapped).__name__}(...)."
        )
    if not callable(target):
        raise SettingError(
            f"env={target!r} is no environment. Give a name (raceway list envs), 'package.module:callable', a callable "
            "that makes one, or a vector environment."
        )
    if wrong := wrong_arguments(_name_of(target), target, args):
        raise SettingError(wrong)
    return partial(target, **args) if args else target


def takes_argument(target: Any, name: str) -> bool:
    """Whether what `raceway.make` takes for an environment has a keyword argument of this name."""
    if isinstance(target, (list, tuple)):
        return all(takes_argument(each, name) for each in target)
    if isinstance(target, str) and names_callable(target):
        target = find_callable(target)
    elif isinstance(target, (str, Registered)):
        target = _creator(spec) if (spec := _spec_of(target)) is not None else None
    names = None if target is None else argument_names(target)
    return names is None or name in names


def _spec_of(target: str | Registered) -> EnvSpec | None:
    """Gymnasium's specification of an id; None for tasks that only Raceway has."""
    if isinstance(target, Registered):
        return target.spec
    return find_spec(target) if ":" in target else gymnasium.registry.get(target)


def find_callable(target: str) -> Callable[..., Any]:
    """What `package.module:callable` names."""
    found = find_named(target, "environment")
    if not callable(found):
        raise SettingError(f"{target!r} is a {type(found).__name__}, not something to call for an environment.")
    return found


def find_named(target: str, purpose: str) -> Any:
    """The object that `package.module:attribute` names. `purpose` is for messages: what it is needed for."""
    if "<" in target:
        raise not_found(target, purpose)
    module_name, _, path = target.partition(":")
    if not module_name or not path:
        raise SettingError(f"{quoted(target)} does not name the {purpose}. Use package.module:attribute.")
    try:
        found: Any = import_named(module_name)
    except ImportError as error:
        if not _is_itself(module_name, error):
            raise missing(target, error) from error
        raise not_found(target, purpose) from None
    for part in path.split("."):
        if not hasattr(found, part):
            names = [name for name in dir(found) if not name.startswith("_")]
            raise SettingError(f"Module {module_name!r} has no {path!r}.{did_you_mean(part, names)}")
        found = getattr(found, part)
    return found


def not_found(target: str, purpose: str) -> UserError:
    """The error for a `package.module:attribute` or `package:id` whose module is not there."""
    module = target.partition(":")[0]
    if "<" in target or module == "__main__":
        return SettingError(
            f"The {purpose} {quoted(target)} cannot be found by name: it was made in a script or inside a function, or "
            "has no name. Give the object itself, from Python, or define it at the top level of a module."
        )
    if purpose == "environment" and not names_callable(target):
        return missing(target, ModuleNotFoundError(name=module))
    return SettingError(
        f"No module {quoted(module)} for the {purpose} {quoted(target)}. Commands look for modules in the current "
        "folder and among installed packages, programs on sys.path."
    )


def _is_itself(module: str, error: ImportError) -> bool:
    """Whether the module that was asked for is missing, and not one that it imports."""
    return (
        isinstance(error, ModuleNotFoundError) and error.name is not None and f"{module}.".startswith(f"{error.name}.")
    )


def find_spec(name: str) -> EnvSpec:
    """What Gymnasium knows of an id; near names if it knows none of it."""
    module, _, id_ = name.rpartition(":")
    if module:
        try:
            import_named(module)
        except (ImportError, DependencyNotInstalled) as error:
            raise missing(name, error) from error
    check_known(id_)
    return gymnasium.spec(id_)


def check_known(name: str) -> None:
    """Refuses an id that neither Raceway nor Gymnasium knows, and suggests near ones."""
    if name.removeprefix("raceway/") in tasks() or name in gymnasium.registry:
        return
    refuse_elsewhere(name)
    raise SettingError(no_such_env(name))
