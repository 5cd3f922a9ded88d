"""Plain values as JSON and named arrays, and back. Whatever the JSON says, nothing is made of it but plain values."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np

from raceway.graph.errors import GraphError
from raceway.graph.values import field_names, is_record

DEEPEST = 100
"""Values within values. Nobody needs more, and what goes through them is not to run out of stack."""


class Record(dict[str, Any]):
    """The fields of a dataclass or named tuple whose class is not known here: a file names no code."""


def packed(value: Any, path: str, arrays: dict[str, np.ndarray], depth: int = 0) -> Any:
    """JSON for a plain value. What JSON has no word for is an object with one key that begins with a dollar sign."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, (np.ndarray, np.generic, bytes)):
        name = f"{len(arrays)}:{path}"
        arrays[name] = np.frombuffer(value, np.uint8) if isinstance(value, bytes) else np.asarray(value)
        kind = "$bytes" if isinstance(value, bytes) else "$array" if isinstance(value, np.ndarray) else "$number"
        return {kind: name}
    if depth == DEEPEST:
        raise GraphError(f"{path[:200]}... cannot be packed: more than {DEEPEST} values are within each other.")

    def inner(item: Any, name: Any) -> Any:
        return packed(item, f"{path}/{name}", arrays, depth + 1)

    if type(value) is list:
        return [inner(item, i) for i, item in enumerate(value)]
    if type(value) is tuple:
        return {"$tuple": [inner(item, i) for i, item in enumerate(value)]}
    if type(value) is dict:
        return {"$dict": [[packed(key, path, arrays, depth + 1), inner(item, key)] for key, item in value.items()]}
    if type(value) is Record:
        return {"$record": [[name, inner(item, name)] for name, item in value.items()]}
    record: Any = type(value)
    if is_record(record):
        return {"$record": [[name, inner(getattr(value, name), name)] for name in field_names(record)]}
    raise GraphError(
        f"{path} is a {type(value).__name__}, which cannot be packed. On connections with a delay, send "
        "arrays, numbers, strings, and lists, tuples, dicts and dataclasses of them."
    )


class Unpacking:
    """Makes values of what `packed` gave. `arrays` holds those that no value has taken yet: each belongs to one."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = arrays

    def value(self, given: Any, path: str, depth: int = 0) -> Any:
        """A value again; `path` is where it stands, for the message if it is none."""
        if isinstance(given, list):
            return self._items(given, path, depth)
        if not isinstance(given, dict):
            return given
        kind, what = next(iter(given.items())) if len(given) == 1 else (None, None)
        if kind in ("$array", "$number", "$bytes"):
            return self._array(kind, what, path)
        if kind in ("$tuple", "$record", "$dict") and isinstance(what, list):
            if kind == "$tuple":
                return tuple(self._items(what, path, depth))
            return self._mapping(kind, what, path, depth)
        raise GraphError(f"{path} is {shown(given)}, which stands for no value.")

    def _items(self, given: list[Any], path: str, depth: int) -> list[Any]:
        if depth == DEEPEST:
            raise GraphError(f"{path[:200]}... has more than {DEEPEST} values within each other.")
        return [self.value(item, f"{path}/{i}", depth + 1) for i, item in enumerate(given)]

    def _array(self, kind: str, name: Any, path: str) -> Any:
        array = self.arrays.pop(name, None) if isinstance(name, str) else None
        if array is None:
            raise GraphError(f"{path} wants an array {shown(name)}, which is not there, or not a second time.")
        if kind == "$array":
            return array
        if kind == "$number" and array.shape == ():
            return array[()]
        if kind == "$bytes" and array.dtype == np.uint8 and array.ndim == 1:
            return array.tobytes()
        raise GraphError(f"{path} cannot be made of {array.dtype} of shape {array.shape}: {kind[1:]} is wanted.")

    def _mapping(self, kind: str, pairs: list[Any], path: str, depth: int) -> dict[Any, Any]:
        made: dict[Any, Any] = Record() if kind == "$record" else {}
        for pair in self._items(pairs, path, depth):
            if not isinstance(pair, list) or len(pair) != 2:
                raise GraphError(f"{path} has {shown(pair)} where a name and its value are wanted.")
            name, value = pair
            try:
                is_new = name not in made
            except TypeError:  # lists and arrays are no keys
                is_new = False
            if not is_new or (kind == "$record" and not isinstance(name, str)):
                raise GraphError(f"{path} has {shown(name)} for a name, or has it twice.")
            made[name] = value
        return made


def shown(value: Any) -> str:
    """What stands in a file, short enough for a message and without letters that a terminal would obey."""
    return reprlib.repr(value)
