"""Arrays handed out are the caller's to keep; with copy=False they are the same memory each time."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import raceway
from tests.envs.gymnasium_twin import assert_same
from tests.envs.processes import resident_kib
from tests.envs.python.scripted import OBSERVATIONS, Counting, maker
from tests.envs.python.watching import descriptors

MAKERS = [maker(observation=OBSERVATIONS["nested"], longest=4)] * 5


@pytest.fixture(scope="module", params=["inline", "process"])
def pool(request: pytest.FixtureRequest) -> Iterator[Any]:
    made = raceway.make(MAKERS, 5, lane=request.param, num_workers=2, autoreset="same_step", seed=0)
    yield made
    made.close()


def arrays_in(value: Any) -> list[np.ndarray]:
    """Every array of numbers in what a pool returned."""
    if isinstance(value, dict):
        return [array for each in value.values() for array in arrays_in(each)]
    if isinstance(value, (tuple, list)):
        return [array for each in value for array in arrays_in(each)]
    if isinstance(value, np.ndarray) and value.dtype == object:
        return [array for each in value for array in arrays_in(each)]
    return [value] if isinstance(value, np.ndarray) else []


def test_what_was_handed_out_stays_what_it_is(pool: Any) -> None:
    results: list[Any] = [pool.reset(seed=0)]
    kept = [copy.deepcopy(results[0])]
    for step in range(60):
        results.append(pool.step(np.full(5, step % 5)))
        kept.append(copy.deepcopy(results[-1]))
    pool.reset()
    for before, now in zip(kept, results, strict=True):
        assert_same(now, before)


def test_no_two_results_share_memory_and_all_may_be_written(pool: Any) -> None:
    results = [pool.reset(), *(pool.step(np.ones(5, int)) for _ in range(6))]
    arrays = [array for array in arrays_in(results) if array.size]
    for index, array in enumerate(arrays):
        assert array.flags.writeable
        assert not any(np.shares_memory(array, other) for other in arrays[index + 1 :])
    for array in arrays:
        array[...] = 1
    expected = pool.reset(seed=3)
    assert_same(pool.reset(seed=3), expected)


def test_what_a_caller_writes_reaches_no_environment(pool: Any) -> None:
    def roll(spoil: bool) -> list[Any]:
        rolled = [pool.reset(seed=4)]
        actions = np.ones(5, int)
        for _ in range(20):
            rolled.append(pool.step(actions))
            if spoil:
                result = rolled.pop()
                rolled.append(copy.deepcopy(result))
                for array in arrays_in(result):
                    array[...] = 0
        return rolled

    assert_same(roll(True), roll(False))


def test_actions_may_be_overwritten_once_sent() -> None:
    pool = raceway.make(Counting, 4, lane="process", batch_size=2, num_workers=2)
    pool.reset()
    actions = np.array([30, 30, 30, 30])
    pool.send(actions)
    actions[:] = 1500
    for _ in range(2):
        pool.recv(timeout=0.7)
    pool.close()


@pytest.mark.parametrize("lane", ["inline", "process"])
def test_arrays_outlive_their_pool(lane: str) -> None:
    pool = raceway.make(MAKERS, 5, lane=lane, num_workers=2, seed=0)
    results = [pool.reset(), pool.step(np.ones(5, int)), pool.step(np.ones(5, int))]
    kept = copy.deepcopy(results)
    pool.close()
    del pool
    gc.collect()
    assert_same(results, kept)
    for array in arrays_in(results):
        array[...] = 0


@pytest.mark.parametrize("lane", ["inline", "process"])
def test_without_copies_the_memory_is_the_same_each_time(lane: str) -> None:
    pool = raceway.make(Counting, 4, lane=lane, num_workers=2, copy=False)
    first, _ = pool.reset()
    later = [pool.step([0] * 4) for _ in range(5)]
    for obs, rewards, terminated, truncated, _ in later:
        assert np.shares_memory(obs, first)
        assert rewards is not None
        assert (terminated.shape, truncated.shape) == ((4,), (4,))
    assert first[:, 2].tolist() == [5] * 4
    pool.close()


def test_memory_is_used_again_when_the_last_array_is_gone() -> None:
    makers = [maker(observation=OBSERVATIONS["image"], longest=50, tells=False)] * 4
    pool = raceway.make(makers, 4, lane="process", num_workers=2, autoreset="same_step")
    pool.reset()
    actions = np.ones(4, int)
    for _ in range(200):
        pool.step(actions)
    before, files = resident_kib(), len(descriptors())
    for _ in range(2000):
        pool.step(actions)
    assert resident_kib() - before < 600
    assert len(descriptors()) == files
    pool.close()


KEPT: dict[str, Callable[[np.ndarray], Any]] = {
    "a row": lambda obs: obs[1],
    "a view of a view": lambda obs: obs[1:][::-1].T,
    "a memoryview": lambda obs: obs.data,
    "what another library has": np.from_dlpack,
    "its memory as bytes": lambda obs: np.frombuffer(obs, np.uint8),
}


@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize("lane", ["inline", "process"])
def test_a_part_of_a_result_is_enough_to_keep_it(lane: str, kept: str) -> None:
    pool = raceway.make(Counting, 4, lane=lane, num_workers=2)
    pool.reset()
    for _ in range(5):
        part = KEPT[kept](pool.step([0] * 4)[0])
        before = np.array(part)
        for _ in range(8):
            pool.step([0] * 4)
        assert np.array_equal(np.array(part), before)
    pool.close()


@pytest.mark.parametrize("keeps", [False, True], ids=["nothing", "rewards and flags"])
@pytest.mark.parametrize("lane", ["inline", "process"])
def test_rows_are_written_again_when_nobody_has_observations_of_them(lane: str, keeps: bool) -> None:
    pool = raceway.make(Counting, 4, lane=lane, num_workers=2)
    pool.reset()
    places, kept = set(), []
    for _ in range(50):
        obs, *rest, _ = pool.step([0] * 4)
        places.add(obs.ctypes.data)
        if keeps:
            kept += rest
        del obs
    assert len(places) == 2
    pool.close()


@pytest.mark.parametrize("lane", ["inline", "process"])
def test_an_array_that_its_owner_changed_does_not_come_back(lane: str) -> None:
    pool = raceway.make(Counting, 4, lane=lane, num_workers=2)
    pool.reset()
    for _ in range(10):
        obs, rewards, *_ = pool.step([0] * 4)
        assert (obs.shape, obs.flags.writeable, rewards.dtype) == ((4, 3), True, np.float64)
        obs.shape, rewards.dtype = (12,), np.int64
        obs.flags.writeable = False
    pool.close()


def test_many_results_may_be_kept_at_once() -> None:
    pool = raceway.make(Counting, 4, lane="process", num_workers=2)
    pool.reset()
    kept = [pool.step([0] * 4)[0] for _ in range(300)]
    assert [obs[3, 2] for obs in kept] == list(range(1, 301))
    del kept[::2]
    more = [pool.step([0] * 4)[0] for _ in range(300)]
    assert [obs[0, 2] for obs in kept + more] == [*range(2, 301, 2), *range(301, 601)]
    pool.close()
