"""The infos of single environments, put together as Gymnasium's vector environments do it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

_NUMBERS = (int, float, bool)


class Why(str):
    """Why an environment was made anew. Its own infos may have a `fault` too, which is something else."""

    __slots__ = ()


def collected(notes: Iterable[tuple[int, dict[str, Any]]], size: int) -> dict[str, Any]:
    """One dict for all: an array per key, and a mask `_key` of the environments that have it."""
    infos: dict[str, Any] = {}
    for row, info in notes:
        _merge(infos, info, row, size)
    return infos


def fault_in(info: dict[str, Any]) -> bool:
    """Whether it tells of an environment that was made anew."""
    last = info.get("final_info")
    return isinstance(info.get("fault"), Why) or (isinstance(last, dict) and isinstance(last.get("fault"), Why))


def _merge(infos: dict[str, Any], info: dict[str, Any], row: int, size: int) -> None:
    for key, value in info.items():
        if isinstance(value, dict) and key != "final_obs":
            _merge(infos.setdefault(key, {}), value, row, size)
        else:
            if key not in infos:
                infos[key] = _column(key, value, size)
            infos[key][row] = value
        infos.setdefault(f"_{key}", np.zeros(size, np.bool_))[row] = True


def _column(key: str, value: Any, size: int) -> np.ndarray:
    """Room for values like this one; anything else than numbers and arrays is kept as an object."""
    if key != "final_obs":
        if type(value) in _NUMBERS or isinstance(value, np.number):
            return np.zeros(size, type(value))
        if isinstance(value, np.ndarray):
            return np.zeros((size, *value.shape), value.dtype)
    return np.full(size, None, object)
