"""What environments hand out, whatever it is: told, copied and hashed without trusting it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

_DEEPEST = 20


def shown(value: Any, most: int = 60) -> str:
    """A value for a message: short, in one line, and without letters that a terminal would obey."""
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__} whose repr raises"
    text = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return text if len(text) <= most else f"{text[: most - 3]}..."


def kind_of(value: Any) -> str:
    """`a tuple of 2`, `an array (4,) of float64`, `NoneType`."""
    if isinstance(value, np.ndarray):
        return f"an array {value.shape} of {value.dtype}"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    return "None" if value is None else f"a {type(value).__name__}"


def digest(*values: Any) -> bytes:
    """A short hash of numbers, texts, arrays, and nests of them. Of other objects only the type counts."""
    hashed = hashlib.blake2b(digest_size=8)
    _add(hashed, values, 0)
    return hashed.digest()


def _add(hashed: Any, value: Any, depth: int) -> None:
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype != object:
        array = np.asarray(value)
        hashed.update(f"{array.dtype.str}{array.shape}".encode())
        hashed.update(array.tobytes())
    elif value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        hashed.update(f"{type(value).__name__}{value!r}".encode(errors="replace"))
    elif isinstance(value, (Mapping, list, tuple, np.ndarray)) and depth < _DEEPEST:
        pairs = list(value.items()) if isinstance(value, Mapping) else list(enumerate(value))
        hashed.update(f"{type(value).__name__}{len(pairs)}".encode())
        for name, item in pairs:
            hashed.update(repr(name).encode(errors="replace"))
            _add(hashed, item, depth + 1)
    else:
        hashed.update(type(value).__name__.encode())


def arrays_in(value: Any, depth: int = 0) -> list[np.ndarray]:
    """The arrays within a value, in order."""
    if isinstance(value, np.ndarray):
        return [value]
    if depth == _DEEPEST:
        return []
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
    return [array for item in items for array in arrays_in(item, depth + 1)]
