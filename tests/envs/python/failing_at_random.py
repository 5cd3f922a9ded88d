"""An environment that fails now and then, by its own generator."""

from __future__ import annotations

from typing import Any

import numpy as np

import raceway
from tests.envs.python.scripted import Scripted, Step


class FailingAtRandom(Scripted):
    """One step in ten raises."""

    def step(self, action: Any) -> Step:
        if self.np_random.random() < 0.1:
            raise ValueError("at random")
        return super().step(action)


def roll(steps: int = 60, **settings: Any) -> list[Any]:
    """What five of them go through, with restarts."""
    pool = raceway.make(FailingAtRandom, 5, seed=3, tells=False, on_error="restart", **settings)
    said: list[Any] = [pool.reset()[0].tobytes()]
    for _ in range(steps):
        obs, rewards, terminated, truncated, _ = pool.step(np.ones(5, int))
        said.append([each.tobytes() for each in (obs, rewards, terminated, truncated)])
    said.append(pool.faults.tolist())
    assert sum(said[-1]) > 3
    pool.close()
    return said
