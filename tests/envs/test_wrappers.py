"""Gymnasium's vector wrappers do on a pool what they do on Gymnasium's own vector environment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import VectorEnv
from gymnasium.wrappers import ClipReward as SingleClipReward
from gymnasium.wrappers import TransformAction as SingleTransformAction
from gymnasium.wrappers import TransformObservation as SingleTransformObservation
from gymnasium.wrappers import vector as wrappers

from tests.envs.gymnasium_twin import MODES, Twins

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*precision lowered", "ignore:overflow encountered in cast", "ignore:.*mode is same-step"
)

Wrap = Callable[[VectorEnv], VectorEnv]

OBSERVATION: dict[str, Wrap] = {
    "DtypeObservation": lambda env: wrappers.DtypeObservation(env, np.float64),
    "FlattenObservation": wrappers.FlattenObservation,
    "RescaleObservation": lambda env: wrappers.RescaleObservation(env, -1.0, 1.0),
    "ReshapeObservation": lambda env: wrappers.ReshapeObservation(env, (3, 1)),
    "TransformObservation": lambda env: wrappers.TransformObservation(env, lambda obs: obs * 2),
    "VectorizeTransformObservation": lambda env: wrappers.VectorizeTransformObservation(
        env, SingleTransformObservation, func=lambda obs: obs[:2], observation_space=spaces.Box(-1, 1, (2,))
    ),
}
ACTION: dict[str, Wrap] = {
    "ClipAction": wrappers.ClipAction,
    "RescaleAction": lambda env: wrappers.RescaleAction(env, -0.5, 0.5),
    "TransformAction": lambda env: wrappers.TransformAction(env, lambda action: action / 3),
    "VectorizeTransformAction": lambda env: wrappers.VectorizeTransformAction(
        env, SingleTransformAction, func=lambda action: -action, action_space=env.single_action_space
    ),
}
REWARD: dict[str, Wrap] = {
    "ClipReward": lambda env: wrappers.ClipReward(env, -0.5, 0.5),
    "NormalizeReward": wrappers.NormalizeReward,
    "TransformReward": lambda env: wrappers.TransformReward(env, lambda reward: reward * 3 - 1),
    "VectorizeTransformReward": lambda env: wrappers.VectorizeTransformReward(
        env, SingleClipReward, min_reward=-1, max_reward=0
    ),
}


def drive(task: str, mode: str, wrap: Wrap, *, partial_resets: bool = True) -> Twins:
    """Both sides wrapped, stepped through ends of episodes; every result has been compared."""
    twins = Twins(task, 5, mode, wrap=wrap, max_episode_steps=15)
    with twins:
        twins.reset(seed=3)
        assert twins.ours.observation_space == twins.theirs.observation_space
        assert twins.ours.action_space == twins.theirs.action_space
        rng = np.random.default_rng(1)
        for step in range(100):
            space = twins.ours.single_action_space
            if isinstance(space, spaces.Discrete):
                actions = rng.integers(0, space.n, 5)
            else:
                assert space.shape is not None
                actions = rng.uniform(-3, 3, (5, *space.shape)).astype(np.float32)
            twins.step(actions)
            if step % 30 == 29:
                twins.reset(mask=np.arange(5) < 2 if partial_resets else None)
    return twins


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [*ACTION, *REWARD])
def test_transformed_actions_and_rewards_are_equal(name: str, mode: str):
    drive("Pendulum-v1", mode, (ACTION | REWARD)[name])


@pytest.mark.parametrize("mode", ["next_step", "disabled"])  # Gymnasium does not do it in the third
@pytest.mark.parametrize("name", OBSERVATION)
def test_transformed_observations_are_equal(name: str, mode: str):
    drive("Pendulum-v1", mode, OBSERVATION[name])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("task", ["CartPole-v1", "FrozenLake-v1", "Taxi-v4", "Blackjack-v1"])
def test_episode_statistics_are_equal(task: str, mode: str):
    twins = drive(task, mode, wrappers.RecordEpisodeStatistics)
    ours, theirs = twins.ours, twins.theirs
    assert isinstance(ours, wrappers.RecordEpisodeStatistics)
    assert isinstance(theirs, wrappers.RecordEpisodeStatistics)
    assert ours.episode_count == theirs.episode_count > 5
    assert list(ours.return_queue) == list(theirs.return_queue)
    assert list(ours.length_queue) == list(theirs.length_queue)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("task", ["CartPole-v1", "FrozenLake-v1", "Taxi-v4", "Blackjack-v1"])
def test_infos_as_lists_are_equal(task: str, mode: str):
    drive(task, mode, lambda env: wrappers.DictInfoToList(wrappers.RecordEpisodeStatistics(env)))


@pytest.mark.parametrize("task", ["CartPole-v1", "Acrobot-v1", "MountainCarContinuous-v0"])
def test_normalized_observations_are_equal(task: str):
    twins = drive(task, "next_step", wrappers.NormalizeObservation, partial_resets=False)
    ours, theirs = twins.ours, twins.theirs
    assert isinstance(ours, wrappers.NormalizeObservation)
    assert isinstance(theirs, wrappers.NormalizeObservation)
    np.testing.assert_array_equal(ours.obs_rms.mean, theirs.obs_rms.mean)
    np.testing.assert_array_equal(ours.obs_rms.var, theirs.obs_rms.var)


@pytest.mark.parametrize("mode", ["same_step", "disabled"])
def test_a_wrapper_that_cannot_work_in_a_mode_says_so_of_a_pool_too(mode: str):
    with pytest.raises(ValueError, match="autoreset_mode"):
        Twins("CartPole-v1", 2, mode, wrap=wrappers.NormalizeObservation)


def test_a_stack_of_wrappers_gives_equal_results():
    def stacked(env: VectorEnv) -> VectorEnv:
        statistics = wrappers.RecordEpisodeStatistics(env)
        return wrappers.NormalizeReward(wrappers.NormalizeObservation(wrappers.ClipAction(statistics)))

    drive("Pendulum-v1", "next_step", stacked, partial_resets=False)


@pytest.mark.parametrize(
    "mode", [pytest.param(mode, marks=[] if mode == "same_step" else [pytest.mark.slow]) for mode in MODES]
)
def test_recorded_videos_are_equal(mode: str, tmp_path: Path):
    folders = iter([tmp_path / "ours", tmp_path / "theirs"])

    def recorded(env: VectorEnv) -> VectorEnv:
        return wrappers.RecordVideo(env, str(next(folders)), episode_trigger=lambda episode: episode < 2)

    with Twins("CartPole-v1", 2, mode, wrap=recorded, render_mode="rgb_array", max_episode_steps=6) as twins:
        twins.reset(seed=0)
        twins.drive(20, np.random.default_rng(0))
    names = sorted(path.name for path in (tmp_path / "ours").iterdir())
    assert names == ["rl-video-episode-0.mp4", "rl-video-episode-1.mp4"]
    for name in names:
        ours, theirs = frames(tmp_path / "ours" / name), frames(tmp_path / "theirs" / name)
        assert len(ours) >= 6
        np.testing.assert_array_equal(ours, theirs)


def frames(path: Path) -> np.ndarray:
    return iio.imread(path, plugin="FFMPEG")
