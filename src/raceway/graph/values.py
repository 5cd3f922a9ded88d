"""What travels on edges: values that nobody can change any more, wherever they are read.

A value is what it was when it was sent. Arrays become read-only, for the writer too; an array that is only a view of
memory that can still be written is copied. Lists and dicts are rebuilt for every reader. Other objects are handed over
as they are (between processes: as a pickled copy), and are the writer's and readers' own responsibility.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from raceway.loans import is_on_loan

Plain = Any
"""Arrays, numbers, strings, None, and lists, tuples and dicts (with string keys) of these."""

_ATOMS = frozenset({int, float, bool, str, bytes, complex, type(None)})


def seal(value: Any) -> Any:
    """`value` as its readers may have it: arrays read-only, containers rebuilt."""
    kind: Any = type(value)
    if kind in _ATOMS:
        return value
    if kind is np.ndarray:
        return _seal_array(value)
    if isinstance(value, np.ndarray):
        value = value.copy()
        value.flags.writeable = False
        return value
    return _rebuild(value, seal)


def hand_out(value: Any) -> Any:
    """A sealed value for one of its readers: containers of its own."""
    kind: Any = type(value)
    return value if kind in _ATOMS or kind is np.ndarray else _rebuild(value, hand_out)


def size_of(value: Any) -> int:
    """The bytes of its arrays and strings: what it costs to move it."""
    kind: Any = type(value)
    if kind is np.ndarray:
        return int(value.nbytes)
    if kind is bytes or kind is str:
        return len(value)
    if kind is dict:
        return sum(map(size_of, value.values()))
    if kind is list or kind is tuple:
        return sum(map(size_of, value))
    if kind not in _ATOMS and is_record(kind):
        return sum(size_of(getattr(value, name)) for name in field_names(kind))
    return 0


def _seal_array(array: np.ndarray) -> np.ndarray:
    flags = array.flags
    if array.base is None and flags.c_contiguous:
        flags.writeable = False
        return array
    root = array
    while type(root.base) is np.ndarray:
        root = root.base
    # Only whole pieces of memory can lie in shared memory as they are.
    whole = array.flags.c_contiguous or array.flags.f_contiguous
    is_ours = root is array and root.base is None
    if not whole or (root.flags.writeable and not is_ours and not is_on_loan(root)):
        array = array.copy()
    else:
        root.flags.writeable = False
    array.flags.writeable = False
    return array


def _rebuild(value: Any, part: Callable[[Any], Any]) -> Any:
    kind: Any = type(value)
    if kind is tuple:
        return tuple([part(item) for item in value])
    if kind is list:
        return [part(item) for item in value]
    if kind is dict:
        return {key: part(item) for key, item in value.items()}
    if is_record(kind):
        fields = {name: part(getattr(value, name)) for name in field_names(kind)}
        return make_record(kind, {**getattr(value, "__dict__", {}), **fields})
    return value


@cache
def is_record(kind: Any) -> bool:
    """Whether it is a dataclass or a named tuple, and nothing else besides."""
    if issubclass(kind, (dict, list, set, str, bytes, int, float)):
        return False
    return hasattr(kind, "_fields") if issubclass(kind, tuple) else dataclasses.is_dataclass(kind)


@cache
def field_names(kind: Any) -> tuple[str, ...]:
    if issubclass(kind, tuple):
        return tuple(kind._fields)
    return tuple(field.name for field in dataclasses.fields(kind))


def make_record(kind: Any, fields: Mapping[str, Any]) -> Any:
    if issubclass(kind, tuple):
        return kind._make([fields[name] for name in kind._fields])
    # Not by the constructor: it may have other arguments than fields, and work to do.
    record = object.__new__(kind)
    for name, value in fields.items():
        object.__setattr__(record, name, value)
    return record


def copy_plain(value: Any, where: str) -> Plain:
    """A copy of a plain value; `where` it stood is for the message if it is not one."""
    kind: Any = type(value)
    if kind in _ATOMS and kind is not complex:
        return value
    if isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
        return value.copy()
    if kind is list or kind is tuple:
        return kind([copy_plain(item, f"{where}[{i}]") for i, item in enumerate(value)])
    if kind is dict and all(type(key) is str for key in value):
        return {key: copy_plain(item, f"{where}[{key!r}]") for key, item in value.items()}
    raise TypeError(
        f"{where} is a {kind.__name__}, which a snapshot cannot hold: only arrays, numbers, strings, and lists, tuples "
        "and string-keyed dicts of them. Override save() and load() of the reactor to give and take its state as such."
    )
