"""The episodes that ended of late: what a training return is the mean of."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from raceway.algos.rollout import Episodes

_RECENT = 100
"""Episodes that the mean return is of, as everybody has it."""


class RecentEpisodes:
    """The last hundred, and how many there were in all."""

    def __init__(self) -> None:
        self.count = 0
        self._returns: deque[float] = deque(maxlen=_RECENT)
        self._lengths: deque[int] = deque(maxlen=_RECENT)

    def add(self, episodes: Episodes) -> None:
        """Those that ended in a round."""
        self.count += len(episodes.returns)
        self._returns.extend(episodes.returns.tolist())
        self._lengths.extend(episodes.lengths.tolist())

    @property
    def return_mean(self) -> float | None:
        """None before any has ended."""
        return float(np.mean(self._returns)) if self._returns else None

    @property
    def length_mean(self) -> float | None:
        return float(np.mean(self._lengths)) if self._lengths else None

    def save(self) -> dict[str, Any]:
        """The whole state, as plain data."""
        return {"count": self.count, "returns": np.array(self._returns), "lengths": np.array(self._lengths, np.int64)}

    def load(self, state: Mapping[str, Any]) -> None:
        """What `save` gave."""
        self.count = int(state["count"])
        self._returns = deque(np.asarray(state["returns"], np.float64).tolist(), maxlen=_RECENT)
        self._lengths = deque(np.asarray(state["lengths"], np.int64).tolist(), maxlen=_RECENT)
