"""Watching a policy, or random actions."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import raceway
from raceway.envs import NativePool
from raceway.errors import EnvError, MissingPackageError, RunFolderError, SettingError, UserError, VideoError
from raceway.report.video import write_video
from raceway.training import play as playing
from tests.training.drawing import Drawn
from tests.training.probes import Probe


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
    seen.clear()
    played = raceway.play("CartPole-v1", agent="random", episodes=2)
    assert len(seen) == sum(played.lengths) + 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [None, AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED, AutoresetMode.SAME_STEP])
def test_the_first_and_the_last_picture_of_every_episode_are_shown(
    mode: AutoresetMode | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int] = []
    monkeypatch.setattr(playing, "has_screen", lambda: True)
    monkeypatch.setattr(playing, "show", lambda frames, fps, title: steps.extend(f[0, 0, 2] // 10 for f in frames))
    drawn = partial(Drawn, 3, render_mode="rgb_array")
    env = drawn if mode is None else SyncVectorEnv([drawn] * 2, autoreset_mode=mode)
    played = raceway.play(env, agent="random", episodes=2)
    assert (played.lengths, played.returns) == ([3, 3], [9.0, 9.0])
    # Those that are reset within the step have no last picture to show.
    assert steps == ([0, 1, 2, 0, 1, 2, 0] if mode == AutoresetMode.SAME_STEP else [0, 1, 2, 3, 0, 1, 2, 3])


def test_native_pictures_have_the_step_that_ended_the_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    frames: list[np.ndarray] = []
    monkeypatch.setattr(playing, "has_screen", lambda: True)
    monkeypatch.setattr(playing, "show", lambda given, fps, title: frames.extend(given))
    played = raceway.play("CartPole-v1", agent="random", episodes=2, seed=3)
    env = raceway.make("CartPole-v1", 1, render_mode="rgb_array", autoreset="disabled", seed=3)
    env.reset(seed=3)
    env.action_space.seed(3)
    for _ in range(played.lengths[0]):
        *_, terminated, _, _ = env.step(env.action_space.sample())
    assert terminated[0]
    np.testing.assert_array_equal(frames[played.lengths[0]], env.render()[0])
    env.close()


def test_a_class_plays_at_random_and_says_nothing_if_told_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    played = raceway.play(Drawn, agent="random", env_args={"length": 2}, video=tmp_path / "a.mp4", quiet=True)
    assert played.lengths == [2, 2, 2]
    assert capsys.readouterr() == ("", "")


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
        ({"what": "CartPole-v1", "agent": "random", "quality": "best"}, SettingError, "quality='best' is not one of"),
        ({"what": "CartPole-v1", "agent": "random", "env": "Ant-v5"}, SettingError, "Give one of them"),
        (
            {"what": "CartPole-v1", "agent": "random", "which": "best"},
            SettingError,
            r"which='best' \(--policy\) is for",
        ),
        ({"what": "CartPole-v1", "agent": "random", "network": "a:b"}, SettingError, r"network='a:b' \(--network\) is"),
        ({"what": "CartPole-v1", "agent": "random", "env_args": {"x": 1}}, UserError, "no keyword argument 'x'"),
    ],
)
def test_what_cannot_be_played_says_why(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        raceway.play(**arguments)


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").mkdir()

    def never() -> Drawn:
        raise AssertionError("it was made")

    with pytest.raises(VideoError, match=r"a\.mp4 cannot be written: Is a directory\. Name another place"):
        raceway.play(never, agent="random", video=tmp_path / "a.mp4")
    with pytest.raises(SettingError, match=r"videos are \.mp4 files"):
        raceway.play(never, agent="random", video=tmp_path / "a.gif")


class NotDrawn(Probe):
    """Has no render(), nor an argument that says how."""

    def __init__(self) -> None:
        super().__init__("both")


class DrawnByMissing(NotDrawn):
    def render(self) -> Any:
        import no_such_package  # type: ignore[import-not-found]

        return no_such_package


def test_environments_that_do_not_draw_are_refused_in_one_line(tmp_path: Path) -> None:
    gymnasium.register("NotDrawn-v0", f"{__name__}:NotDrawn")
    try:
        for env in (NotDrawn, "NotDrawn-v0"):
            with pytest.raises(UserError, match=r"NotDrawn\S* cannot be shown: it has no render\(\)") as raised:
                raceway.play(env, agent="random", video=tmp_path / "a.mp4")
            assert "\n" not in str(raised.value)
    finally:
        del gymnasium.registry["NotDrawn-v0"]
    with pytest.raises(MissingPackageError, match="DrawnByMissing cannot be drawn: there is no module"):
        raceway.play(DrawnByMissing, agent="random", video=tmp_path / "a.mp4")


class Raises(Drawn):
    def step(self, action: Any) -> Any:
        raise ZeroDivisionError("in the middle")


def test_no_advice_is_given_that_play_and_evaluate_cannot_follow(tmp_path: Path) -> None:
    log = {"directory": str(tmp_path), "quiet": True}
    small: dict[str, Any] = {"total_steps": 32, "num_envs": 2, "n_steps": 8, "batch_size": 16, "lane": "inline"}
    run = raceway.train(Drawn, **small, log=log, evaluation={"enabled": False})
    for act in (raceway.play, raceway.evaluate):
        with pytest.raises(EnvError, match="in the middle") as raised:
            act(run, env=Raises)
        assert "in step" in str(raised.value)
        assert "on_error" not in str(raised.value)
        assert "lane" not in str(raised.value)


class Forbidding(Drawn):
    """Keeps the actions that it gets. `space`: of these, `flags`: which of them its mask allows."""

    action_space: Any

    def __init__(self, space: spaces.Space[Any], flags: list[int], **drawn: Any) -> None:
        super().__init__(length=24, **drawn)
        self.action_space = space
        self.flags = flags
        self.seen: list[Any] = []

    def reset(self, **given: Any) -> Any:
        return super().reset(**given)[0], {"action_mask": np.array(self.flags, np.int8)}

    def step(self, action: Any) -> Any:
        self.seen.append(np.asarray(action).tolist())
        return *super().step(action)[:4], {"action_mask": np.array(self.flags, np.int8)}


@pytest.mark.parametrize(
    ("space", "flags", "allowed"),
    [
        (spaces.Discrete(4, start=3), [0, 1, 0, 1], [4, 6]),
        (spaces.MultiDiscrete([2, 3]), [1, 0, 0, 1, 1], [[0, 1], [0, 2]]),
        (spaces.MultiBinary(2), [0, 1], [[0, 0], [0, 1]]),
        (spaces.Box(-1, 1, (1,), np.float32), [1], None),
    ],
    ids=lambda given: type(given).__name__,
)
def test_random_actions_follow_masks(space: Any, flags: list[int], allowed: list[Any] | None, tmp_path: Path) -> None:
    env = Forbidding(space, flags, render_mode="rgb_array")
    raceway.play(lambda: env, agent="random", episodes=1, video=tmp_path / "a.mp4", quiet=True)
    assert len(env.seen) == 24
    if allowed is not None:
        assert sorted(map(str, allowed)) == sorted({str(each) for each in env.seen})


def test_coarse_pictures_are_told_with_the_first_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[str] = []

    def write(path: Path, frames: Iterable[np.ndarray], fps: float) -> Path:
        rest = iter(frames)
        first = next(rest)
        told.append(capsys.readouterr().err)
        return write_video(path, [first, *rest], fps)

    monkeypatch.setattr(playing, "write_video", write)
    monkeypatch.setattr(NativePool, "coarse_by", "llvmpipe")
    for quiet in (False, True):
        played = raceway.play("CartPole-v1", agent="random", episodes=1, video=tmp_path / "a.mp4", quiet=quiet)
        assert len(played.notes) == 1
        assert capsys.readouterr().err == ""
    assert told == [f"raceway: {played.notes[0]}\n", ""]
