"""Gymnasium spaces from the columns that a native task describes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import Space, spaces


def space_of(column: Mapping[str, Any]) -> Space:
    """The space of one column: Discrete, or a Box with its bounds."""
    if column["discrete"]:
        return spaces.Discrete(column["n"])
    dtype = np.dtype(column["dtype"])
    low, high = (np.array(column[end], dtype=dtype).reshape(column["shape"]) for end in ("low", "high"))
    return spaces.Box(low, high, dtype=dtype.type)


def bytes_of(column: Mapping[str, Any]) -> int:
    """Of one environment's entry in a column."""
    return math.prod(column["shape"]) * np.dtype(column["dtype"]).itemsize


def observation_space_of(layout: Mapping[str, Any]) -> Space:
    """The observation's space: its only leaf, or a Tuple or Dict of the leaves."""
    leaves = [space_of(column) for column in layout["observation"]]
    if layout["container"] == "tuple":
        return spaces.Tuple(leaves)
    if layout["container"] == "dict":
        return spaces.Dict({column["name"]: leaf for column, leaf in zip(layout["observation"], leaves, strict=True)})
    return leaves[0]


def difference_of(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[str, str] | None:
    """What the first part is in which two layouts differ, and how the other's is; None if they are equal."""
    for part in ("observation", "action", "info", "state"):
        ours, theirs = ([layout[part]] if part == "action" else layout[part] for layout in (one, other))
        if ours == theirs:
            continue
        for a, b in zip(ours, theirs, strict=False):
            if a != b:
                name = f" {a['name']!r}" if a["name"] else ""
                return f"{part}{name}", f"{_in_words(b)}, not {_in_words(a)}"
        return part, f"{len(theirs)} entries, not {len(ours)}"
    return None


def _in_words(column: Mapping[str, Any]) -> str:
    if column["discrete"] or "low" in column:
        return str(space_of(column))
    return f"{column['dtype']}{list(column['shape'])}"
