"""Watching a policy, or random actions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import raceway
from raceway.errors import RunFolderError, SettingError, UserError
from raceway.training import play as playing


def test_random_actions_play_the_episodes_asked_for_and_the_same_ones_again(tmp_path: Path) -> None:
    first = raceway.play("CartPole-v1", agent="random", episodes=3, seed=4, video=tmp_path / "a.mp4")
    assert len(first.returns) == 3
    assert first.returns == first.lengths  # a reward of 1 for every step
    assert first.video == tmp_path / "a.mp4"
    again = raceway.play("CartPole-v1", agent="random", episodes=3, seed=4, video=tmp_path / "b.mp4")
    assert again.returns == first.returns
    other = raceway.play("CartPole-v1", agent="random", episodes=3, seed=5, video=tmp_path / "c.mp4")
    assert other.returns != first.returns


def test_any_gymnasium_environment_with_pictures_can_be_played(tmp_path: Path) -> None:
    args = {"max_episode_steps": 5}
    gymnasium.register("Unheard-v0", "gymnasium.envs.classic_control:PendulumEnv", max_episode_steps=200)
    try:
        played = raceway.play("Unheard-v0", agent="random", episodes=2, env_args=args, video=tmp_path / "a.mp4")
    finally:
        del gymnasium.registry["Unheard-v0"]
    assert played.lengths == [5, 5]


def test_where_there_is_a_screen_it_is_a_window(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[tuple[int, ...]] = []

    def show(frames: Iterable[np.ndarray], fps: float, title: str) -> bool:
        seen.extend(frame.shape for frame in frames)
        assert fps == 50
        return True

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(playing, "has_screen", lambda: True)
    monkeypatch.setattr(playing, "show", show)
    played = raceway.play("CartPole-v1", agent="random", episodes=1)
    assert played.video is None
    assert len(seen) == played.lengths[0] + 1
    assert list(tmp_path.iterdir()) == []


def test_a_policy_that_never_fails_does_not_play_for_ever(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(playing, "_MOST_STEPS", 30)
    args = {"max_episode_steps": -1}
    played = raceway.play("Pendulum-v1", agent="random", episodes=1, env_args=args, video=tmp_path / "a.mp4")
    assert played.returns == []


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"what": "CartPole-v1"}, RunFolderError, "There is no CartPole-v1"),
        ({"what": "CartPole-v1", "agent": "randm"}, SettingError, "not one of policy, random"),
        ({"what": "CartPole-v1", "agent": "random", "episodes": 0}, SettingError, "episodes=0"),
        ({"what": "Busy-v0", "agent": "random"}, UserError, "cannot be shown"),
    ],
)
def test_what_cannot_be_played_says_why(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        raceway.play(**arguments)
