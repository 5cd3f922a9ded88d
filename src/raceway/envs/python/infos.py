"""The infos of single environments, put together as Gymnasium's vector environments do it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

_NUMBERS = (int, float, bool)
_DEEPEST = 32
"""Levels of nested dicts that are merged. Deeper ones are kept as objects."""


class Why(str):
    """Why an environment was made anew. Its own infos may have a `fault` too, which is something else."""

    __slots__ = ()


def collected(notes: Iterable[tuple[int, dict[str, Any]]], size: int) -> dict[str, Any]:
    """One dict for all: an array per key, and a mask `_key` of the environments that have it."""
    infos: dict[str, Any] = {}
    for row, info in notes:
        _merge(infos, info, row, size)
    return infos


def count_faults(faults: np.ndarray, notes: Iterable[tuple[int, dict[str, Any]]]) -> None:
    """Adds up how often each environment was made anew."""
    for env, info in notes:
        if _fault_in(info):
            faults[env] += 1


def _fault_in(info: dict[str, Any]) -> bool:
    last = info.get("final_info")
    return isinstance(info.get("fault"), Why) or (isinstance(last, dict) and isinstance(last.get("fault"), Why))


def _merge(
    infos: dict[str, Any], info: dict[str, Any], row: int, size: int, within: tuple[dict[str, Any], ...] = ()
) -> None:
    """Adds one environment's info. `within`: the dicts that contain it."""
    within = (*within, info)
    for key, value in info.items():
        column = infos.get(key)
        is_nested = isinstance(value, dict) and key != "final_obs" and (column is None or isinstance(column, dict))
        if is_nested and len(within) < _DEEPEST and not any(value is each for each in within):
            _merge(infos.setdefault(key, {}), value, row, size, within)
        else:
            if column is None:
                column = infos[key] = _column(key, value, size)
            if not _put(column, row, value):
                column = infos[key] = _as_objects(column, infos.get(f"_{key}", ()), size)
                column[row] = value
        infos.setdefault(f"_{key}", np.zeros(size, np.bool_))[row] = True


def _put(column: Any, row: int, value: Any) -> bool:
    """Writes a value to its row if the column can hold it, and returns whether it did.

    Numbers are cast to the column's type, as Gymnasium does. An array of another shape or type, which Gymnasium would
    broadcast or cast, and what cannot be cast, for which it raises, are not written.
    """
    if isinstance(column, dict):
        return False
    is_alike = isinstance(value, np.ndarray) and (value.shape, value.dtype) == (column.shape[1:], column.dtype)
    if column.ndim > 1 and not is_alike:
        return False
    try:
        column[row] = value
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _as_objects(column: Any, present: Any, size: int) -> np.ndarray:
    """A column of objects with the values of the rows that are present."""
    objects = np.full(size, None, object)
    for row in np.flatnonzero(present).tolist():
        objects[row] = _at(column, row)
    return objects


def _at(column: Any, row: int) -> Any:
    if not isinstance(column, dict):
        return column[row]
    given = [key for key in column if not str(key).startswith("_") and column[f"_{key}"][row]]
    return {key: _at(column[key], row) for key in given}


def _column(key: str, value: Any, size: int) -> np.ndarray:
    """Room for values like this one; anything else than numbers and arrays is kept as an object."""
    if key != "final_obs":
        if type(value) in _NUMBERS or isinstance(value, np.number):
            return np.zeros(size, type(value))
        if isinstance(value, np.ndarray):
            return np.zeros((size, *value.shape), value.dtype)
    return np.full(size, None, object)
