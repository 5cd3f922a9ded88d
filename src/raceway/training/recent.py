"""The most recent episodes: what a training return is the mean of."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.utils.env_checker import data_equivalence

from raceway.algos.rollout import Episodes

RECENT = 100
"""Episodes that the training return is the mean of, as is usual."""


class RecentEpisodes:
    """Returns and lengths of the last `size` episodes, and the number of all.

    Episodes of environments with other arguments, such as those of an easier level, are not counted with them.
    """

    def __init__(self, size: int = RECENT) -> None:
        self.size = size
        self.count = 0
        self._returns: deque[float] = deque(maxlen=size)
        self._lengths: deque[int] = deque(maxlen=size)
        self._env_args: dict[str, Any] = {}

    def add(self, episodes: Episodes, env_args: Mapping[str, Any] | None = None) -> None:
        """Adds the episodes that ended in a round. `env_args`: what the round's environments were made with."""
        args = dict(env_args or {})
        if not data_equivalence(args, self._env_args):
            self._returns.clear()
            self._lengths.clear()
            self._env_args = args
        self.count += len(episodes.returns)
        self._returns.extend(episodes.returns.tolist())
        self._lengths.extend(episodes.lengths.tolist())

    @property
    def return_mean(self) -> float | None:
        """None before any has ended."""
        if not self._returns:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.mean(self._returns))

    @property
    def length_mean(self) -> float | None:
        return float(np.mean(self._lengths)) if self._lengths else None

    def has_reached(self, goal: float) -> bool:
        """Whether there are `size` episodes and their mean return is `goal` or more: a few may be lucky ones."""
        mean = self.return_mean
        return mean is not None and len(self._returns) == self.size and mean >= goal

    def save(self) -> dict[str, Any]:
        """The whole state, as plain data."""
        arrays = {"returns": np.array(self._returns), "lengths": np.array(self._lengths, np.int64)}
        return {"count": self.count, **arrays, "env_args": self._env_args}

    def load(self, state: Mapping[str, Any]) -> None:
        """Restores what `save` returned."""
        self.count = int(state["count"])
        self._returns = deque(np.asarray(state["returns"], np.float64).tolist(), maxlen=self.size)
        self._lengths = deque(np.asarray(state["lengths"], np.int64).tolist(), maxlen=self.size)
        self._env_args = {str(name): value for name, value in state["env_args"].items()}
