"""Gymnasium finds every task as raceway/<id>, and what it gets is a vector environment of its own kind."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, VectorEnv

import raceway
from raceway.envs import NativePool
from raceway.envs.registration import register_all
from tests.envs.gymnasium_twin import MODES, TASKS, assert_same, gymnasium_id, gymnasium_vector

pytestmark = pytest.mark.filterwarnings("ignore:.*out of date")


@pytest.mark.parametrize("task", [*TASKS, "Busy-v0"])
def test_make_vec_gives_a_pool(task: str):
    with closing(gymnasium.make_vec(f"raceway/{task}", num_envs=64)) as envs:
        assert isinstance(envs, VectorEnv)
        assert isinstance(envs.unwrapped, NativePool)
        assert envs.num_envs == 64
        obs, _ = envs.reset(seed=0)
        assert envs.observation_space.contains(obs)
        obs, rewards, terminated, truncated, _ = envs.step(envs.action_space.sample())
        assert envs.observation_space.contains(obs)
        assert rewards.shape == terminated.shape == truncated.shape == (64,)


def test_make_vec_works_in_a_fresh_process_after_the_import_alone():
    program = "import gymnasium, raceway; print(gymnasium.make_vec('raceway/CartPole-v1', num_envs=64).num_envs)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "64"


def test_gymnasium_imports_raceway_by_the_name_before_the_colon():
    program = "import gymnasium; print(gymnasium.make_vec('raceway:raceway/Taxi-v4', num_envs=3).num_envs)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "3"


def test_importing_again_keeps_what_is_registered():
    before = gymnasium.registry["raceway/CartPole-v1"]
    register_all()
    assert gymnasium.registry["raceway/CartPole-v1"] is before


def test_keyword_arguments_pass_through_make_vec():
    with (
        closing(
            gymnasium.make_vec(
                "raceway/FrozenLake-v1",
                num_envs=3,
                autoreset="same_step",
                num_workers=1,
                map_name="8x8",
                is_slippery=False,
                max_episode_steps=7,
                render_mode="ansi",
            )
        ) as envs,
        closing(
            raceway.make(
                "FrozenLake-v1", 3, autoreset="same_step", map_name="8x8", is_slippery=False, max_episode_steps=7
            )
        ) as pool,
    ):
        assert envs.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
        assert envs.render_mode == "ansi"
        assert_same(envs.reset(seed=1), pool.reset(seed=1))
        for _ in range(20):
            assert_same(envs.step(np.array([1, 2, 2])), pool.step(np.array([1, 2, 2])))


def test_the_step_limit_of_the_id_holds_in_make_vec():
    with closing(gymnasium.make_vec("raceway/Pendulum-v1", num_envs=1)) as envs:
        envs.reset(seed=0)
        cuts = [bool(envs.step(np.zeros((1, 1), dtype=np.float32))[3][0]) for _ in range(200)]
    assert cuts == [False] * 199 + [True]


@pytest.mark.parametrize("task", TASKS)
def test_the_spec_tells_what_gymnasiums_tells(task: str):
    with closing(gymnasium.make_vec(f"raceway/{task}", num_envs=2)) as envs:
        ours, theirs = envs.spec, gymnasium.spec(gymnasium_id(task))
    assert ours is not None
    assert ours.id == f"raceway/{task}"
    assert ours.kwargs["num_envs"] == 2
    assert ours.max_episode_steps == theirs.max_episode_steps
    assert ours.reward_threshold == theirs.reward_threshold


def test_a_pool_can_be_made_again_from_its_spec():
    with closing(gymnasium.make_vec("raceway/CartPole-v1", num_envs=5, sutton_barto_reward=True)) as envs:
        assert envs.spec is not None
        with closing(gymnasium.make_vec(envs.spec)) as again:
            assert again.num_envs == 5
            assert_same(again.reset(seed=0), envs.reset(seed=0))
            actions = np.zeros(5, dtype=np.int64)
            assert_same(again.step(actions), envs.step(actions))


@pytest.mark.parametrize("task", TASKS)
def test_spaces_equal_those_of_gymnasiums_vector_environment(task: str):
    with closing(raceway.make(task, 3)) as pool, closing(gymnasium_vector(task, [{}] * 3, "next_step")) as envs:
        assert pool.single_observation_space == envs.single_observation_space
        assert pool.single_action_space == envs.single_action_space
        assert pool.observation_space == envs.observation_space
        assert pool.action_space == envs.action_space


@pytest.mark.parametrize("task", TASKS)
def test_sampled_actions_equal_gymnasiums(task: str):
    with closing(raceway.make(task, 3)) as pool, closing(gymnasium_vector(task, [{}] * 3, "next_step")) as envs:
        pool.action_space.seed(1)
        envs.action_space.seed(1)
        assert_same(pool.action_space.sample(), envs.action_space.sample())


@pytest.mark.parametrize("mode", MODES)
def test_the_autoreset_mode_is_told_in_the_metadata(mode: str):
    for name in (mode, MODES[mode], MODES[mode].value):
        with closing(raceway.make("CartPole-v1", 2, autoreset=name)) as pool:
            assert pool.metadata["autoreset_mode"] is MODES[mode]


def test_every_listed_task_is_registered_and_the_list_is_the_callers():
    listed = raceway.list_envs()
    assert listed == sorted(listed)
    assert {f"raceway/{task}" for task in listed} == {
        name for name in gymnasium.registry if name.startswith("raceway/")
    }
    listed.clear()
    assert raceway.list_envs()


def test_the_tasks_of_the_issue_are_there():
    wanted = {
        "CartPole-v0",
        "CartPole-v1",
        "MountainCar-v0",
        "MountainCarContinuous-v0",
        "Acrobot-v1",
        "Pendulum-v1",
        "FrozenLake-v1",
        "FrozenLake8x8-v1",
        "Taxi-v3",
        "CliffWalking-v1",
        "Blackjack-v1",
    }
    assert wanted <= set(raceway.list_envs())
