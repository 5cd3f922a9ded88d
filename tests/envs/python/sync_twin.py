"""A pool and Gymnasium's SyncVectorEnv of the same environments, side by side."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import SyncVectorEnv, VectorEnv

import raceway
from tests.envs.gymnasium_twin import MODES, assert_same
from tests.envs.python.scripted import Maker

LANES: dict[str, dict[str, Any]] = {
    "inline": {"lane": "inline"},
    "1-worker": {"lane": "process", "num_workers": 1},
    "2-workers": {"lane": "process", "num_workers": 2},
    "3-workers": {"lane": "process", "num_workers": 3},
}


class Pair:
    """Every call is made on both, and what they return must be equal to the bit."""

    def __init__(
        self,
        makers: Sequence[Maker],
        mode: str = "next_step",
        *,
        wrap: Callable[[VectorEnv], VectorEnv] = lambda env: env,
        target: Any = None,
        **settings: Any,
    ) -> None:
        self.mode = mode
        self.ours = raceway.make(target or list(makers), len(makers), autoreset=mode, **settings)
        self.theirs = wrap(SyncVectorEnv(makers, autoreset_mode=MODES[mode]))
        self.theirs.action_space.seed(0)
        self.ended = np.zeros(len(makers), bool)
        self.num_ends = 0

    def __enter__(self) -> Pair:
        return self

    def __exit__(self, *_: object) -> None:
        self.ours.close()
        self.theirs.close()

    def reset(self, seed: Any = None, options: dict[str, Any] | None = None) -> None:
        mask = options.get("reset_mask") if options else None
        ours = self.ours.reset(seed=copy.copy(seed), options=copy.copy(options))
        theirs = self.theirs.reset(seed=copy.copy(seed), options=copy.copy(options))
        assert_same(ours, theirs, "reset")
        self.ended = np.zeros_like(self.ended) if mask is None else self.ended & ~mask

    def step(self) -> None:
        if self.mode == "disabled" and self.ended.any():
            self.reset(options={"reset_mask": self.ended.copy()})
        actions = self.theirs.action_space.sample()
        ours, theirs = self.ours.step(actions), self.theirs.step(actions)
        assert_same(ours, theirs, "step")
        self.ended = ours[2] | ours[3]
        self.num_ends += int(self.ended.sum())

    def drive(self, steps: int, seed: Any = 0) -> None:
        """Resets and steps; some episodes must have ended."""
        self.reset(seed=seed)
        for _ in range(steps):
            self.step()
        assert self.num_ends > 0
