"""Spaces as plain data, so that a policy can be used without its environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import Space, spaces

from raceway.messages import quoted
from raceway.training.shapes import size_of

_LARGEST = 1 << 24
"""Numbers of a whole observation or action: a file that describes more is not believed."""


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
    """The space that `describe` gave the data of."""
    if (size := _size(data)) > _LARGEST:
        raise ValueError(f"A space of {size:,} numbers is larger than any: {_LARGEST:,} is the most.")
    return _space(data)


def _size(data: Mapping[str, Any]) -> int:
    """How many numbers a space has, of which nothing is made yet."""
    if "parts" in data:
        parts = (part[1] if data.get("kind") == "dict" else part for part in data["parts"])
        return sum(_size(part) for part in parts)
    return size_of(data["shape"], _LARGEST) if "shape" in data else 1


def _space(data: Mapping[str, Any]) -> Space:
    match data.get("kind"):
        case "box":
            dtype = np.dtype(data["dtype"])
            if dtype.kind not in "biuf":
                raise ValueError(f"There is no box of {dtype}.")
            low, high = (_array(data[end], data["shape"], dtype) for end in ("low", "high"))
            return spaces.Box(low, high, tuple(data["shape"]), dtype.type)
        case "discrete":
            return spaces.Discrete(data["n"], start=data["start"])
        case "multi_discrete":
            return spaces.MultiDiscrete(np.array(data["nvec"]), start=np.array(data["start"]))
        case "multi_binary":
            return spaces.MultiBinary(data["shape"])
        case "dict":
            return spaces.Dict([(name, _space(part)) for name, part in data["parts"]])
        case "tuple":
            return spaces.Tuple([_space(part) for part in data["parts"]])
    raise ValueError(f"There is no kind of space called {quoted(data.get('kind'))}.")


def _numbers(bound: np.ndarray) -> Any:
    """One number where all are equal, as texts where JSON has no number: infinity."""
    flat = [value if np.isfinite(value) else str(value) for value in bound.ravel().tolist()]
    return flat[0] if len(set(flat)) == 1 else flat


def _array(numbers: Any, shape: Any, dtype: np.dtype[Any]) -> np.ndarray:
    values = [float(each) if isinstance(each, str) else each for each in numbers] if isinstance(numbers, list) else None
    if values is None:
        return np.full(shape, float(numbers) if isinstance(numbers, str) else numbers, dtype)
    return np.array(values, dtype).reshape(shape)
