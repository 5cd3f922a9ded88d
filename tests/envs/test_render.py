"""Pictures of a pool are those that Gymnasium draws, pixel by pixel."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ResetNeeded

import raceway
from tests.envs.gymnasium_twin import LIGHT, TOY, Twins, in_turn, random_actions

pytestmark = pytest.mark.filterwarnings("ignore:.*out of date")

NUM_ENVS = 3
TEXT = [task for task in TOY if task != "Blackjack-v1"]


def assert_same_pictures(twins: Twins) -> tuple[Any, ...]:
    """Both sides draw the same; what the pool drew."""
    ours, theirs = twins.pool.render(), twins.theirs.render()
    assert ours is not None
    assert theirs is not None
    assert len(ours) == len(theirs) == NUM_ENVS
    for i, (our, their) in enumerate(zip(ours, theirs, strict=True)):
        assert type(our) is type(their)
        if isinstance(their, np.ndarray):
            assert isinstance(our, np.ndarray)
            assert (our.dtype, our.shape) == (their.dtype, their.shape)
        assert np.array_equal(np.asarray(our), np.asarray(their)), f"environment {i}"
    return ours


def drive(twins: Twins, steps: int, draws_at: Callable[[int], bool] = lambda step: True) -> None:
    """Steps both, and compares their pictures after the steps that `draws_at` names."""
    rng = np.random.default_rng(0)
    for step in range(steps):
        twins.drive(1, rng)
        if draws_at(step):
            assert_same_pictures(twins)


@pytest.mark.parametrize(("task", "mode"), in_turn(LIGHT))
def test_frames_equal_gymnasiums_through_ends_of_episodes(task: str, mode: str):
    with Twins(task, NUM_ENVS, mode, render_mode="rgb_array", max_episode_steps=5) as twins:
        twins.reset(seed=1)
        first = assert_same_pictures(twins)
        assert first[0].ndim == 3
        drive(twins, 14)


@pytest.mark.parametrize("task", ["Taxi-v4", "Pendulum-v1", "Blackjack-v1"])
def test_frames_drawn_now_and_then_equal_gymnasiums(task: str):
    # A taxi turns only when it is drawn, so what was not drawn must not turn it either.
    with Twins(task, NUM_ENVS, render_mode="rgb_array", max_episode_steps=11) as twins:
        twins.reset(seed=1)
        drive(twins, 45, lambda step: step % 7 in (2, 3, 6))


def test_a_taxi_faces_where_it_was_driven_and_keeps_facing_there():
    with Twins("Taxi-v4", NUM_ENVS, render_mode="rgb_array") as twins:
        twins.reset(seed=2)
        for action in (0, 3, 4, 5, 1, 4, 2, 5, 4):
            twins.step(np.array([action, action, (action + 1) % 6]))
            assert_same_pictures(twins)
        twins.reset(mask=np.array([True, False, False]))
        assert_same_pictures(twins)


def test_the_torque_on_a_pendulum_is_drawn_until_it_is_reset():
    with Twins("Pendulum-v1", NUM_ENVS, render_mode="rgb_array") as twins:
        twins.reset(seed=3)
        without = assert_same_pictures(twins)
        for torque in (-9.0, -1.0, 0.0, 0.3, 2.0):
            twins.step(np.full((NUM_ENVS, 1), torque, dtype=np.float32))
            assert_same_pictures(twins)
        twins.reset(seed=3)
        again = assert_same_pictures(twins)
    np.testing.assert_array_equal(without[0], again[0])


def test_many_hands_of_blackjack_show_the_same_cards():
    with Twins("Blackjack-v1", NUM_ENVS, render_mode="rgb_array") as twins:
        for seed in range(20):
            twins.reset(seed=seed)
            assert_same_pictures(twins)
            twins.step(np.array([1, 1, 0]))
            assert_same_pictures(twins)


@pytest.mark.parametrize("task", ["FrozenLake-v1", "FrozenLake8x8-v1"])
def test_each_environment_is_drawn_with_its_own_arguments(task: str):
    own = [{"desc": ["SFFH", "HFFG"]}, {"desc": ["SH", "FF", "FF", "GS"]}, {"desc": ["GFFFFFFS"]}]
    with Twins(task, NUM_ENVS, env_kwargs=own, render_mode="rgb_array") as twins:
        twins.reset(seed=4)
        shapes = {picture.shape for picture in assert_same_pictures(twins)}
        drive(twins, 10)
    assert len(shapes) == 3


@pytest.mark.parametrize("task", TEXT)
def test_text_equals_gymnasiums(task: str):
    with Twins(task, NUM_ENVS, render_mode="ansi", max_episode_steps=6) as twins:
        twins.reset(seed=5)
        assert isinstance(assert_same_pictures(twins)[0], str)
        drive(twins, 20)


@pytest.mark.parametrize("task", ["Taxi-v4", "Pendulum-v1", "MountainCarContinuous-v0", "Acrobot-v1"])
def test_a_restored_pool_draws_what_the_first_one_drew(task: str):
    with (
        closing(raceway.make(task, 2, render_mode="rgb_array")) as pool,
        closing(raceway.make(task, 2, render_mode="rgb_array")) as other,
    ):
        pool.reset(seed=6)
        for step in range(4):
            pool.step(random_actions(task, 2, np.random.default_rng(step)))
        if task == "Taxi-v4":
            pool.step(np.array([3, 2]))  # where a taxi faces after another action than a move is known to who drew it
        drawn = pool.render()
        other.set_state(pool.state())
        restored = other.render()
    assert drawn is not None
    assert restored is not None
    np.testing.assert_array_equal(np.stack(restored), np.stack(drawn))


def test_drawing_changes_nothing_in_the_environments():
    with (
        closing(raceway.make("Blackjack-v1", 2, render_mode="rgb_array")) as drawn,
        closing(raceway.make("Blackjack-v1", 2)) as plain,
    ):
        drawn.reset(seed=0)
        plain.reset(seed=0)
        for step in range(10):
            drawn.render()
            actions = random_actions("Blackjack-v1", 2, np.random.default_rng(step))
            np.testing.assert_array_equal(drawn.step(actions)[0], plain.step(actions)[0])


def test_frames_are_the_callers_to_keep():
    with closing(raceway.make("CartPole-v1", 1, render_mode="rgb_array")) as pool:
        pool.reset(seed=0)
        first = pool.render()
        assert first is not None
        kept = first[0].copy()
        for _ in range(5):
            pool.step(np.array([0]))
            pool.render()
        np.testing.assert_array_equal(first[0], kept)


def test_render_without_a_mode_warns_and_draws_nothing():
    with closing(raceway.make("CartPole-v1", 1)) as pool:
        pool.reset(seed=0)
        with pytest.warns(UserWarning, match="render_mode='rgb_array'"):
            assert pool.render() is None


def test_render_before_the_first_reset_asks_for_it():
    with closing(raceway.make("CartPole-v1", 1, render_mode="rgb_array")) as pool, pytest.raises(ResetNeeded):
        pool.render()


@pytest.mark.parametrize("mode", ["rgb", "human", "depth_array", "ansi"])
def test_a_mode_that_a_task_does_not_have_is_refused_by_name(mode: str):
    with pytest.raises(ValueError, match=f"CartPole-v1 has no render_mode '{mode}'. There are: rgb_array"):
        raceway.make("CartPole-v1", 1, render_mode=mode)


def test_a_pool_tells_its_render_modes_and_rate():
    with closing(raceway.make("Taxi-v4", 1, render_mode="ansi")) as pool:
        assert pool.render_mode == "ansi"
        assert set(pool.metadata["render_modes"]) == {"ansi", "rgb_array"}
        assert pool.metadata["render_fps"] == 4
