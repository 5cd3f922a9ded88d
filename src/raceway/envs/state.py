"""A pool's state as named arrays: nothing in it but numbers, so that it can be stored without pickle."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Column = Mapping[str, Any]

_RANDOM = ("state_high", "state_low", "increment_high", "increment_low", "has_half", "half")
_EPISODE = ("steps", "number", "status", "faults")


def split(columns: Sequence[Column], saved: tuple[np.ndarray, ...]) -> dict[str, np.ndarray]:
    """What the native side saved, a named array per part; row i belongs to environment i."""
    rows, random, counts, sums = saved
    arrays = {}
    offset = 0
    for column in columns:
        size = _bytes(column)
        flat = np.ascontiguousarray(rows[:, offset : offset + size]).view(column["dtype"])
        arrays[f"env.{column['name']}"] = flat.reshape(len(rows), *column["shape"])
        offset += size
    for i, name in enumerate(_RANDOM):
        arrays[f"random.{name}"] = random[:, i].astype(np.uint64)
    for i, name in enumerate(_EPISODE):
        arrays[f"episode.{name}"] = counts[:, i].copy()
    arrays["episode.return"], arrays["episode.seconds"] = sums[:, 0].copy(), sums[:, 1].copy()
    return arrays


def join(columns: Sequence[Column], num_envs: int, state: Mapping[str, Any]) -> tuple[np.ndarray, ...]:
    """The arrays of `split` as the native side takes them. What is missing, extra or misshapen is refused."""
    expected = _expected(columns, num_envs)
    if missing := [name for name in expected if name not in state]:
        raise ValueError(f"the state lacks {missing[0]!r}. Pass what state() of such a pool returned.")
    if extra := [name for name in state if name not in expected]:
        raise ValueError(f"the state has {extra[0]!r}, which this task does not know. Was it saved by another task?")
    arrays = {}
    for name, (dtype, shape) in expected.items():
        array = np.asarray(state[name])
        if array.dtype != dtype or array.shape != shape:
            raise ValueError(
                f"the state's {name!r} is {array.dtype} of shape {array.shape}: this pool has {dtype} of shape {shape}."
            )
        arrays[name] = array
    return _packed(columns, num_envs, arrays)


def _packed(columns: Sequence[Column], num_envs: int, arrays: Mapping[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    parts = [
        np.ascontiguousarray(arrays[f"env.{column['name']}"]).reshape(num_envs, -1).view(np.uint8) for column in columns
    ]
    rows = np.ascontiguousarray(np.concatenate(parts, axis=1))
    random = np.stack([arrays[f"random.{name}"].view(np.int64) for name in _RANDOM], axis=1)
    counts = np.stack([arrays[f"episode.{name}"] for name in _EPISODE], axis=1)
    sums = np.stack([arrays["episode.return"], arrays["episode.seconds"]], axis=1)
    return rows, random, counts, sums


def _expected(columns: Sequence[Column], num_envs: int) -> dict[str, tuple[np.dtype, tuple[int, ...]]]:
    dtypes = {f"random.{name}": "uint64" for name in _RANDOM}
    dtypes |= {f"episode.{name}": "int64" for name in _EPISODE}
    dtypes |= {"episode.return": "float64", "episode.seconds": "float64"}
    parts = {f"env.{c['name']}": (np.dtype(c["dtype"]), (num_envs, *c["shape"])) for c in columns}
    return parts | {name: (np.dtype(dtype), (num_envs,)) for name, dtype in dtypes.items()}


def _bytes(column: Column) -> int:
    return np.dtype(column["dtype"]).itemsize * math.prod(column["shape"])
