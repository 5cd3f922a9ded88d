"""send and recv: every environment goes the way it would go by step, and nothing is lost, doubled or waited for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ResetNeeded

import raceway
from raceway.envs import NativePool
from tests.envs.transitions import PATIENCE_S, action_plan, rows_of, send_and_receive, step_all

SHORT = {"step_us": 30.0, "spread": "exponential", "max_episode_steps": 7}


def received_rows(pool: NativePool) -> dict[int, Any]:
    """Receives every environment once: its row by its number."""
    rows: dict[int, Any] = {}
    for _ in range(pool.num_envs // pool.batch_size):
        result = pool.recv(timeout=PATIENCE_S)
        rows |= dict(zip(result[4]["env_id"].tolist(), rows_of(result), strict=True))
    return rows


# --- the same as step


@pytest.mark.parametrize("num_workers", [1, 2, 5])
@pytest.mark.parametrize("batch_size", [1, 3, 5, 8])
@pytest.mark.parametrize(
    ("task", "kwargs"),
    [("CartPole-v1", {"max_episode_steps": 20}), ("Busy-v0", SHORT), ("Busy-v0", {"step_us": 0.0})],
    ids=["CartPole", "Busy", "cheapest"],
)
def test_trajectories_equal_those_of_step(task: str, kwargs: dict[str, Any], batch_size: int, num_workers: int) -> None:
    expected = rows_after_reset(raceway.make(task, 8, seed=3, **kwargs), length=60)
    pool = raceway.make(task, 8, batch_size=batch_size, num_workers=num_workers, seed=3, **kwargs)
    pool.async_reset()
    assert send_and_receive(pool, action_plan(pool, 60)) == expected


@pytest.mark.parametrize("autoreset", ["next_step", "same_step"])
@pytest.mark.parametrize(
    ("task", "kwargs"),
    [
        ("Blackjack-v1", {}),
        ("Busy-v0", SHORT),
        ("CartPole-v1", {}),
        ("FrozenLake-v1", {}),
        ("Pendulum-v1", {"max_episode_steps": 9}),
    ],
)
def test_autoresets_and_recorded_episodes_equal_those_of_step(
    task: str, kwargs: dict[str, Any], autoreset: str
) -> None:
    settings = {"seed": 11, "autoreset": autoreset, "record_episodes": True, **kwargs}
    expected = rows_after_reset(raceway.make(task, 6, **settings), length=80)
    pool = raceway.make(task, 6, batch_size=4, num_workers=2, **settings)
    pool.async_reset()
    assert send_and_receive(pool, action_plan(pool, 80)) == expected
    assert any("episode" in str(row[-1]) for row in expected[0])


def test_without_autoreset_the_others_go_on_when_one_has_ended() -> None:
    limits = [{"max_episode_steps": 2 if env == 0 else 100} for env in range(4)]
    pool = raceway.make("CartPole-v1", 4, batch_size=2, seed=0, autoreset="disabled", env_kwargs=limits)
    pool.reset()
    for _ in range(2):
        pool.send([0, 0, 0, 0])
        received_rows(pool)
    with pytest.raises(ResetNeeded, match="environment 0 has ended an episode and autoreset is disabled"):
        pool.send([0, 0], [0, 1])
    pool.send([1, 1], [2, 3])
    *_, infos = pool.recv(timeout=PATIENCE_S)
    assert infos["env_id"].tolist() == [2, 3]


def rows_after_reset(pool: NativePool, length: int) -> list[list[Any]]:
    """What `send_and_receive` returns after async_reset, made by reset and step."""
    observations, infos = pool.reset()
    none = np.zeros(pool.num_envs, dtype=bool)
    first = rows_of((observations, np.zeros(pool.num_envs), none, none, infos))
    later = step_all(pool, action_plan(pool, length))
    return [[row, *rest] for row, rest in zip(first, later, strict=True)]


# --- exactly once


def exchange_at_random(pool: NativePool, exchanges: int, rng: np.random.Generator) -> np.ndarray:
    """Sends to random groups of idle environments, receives, and returns how often each was received."""
    received = np.zeros(pool.num_envs, dtype=np.int64)
    pool.reset()
    idle = list(range(pool.num_envs))

    def receive() -> None:
        *_, infos = pool.recv(timeout=PATIENCE_S)
        env_ids = infos["env_id"].tolist()
        assert env_ids == sorted(set(env_ids))
        assert len(env_ids) == pool.batch_size
        assert not set(env_ids) & set(idle)
        received[env_ids] += 1
        idle.extend(env_ids)

    for _ in range(exchanges):
        if idle:
            group = rng.permutation(idle)[: rng.integers(1, len(idle) + 1)]
            idle = [env for env in idle if env not in group]
            pool.send(rng.integers(2, size=len(group)), group)
        while pool.num_envs - len(idle) >= pool.batch_size and rng.random() < 0.6:
            receive()
    if idle:
        pool.send(np.zeros(len(idle), dtype=int), idle)
        idle = []
    while len(idle) < pool.num_envs:
        receive()
    return received


RANDOM_POOLS = [
    ("CartPole-v1", {}, 12, 4, 2),
    ("CartPole-v1", {}, 64, 16, None),
    ("Busy-v0", {"step_us": 40.0, "spread": "exponential"}, 12, 1, 3),
    ("Busy-v0", {"step_us": 40.0, "spread": "exponential"}, 12, 6, 2),
    ("Busy-v0", {"step_us": 40.0, "spread": "exponential"}, 12, 12, 2),
    ("Busy-v0", {"step_us": 100.0, "spread": "exponential", "wait": True}, 24, 8, 6),
]


def check_exactly_once(
    exchanges: int, task: str, kwargs: Any, num_envs: int, batch: int, num_workers: int | None
) -> None:
    pool = raceway.make(
        task, num_envs, batch_size=batch, num_workers=num_workers, seed=0, autoreset="same_step",
        max_episode_steps=-1, record_episodes=True, **kwargs,
    )  # fmt: skip
    received = exchange_at_random(pool, exchanges, np.random.default_rng(batch))
    assert received.min() > 0
    if task == "Busy-v0":  # its episodes never end: what was received is what was stepped
        assert pool.state()["episode.steps"].tolist() == received.tolist()
    pool.reset()
    pool.step([0] * num_envs)


@pytest.mark.parametrize("setting", RANDOM_POOLS, ids=lambda setting: "-".join(map(str, setting)))
def test_every_transition_is_received_exactly_once(setting: tuple[Any, ...]) -> None:
    check_exactly_once(300, *setting)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("setting", RANDOM_POOLS, ids=lambda setting: "-".join(map(str, setting)))
def test_every_transition_is_received_exactly_once_for_long(setting: tuple[Any, ...]) -> None:
    check_exactly_once(30_000, *setting)


# --- first come, first served


def slow_first(num_envs: int) -> list[dict[str, float]]:
    """The first takes ten seconds, which none of these tests waits for, however busy the machine is."""
    return [{"step_us": 1e7 if env == 0 else 500.0} for env in range(num_envs)]


@pytest.mark.parametrize(("num_envs", "batch_size"), [(4, 3), (16, 15), (64, 16)])
def test_the_others_are_received_before_a_slow_environment(num_envs: int, batch_size: int) -> None:
    pool = raceway.make(
        "Busy-v0", num_envs, batch_size=batch_size, wait=True, num_workers=2, env_kwargs=slow_first(num_envs)
    )
    pool.reset()
    pool.send([0] * num_envs)
    *_, infos = pool.recv(timeout=PATIENCE_S)
    assert 0 not in infos["env_id"]


def test_a_slow_environment_does_not_hold_up_what_is_sent_after_it() -> None:
    pool = raceway.make("Busy-v0", 4, batch_size=2, wait=True, num_workers=2, env_kwargs=slow_first(4))
    pool.reset()
    pool.send([0, 0, 0, 0])
    for _ in range(10):
        *_, infos = pool.recv(timeout=PATIENCE_S)
        assert 0 not in infos["env_id"]
        time.sleep(0.01)  # long enough for idle workers to fall asleep
        pool.send([0, 0], infos["env_id"])


def test_environments_sent_one_by_one_wait_side_by_side() -> None:
    pool = raceway.make("Busy-v0", 16, batch_size=1, step_us=2e5, wait=True, num_workers=8)
    pool.reset()
    pool.send([0] * 16)
    start = time.perf_counter()
    for _ in range(40):
        *_, infos = pool.recv(timeout=PATIENCE_S)
        pool.send([0], infos["env_id"])
    assert time.perf_counter() - start < 6  # 8 s one after the other, 1 s for eight at a time


def test_send_does_not_wait_for_the_steps() -> None:
    pool = raceway.make("Busy-v0", 8, batch_size=2, step_us=1e7, wait=True, num_workers=2)
    pool.async_reset()
    received_rows(pool)
    pool.send([0] * 8)
    with pytest.raises(TimeoutError):
        pool.recv(timeout=0)


# --- what is refused


def test_recv_with_nothing_sent_says_so() -> None:
    pool = raceway.make("CartPole-v1", 4, batch_size=2)
    pool.reset()
    with pytest.raises(RuntimeError, match=r"takes 2 environments and 0 are in flight\. Call async_reset\(\) or send"):
        pool.recv()


def test_recv_of_more_than_is_in_flight_says_so_and_loses_nothing() -> None:
    pool = raceway.make("CartPole-v1", 4, batch_size=3, seed=0)
    pool.async_reset()
    first = pool.recv(timeout=PATIENCE_S)[4]["env_id"].tolist()
    with pytest.raises(RuntimeError, match="takes 3 environments and 1 are in flight"):
        pool.recv()
    with pytest.raises(TimeoutError, match=r"within timeout=0\.05\d* s; 1 are in flight. Nothing is lost"):
        pool.recv(timeout=0.05)
    pool.send([0, 0], first[:2])
    assert pool.recv()[4]["env_id"].tolist() == sorted({0, 1, 2, 3} - {first[2]})


@pytest.mark.parametrize("timeout", [0, 0.01, 0.2])
def test_a_timeout_is_kept_and_loses_nothing(timeout: float) -> None:
    pool = raceway.make("Busy-v0", 2, batch_size=1, step_us=3e6, wait=True, num_workers=2)
    pool.reset()
    pool.send([0, 0])
    start = time.perf_counter()
    with pytest.raises(TimeoutError, match="no batch of 1 environments was ready"):  # and not when the steps are done
        pool.recv(timeout=timeout)
    assert timeout <= time.perf_counter() - start
    assert sorted(int(pool.recv(timeout=PATIENCE_S)[4]["env_id"][0]) for _ in range(2)) == [0, 1]


@pytest.mark.parametrize("timeout", [-1, float("nan"), "soon", [1]])
def test_a_timeout_that_is_no_time_is_refused(timeout: Any) -> None:
    pool = raceway.make("CartPole-v1", 2, batch_size=1)
    pool.async_reset()
    with pytest.raises((TypeError, ValueError), match=r"timeout=.* is not a number of seconds"):
        pool.recv(timeout=timeout)
    received_rows(pool)


BAD_SENDS = [
    ([0, 0], [1, 1], RuntimeError, "environment 1 has an action already"),
    ([0, 0], [0, 2], RuntimeError, "environment 2 has an action already"),
    ([0], None, RuntimeError, "environment 2 has an action already"),
    ([0, 0], [0, 4], ValueError, r"env_ids\[1\] is 4: the pool has environments 0 to 3"),
    ([0, 0], [-1, 0], ValueError, r"env_ids\[0\] is -1: the pool has environments 0 to 3"),
    ([0, 0, 0], [0, 1], ValueError, r"shape \(3,\): expected \(2,\)"),
    ([0], [0, 1], ValueError, r"shape \(1,\): expected \(2,\)"),
    ([0, 7], [0, 1], ValueError, r"actions\[1\] is 7: CartPole-v1 takes 0 to 1"),
    ([], [], (TypeError, ValueError), "env_ids is empty"),
    ([], np.array([], dtype=int), ValueError, "env_ids is empty"),
    ([0], 0, TypeError, "env_ids must be a list or one-dimensional array of whole numbers"),
    ([0], [0.0], TypeError, "env_ids must be a list or one-dimensional array of whole numbers"),
    ([0], [True], TypeError, "env_ids must be a list or one-dimensional array of whole numbers"),
    ([0], ["a"], TypeError, "env_ids must be a list or one-dimensional array of whole numbers"),
    ([0], [[0]], TypeError, "env_ids must be a list or one-dimensional array of whole numbers"),
]


@pytest.mark.parametrize(("actions", "env_ids", "error", "message"), BAD_SENDS, ids=str)
def test_a_bad_send_is_refused_whole(actions: Any, env_ids: Any, error: type[Exception], message: str) -> None:
    pool, other = (raceway.make("CartPole-v1", 4, batch_size=2, seed=0) for _ in range(2))
    for each in (pool, other):
        each.reset()
        each.send([1], [2])
    with pytest.raises(error, match=message):
        pool.send(actions, env_ids)
    for each in (pool, other):
        each.send([0, 1, 0], [0, 1, 3])
    assert received_rows(pool) == received_rows(other)


CALLS_WHILE_IN_FLIGHT: list[tuple[str, Callable[[NativePool], object]]] = [
    ("step", lambda pool: pool.step([0] * 4)),
    ("state", lambda pool: pool.state()),
    ("set_state", lambda pool: pool.set_state(raceway.make("CartPole-v1", 4).state())),
    ("observe", lambda pool: pool.observe()),
    ("render", lambda pool: pool.render()),
    ("async_reset", lambda pool: pool.async_reset()),
]


@pytest.mark.parametrize(("name", "call"), CALLS_WHILE_IN_FLIGHT, ids=[name for name, _ in CALLS_WHILE_IN_FLIGHT])
def test_calls_on_all_environments_are_refused_while_some_are_in_flight(
    name: str, call: Callable[[NativePool], object]
) -> None:
    pool = raceway.make("CartPole-v1", 4, batch_size=2, render_mode="rgb_array")
    pool.async_reset()
    pool.recv(timeout=PATIENCE_S)
    with pytest.raises(RuntimeError, match=r"while 2 environments are in flight: recv\(\) them first, or call reset"):
        call(pool)
    pool.recv(timeout=PATIENCE_S)
    if name != "set_state":
        call(pool)


def test_send_before_any_reset_is_refused() -> None:
    pool = raceway.make("CartPole-v1", 4, batch_size=2)
    with pytest.raises(ResetNeeded, match=r"has not been reset\. Call reset\(\) first"):
        pool.send([0], [1])


# --- starting over


@pytest.mark.parametrize("step_us", [1.0, 3000.0])
def test_reset_while_in_flight_drops_what_was_sent_and_starts_over(step_us: float) -> None:
    settings: dict[str, Any] = {"step_us": step_us, "spread": "exponential", "wait": True, "seed": 1}
    pool = raceway.make("Busy-v0", 8, batch_size=2, num_workers=2, **settings)
    fresh = raceway.make("Busy-v0", 8, **settings)
    pool.reset()
    pool.send([0] * 8)
    assert pool.reset(seed=5)[0].tobytes() == fresh.reset(seed=5)[0].tobytes()
    with pytest.raises(RuntimeError, match="0 are in flight"):
        pool.recv()
    pool.send([0] * 8)
    received_rows(pool)
    fresh.step([0] * 8)
    assert pool.state()["random.state_low"].tolist() == fresh.state()["random.state_low"].tolist()
