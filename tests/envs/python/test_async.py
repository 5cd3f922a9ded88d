"""send and recv: each environment goes the way it goes by step; nothing is lost, doubled or waited for."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import raceway
from tests.envs.gymnasium_twin import assert_same
from tests.envs.python.rows import by_send, by_step
from tests.envs.python.scripted import ACTIONS, OBSERVATIONS, VARIABLE, Counting, Scripted, digest, maker
from tests.envs.transitions import PATIENCE_S
from tests.examples import examples

NUMBERED = [{"number": env} for env in range(8)]


def counting(**settings_: Any) -> Any:
    """Eight environments that count; batches of two, three workers."""
    given_: dict[str, Any] = {"batch_size": 2, "num_workers": 3, "lane": "process", "env_kwargs": NUMBERED} | settings_
    return raceway.make(Counting, 8, **given_)


@pytest.fixture(scope="module")
def shared() -> Iterator[Any]:
    pool = counting()
    yield pool
    pool.close()


@pytest.fixture
def pool(shared: Any) -> Any:
    """Freshly reset; a reset drops what a test before has left in flight."""
    shared.reset()
    return shared


def received(pool: Any, timeout: float | None = PATIENCE_S) -> list[int]:
    """Receives a batch: who is in it."""
    obs, _, _, _, infos = pool.recv(timeout=timeout)
    assert obs[:, 0].tolist() == infos["env_id"].tolist()
    assert infos["env_id"].dtype.kind == "i"
    return infos["env_id"].tolist()


# --- the same as step


def slow_to_answer(**kwargs: Any) -> Any:
    return maker(observation=OBSERVATIONS["tuple"], tells=False, **kwargs)


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
@pytest.mark.parametrize(("batch_size", "num_workers"), [(1, 2), (3, 3), (7, 2)])
def test_trajectories_equal_those_of_step_under_random_delays(batch_size: int, num_workers: int, mode: str) -> None:
    settings_: dict[str, Any] = {"seed": 3, "autoreset": mode, "record_episodes": True}
    plan = np.random.default_rng(0).integers(5, size=(40, 7))
    alone = raceway.make([slow_to_answer()] * 7, 7, lane="inline", **settings_)
    expected = by_step(alone, plan)
    makers = [slow_to_answer(wait_s=0.004)] * 7
    pool = raceway.make(makers, 7, lane="process", batch_size=batch_size, num_workers=num_workers, **settings_)
    assert_same(by_send(pool, plan), expected)
    assert any("episode" in row[-1] for row in expected[0])
    pool.close()


@pytest.mark.parametrize("lane", ["inline", "process"])
def test_nested_actions_are_sent_to_some(lane: str) -> None:
    makers = [maker(action=ACTIONS["nested"])] * 4
    pool, alone = (
        raceway.make(makers, 4, lane=each, batch_size=size, num_workers=2, seed=0)
        for each, size in ((lane, 2), ("inline", 4))
    )
    pool.reset()
    alone.reset()
    alone.action_space.seed(0)
    actions = alone.action_space.sample()
    some = {"a": actions[0]["a"][[3, 1]], "b": actions[0]["b"][[3, 1]]}, actions[1][[3, 1]]
    pool.send(some, [3, 1])
    obs, rewards, _, _, infos = pool.recv(timeout=PATIENCE_S)
    expected = alone.step(actions)
    assert infos["env_id"].tolist() == [1, 3]
    assert obs.tobytes() == expected[0][[1, 3]].tobytes()
    assert rewards.tolist() == expected[1][[1, 3]].tolist()
    pool.close()
    alone.close()


def test_actions_that_vary_in_shape_are_sent_to_some() -> None:
    makers = [maker(action=VARIABLE["sequence"], longest=100, tells=False, wait_s=0.002)] * 4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pool = raceway.make(makers, 4, lane="process", batch_size=1, num_workers=2, seed=0)
    pool.reset()
    pool.send(((1, 2),) * 4)
    expected = digest((1, 2))
    for _ in range(100):
        _, rewards, *_, infos = pool.recv(timeout=PATIENCE_S)
        assert rewards[0] == 0.0 or int(rewards[0] % 1 * 2**16) == expected % 2**16
        pool.send(((1, 2),), infos["env_id"])
    pool.close()


def test_all_at_once_by_send_is_step() -> None:
    settings_: dict[str, Any] = {"lane": "process", "num_workers": 2, "seed": 1, "autoreset": "same_step"}
    pool, other = (raceway.make(Scripted, 4, **settings_) for _ in range(2))
    pool.reset()
    other.reset()
    for _ in range(20):
        pool.send(np.ones(4, int))
        sent, stepped = pool.recv(timeout=PATIENCE_S), other.step(np.ones(4, int))
        assert sent[4].pop("env_id").tolist() == [0, 1, 2, 3]
        assert_same(sent, stepped)
    pool.close()
    other.close()


# --- exactly once, first come first served


class Exchange:
    """What must be in flight and what must come back, by its own count."""

    def __init__(self, pool: Any) -> None:
        self.pool = pool
        self.idle = set(range(pool.num_envs))
        self.steps = np.zeros(pool.num_envs, int)

    def send(self, env_ids: list[int], delays_ms: list[int]) -> None:
        self.pool.send(np.array(delays_ms), env_ids)
        self.idle -= set(env_ids)

    def receive(self) -> None:
        obs, rewards, _, _, infos = self.pool.recv(timeout=PATIENCE_S)
        env_ids = infos["env_id"].tolist()
        assert env_ids == sorted(set(env_ids))
        assert len(env_ids) == self.pool.batch_size
        assert not set(env_ids) & self.idle
        self.steps[env_ids] += 1
        assert obs[:, 0].tolist() == env_ids
        assert obs[:, 2].tolist() == rewards.tolist() == self.steps[env_ids].tolist()
        self.idle |= set(env_ids)

    @property
    def in_flight(self) -> int:
        return self.pool.num_envs - len(self.idle)


@given(data=st.data())
@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
def test_every_transition_is_received_exactly_once(shared: Any, data: st.DataObject) -> None:
    shared.reset()
    exchange = Exchange(shared)
    for _ in range(data.draw(st.integers(1, 15))):
        if exchange.idle:
            group = data.draw(st.lists(st.sampled_from(sorted(exchange.idle)), min_size=1, unique=True))
            exchange.send(group, [data.draw(st.integers(0, 3)) for _ in group])
        while exchange.in_flight >= shared.batch_size and data.draw(st.booleans()):
            exchange.receive()
    if exchange.idle:
        exchange.send(sorted(exchange.idle), [0] * len(exchange.idle))
    while exchange.in_flight:
        exchange.receive()


def test_who_is_ready_first_comes_first(pool: Any) -> None:
    pool.send([3000, 3000, 1, 1, 1, 1, 1, 1])
    early = received(pool) + received(pool)
    assert not {0, 1} & set(early)


def test_a_slow_environment_does_not_hold_up_other_workers(pool: Any) -> None:
    pool.send([3000, 0, 0, 0], [0, 5, 6, 7])
    for _ in range(10):
        env_ids = received(pool)
        assert 0 not in env_ids
        pool.send([0, 0], env_ids)


def test_send_does_not_wait_for_the_steps(pool: Any) -> None:
    pool.send([1500] * 8)
    with pytest.raises(TimeoutError, match="0 environments are ready"):
        pool.recv(timeout=0)


# --- what is refused


def test_a_timeout_is_kept_and_loses_nothing(pool: Any) -> None:
    pool.send([3000, 3000], [0, 7])
    for timeout in (0, 0.01, 0.1):
        start = time.perf_counter()
        with pytest.raises(TimeoutError, match=r"ready.*2|2.*ready"):  # and not when the steps are done
            pool.recv(timeout=timeout)
        assert timeout <= time.perf_counter() - start
    assert received(pool) == [0, 7]


@pytest.mark.parametrize("timeout", [-1, float("nan"), "soon", [1], True])
def test_a_timeout_that_is_no_time_is_refused(pool: Any, timeout: Any) -> None:
    pool.send([0, 0], [3, 4])
    with pytest.raises((TypeError, ValueError), match=r"timeout=.* is not a number of seconds"):
        pool.recv(timeout=timeout)
    assert received(pool) == [3, 4]


def test_a_batch_that_can_never_be_full_is_an_error_at_once(pool: Any) -> None:
    with pytest.raises(RuntimeError, match=r"takes 2 environments and 0 are in flight"):
        pool.recv()
    pool.send([0], [3])
    with pytest.raises(RuntimeError, match=r"takes 2 environments and 1 are in flight"):
        pool.recv()
    with pytest.raises(TimeoutError, match="ready"):
        pool.recv(timeout=0.02)
    pool.send([0], [1])
    assert received(pool, timeout=None) == [1, 3]


BAD_SENDS: list[tuple[Any, Any, str]] = [
    ([0, 0], [1, 1], r"env_ids.*twice|environment 1 has an action already"),
    ([0, 0], [0, 2], "environment 2 has an action already"),
    ([0] * 8, None, "environment 2 has an action already"),
    ([0, 0], [0, 8], r"env_ids.* 8\b.* 0 to 7"),
    ([0, 0], [-1, 0], r"env_ids.* -1\b.* 0 to 7"),
    ([0, 0, 0], [0, 1], r"3.*2"),
    ([0], [0, 1], r"1.*2"),
    ([], [], "env_ids"),
    ([0], 0, r"env_ids.*whole numbers"),
    ([0], [0.0], r"env_ids.*whole numbers"),
    ([0], [True], r"env_ids.*whole numbers"),
    ([0], ["a"], r"env_ids.*whole numbers"),
    ([0], [[0]], r"env_ids.*whole numbers"),
    (["a"], [0], "actions"),
    ([0.5], [0], "actions"),
    ([None], [0], "actions"),
    (None, [0], "actions"),
]


@pytest.mark.parametrize(("actions", "env_ids", "message"), BAD_SENDS, ids=str)
def test_a_bad_send_is_refused_whole(pool: Any, actions: Any, env_ids: Any, message: str) -> None:
    pool.send([1], [2])
    with pytest.raises((TypeError, ValueError, RuntimeError), match=message):
        pool.send(actions, env_ids)
    pool.send([0] * 7, [0, 1, 3, 4, 5, 6, 7])
    came = []
    for _ in range(4):
        obs, *_, infos = pool.recv(timeout=PATIENCE_S)
        came += infos["env_id"].tolist()
        assert obs[:, 2].tolist() == [1, 1]
    assert sorted(came) == list(range(8))


def test_calls_on_all_environments_are_refused_while_some_are_in_flight(pool: Any) -> None:
    pool.send([0] * 4, [0, 2, 5, 7])
    calls = {"step": lambda: pool.step([0] * 8), "async_reset": lambda: pool.async_reset(), "render": pool.render}
    for name, call in calls.items():
        if name == "render" and pool.render_mode is None:
            continue
        with pytest.raises(
            RuntimeError, match=r"while 4 environments are in flight: recv\(\) them first, or call reset"
        ):
            call()
    received(pool)
    received(pool)
    pool.step([0] * 8)


def test_a_reset_drops_what_is_in_flight_and_starts_over(pool: Any) -> None:
    pool.send([100] * 8)
    obs, _ = pool.reset()
    assert obs[:, 2].tolist() == [0] * 8
    with pytest.raises(RuntimeError, match="0 are in flight"):
        pool.recv()
    assert pool.step([0] * 8)[0][:, 2].tolist() == [1] * 8


def test_the_first_recv_after_async_reset_has_observations_and_no_rewards(pool: Any) -> None:
    pool.async_reset()
    seen = []
    for _ in range(4):
        obs, rewards, terminated, truncated, infos = pool.recv(timeout=PATIENCE_S)
        seen += infos["env_id"].tolist()
        assert obs[:, 2].tolist() == rewards.tolist() == [0, 0]
        assert not terminated.any()
        assert not truncated.any()
    assert sorted(seen) == list(range(8))
    assert pool.step([0] * 8)[0][:, 2].tolist() == [1] * 8


def test_nothing_is_sent_or_stepped_before_a_reset() -> None:
    for lane in ("inline", "process"):
        pool = counting(lane=lane, num_workers=1)
        with pytest.raises(ResetNeeded, match=r"not been reset\. Call reset\(\)"):
            pool.send([0], [1])
        with pytest.raises(ResetNeeded, match=r"not been reset\. Call reset\(\)"):
            pool.step([0] * 8)
        pool.reset()
        pool.step([0] * 8)
        pool.close()


@pytest.mark.parametrize("lane", ["inline", "process"])
def test_without_autoreset_one_that_has_ended_is_refused_and_the_others_go_on(lane: str) -> None:
    own = [{"number": env, "length": 2 if env == 0 else 100} for env in range(4)]
    pool = raceway.make(Counting, 4, batch_size=2, lane=lane, num_workers=2, autoreset="disabled", env_kwargs=own)
    pool.reset()
    for _ in range(2):
        pool.step([0] * 4)
    with pytest.raises(ResetNeeded, match="environment 0 has ended an episode and autoreset is disabled"):
        pool.send([0, 0], [0, 1])
    with pytest.raises(ResetNeeded, match="environment 0 has ended an episode and autoreset is disabled"):
        pool.step([0] * 4)
    pool.send([0, 0], [2, 3])
    assert received(pool) == [2, 3]
    pool.close()
