"""Episodes that begin with counted seeds: saved, restored, replayed, and healed when their worker is killed."""

from __future__ import annotations

import copy
import os
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raceway.envs.python import python_pool
from raceway.envs.python.stage import episode_seed
from raceway.errors import EnvError
from tests.envs.gymnasium_twin import assert_same
from tests.envs.python.walks import DictWalk, Roller, SavedWalk, UnseededWalk, Walk

NUM_ENVS = 5


def walks(target: Any = Walk, *, own: Any = None, **settings: Any) -> Any:
    given: dict[str, Any] = {
        "lane": "process",
        "num_workers": 2,
        "autoreset": "same_step",
        "on_error": "restart",
    } | settings
    return python_pool(target, NUM_ENVS, episode_seeds=True, env_kwargs=own, **given)


def plan(pool: Any, steps: int, seed: int = 0) -> list[Any]:
    pool.action_space.seed(seed)
    return [pool.action_space.sample() for _ in range(steps)]


def roll(pool: Any, actions: list[Any]) -> list[Any]:
    return [copy.deepcopy(pool.step(each)) for each in actions]


# --- seeds


@pytest.mark.parametrize("lane", ["inline", "process"])
def test_every_episode_begins_with_its_own_counted_seed(lane: str) -> None:
    pool = walks(lane=lane)
    obs, _ = pool.reset(seed=40)
    numbers = np.zeros(NUM_ENVS, int)
    alone = Walk()
    for actions in plan(pool, 60):
        for env in range(NUM_ENVS):
            if obs is not None and numbers[env] >= 0:
                expected, _ = alone.reset(seed=episode_seed(40 + env, int(numbers[env])))
                assert obs[env].tolist() == expected.tolist()
                numbers[env] = -1 - numbers[env]  # checked
        obs, _, terminated, truncated, _ = pool.step(actions)
        numbers[terminated | truncated] = -numbers[terminated | truncated]
    assert (np.abs(numbers) > 3).all()
    pool.close()


def test_seeds_of_episodes_do_not_meet() -> None:
    seeds = {episode_seed(base, number) for base in range(30) for number in range(100)}
    assert len(seeds) >= 2998
    assert all(0 <= seed < 2**32 for seed in seeds)


# --- state


def test_what_is_written_down_is_what_was_done_whatever_the_caller_writes_meanwhile() -> None:
    actions = np.zeros((NUM_ENVS, 2), np.float32)

    class Meddler(Walk):
        def step(self, action: Any) -> Any:
            given = super().step(action)
            actions[:] = -actions  # as another thread might
            return given

    pool = walks(Meddler, lane="inline")
    pool.reset(seed=0)
    for step in range(3):
        actions[:] = (step + 1) / 4
        pool.step(actions)
    before = pool.observe()
    assert pool.set_state(pool.state()) == []
    assert_same(pool.observe(), before)
    pool.close()


WAYS_ON = [("process", "inline"), ("inline", "process"), ("process", "process")]


@pytest.mark.parametrize(
    ("lane", "then", "target"),
    [
        # Once each; the other pairs are for those who have more time.
        pytest.param(*way, target, marks=[] if at == by else [pytest.mark.slow])
        for at, way in enumerate(WAYS_ON)
        for by, target in enumerate((Walk, SavedWalk, DictWalk))
    ],
)
def test_a_pool_goes_on_from_its_state_in_any_lane(lane: str, then: str, target: Any) -> None:
    first = walks(target, lane=lane)
    first.reset(seed=3)
    roll(first, plan(first, 23))
    state = first.state()
    further = plan(first, 30, seed=1)
    expected = roll(first, further)
    first.close()
    second = walks(target, lane=then, num_workers=3)
    second.reset(seed=99)
    roll(second, plan(second, 4))
    assert second.set_state(state) == []
    assert_same(roll(second, further), expected)
    assert second.faults.tolist() == [0] * NUM_ENVS
    second.close()


def assert_plain(value: Any) -> None:
    if isinstance(value, dict):
        assert all(type(key) is str for key in value)
        for each in value.values():
            assert_plain(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            assert_plain(each)
    elif isinstance(value, np.ndarray):
        assert value.dtype.kind in "biuf", value
    else:
        assert value is None or isinstance(value, (bool, int, float, str)), value


@pytest.mark.parametrize("target", [Walk, SavedWalk, DictWalk])
def test_a_state_is_plain_data_and_does_not_change(target: Any) -> None:
    pool = walks(target, lane="inline")
    pool.reset(seed=0)
    roll(pool, plan(pool, 9))
    state = pool.state()
    assert_plain(state)
    kept = copy.deepcopy(state)
    roll(pool, plan(pool, 20))
    assert_same(state, kept)
    assert pool.set_state(state) == []
    assert_same(pool.state(), kept)
    pool.close()


def test_a_state_right_after_a_reset() -> None:
    pool = walks(lane="inline")
    pool.reset(seed=0)
    state = pool.state()
    actions = plan(pool, 15)
    expected = roll(pool, actions)
    assert pool.set_state(state) == []
    assert_same(roll(pool, actions), expected)
    pool.close()


def test_episodes_that_cannot_be_played_again_are_named_and_begin_anew() -> None:
    makers = [Walk, UnseededWalk, SavedWalk, UnseededWalk, Walk]
    pool = walks(makers)
    pool.reset(seed=0)
    actions = plan(pool, 40)
    for each in actions:
        *_, terminated, _, _ = pool.step(each)
    # The last episodes of those that are not deterministic must have begun some steps ago.
    while terminated[1] or terminated[3]:
        *_, terminated, _, _ = pool.step(actions[0])
    state = pool.state()
    expected = pool.step(actions[1])[0]
    assert pool.set_state(state) == [1, 3]
    got, rewards, _, _, _ = pool.step(actions[1])
    assert got[[0, 2, 4]].tolist() == expected[[0, 2, 4]].tolist()
    assert np.isfinite(rewards).all()
    roll(pool, actions)
    pool.close()


@pytest.mark.parametrize("lane", ["inline", "process"])
def test_a_state_of_another_pool_is_refused(lane: str) -> None:
    pool = walks(lane=lane)
    pool.reset(seed=0)
    other = python_pool(Walk, 3, episode_seeds=True, lane="inline", autoreset="same_step")
    other.reset(seed=0)
    before = pool.state()
    with pytest.raises(ValueError, match=r"3.*5|5.*3"):
        pool.set_state(other.state())
    assert_same(pool.state(), before)
    pool.close()
    other.close()


# --- rounds in the workers


def rounds(pool: Any, count: int = 4, length: int = 12) -> tuple[list[np.ndarray], list[int]]:
    """Observations of rounds that the workers run alone, and who ran the last."""
    pool.install(Roller())
    progress: list[Any] = [0] * len(pool.ranges)
    seen = []
    for index in range(count):
        actions = np.stack(plan(pool, length, seed=index))
        obs, ended = pool.empty((length, NUM_ENVS, 2), np.float64), pool.empty((length, NUM_ENVS), np.bool_)
        pids = pool.empty((NUM_ENVS,), np.int64)
        progress = pool.run((actions, obs, ended, pids), progress)
        assert progress == [(index + 1) * length] * len(pool.ranges)
        pool.record(actions, ended)
        seen.append(obs.copy())
    return seen, pids.tolist()


def expected_rounds(count: int = 4, length: int = 12) -> list[np.ndarray]:
    pool = walks(lane="inline")
    pool.reset(seed=7)
    seen = [np.stack([pool.step(each)[0] for each in plan(pool, length, seed=index)]) for index in range(count)]
    pool.close()
    return seen


@pytest.mark.parametrize("settings", [{"lane": "inline"}, {"num_workers": 1}, {"num_workers": 3}], ids=str)
def test_rounds_run_in_the_workers_give_what_steps_give(settings: dict[str, Any]) -> None:
    pool = walks(**settings)
    pool.reset(seed=7)
    seen, _ = rounds(pool)
    assert_same(seen, expected_rounds())
    covered = [env for each in pool.ranges for env in each]
    assert covered == list(range(NUM_ENVS))
    assert len(pool.ranges) == pool.num_workers
    pool.close()


@pytest.mark.parametrize("target", [Walk, SavedWalk])
def test_after_recorded_rounds_a_state_goes_on(target: Any) -> None:
    pool = walks(target)
    pool.reset(seed=7)
    rounds(pool)
    state, further = pool.state(), plan(pool, 20, seed=9)
    expected = roll(pool, further)
    other = walks(target, lane="inline")
    other.reset(seed=0)
    assert other.set_state(state) == []
    assert_same(roll(other, further), expected)
    pool.close()
    other.close()


def test_memory_for_rounds_is_used_again_and_what_is_kept_stays() -> None:
    from tests.envs.python.watching import descriptors

    pool = walks()
    kept = pool.empty((100, 100), np.float32)
    kept[...] = 3
    files = len(descriptors())
    for _ in range(200):
        array = pool.empty((100, 100), np.float32)
        assert (array.shape, array.dtype, array.flags.writeable) == ((100, 100), np.float32, True)
        array[...] = 1
    assert (kept == 3).all()
    assert len(descriptors()) <= files + 4
    pool.close()
    assert (kept == 3).all()


class Raising(Roller):
    def run(self, progress: Any, *args: Any) -> Any:
        raise LookupError("nothing to run")


def test_an_error_in_a_round_is_told_with_its_traceback() -> None:
    pool = walks()
    pool.reset(seed=0)
    pool.install(Raising())
    with pytest.raises(LookupError, match="nothing to run") as raised:
        pool.run((), [None, None])
    assert re.search(r"(?si)worker [01].*Traceback.*LookupError: nothing to run", raised.value.__notes__[0])
    pool.close()


# --- healing


def killed_once(tmp_path: Path, env: int) -> list[dict[str, Any]]:
    return [{"kill_at": 1, "once": str(tmp_path / "killed")} if each == env else {} for each in range(NUM_ENVS)]


@pytest.mark.parametrize("env", [0, 4])
def test_a_worker_killed_in_a_round_changes_no_bit(env: int, tmp_path: Path) -> None:
    pool = walks(own=killed_once(tmp_path, env))
    pool.reset(seed=7)
    seen, _ = rounds(pool)
    assert (tmp_path / "killed").exists()
    assert_same(seen, expected_rounds())
    assert pool.restarts == 1
    assert pool.faults.tolist() == [0] * NUM_ENVS  # no episode was lost
    pool.close()


def test_a_worker_killed_between_rounds_changes_no_bit() -> None:
    pool = walks()
    pool.reset(seed=7)
    first, pids = rounds(pool, 1)
    for pid in set(pids):
        os.kill(pid, signal.SIGKILL)
    again, now = rounds(pool, 1)
    assert not set(now) & set(pids)
    assert_same(first, expected_rounds(1))
    other = walks(lane="inline")
    other.reset(seed=7)
    for _ in range(2):
        expected, _ = rounds(other, 1)
    assert_same(again, expected)
    pool.close()
    other.close()


@pytest.mark.parametrize("target", [Walk, SavedWalk])
def test_a_worker_killed_in_a_step_changes_no_bit(target: Any, tmp_path: Path) -> None:
    pool, calm = walks(target, own=killed_once(tmp_path, 3)), walks(target, lane="inline")
    pool.reset(seed=7)
    calm.reset(seed=7)
    actions = plan(pool, 50)
    assert_same(roll(pool, actions), roll(calm, actions))
    assert (tmp_path / "killed").exists()
    assert pool.restarts == 1
    assert pool.faults.tolist() == [0] * NUM_ENVS  # no episode was lost
    pool.close()
    calm.close()


def test_without_restarts_a_killed_worker_ends_the_round(tmp_path: Path) -> None:
    pool = walks(own=killed_once(tmp_path, 4), on_error="raise")
    pool.reset(seed=7)
    with pytest.raises(EnvError, match=r"(?i)worker 1\b.*SIGKILL"):
        rounds(pool)
    pool.close()
