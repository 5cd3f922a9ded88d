"""Arrays handed out are the caller's to keep, and their memory is used again when they are gone."""

from __future__ import annotations

import gc
import itertools
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Discrete, Tuple

import raceway
from raceway.envs import NativePool
from tests.envs.gymnasium_twin import TASKS
from tests.envs.processes import output_of
from tests.envs.transitions import PATIENCE_S, action_plan

Result = tuple[Any, ...]


def arrays_in(value: Any) -> list[np.ndarray]:
    """Every array of numbers in what a pool returned."""
    if isinstance(value, dict):
        return [array for each in value.values() for array in arrays_in(each)]
    if isinstance(value, tuple):
        return [array for each in value for array in arrays_in(each)]
    if isinstance(value, np.ndarray) and value.dtype == object:
        return [array for each in value for array in arrays_in(each)]
    return [value] if isinstance(value, np.ndarray) else []


def results(pool: NativePool, steps: int) -> list[Result]:
    """What reset and so many steps returned."""
    return [pool.reset(), *(pool.step(actions) for actions in action_plan(pool, steps))]


def received(pool: NativePool, steps: int) -> list[Result]:
    """What so many recvs returned, each environment sent on with action 0."""
    found = []
    pool.async_reset()
    for _ in range(steps):
        found.append(pool.recv(timeout=PATIENCE_S))
        env_ids = found[-1][4]["env_id"].copy()
        pool.send(np.zeros(len(env_ids), dtype=int), env_ids)
    return found


KEPT = [
    ("CartPole-v1", {}),
    ("Pendulum-v1", {}),
    ("Blackjack-v1", {"autoreset": "same_step", "record_episodes": True}),
    ("FrozenLake-v1", {"autoreset": "same_step", "record_episodes": True}),
    ("Busy-v0", {"step_us": 20.0}),
]


@pytest.mark.parametrize(("task", "kwargs"), KEPT, ids=[task for task, _ in KEPT])
def test_arrays_stay_as_they_were_when_the_pool_goes_on_and_goes(task: str, kwargs: dict[str, Any]) -> None:
    pool = raceway.make(task, 5, seed=0, **kwargs)
    kept: list[np.ndarray] = []
    copies: list[np.ndarray] = []
    for result in [pool.reset(), *(pool.step(actions) for actions in action_plan(pool, 40))]:
        kept += arrays_in(result)
        copies += [array.copy() for array in arrays_in(result)]
    results(pool, 40)
    pool.close()
    del pool
    gc.collect()
    results(raceway.make(task, 5, seed=1, **kwargs), 40)  # takes what memory there is
    assert all(array.tobytes() == copy.tobytes() for array, copy in zip(kept, copies, strict=True))


def test_arrays_of_one_step_and_of_two_share_no_memory() -> None:
    pool = raceway.make("FrozenLake-v1", 5, seed=0, autoreset="same_step", record_episodes=True)
    arrays = [array for result in results(pool, 20) for array in arrays_in(result)]
    bounds = sorted((array.ctypes.data, array.ctypes.data + array.nbytes) for array in arrays)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(bounds))


def test_received_arrays_stay_as_they_were() -> None:
    pool = raceway.make("CartPole-v1", 8, batch_size=4, seed=0)
    kept: list[np.ndarray] = []
    copies: list[np.ndarray] = []
    for result in received(pool, 50):
        kept += arrays_in(result)
        copies += [array.copy() for array in arrays_in(result)]
    pool.close()
    del pool
    received(raceway.make("CartPole-v1", 8, batch_size=4, seed=1), 50)
    assert all(array.tobytes() == copy.tobytes() for array, copy in zip(kept, copies, strict=True))


def test_writing_into_arrays_changes_nothing_in_the_pool() -> None:
    pool, twin = (raceway.make("CartPole-v1", 4, seed=0) for _ in range(2))
    for ours, theirs in zip(results(pool, 0), results(twin, 0), strict=True):
        assert ours[0].tobytes() == theirs[0].tobytes()
    for actions in action_plan(pool, 50):
        ours, theirs = pool.step(actions), twin.step(actions)
        assert [a.tobytes() for a in arrays_in(ours)] == [a.tobytes() for a in arrays_in(theirs)]
        for array in arrays_in(ours):
            array[...] = 1
        actions[...] = 0


def test_a_view_keeps_its_memory() -> None:
    pool = raceway.make("CartPole-v1", 8, seed=0)
    view = pool.reset()[0][3:5, 1]
    copy = view.copy()
    for actions in action_plan(pool, 100):
        pool.step(actions)
    pool.close()
    del pool
    gc.collect()
    assert view.tobytes() == copy.tobytes()


@pytest.mark.parametrize("task", ["CartPole-v1", "Blackjack-v1", "Taxi-v3"])
def test_memory_that_is_dropped_is_used_again(task: str) -> None:
    pool = raceway.make(task, 16, seed=0)
    pool.reset()
    places = set()
    for actions in action_plan(pool, 200):
        result = pool.step(actions)
        places.add(result[1].ctypes.data)
    assert len(places) <= 2  # one held by `result` while the next is made


def test_kept_steps_give_their_memory_back_in_the_end() -> None:
    output = output_of("""
        import numpy as np, raceway
        from tests.envs.processes import resident_kib
        pool = raceway.make("CartPole-v1", 1024, seed=0)
        pool.reset()
        actions = np.zeros(1024, dtype=np.int64)
        kept = [pool.step(actions) for _ in range(50)]
        del kept
        before = resident_kib()
        kept = [pool.step(actions) for _ in range(2000)]
        most = resident_kib()
        del kept
        print(most - before > 40_000, resident_kib() - before < 2_000)
    """)
    assert output == "True True"


# --- what the arrays look like


@pytest.mark.parametrize("task", [*TASKS, "Busy-v0"])
def test_arrays_are_as_the_spaces_say(task: str) -> None:
    pool = raceway.make(task, 7, seed=0)
    for observations, rewards, terminated, truncated, _ in results(pool, 10)[1:]:
        assert observations in pool.observation_space
        assert rewards.dtype == np.float64
        assert terminated.dtype == truncated.dtype == np.bool_
        assert rewards.shape == terminated.shape == truncated.shape == (7,)
        for array in arrays_in((observations, rewards, terminated, truncated)):
            assert array.flags.writeable
            assert array.flags.aligned
        for array in (rewards, terminated, truncated):
            assert array.ctypes.data % 64 == 0
            assert array.flags.c_contiguous
        if isinstance(observations, np.ndarray):
            assert observations.ctypes.data % 64 == 0
            assert observations.flags.c_contiguous
            assert observations.dtype == pool.observation_space.dtype


def test_a_tuple_observation_is_a_tuple_of_arrays() -> None:
    pool = raceway.make("Blackjack-v1", 7, seed=0)
    assert isinstance(pool.single_observation_space, Tuple)
    assert [space.n for space in pool.single_observation_space if isinstance(space, Discrete)] == [32, 11, 2]
    observations, _ = pool.reset()
    assert isinstance(observations, tuple)
    assert [(leaf.shape, leaf.dtype) for leaf in observations] == [((7,), np.dtype(np.int64))] * 3


def test_received_arrays_are_of_the_batch() -> None:
    pool = raceway.make("CartPole-v1", 8, batch_size=3, seed=0)
    for observations, rewards, terminated, truncated, infos in received(pool, 10):
        assert observations.shape == (3, 4)
        assert observations.dtype == np.float32
        assert rewards.shape == terminated.shape == truncated.shape == infos["env_id"].shape == (3,)
        assert infos["env_id"].dtype == np.int64


# --- copy=False


def test_without_copies_the_same_memory_is_written_again() -> None:
    pool, twin = raceway.make("CartPole-v1", 4, seed=0, copy=False), raceway.make("CartPole-v1", 4, seed=0)
    first, _ = pool.reset()
    twin.reset()
    for actions in action_plan(pool, 20):
        ours, theirs = pool.step(actions), twin.step(actions)
        assert ours[0].ctypes.data == first.ctypes.data
        assert first.tobytes() == theirs[0].tobytes()
        assert [a.tobytes() for a in arrays_in(ours)] == [a.tobytes() for a in arrays_in(theirs)]


def test_without_copies_recv_has_memory_of_its_own() -> None:
    pool = raceway.make("CartPole-v1", 4, batch_size=2, seed=0, copy=False)
    observations, _ = pool.reset()
    before = observations.copy()
    places = {result[0].ctypes.data for result in received(pool, 20)}
    assert len(places) == 1
    assert observations.tobytes() == before.tobytes()
    assert observations.ctypes.data not in places


def test_without_copies_the_last_arrays_outlive_the_pool() -> None:
    pool = raceway.make("CartPole-v1", 4, seed=0, copy=False)
    observations, _ = pool.reset()
    copy = observations.copy()
    pool.close()
    del pool
    gc.collect()
    results(raceway.make("CartPole-v1", 4, seed=1), 20)
    assert observations.tobytes() == copy.tobytes()


def test_without_copies_observing_leaves_what_the_last_step_returned() -> None:
    pool = raceway.make("CartPole-v1", 4, seed=0, copy=False, render_mode="rgb_array")
    pool.reset()
    observations = pool.step([0] * 4)[0]
    before = observations.copy()
    observations[:] = 7.0
    again = pool.observe()
    pool.render()
    assert (observations == 7.0).all()
    assert (again == before).all()
