"""Infos: entries with masks, what an ended episode leaves behind, and the record of episodes."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import raceway
from tests.envs.gymnasium_twin import (
    LIGHT,
    MODES,
    TASKS,
    TOY,
    assert_same,
    gymnasium_vector,
    random_actions,
    seeking_actions,
    single,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*out of date")

WITH_INFOS = [task for task in TOY if task != "Blackjack-v1"]


class KeepsTheMask(VectorWrapper):
    """Hands down a copy of the options: RecordEpisodeStatistics wants the mask that SyncVectorEnv takes out."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return self.env.reset(seed=seed, options=dict(options) if options else None)


@pytest.mark.parametrize("task", WITH_INFOS)
def test_entries_equal_those_of_single_environments(task: str):
    num_envs = 6
    singles = [single(task, max_episode_steps=20) for _ in range(num_envs)]
    with closing(raceway.make(task, num_envs, max_episode_steps=20)) as pool:
        obs, infos = pool.reset(seed=3)
        expected = [env.reset(seed=3 + i)[1] for i, env in enumerate(singles)]
        ended = np.zeros(num_envs, dtype=bool)
        for step in range(50):
            assert_entries(infos, expected)
            rng = np.random.default_rng(step)
            actions = seeking_actions(task, obs, rng)
            obs, _, terminated, truncated, infos = pool.step(actions)
            expected = [
                env.reset()[1] if over else env.step(action)[4]
                for env, over, action in zip(singles, ended, actions, strict=True)
            ]
            ended = terminated | truncated


def assert_entries(infos: dict[str, Any], expected: list[dict[str, Any]]) -> None:
    """`infos` holds, all masked as present, what the single environments gave."""
    assert infos.keys() == {name for key in expected[0] for name in (key, f"_{key}")}
    for key in expected[0]:
        np.testing.assert_array_equal(infos[key], [info[key] for info in expected])
        np.testing.assert_array_equal(infos[f"_{key}"], np.ones(len(expected), dtype=bool))
        assert infos[f"_{key}"].dtype == bool
    assert infos["prob"].dtype == np.float64
    if "action_mask" in infos:
        assert infos["action_mask"].dtype == np.int8


@pytest.mark.parametrize("mode", ["next_step", "disabled"])
@pytest.mark.parametrize("task", [task for task in LIGHT if task not in WITH_INFOS])
def test_tasks_without_entries_give_empty_infos(task: str, mode: str):
    with closing(raceway.make(task, 3, autoreset=mode)) as pool:
        assert pool.reset(seed=0)[1] == {}
        assert pool.step(random_actions(task, 3, np.random.default_rng(0)))[4] == {}


@pytest.mark.parametrize("task", WITH_INFOS)
def test_a_masked_reset_gives_the_entries_of_those_in_the_mask_only(task: str):
    mask = np.array([False, True, True, False])
    with closing(raceway.make(task, 4)) as pool:
        pool.reset(seed=0)
        pool.step(np.zeros(4, dtype=np.int64))
        _, infos = pool.reset(options={"reset_mask": mask})
    np.testing.assert_array_equal(infos["_prob"], mask)
    np.testing.assert_array_equal(infos["prob"], mask.astype(float))
    assert infos["_prob"] is not mask  # the caller may go on to change the mask
    if "action_mask" in infos:
        np.testing.assert_array_equal(infos["action_mask"].any(axis=1), mask)


@pytest.mark.parametrize("task", TASKS)
def test_the_last_observation_and_info_of_an_episode_are_as_a_single_environment_gave_them(task: str):
    env = single(task, max_episode_steps=9)
    env.reset(seed=7)
    rng = np.random.default_rng(0)
    with closing(raceway.make(task, 2, autoreset="same_step", env_kwargs=[{"max_episode_steps": 9}, {}])) as pool:
        pool.reset(seed=[7, 8])
        while True:
            actions = random_actions(task, 2, rng)
            _, _, terminated, truncated, infos = pool.step(actions)
            last_obs, _, terminates, truncates, last_info = env.step(actions[0])
            assert (terminated[0], truncated[0]) == (terminates, truncates)
            if terminates or truncates:
                break
            assert "final_obs" not in infos or infos["final_obs"][0] is None
    assert_same(infos["final_obs"][0], last_obs)
    for key, value in last_info.items():
        np.testing.assert_array_equal(infos["final_info"][key][0], value)
    ended = terminated | truncated
    for mask in (infos["_final_obs"], infos["_final_info"]):
        np.testing.assert_array_equal(mask, ended)
    assert infos["final_obs"].dtype == object
    assert (infos["final_obs"][1] is None) == (not ended[1])


def test_final_observations_have_the_types_of_single_environments():
    kinds = {"FrozenLake-v1": int, "Taxi-v4": int, "Blackjack-v1": tuple, "CartPole-v1": np.ndarray}
    for task, kind in kinds.items():
        with closing(raceway.make(task, 1, autoreset="same_step", max_episode_steps=1)) as pool:
            pool.reset(seed=0)
            final = pool.step(np.array([1]))[4]["final_obs"][0]
        assert type(final) is kind
        if isinstance(final, tuple):
            assert [type(part) for part in final] == [int, int, int]


def test_final_observations_stay_as_they_are_when_the_pool_goes_on():
    with closing(raceway.make("CartPole-v1", 2, autoreset="same_step", max_episode_steps=1, copy=False)) as pool:
        pool.reset(seed=0)
        final = pool.step(np.array([0, 1]))[4]["final_obs"]
        before = [row.copy() for row in final]
        pool.step(np.array([1, 0]))
        np.testing.assert_array_equal(np.stack(list(final)), before)


def with_statistics(task: str, mode: str, num_envs: int, **kwargs: Any) -> VectorEnv:
    envs = gymnasium_vector(task, [kwargs] * num_envs, mode)
    return RecordEpisodeStatistics(KeepsTheMask(envs))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("task", ["CartPole-v1", "Pendulum-v1", "FrozenLake-v1", "Blackjack-v1", "Taxi-v4"])
def test_recorded_episodes_equal_those_of_gymnasiums_wrapper(task: str, mode: str):
    num_envs, rng, episodes = 5, np.random.default_rng(0), 0
    theirs = with_statistics(task, mode, num_envs, max_episode_steps=25)
    with (
        closing(raceway.make(task, num_envs, autoreset=mode, record_episodes=True, max_episode_steps=25)) as ours,
        closing(theirs),
    ):
        obs, infos = ours.reset(seed=1)
        assert_same(infos, theirs.reset(seed=1)[1])
        for step in range(120):
            actions = seeking_actions(task, obs, rng)
            obs, _, terminated, truncated, infos = ours.step(actions)
            expected = theirs.step(actions)[4]
            assert_same(infos, expected)
            ended = terminated | truncated
            episodes += int(ended.sum())
            # Where nothing resets by itself, and now and then in the middle of episodes.
            mask = (
                ended
                if mode == "disabled"
                else np.arange(num_envs) == 2
                if step % 40 == 7
                else np.zeros(num_envs, dtype=bool)
            )
            if mask.any():
                obs, _ = ours.reset(options={"reset_mask": mask})
                theirs.reset(options={"reset_mask": mask})
    assert episodes > num_envs


@pytest.mark.parametrize("mode", MODES)
def test_recorded_time_is_that_since_the_episode_began(mode: str):
    with closing(raceway.make("CartPole-v1", 2, autoreset=mode, record_episodes=True, max_episode_steps=3)) as pool:
        for _ in range(2):
            before = time.perf_counter()
            pool.reset(seed=0)
            time.sleep(0.02)
            pool.step(np.array([0, 1]))
            pool.step(np.array([0, 1]))
            seconds = pool.step(np.array([0, 1]))[4]["episode"]["t"]
            took = time.perf_counter() - before
            assert np.all((seconds >= 0.02) & (seconds <= took + 1e-6))


def test_recording_twice_is_refused_by_gymnasiums_wrapper_not_hidden():
    pool = raceway.make("CartPole-v1", 1, record_episodes=True, max_episode_steps=1)
    envs = RecordEpisodeStatistics(pool)
    envs.reset(seed=0)
    with closing(envs), pytest.raises(ValueError, match="already exists"):
        envs.step(np.array([0]))


def test_infos_of_a_pool_are_not_shared_between_calls():
    with closing(raceway.make("Taxi-v4", 3)) as pool:
        _, first = pool.reset(seed=0)
        kept = {key: value.copy() for key, value in first.items()}
        for _ in range(20):
            pool.step(np.zeros(3, dtype=np.int64))
        for key, value in kept.items():
            np.testing.assert_array_equal(first[key], value)
