"""An environment that draws itself, and networks of a user's own: by name, in a module that any process finds."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Drawn(gymnasium.Env[np.ndarray, Any]):
    """Counts its steps. The picture's brightness is the step's number times ten, its red that of the episode."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 25}  # noqa: RUF012
    observation_space = spaces.Box(-1.0, 100.0, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, length: int = 4, tell: Any = None, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.length = length
        self.tell = tell
        self.episode = -1
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        self.episode += 1
        return self._observation(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        return self._observation(), float(self.length), self.steps == self.length, False, {}

    def render(self) -> np.ndarray | None:
        if self.render_mode is None:
            return None
        picture = np.full((16, 16, 3), 10 * self.steps, np.uint8)
        picture[..., 0] = 10 * self.episode % 250
        return picture

    def _observation(self) -> np.ndarray:
        return np.array([self.steps, self.length], np.float32)


class Undrawn(Drawn):
    """The same without pictures."""

    metadata = {"render_modes": []}  # noqa: RUF012


def init(key: Any, obs: Any) -> Any:
    import jax

    return {"w": 0.1 * jax.random.normal(key, (obs.shape[-1], 3))}


def apply(params: Any, obs: Any) -> Any:
    import jax.numpy as jnp

    out = jnp.tanh(obs) @ params["w"]
    return out[:, :2], out[:, 2]


PAIR = (init, apply)
ONE = (init,)


def make_pair() -> Any:
    return PAIR


class Methods:
    """The same pair as methods."""

    init = staticmethod(init)
    apply = staticmethod(apply)


OBJECT = Methods()
