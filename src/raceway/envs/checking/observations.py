"""One observation held against its space, and the size of the numbers in many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from gymnasium import Space, spaces

from raceway.envs.checking.values import kind_of, shown
from raceway.report.words import number

Fault = tuple[str, str, str, bool]
"""What is wrong: code, what, what to do, whether training breaks by it."""


def faults(space: Space, obs: Any, where: str) -> Iterator[Fault]:
    """All that is wrong with an observation."""
    if isinstance(space, spaces.Dict):
        if not isinstance(obs, Mapping) or set(obs) != set(space.spaces):
            keys = sorted(map(str, obs)) if isinstance(obs, Mapping) else kind_of(obs)
            yield (
                "observation-keys",
                f"{where} is a dict of {sorted(space.spaces)} by its space, but has {shown(keys)}.",
                "return a dict with exactly the keys of the space",
                True,
            )
            return
        for key, part in space.spaces.items():
            yield from faults(part, obs[key], f"{where}[{key!r}]")
    elif isinstance(space, spaces.Tuple):
        if not isinstance(obs, (tuple, list)) or len(obs) != len(space.spaces):
            text = f"{where} is a tuple of {len(space.spaces)} by its space, but it is {kind_of(obs)}."
            yield "observation-keys", text, "return a tuple with a part for each of the space's", True
            return
        for index, part in enumerate(space.spaces):
            yield from faults(part, obs[index], f"{where}[{index}]")
    elif isinstance(space, (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)):
        yield from _array_faults(space, obs, where)
    else:
        yield from _other_faults(space, obs, where)


def _array_faults(space: Space, obs: Any, where: str) -> Iterator[Fault]:
    shape = tuple(space.shape or ())
    try:
        array = np.asarray(obs)
    except Exception:
        array = np.asarray(None, dtype=object)
    if array.dtype.kind not in "biuf":
        fix = f"return an array of {space.dtype}"
        yield "observation-kind", f"{where} is {kind_of(obs)}: {shown(obs)}.", fix, True
        return
    if array.shape != shape:
        text = f"{where} has the shape {array.shape}, its space {shape}."
        yield "observation-shape", text, "make the two agree", True
        return
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        bad = array[~np.isfinite(array)].ravel()[0]
        yield (
            "observation-not-finite",
            f"{where} has {bad} in it: one such number spoils the whole policy.",
            "find out where it comes from (a division by zero, a simulation that diverged) and end the episode there",
            True,
        )
        return
    if isinstance(space, spaces.Box):
        yield from _box_faults(space, obs, array, where)
    elif not _contains(space, array.astype(space.dtype) if shape else np.int64(array)):
        fix = "count from the space's start, 0 if none was given, to below n"
        yield "observation-range", f"{where} is {shown(obs)}, which {space} does not have.", fix, True


def _box_faults(space: spaces.Box, obs: Any, array: np.ndarray, where: str) -> Iterator[Fault]:
    if not isinstance(obs, (np.ndarray, np.generic)):
        text = f"{where} is {kind_of(obs)}, not an array: converting it takes time at each step."
        yield "observation-kind", text, f"return an array of {space.dtype}", False
    elif array.dtype != space.dtype and not np.can_cast(array.dtype, space.dtype, "same_kind"):
        text = f"{where} is {array.dtype}, its space {space.dtype}: what it holds is cut off."
        yield "observation-dtype", text, f"return {space.dtype}, or make the space one of {array.dtype}", True
    elif array.dtype != space.dtype:
        text = f"{where} is {array.dtype}, its space {space.dtype}: it is converted at each step."
        yield "observation-dtype", text, f"return {space.dtype}, or make the space one of {array.dtype}", False
    outside = (array < space.low) | (array > space.high)
    if outside.any():
        place = tuple(int(each[0]) for each in np.nonzero(outside)) if array.ndim else ()
        low, high = (number(float(bound[place])) for bound in (space.low, space.high))
        at = f"[{', '.join(map(str, place))}]" if place else ""
        text = f"{where}{at} is {number(float(array[place]))}, outside of its space ({low} to {high})."
        yield "observation-outside", text, "widen the bounds, or clip", False


def _other_faults(space: Space, obs: Any, where: str) -> Iterator[Fault]:
    if not _contains(space, obs):
        yield "observation-range", f"{where} is {shown(obs)}, which {shown(space)} does not have.", "", True


def _contains(space: Space, value: Any) -> bool:
    try:
        return bool(space.contains(value))
    except Exception:
        return False


class Sizes:
    """How large the numbers of observations are, over many of them."""

    def __init__(self) -> None:
        self.bytes = 0
        self._sums: dict[str, tuple[float, int]] = {}

    def add(self, obs: Any, where: str = "") -> None:
        if isinstance(obs, Mapping):
            for key, part in obs.items():
                self.add(part, f"{where}[{key!r}]")
        elif isinstance(obs, tuple):
            for index, part in enumerate(obs):
                self.add(part, f"{where}[{index}]")
        elif isinstance(obs, (np.ndarray, np.generic)) and obs.dtype.kind in "biuf" and obs.size:
            total, times = self._sums.get(where, (0.0, 0))
            self._sums[where] = total + float(np.abs(np.asarray(obs, np.float64)).mean()), times + 1
            self.bytes = max(self.bytes, obs.nbytes)

    def mean(self, where: str) -> float | None:
        """The mean of the absolute values; None if there were no numbers."""
        total, times = self._sums.get(where, (0.0, 0))
        return total / times if times else None
