"""A puck is pushed along a track and shall come to rest at a mark.

raceway train my_task:MyTask
raceway check my_task:MyTask
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

SECONDS = 0.05
END = 1.5
MOST_STEPS = 100


class MyTask(gymnasium.Env[np.ndarray, Any]):
    """What stands in the constructor can be set: raceway train my_task:MyTask --env.push 3"""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012

    def __init__(self, push: float = 2.0, render_mode: str | None = None) -> None:
        if push <= 0:
            raise ValueError(f"push={push} is not a force. Use one above 0.")
        self.push = push
        self.render_mode = render_mode
        # Observed are where the puck is, how fast, and how far from the mark.
        high = np.array([2, 9, 4], dtype=np.float32)
        self.observation_space = spaces.Box(-high, high)
        # Pushes to the left, not, to the right.
        self.action_space = spaces.Discrete(3)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begins an episode. Random numbers come from np_random alone: then the same seed gives the same episodes."""
        super().reset(seed=seed)
        self.place = self.np_random.uniform(-1, 1)
        self.mark = self.np_random.uniform(-1, 1)
        self.speed = 0.0
        self.steps = 0
        return self._observe(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """(observation, reward, whether the episode has come to its end, whether it is cut off, more to tell)"""
        force = self.push * (int(action) - 1)
        self.speed += (force - 0.5 * self.speed) * SECONDS
        self.place += self.speed * SECONDS
        self.steps += 1
        is_off = abs(self.place) > END
        reward = -10.0 if is_off else 1.0 - abs(self.mark - self.place)
        return self._observe(), reward, is_off, self.steps >= MOST_STEPS, {}

    def _observe(self) -> np.ndarray:
        return np.array([self.place, self.speed, self.mark - self.place], dtype=np.float32)

    def get_state(self) -> dict[str, Any]:
        """With set_state, a run that was stopped goes on from it to the bit. Both may be left out."""
        return {"place": self.place, "speed": self.speed, "mark": self.mark, "steps": self.steps}

    def set_state(self, state: dict[str, Any]) -> None:
        """Goes back to what get_state gave."""
        self.place, self.speed = float(state["place"]), float(state["speed"])
        self.mark, self.steps = float(state["mark"]), int(state["steps"])

    def render(self) -> np.ndarray:
        """What `raceway play` shows. It may be left out."""
        picture = np.full((120, 480, 3), 250, dtype=np.uint8)
        picture[80:84] = 60
        for place, colour in ((self.mark, (220, 60, 50)), (self.place, (40, 110, 200))):
            middle = int((place / END + 1) * 240)
            picture[60:80, max(0, middle - 5) : max(0, middle + 5)] = colour
        return picture
