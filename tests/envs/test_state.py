"""A pool's state, taken at any moment and put back, goes on to the bit."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from hypothesis import given, settings
from hypothesis import strategies as st

import raceway
from raceway.envs import NativePool
from tests.envs.gymnasium_twin import MODES, TASKS, actions_of, assert_same, random_actions
from tests.envs.task_strategies import shared_kwargs
from tests.examples import examples

NUM_ENVS = 6
FRESH, ENDED = 0, 2  # of an episode; 1 while it runs
pytestmark = pytest.mark.filterwarnings("ignore:.*out of date")

GRIDS = ["CliffWalking-v1", "FrozenLake-v1", "Taxi-v3", "Taxi-v4"]

State = dict[str, Any]


def make(task: str, mode: str = "next_step", **kwargs: Any) -> NativePool:
    given = {"num_envs": NUM_ENVS, "max_episode_steps": 13, "record_episodes": True, **kwargs}
    return raceway.make(task, autoreset=mode, **given)


def go_on(pool: NativePool, mode: str, steps: int, seed: int = 0) -> list[Any]:
    """Everything the pool returns in some steps of the same actions each time."""
    rng = np.random.default_rng(seed)
    returned: list[Any] = []
    for _ in range(steps):
        if mode == "disabled" and (ended := pool.state()["episode.status"] == ENDED).any():
            returned.append(pool.reset(options={"reset_mask": ended}))
        returned.append(pool.step(actions_of(pool.single_action_space, NUM_ENVS, rng)))
    return returned


def go_on_until(pool: NativePool, reached: Callable[[State], bool]) -> State:
    """Steps until the pool's state is such; returns it."""
    for step in range(200):
        if reached(state := pool.state()):
            return state
        go_on(pool, "next_step", 1, seed=step)
    pytest.fail("no such state within 200 steps")


def some_ended(state: State) -> bool:
    return bool((state["episode.status"] == ENDED).any())


def without_clock(state: State) -> State:
    return {name: values for name, values in state.items() if name != "episode.seconds"}


@pytest.mark.parametrize("task", TASKS)
@settings(max_examples=examples(15))
@given(data=st.data())
def test_a_restored_pool_goes_on_to_the_bit(task: str, data: st.DataObject):
    mode = data.draw(st.sampled_from(list(MODES)), "mode")
    kwargs = data.draw(shared_kwargs(task), "kwargs")
    before, after = data.draw(st.integers(0, 40), "before"), 30
    with (
        closing(make(task, mode, seed=5, **kwargs)) as first,
        closing(make(task, mode, num_workers=data.draw(st.integers(1, 4)), seed=99, **kwargs)) as other,
    ):
        first.reset()
        go_on(first, mode, before, seed=1)
        saved, observed = first.state(), first.observe()
        expected, end = go_on(first, mode, after), first.state()
        other.reset()
        go_on(other, mode, data.draw(st.integers(0, 20)))
        for pool in (first, other):
            pool.set_state(saved)
            assert_same(without_clock(pool.state()), without_clock(saved))
            assert_same(pool.observe(), observed)
            assert_same(go_on(pool, mode, after), expected)
            assert_same(without_clock(pool.state()), without_clock(end))


def test_taking_a_state_changes_nothing():
    with closing(make("Blackjack-v1", seed=3)) as watched, closing(make("Blackjack-v1", seed=3)) as alone:
        assert_same(watched.reset(), alone.reset())
        for step in range(30):
            watched.state()
            watched.observe()
            seen = go_on(watched, "next_step", 1, step)
            assert_same(seen, go_on(alone, "next_step", 1, step))


@pytest.mark.parametrize("task", TASKS)
def test_a_pending_autoreset_belongs_to_the_state(task: str):
    with closing(make(task, seed=1)) as pool, closing(make(task, seed=2)) as other:
        pool.reset()
        saved = go_on_until(pool, some_ended)
        other.set_state(saved)  # not reset before: the state makes up for it
        actions = random_actions(task, NUM_ENVS, np.random.default_rng(0))
        restored, expected = other.step(actions), pool.step(actions)
    assert_same(restored, expected)
    pending = saved["episode.status"] == ENDED
    assert np.all(restored[1][pending] == 0)
    assert not np.any(restored[2][pending] | restored[3][pending])


def test_the_half_of_a_random_number_that_waits_belongs_to_the_state():
    with closing(make("Blackjack-v1", seed=4)) as pool:
        pool.reset()
        saved = go_on_until(pool, lambda state: 0 < state["random.has_half"].sum() < NUM_ENVS)
        expected = go_on(pool, "next_step", 20)
        forgetful = {**saved, "random.has_half": np.zeros_like(saved["random.has_half"])}
        pool.set_state(forgetful)
        with pytest.raises(AssertionError):
            assert_same(go_on(pool, "next_step", 20), expected)
        pool.set_state(saved)
        assert_same(go_on(pool, "next_step", 20), expected)


@pytest.mark.parametrize("task", TASKS)
def test_a_state_from_before_the_first_reset_resets_alike(task: str):
    with closing(make(task, seed=8)) as pool, closing(make(task, seed=9)) as other:
        saved = pool.state()
        assert np.all(saved["episode.status"] == FRESH)
        other.reset()
        other.set_state(saved)
        with pytest.raises(ResetNeeded):
            other.step(random_actions(task, NUM_ENVS, np.random.default_rng(0)))
        assert_same(other.reset(), pool.reset())


def test_the_length_and_return_of_an_episode_go_on_and_its_time_too():
    with (
        closing(make("CartPole-v1", max_episode_steps=5)) as pool,
        closing(make("CartPole-v1", max_episode_steps=5)) as other,
    ):
        pool.reset(seed=0)
        go_on(pool, "next_step", 3)
        saved = pool.state()
        saved["episode.seconds"] = saved["episode.seconds"] + 100.0
        other.set_state(saved)
        episode = go_on(other, "next_step", 2)[-1][4]["episode"]
    np.testing.assert_array_equal(episode["l"], np.full(NUM_ENVS, 5))
    np.testing.assert_array_equal(episode["r"], np.full(NUM_ENVS, 5.0))
    assert np.all((episode["t"] >= 100) & (episode["t"] < 110))


@pytest.mark.parametrize("task", TASKS)
def test_a_state_is_an_id_and_plain_arrays_that_a_file_can_hold(task: str, tmp_path: Path):
    with closing(make(task, seed=6)) as pool:
        pool.reset()
        go_on(pool, "next_step", 20)
        saved = pool.state()
        assert saved["id"] == task
        for name, values in saved.items():
            if name != "id":
                assert type(values) is np.ndarray
                assert values.dtype.kind in "biuf"
                assert len(values) == NUM_ENVS
        np.savez(tmp_path / "state.npz", **saved)
        expected = go_on(pool, "next_step", 20)
        with np.load(tmp_path / "state.npz", allow_pickle=False) as loaded:
            pool.set_state(dict(loaded))
        assert_same(go_on(pool, "next_step", 20), expected)


def test_a_state_stays_as_it_was_when_the_pool_goes_on():
    with closing(make("Taxi-v4", seed=6)) as pool:
        pool.reset()
        saved = pool.state()
        kept = {name: values.copy() for name, values in saved.items() if name != "id"}
        go_on(pool, "next_step", 20)
    assert_same({name: values for name, values in saved.items() if name != "id"}, kept)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("task", TASKS)
def test_observe_gives_what_the_last_call_gave(task: str, mode: str):
    with closing(make(task, mode)) as pool:
        obs, _ = pool.reset(seed=0)
        assert_same(pool.observe(), obs)
        for _ in range(20):
            obs = go_on(pool, mode, 1)[-1][0]
            assert_same(pool.observe(), obs)


def set_at(state: State, name: str, value: Any) -> State:
    """The state with one value changed, in the last environment: those before it must not be left changed either."""
    values = state[name].copy()
    values[-1] = value
    return {**state, name: values}


def refused(pool: NativePool, state: State, match: str) -> None:
    """`state` is refused, and the pool goes on as if nobody had tried."""
    before = pool.state()
    with pytest.raises(ValueError, match=match):
        pool.set_state(state)
    assert_same(without_clock(pool.state()), without_clock(before))


@pytest.fixture
def pool_and_state(request: pytest.FixtureRequest) -> Any:
    """A pool of the task that the test is given, and a state that it was in some time ago."""
    with closing(make(request.param, seed=2)) as pool:
        pool.reset()
        go_on(pool, "next_step", 5)
        saved = pool.state()
        go_on(pool, "next_step", 6, seed=1)
        yield pool, saved


@pytest.mark.parametrize("pool_and_state", TASKS, indirect=True)
def test_states_of_another_make_are_refused(pool_and_state: tuple[NativePool, State]):
    pool, state = pool_and_state
    refused(pool, {**state, "id": "Snake-v0"}, r"of 'Snake-v0', this pool of")
    refused(pool, {name: values for name, values in state.items() if name != "id"}, "this pool of")
    refused(pool, {**state, "env.unheard_of": np.zeros(NUM_ENVS)}, r"'env\.unheard_of'")
    for name in state.keys() - {"id"}:
        refused(pool, {other: values for other, values in state.items() if other != name}, f"lacks '{name}'")
        refused(pool, {**state, name: state[name][:-1]}, f"'{name}' is .* of shape")
        refused(pool, {**state, name: state[name][:, None]}, f"'{name}' is .* of shape")
        wider = np.complex128 if state[name].dtype.kind == "f" else np.float64
        refused(pool, {**state, name: state[name].astype(wider)}, f"'{name}' is {np.dtype(wider)}")
        refused(pool, {**state, name: None}, f"'{name}' is object")


@pytest.mark.parametrize("pool_and_state", TASKS, indirect=True)
def test_generators_and_episodes_that_cannot_be_are_refused(pool_and_state: tuple[NativePool, State]):
    pool, state = pool_and_state
    wrong = [
        ("random.increment_low", np.uint64(2)),
        ("random.has_half", np.uint64(2)),
        ("random.half", np.uint64(2**32)),
        ("episode.steps", -1),
        ("episode.status", 3),
        ("episode.status", -1),
        ("episode.status", 2**40 + 1),
    ]
    for name, value in wrong:
        refused(pool, set_at(state, name, value), f"environment {NUM_ENVS - 1}")


@pytest.mark.parametrize("pool_and_state", GRIDS, indirect=True)
@pytest.mark.parametrize("place", [-1, 500, 2**31, -(2**63)])
def test_places_outside_the_grid_are_refused(pool_and_state: tuple[NativePool, State], place: int):
    pool, state = pool_and_state
    refused(pool, set_at(state, "env.state", place), f"environment {NUM_ENVS - 1}")


@pytest.mark.parametrize("pool_and_state", ["FrozenLake-v1", "Taxi-v3", "Taxi-v4"], indirect=True)
def test_last_actions_that_the_task_does_not_have_are_refused(pool_and_state: tuple[NativePool, State]):
    pool, state = pool_and_state
    refused(pool, set_at(state, "env.last_action", 6), f"environment {NUM_ENVS - 1}")


@pytest.mark.parametrize("pool_and_state", ["Blackjack-v1"], indirect=True)
@pytest.mark.parametrize("name", ["env.player_sum", "env.dealer_sum", "env.upcard", "env.suit", "env.face"])
@pytest.mark.parametrize("value", [-1, 65, 2**40])
def test_hands_that_cannot_be_held_are_refused(pool_and_state: tuple[NativePool, State], name: str, value: int):
    pool, state = pool_and_state
    refused(pool, set_at(state, name, value), f"environment {NUM_ENVS - 1}")


@pytest.mark.timeout(20)
@pytest.mark.parametrize("pool_and_state", ["Acrobot-v1"], indirect=True)
@pytest.mark.parametrize("angle", [np.nan, np.inf, 1e300])
def test_angles_from_very_far_away_are_stepped_and_touch_no_other(
    pool_and_state: tuple[NativePool, State], angle: float
):
    pool, state = pool_and_state
    actions = np.zeros(NUM_ENVS, dtype=np.int64)
    pool.set_state(state)
    expected = pool.step(actions)[0]
    pool.set_state(set_at(state, "env.state", angle))
    np.testing.assert_array_equal(pool.step(actions)[0][:-1], expected[:-1])


def test_a_state_of_a_larger_map_is_refused_where_it_does_not_fit():
    with closing(make("FrozenLake-v1")) as small, closing(make("FrozenLake-v1", map_name="8x8")) as large:
        small.reset(seed=0)
        large.reset(seed=0)
        refused(small, set_at(large.state(), "env.state", 63), f"environment {NUM_ENVS - 1}")


def test_a_state_that_leaves_one_environment_unreset_wants_it_reset_before_a_step():
    with closing(make("CartPole-v1")) as pool:
        pool.reset(seed=0)
        pool.set_state(set_at(pool.state(), "episode.status", FRESH))
        with pytest.raises(ResetNeeded, match=str(NUM_ENVS - 1)):
            pool.step(np.zeros(NUM_ENVS, dtype=np.int64))
        pool.reset(options={"reset_mask": np.arange(NUM_ENVS) == NUM_ENVS - 1})
        pool.step(np.zeros(NUM_ENVS, dtype=np.int64))


def test_an_episode_past_its_limit_is_refused_or_cut_off_but_does_not_go_on_for_ever():
    with (
        closing(make("Pendulum-v1", max_episode_steps=50)) as long,
        closing(make("Pendulum-v1", max_episode_steps=10)) as short,
    ):
        long.reset(seed=0)
        go_on(long, "next_step", 20)
        try:
            short.set_state(long.state())
        except ValueError:
            return
        assert go_on(short, "next_step", 1)[-1][3].all()


def test_an_ended_episode_is_refused_where_episodes_start_again_within_the_step():
    with closing(make("FrozenLake-v1")) as pool, closing(make("FrozenLake-v1", "same_step")) as other:
        pool.reset(seed=0)
        other.reset(seed=0)
        refused(other, go_on_until(pool, some_ended), "environment")


def test_a_state_cannot_be_taken_or_set_while_actions_are_in_flight():
    with closing(make("CartPole-v1", batch_size=2, seed=0)) as pool:
        pool.reset()
        saved = pool.state()
        pool.send(np.zeros(NUM_ENVS, dtype=np.int64))
        with pytest.raises(RuntimeError, match="state"):
            pool.state()
        with pytest.raises(RuntimeError, match="set_state"):
            pool.set_state(saved)
        for _ in range(3):
            pool.recv(timeout=30)
        pool.set_state(saved)
        assert_same(without_clock(pool.state()), without_clock(saved))
