"""A native environment seen as a single one of Gymnasium's, so that it can be held against the same contract."""

from __future__ import annotations

from typing import Any

import gymnasium

import raceway


class NativeView(gymnasium.Env):
    """A pool of one."""

    def __init__(self, env: str, render_mode: str | None = None, **kwargs: Any) -> None:
        self.pool = raceway.make(env, 1, autoreset="disabled", num_workers=1, render_mode=render_mode, **kwargs)
        self.observation_space = self.pool.single_observation_space
        self.action_space = self.pool.single_action_space
        self.render_mode = render_mode
        self.metadata = self.pool.metadata
        self.spec = self.pool.spec

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        obs, infos = self.pool.reset(seed=seed, options=options)
        return _first(obs), _first_info(infos)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        obs, rewards, terminated, truncated, infos = self.pool.step([action])
        return _first(obs), float(rewards[0]), bool(terminated[0]), bool(truncated[0]), _first_info(infos)

    def get_state(self) -> dict[str, Any]:
        return self.pool.state()

    def set_state(self, state: dict[str, Any]) -> None:
        self.pool.set_state(state)

    def render(self) -> Any:
        pictures = self.pool.render()
        return None if pictures is None else pictures[0]

    def close(self) -> None:
        self.pool.close()


def _first(obs: Any) -> Any:
    if isinstance(obs, dict):
        return {key: _first(part) for key, part in obs.items()}
    return tuple(map(_first, obs)) if isinstance(obs, tuple) else obs[0]


def _first_info(infos: dict[str, Any]) -> dict[str, Any]:
    return {name: values[0] for name, values in infos.items() if not name.startswith("_")}
