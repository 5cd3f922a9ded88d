"""Environments whose episodes can be gone on with: by their state, or by playing them again."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from tests.envs.python.scripted import Step
from tests.once import is_first


class Walk(gymnasium.Env):
    """Steps of random length in the direction of the action; an episode ends after a random while.

    Args:
        kill_at: the step of the second episode in which the process is killed, if `once` is no file yet.
        once: that file.
    """

    observation_space: spaces.Space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space: spaces.Space = spaces.Box(-1, 1, (2,), np.float32)

    def __init__(self, kill_at: int | None = None, once: str = "") -> None:
        self.kill_at = kill_at
        self.once = Path(once)
        self.episode = -1

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.episode += 1
        self.place = self.np_random.normal(size=2)
        self.left = int(self.np_random.integers(3, 12))
        return self.place.copy(), {}

    def step(self, action: Any) -> Step:
        self.left -= 1
        if self.left == self.kill_at and self.episode == 1 and is_first(self.once):
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(5)
        self.place = self.place + np.asarray(action, np.float64) * self.np_random.random()
        return self.place.copy(), float(self.place.sum()), self.left <= 0, False, {}


class SavedWalk(Walk):
    """Tells its state and takes it over; it would not survive being played again."""

    def get_state(self) -> dict[str, Any]:
        return {"place": self.place, "left": self.left}

    def set_state(self, state: dict[str, Any]) -> None:
        self.place, self.left = np.array(state["place"]), int(state["left"])


class UnseededWalk(Walk):
    """Draws from a generator that no seed reaches, from its third step on."""

    def step(self, action: Any) -> Step:
        _, reward, *rest = super().step(action)
        self.place += np.random.default_rng().normal(size=2)
        return self.place.copy(), reward, *rest


class DictWalk(Walk):
    """Nested observations and actions."""

    observation_space = spaces.Dict({"place": Walk.observation_space, "left": spaces.Discrete(13)})
    action_space = spaces.Dict({"by": Walk.action_space, "twice": spaces.Discrete(2)})

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        place, info = super().reset(seed=seed)
        return {"place": place, "left": self.left}, info

    def step(self, action: Any) -> Step:
        place, *rest = super().step(action["by"] * (1 + action["twice"]))
        return {"place": place, "left": self.left}, *rest


class Roller:
    """Runs whole rounds in a worker: the actions are given, the observations are written in place."""

    def open(self, env: Any, first: int) -> None:
        self.env = env
        self.columns = slice(first, first + env.num_envs)

    def run(self, progress: int, actions: np.ndarray, obs: np.ndarray, ended: np.ndarray, pids: np.ndarray) -> int:
        pids[self.columns] = os.getpid()
        for step, given in enumerate(actions):
            seen, _, terminated, truncated, _ = self.env.step(given[self.columns])
            obs[step, self.columns], ended[step, self.columns] = seen, terminated | truncated
        return progress + len(actions)
