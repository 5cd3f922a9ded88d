"""What travels on edges: values that nobody can change any more, wherever they are read.

A value is what it was when it was sent. Arrays become read-only, for the writer too; an array that is only a view of
memory that can still be written is copied. Lists and dicts are rebuilt for every reader. Other objects are handed over
as they are (between processes: as a pickled copy), and are the writer's and readers' own responsibility.
"""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

Plain = Any
"""Arrays, numbers, strings, None, and lists, tuples and dicts (with string keys) of these."""

_ATOMS = frozenset({int, float, bool, str, bytes, complex, type(None)})


def seal(value: Any) -> Any:
    """`value` as its readers may have it: arrays read-only, containers rebuilt."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is np.ndarray:
        return _seal_array(value)
    return _rebuild(value, seal)


def hand_out(value: Any) -> Any:
    """A sealed value for one of its readers: containers of its own."""
    kind = type(value)
    return value if kind in _ATOMS or kind is np.ndarray else _rebuild(value, hand_out)


def size_of(value: Any) -> int:
    """The bytes of its arrays and strings: what it costs to move it."""
    kind = type(value)
    if kind is np.ndarray:
        return int(value.nbytes)
    if kind is bytes or kind is str:
        return len(value)
    if kind is dict:
        return sum(map(size_of, value.values()))
    if kind is list or isinstance(value, tuple):
        return sum(map(size_of, value))
    if kind not in _ATOMS and dataclasses.is_dataclass(kind):
        return sum(size_of(getattr(value, name)) for name in _fields(kind))
    return 0


def _seal_array(array: np.ndarray) -> np.ndarray:
    root = array
    while type(root.base) is np.ndarray:
        root = root.base
    # Only whole pieces of memory can lie in shared memory as they are.
    whole = array.flags.c_contiguous or array.flags.f_contiguous
    if not whole or (root is not array and root.flags.writeable):
        array = array.copy()
    array.flags.writeable = False
    return array


def _rebuild(value: Any, part: Callable[[Any], Any]) -> Any:
    kind = type(value)
    if kind is tuple:
        return tuple([part(item) for item in value])
    if kind is list:
        return [part(item) for item in value]
    if kind is dict:
        return {key: part(item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return kind(*[part(item) for item in value])
    if dataclasses.is_dataclass(kind):
        return _rebuild_dataclass(value, part)
    return value


def _rebuild_dataclass(value: Any, part: Callable[[Any], Any]) -> Any:
    kind = type(value)
    # Not by the constructor: it may have other arguments than fields, and work to do.
    fresh = object.__new__(kind)
    for name in _fields(kind):
        object.__setattr__(fresh, name, part(getattr(value, name)))
    return fresh


@cache
def _fields(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def encode(message: Any) -> tuple[bytes, list[memoryview]]:
    """The message's structure as bytes, and its arrays' memory, untouched, beside it."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    return head, [buffer.raw() for buffer in buffers]


def decode(head: bytes, parts: Sequence[Any]) -> Any:
    """The message again, its arrays over `parts`, in place."""
    return pickle.loads(head, buffers=parts)


def copy_plain(value: Any, where: str) -> Plain:
    """A copy of a plain value; `where` it stood is for the message if it is not one."""
    kind = type(value)
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
