"""Returns, lengths and seconds of episodes, as Gymnasium's `RecordEpisodeStatistics` tells them."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np


class EpisodeCounts:
    """Of the episodes that are under way."""

    def __init__(self, num_envs: int) -> None:
        self._returns = np.zeros(num_envs)
        self._lengths = np.zeros(num_envs, np.int64)
        self._begun = np.zeros(num_envs)

    def begin(self, which: np.ndarray) -> None:
        """New episodes."""
        self._returns[which], self._lengths[which], self._begun[which] = 0.0, 0, perf_counter()

    def add(
        self, which: np.ndarray, rewards: np.ndarray, begins: np.ndarray, ended: np.ndarray, infos: dict[str, Any]
    ) -> None:
        """A step of some environments; for those where an episode `begins` it was no step. Tells of what has ended."""
        if begins.any():
            self.begin(which[begins])
        self._returns[which] += rewards
        self._lengths[which] += ~begins
        if not ended.any():
            return
        seconds = np.round(perf_counter() - self._begun[which], 6)
        infos["episode"] = {
            "r": np.where(ended, self._returns[which], 0.0),
            "l": np.where(ended, self._lengths[which], 0),
            "t": np.where(ended, seconds, 0.0),
        }
        infos["_episode"] = ended.copy()
        self.begin(which[ended])
