"""Environments written in Python, the same code for everybody. It runs in everybody's virtual environment.

CartPole is `gymnasium.make("CartPole-v1")` with the wrappers that it comes with, OrderEnforcing and TimeLimit, but
without its environment checker, which finds nothing here and is as dear as a step. The others are bare.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

EPISODE_STEPS = 250


def compute(number: int, rounds: int) -> int:
    """Arithmetic that holds the interpreter's lock, and a number that depends on all of it."""
    for _ in range(rounds):
        number = (number * 1103515245 + 12345) & 0x7FFFFFFF
    return number


class Work(gymnasium.Env[np.ndarray, np.int64]):
    """Computes in pure Python for so many rounds a step, and shows eight numbers. The action is to be their parity."""

    observation_space: spaces.Box = spaces.Box(-1.0, 1.0, (8,), np.float32)
    action_space: spaces.Discrete = spaces.Discrete(2)

    def __init__(self, rounds: int) -> None:
        self._rounds = rounds
        self._number = 0
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, Any]:
        super().reset(seed=seed)
        self._number, self._steps = int(self.np_random.integers(2**31)), 0
        return self.look(), {}

    def step(self, action: np.int64) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        reward = float(action == self._number & 1)
        self._number = compute(self._number, self._rounds)
        self._steps += 1
        return self.look(), reward, False, self._steps == EPISODE_STEPS, {}

    def look(self) -> np.ndarray:
        """A new array, as most environments return."""
        return np.array([(self._number >> place & 1) * 2.0 - 1.0 for place in range(8)], np.float32)


class Pictures(Work):
    """The same, but it shows a picture of the size that Atari's are brought to: 84 x 84, four of them, in bytes."""

    observation_space = spaces.Box(0, 255, (84, 84, 4), np.uint8)

    def look(self) -> np.ndarray:
        return np.full((84, 84, 4), self._number & 255, np.uint8)


OWN: dict[str, type[Work]] = {"Work": Work, "Pictures": Pictures}


def make(task: str, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    """One environment."""
    return OWN[task](**kwargs) if task in OWN else gymnasium.make(task, disable_env_checker=True, **kwargs)


def maker(task: str, **kwargs: Any) -> Callable[[], gymnasium.Env[Any, Any]]:
    """What makes one, in any process that can import this file."""
    return partial(make, task, **kwargs)


def rounds_for(seconds: float) -> int:
    """How many rounds take so long here, once and for everybody."""
    rounds = 2000

    def timed() -> float:
        start = time.perf_counter()
        compute(1, rounds)
        return time.perf_counter() - start

    return max(1, round(rounds * seconds / min(timed() for _ in range(2000))))
