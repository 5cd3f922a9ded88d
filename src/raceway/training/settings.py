"""Settings by name: values are brought to the type of their field, unknown names are told with a near one."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import math
import os
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from raceway.errors import SettingError
from raceway.messages import quoted
from raceway.names import LONGEST_NAME, did_you_mean

WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False, "none": None}
"""What a command line takes for flags and for None."""

T = TypeVar("T")


@functools.cache
def types_of(kind: type) -> Mapping[str, Any]:
    """The type of every field of a dataclass that can be set."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind) if field.init}


def paths_of(kind: type, prefix: str = "") -> dict[str, Any]:
    """Every setting of a tree of dataclasses with its type, by its path, such as `ppo.learning_rate`."""
    found: dict[str, Any] = {}
    for name, type_ in types_of(kind).items():
        if dataclasses.is_dataclass(type_) and isinstance(type_, type):
            found |= paths_of(type_, f"{prefix}{name}.")
        else:
            found[prefix + name] = type_
    return found


def replaced(config: T, values: Mapping[str, Any], prefix: str = "") -> T:
    """`config` with the values of `{"num_envs": 8, "ppo.gamma": 0.9}` in their places."""
    by_field: dict[str, Any] = {}
    kind: Any = type(config)
    for path, value in values.items():
        name, _, rest = path.partition(".")
        if rest:
            by_field.setdefault(name, {})[rest] = value
        else:
            by_field[name] = fitted(prefix + path, value, types_of(kind)[name])
    for name, value in by_field.items():
        part = getattr(config, name)
        if dataclasses.is_dataclass(part) and isinstance(value, Mapping):
            by_field[name] = replaced(part, value, f"{prefix}{name}.")
    return dataclasses.replace(config, **by_field)  # type: ignore[type-var]


def fitted(name: str, value: Any, type_: Any) -> Any:
    """`value` as the type of its field wants it: 1e6 is a whole number, a list from a file becomes a tuple."""
    origin = get_origin(type_)
    if type_ is Any:
        return value
    if origin in (Union, types.UnionType):
        return _one_of(name, value, get_args(type_))
    if origin is Literal:
        return _choice(name, value, get_args(type_))
    if origin is tuple or type_ is tuple:
        return _items(name, value, get_args(type_))
    if origin in (dict, Mapping) or type_ in (dict, Mapping):
        if isinstance(value, Mapping):
            return dict(value)
        raise SettingError(f"{name}={quoted(value)} is not a dict of names and values.")
    return _PLAIN[type_](name, value) if type_ in _PLAIN else value


def _one_of(name: str, value: Any, alternatives: Sequence[Any]) -> Any:
    if value is None and type(None) in alternatives:
        return None
    present = [each for each in alternatives if each is not type(None)]
    for each in present:
        try:
            return fitted(name, value, each)
        except SettingError as error:
            last = error
    raise last


def _choice(name: str, value: Any, choices: Sequence[Any]) -> Any:
    if value in choices:
        return value
    words = [str(each) for each in choices]
    raise SettingError(f"{name}={quoted(value)} is not one of {', '.join(words)}.{did_you_mean(str(value), words)}")


def _items(name: str, value: Any, types_: Sequence[Any]) -> tuple[Any, ...]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise SettingError(f"{name}={quoted(value)} is not a list.")
    if not types_:
        return tuple(value)
    if len(types_) == 2 and types_[1] is Ellipsis:
        types_ = [types_[0]] * len(value)
    if len(types_) != len(value):
        raise SettingError(f"{name}={quoted(value)} has {len(value)} entries. Give {len(types_)}.")
    return tuple(fitted(name, each, type_) for each, type_ in zip(value, types_, strict=True))


def _flag(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise SettingError(f"{name}={quoted(value)} is not a flag. Use true or false.")


def _whole(name: str, value: Any) -> int:
    if not isinstance(value, bool) and hasattr(value, "__index__"):
        return int(value)
    if isinstance(value, float) and value.is_integer():  # 1e6 is how people write a million
        return int(value)
    raise SettingError(f"{name}={quoted(value)} is not a whole number.")


def _real(name: str, value: Any) -> float:
    if isinstance(value, bool) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise SettingError(f"{name}={quoted(value)} is not a number.")
    try:
        number = float(value)
    except OverflowError:  # an integer beyond all floats
        number = math.inf if value > 0 else -math.inf
    if math.isnan(number):
        raise SettingError(f"{name}={quoted(value)} is not a number.")
    return number


def _text(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if hasattr(value, "__fspath__"):
        return os.fsdecode(value)
    raise SettingError(f"{name}={quoted(value)} is not a text.")


_PLAIN = {bool: _flag, int: _whole, float: _real, str: _text}


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The path that is meant by a wrong one, if any is near. It may be anywhere in the tree."""
    if len(name) > LONGEST_NAME:
        return None
    known = list(known)
    by_leaf = {path.rpartition(".")[2]: path for path in reversed(known)}
    if near := difflib.get_close_matches(name, known, n=1, cutoff=0.7):
        return near[0]
    near = difflib.get_close_matches(name.rpartition(".")[2], by_leaf, n=1, cutoff=0.7)
    return by_leaf[near[0]] if near else None
