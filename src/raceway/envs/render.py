"""Pictures of native environments. Those of small tasks are drawn by Gymnasium itself, put into our state."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import logger

from raceway.envs.arguments import EnvArguments
from raceway.envs.catalog import gymnasium_spec

_SUITS = ("C", "D", "H", "S")
_FACES = ("J", "Q", "K")

Row = Mapping[str, Any]


class Renderer(abc.ABC):
    """Draws the environments of one pool in one mode."""

    def __init__(self, task_id: str, render_mode: str | None, modes: Sequence[str], fps: int) -> None:
        if render_mode is not None and render_mode not in modes:
            raise ValueError(
                f"{task_id} has no render_mode {render_mode!r}. There are: {', '.join(modes) or 'none'}. For a window, "
                "wrap the pool in gymnasium.wrappers.vector.HumanRendering."
            )
        self.metadata: dict[str, Any] = {"render_modes": list(modes), "render_fps": fps}
        self.is_draft = False
        """Whether pictures may be coarser than Gymnasium's where drawing them would take long."""
        self.follows = False
        """Whether a camera follows what is drawn, if the model has such a camera and none was chosen."""
        self.coarse_by = ""
        """What they were drawn by, if they are coarser."""
        self._task_id = task_id
        self._mode = render_mode

    def warn_without_mode(self) -> None:
        """What Gymnasium does when nobody said how to render."""
        logger.warn(f"{self._task_id}: render() without a render_mode. Pass render_mode='rgb_array' to make().")

    @abc.abstractmethod
    def draw(self, state: Mapping[str, Any]) -> tuple[Any, ...]:
        """One picture per environment."""

    @abc.abstractmethod
    def close(self) -> None:
        """Gives back what drawing needs."""


def rows_of(state: Mapping[str, Any]) -> list[Row]:
    """A pool's state, environment by environment. Each must have been reset."""
    names = [name for name in state if name != "id"]
    for i, status in enumerate(state["episode.status"]):
        if status == 0:
            raise gymnasium.error.ResetNeeded(f"environment {i} has not been reset. Call reset() before render().")
    return [{name: state[name][i] for name in names} for i in range(len(state["episode.status"]))]


class GymnasiumRenderer(Renderer):
    """Puts Gymnasium's environments into our state. They are made when first needed, one per arguments."""

    def __init__(self, task_id: str, render_mode: str | None, arguments: EnvArguments) -> None:
        self._spec = gymnasium_spec(task_id)
        known: dict[str, Any] = class_of(self._spec).metadata if self._spec else {"render_modes": []}
        modes = [mode for mode in known["render_modes"] if mode != "human"]
        super().__init__(task_id, render_mode, modes, known.get("render_fps", 30))
        self._arguments = arguments
        self._canvases: dict[int, gymnasium.Env] = {}
        self._headings: dict[int, tuple[int, int]] = {}

    def draw(self, state: Mapping[str, Any]) -> tuple[Any, ...]:
        """One picture per environment."""
        frames = []
        for i, (which, row) in enumerate(zip(self._arguments.which, rows_of(state), strict=True)):
            canvas = self._canvas(which, self._arguments.distinct[which])
            _POSES[type(canvas).__name__](canvas, row)
            if type(canvas).__name__ == "TaxiEnv":
                self._turn_taxi(canvas, i, int(row["episode.number"]))
            frames.append(canvas.render())
        return tuple(frames)

    def _canvas(self, which: int, kwargs: Mapping[str, Any]) -> Any:
        if which not in self._canvases:
            given = {name: value.split("\n") if name == "desc" else value for name, value in kwargs.items()}
            assert self._spec is not None
            env = gymnasium.make(self._spec.id, render_mode=self._mode, disable_env_checker=True, **given)
            self._canvases[which] = env.unwrapped
        return self._canvases[which]

    def _turn_taxi(self, taxi: Any, env: int, episode: int) -> None:
        # Gymnasium's taxi faces where it drove when it was last drawn, so each one's heading is remembered here.
        drawn_in, heading = self._headings.get(env, (episode, 0))
        if drawn_in != episode:
            heading = 0
        if taxi.lastaction in (0, 1, 2, 3):
            heading = taxi.lastaction
        taxi.taxi_orientation = heading
        self._headings[env] = (episode, heading)

    def close(self) -> None:
        """Closes the drawing environments."""
        for canvas in self._canvases.values():
            canvas.close()
        self._canvases.clear()


class OwnRenderer(Renderer):
    """For tasks that draw themselves, if they do."""

    pictures: Callable[[], np.ndarray]
    """One of each environment, [N, height, width, 3]; known when the pool is."""

    def __init__(self, task_id: str, render_mode: str | None, fps: int, *, has_pictures: bool) -> None:
        super().__init__(task_id, render_mode, ["rgb_array"] if has_pictures else [], fps)

    def draw(self, state: Mapping[str, Any]) -> tuple[Any, ...]:
        """One picture per environment."""
        return tuple(self.pictures())

    def close(self) -> None:
        """Nothing is held."""


def class_of(spec: Any) -> Any:
    """The environment class behind one of Gymnasium's specifications."""
    return gymnasium.envs.registration.load_env_creator(spec.entry_point)


def _pose_array(env: Any, row: Row) -> None:
    env.state = np.array(row["env.state"])


def _pose_car(env: Any, row: Row) -> None:
    env.state = np.array([row["env.position"], row["env.velocity"]])


def _pose_continuous_car(env: Any, row: Row) -> None:
    # Its state is in single precision from the first step on, and so is what is drawn from it.
    _pose_car(env, row)
    if row["env.single"]:
        env.state = env.state.astype(np.float32)


def _pose_acrobot(env: Any, row: Row) -> None:
    _pose_array(env, row)
    if row["env.single"]:
        env.state = env.state.astype(np.float32)


def _pose_pendulum(env: Any, row: Row) -> None:
    env.state = np.array([row["env.theta"], row["env.theta_dot"]])
    env.last_u = row["env.torque"] if row["env.pushed"] else None


def _pose_tabular(env: Any, row: Row) -> None:
    env.s = int(row["env.state"])
    action = int(row.get("env.last_action", -1))
    env.lastaction = action if action >= 0 else None


def _pose_blackjack(env: Any, row: Row) -> None:
    # Only sums are drawn: one card that counts the player's sum, and an ace beside the rest if there is one.
    total, ace, upcard = int(row["env.player_sum"]), int(row["env.player_aces"]), int(row["env.upcard"])
    env.player = [1, total - 1] if ace else [total]
    env.dealer = [upcard]
    env.dealer_top_card_suit = _SUITS[int(row["env.suit"])]
    env.dealer_top_card_value_str = {1: "A", 10: _FACES[int(row["env.face"])]}.get(upcard, str(upcard))


_POSES: Mapping[str, Callable[[Any, Row], None]] = {
    "AcrobotEnv": _pose_acrobot,
    "BlackjackEnv": _pose_blackjack,
    "CartPoleEnv": _pose_array,
    "CliffWalkingEnv": _pose_tabular,
    "Continuous_MountainCarEnv": _pose_continuous_car,
    "FrozenLakeEnv": _pose_tabular,
    "MountainCarEnv": _pose_car,
    "PendulumEnv": _pose_pendulum,
    "TaxiEnv": _pose_tabular,
}
