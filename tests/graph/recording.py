"""Records of what reactions saw, exact to the bit, and the first place where two of them differ."""

from __future__ import annotations

import dataclasses
import hashlib
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Entry = tuple[int, str, str, str]
"""One reaction's run: the round, its name, the digest of what it saw, and the same for human eyes."""

Member = tuple[str, int]
"""A reactor by its name and its index in the bank."""


def digest(*values: Any) -> str:
    """Equal for values of the same types with the same bits, and for no others."""
    found = hashlib.blake2b(digest_size=10)
    _feed(found, values)
    return found.hexdigest()


def _feed(found: hashlib.blake2b, value: Any) -> None:
    if isinstance(value, np.ndarray | np.generic):
        found.update(f"{type(value).__name__} {value.dtype.str} {value.shape};".encode())
        found.update(value.tobytes())
    elif isinstance(value, tuple | list):
        found.update(f"{type(value).__name__} {len(value)};".encode())
        for each in value:
            _feed(found, each)
    elif isinstance(value, dict):
        found.update(b"dict;")
        _feed(found, list(value.items()))
    elif dataclasses.is_dataclass(value):
        found.update(f"{type(value).__qualname__};".encode())
        _feed(found, [getattr(value, each.name) for each in dataclasses.fields(value)])
    elif isinstance(value, float):
        found.update(b"float" + struct.pack("d", value))
    elif value is None or isinstance(value, bool | int | str | bytes):
        found.update(f"{type(value).__name__} {value!r};".encode())
    else:
        raise TypeError(f"no digest for {type(value)}")


def brief(value: Any, width: int = 160) -> str:
    """The value in one short line."""
    return _sketch(value)[:width]


def _sketch(value: Any) -> str:
    if isinstance(value, np.ndarray):
        some = ", ".join(map(str, value.ravel()[:2]))
        return f"{value.dtype.name}{list(value.shape)} of {some}.."
    if isinstance(value, tuple | list):
        inside = ", ".join(map(_sketch, value))
        return f"({inside})" if isinstance(value, tuple) else f"[{inside}]"
    if isinstance(value, dict):
        inside = ", ".join(f"{key!r}: {_sketch(each)}" for key, each in value.items())
        return f"{{{inside}}}"
    if dataclasses.is_dataclass(value):
        inside = ", ".join(_sketch(getattr(value, each.name)) for each in dataclasses.fields(value))
        return f"{type(value).__name__}({inside})"
    return repr(value)


def first_difference(expected: Mapping[Member, Sequence[Entry]], got: Mapping[Member, Sequence[Entry]]) -> str | None:
    """Where the two records part first, or None. Rounds come before names: the earliest difference is the cause."""
    if expected.keys() != got.keys():
        return f"reactors differ: expected {sorted(expected)}, got {sorted(got)}"
    found = []
    for member, entries in expected.items():
        others = got[member]
        for at in range(max(len(entries), len(others))):
            ours = entries[at] if at < len(entries) else None
            theirs = others[at] if at < len(others) else None
            if ours != theirs:
                found.append((min(entry[0] for entry in (ours, theirs) if entry), member, ours, theirs))
                break
    if not found:
        return None
    round_, (name, index), ours, theirs = min(found, key=lambda each: each[:2])
    return f"round {round_}, reactor {name}[{index}]:\n  expected {_line(ours)}\n  got      {_line(theirs)}"


def _line(entry: Entry | None) -> str:
    if entry is None:
        return "no further reaction"
    return f"reaction {entry[1]} in round {entry[0]} to see {entry[3]} ({entry[2]})"
