"""Spaces as plain data, so that a policy can be used without its environment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import Space, spaces

_LARGEST = 1 << 27
"""Numbers of an observation or action: a file that speaks of more is not believed."""


def describe(space: Space) -> dict[str, Any]:
    """A space as numbers, texts, lists and dicts."""
    match space:
        case spaces.Box():
            bounds = {"low": _numbers(space.low), "high": _numbers(space.high)}
            return {"kind": "box", "dtype": np.dtype(space.dtype).name, "shape": list(space.shape), **bounds}
        case spaces.Discrete():
            return {"kind": "discrete", "n": int(space.n), "start": int(space.start)}
        case spaces.MultiDiscrete():
            return {"kind": "multi_discrete", "nvec": space.nvec.tolist(), "start": space.start.tolist()}
        case spaces.MultiBinary():
            return {"kind": "multi_binary", "shape": list(space.shape)}
        case spaces.Dict():
            return {"kind": "dict", "parts": [[name, describe(part)] for name, part in space.items()]}
        case spaces.Tuple():
            return {"kind": "tuple", "parts": [describe(part) for part in space]}
    raise ValueError(f"{space} cannot be described as data.")


def described(data: Mapping[str, Any]) -> Space:
    """The space that `describe` told of."""
    match data.get("kind"):
        case "box":
            dtype = np.dtype(data["dtype"])
            if dtype.kind not in "biuf" or math.prod(data["shape"]) > _LARGEST:
                raise ValueError(f"There is no box of {dtype} in the shape {data['shape']}.")
            low, high = (_array(data[end], data["shape"], dtype) for end in ("low", "high"))
            return spaces.Box(low, high, tuple(data["shape"]), dtype.type)
        case "discrete":
            return spaces.Discrete(data["n"], start=data["start"])
        case "multi_discrete":
            return spaces.MultiDiscrete(np.array(data["nvec"]), start=np.array(data["start"]))
        case "multi_binary":
            if math.prod(data["shape"]) > _LARGEST:
                raise ValueError(f"There is nothing of the shape {data['shape']}.")
            return spaces.MultiBinary(data["shape"])
        case "dict":
            return spaces.Dict([(name, described(part)) for name, part in data["parts"]])
        case "tuple":
            return spaces.Tuple([described(part) for part in data["parts"]])
    raise ValueError(f"There is no kind of space called {data.get('kind')!r}.")


def _numbers(bound: np.ndarray) -> Any:
    """One number where all are equal, as texts where JSON has no number: infinity."""
    flat = [value if np.isfinite(value) else str(value) for value in bound.ravel().tolist()]
    return flat[0] if len(set(flat)) == 1 else flat


def _array(numbers: Any, shape: Any, dtype: np.dtype[Any]) -> np.ndarray:
    values = [float(each) if isinstance(each, str) else each for each in numbers] if isinstance(numbers, list) else None
    if values is None:
        return np.full(shape, float(numbers) if isinstance(numbers, str) else numbers, dtype)
    return np.array(values, dtype).reshape(shape)
