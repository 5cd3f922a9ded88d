"""Environments that are right."""

from __future__ import annotations

import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Walk(gymnasium.Env):
    """A right one: a random walk that ends at 5."""

    observation_space: spaces.Space = spaces.Box(-20, 20, (1,), np.float32)
    action_space: spaces.Space = spaces.Discrete(2)
    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.place = self.np_random.uniform(-1, 1)
        return self.look(), {}

    def step(self, action: Any) -> Any:
        self.place += float(action) - 0.5 + 0.1 * self.np_random.normal()
        return self.look(), -abs(self.place), bool(abs(self.place) > 5), False, {}

    def look(self) -> Any:
        return np.array([self.place], np.float32)


class SavingWalk(Walk):
    """A right one that can tell its state."""

    def get_state(self) -> Any:
        return {"place": self.place}

    def set_state(self, state: Any) -> None:
        self.place = state["place"]


class Nest(Walk):
    """A right one with nested observations."""

    observation_space = spaces.Dict(
        {
            "camera": spaces.Box(0, 255, (64, 64, 3), np.uint8),
            "rest": spaces.Tuple((spaces.Discrete(3, start=1), spaces.MultiBinary(2))),
        }
    )
    action_space = spaces.MultiDiscrete([2, 3])

    def step(self, action: Any) -> Any:
        return super().step(action[0])

    def look(self) -> Any:
        camera = np.full((64, 64, 3), int(abs(self.place) * 10), np.uint8)
        return {"camera": camera, "rest": (np.int64(2), np.array([0, 1], np.int8))}


class Masked(Walk):
    """A right one that takes only what its mask allows."""

    action_space = spaces.Discrete(4, start=2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        obs, _ = super().reset(seed=seed)
        return obs, self.info()

    def info(self) -> dict[str, Any]:
        self.allowed = 2 + int(self.place > 0)
        return {"action_mask": np.array([self.allowed == 2, self.allowed == 3, False, False], np.int8)}

    def step(self, action: Any) -> Any:
        assert action == self.allowed
        *rest, _ = super().step(action - 2)
        return *rest, self.info()


class Picture(Walk):
    """A right one that can be drawn."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012
    picture: Any = np.zeros((8, 16, 3), np.uint8)

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode

    def render(self) -> Any:
        return self.picture


class Pushed(Walk):
    action_space: spaces.Space = spaces.Box(-1, 1, (1,), np.float32)

    def step(self, action: Any) -> Any:
        return super().step(action[0])


class SlowStart(Walk):
    """Its first step takes long, as where something is compiled."""

    def step(self, action: Any) -> Any:
        if not hasattr(self, "is_warm"):
            time.sleep(0.3)
            self.is_warm = True
        return super().step(action)


class Slow(Walk):
    """A step takes long, and waits, as for a simulator elsewhere."""

    def step(self, action: Any) -> Any:
        time.sleep(0.05)
        return super().step(action)
