"""D0 to D2: the same settings give the same bits, whatever the timing and however many workers there are."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training.probes import Everything, Unsteady
from tests.training.small_runs import chain, random_delays

SCHEDULES = ["serial", "concurrent"]
COLLECTORS = ["worker", "central"]


# What takes long is tried with the schedule that is harder to get right, and with the other by those who have time.
IF_IN_TIME = [pytest.param("serial", marks=pytest.mark.slow), "concurrent"]


@pytest.fixture(params=SCHEDULES)
def schedule(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=COLLECTORS)
def collector(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.parametrize("env", ["CartPole-v1", pytest.param("HalfCheetah-v5", marks=pytest.mark.slow)])
def test_a_rerun_gives_the_same_chain(env: str, schedule: str, collector: str) -> None:
    settings: dict[str, Any] = {"schedule": schedule, "collector": collector, "normalize_observations": True}
    first = chain(env, **settings)
    assert len(set(first)) == 4
    assert chain(env, **settings) == first
    assert chain(env, seed=2, **settings)[0] != first[0]


def test_one_thread_that_does_everything_gives_the_same_chain(schedule: str, collector: str) -> None:
    settings: dict[str, Any] = {"schedule": schedule, "collector": collector}
    assert chain("CartPole-v1", inline=True, **settings) == chain("CartPole-v1", **settings)


def test_delays_change_nothing(schedule: str, collector: str) -> None:
    """Around every reaction, so in collector, learner and everything between them."""
    settings: dict[str, Any] = {"schedule": schedule, "collector": collector, "rounds": 6}
    undisturbed = chain("Pendulum-v1", **settings)
    for _ in range(2):
        assert chain("Pendulum-v1", perturb=random_delays(), **settings) == undisturbed


@pytest.mark.parametrize("schedule", IF_IN_TIME)
def test_environments_that_take_their_time_change_nothing(schedule: str) -> None:
    """Groups of one become ready in another order every time."""
    settings: dict[str, Any] = {"schedule": schedule, "collector": "central", "group_size": 1, "rounds": 3}
    undisturbed = chain(Unsteady, **{**settings, "env_args": {"most_s": 0.0}})
    assert chain(Unsteady, **settings) == undisturbed


def test_busy_workers_change_nothing(schedule: str) -> None:
    """Threads that wait are overtaken by others, and their environments stolen."""
    args = {"step_us": 300.0, "spread": "exponential", "wait": True}
    settings: dict[str, Any] = {"schedule": schedule, "env_args": args, "rounds": 3}
    assert chain("Busy-v0", num_workers=4, **settings) == chain("Busy-v0", num_workers=1, **settings)


@pytest.mark.parametrize("env", ["CartPole-v1", "HalfCheetah-v5"])
def test_the_number_of_workers_changes_nothing(env: str, schedule: str, collector: str) -> None:
    settings: dict[str, Any] = {"schedule": schedule, "collector": collector}
    alone = chain(env, num_workers=1, **settings)
    for workers in (2, 4):
        assert chain(env, num_workers=workers, **settings) == alone


@pytest.mark.parametrize("schedule", IF_IN_TIME)
def test_inference_by_jax_is_as_exact(schedule: str) -> None:
    """Its observations are of kinds that the native kernel does not read. Groups of one come in any order."""
    settings: dict[str, Any] = {"schedule": schedule, "group_size": 1, "rounds": 3}
    alone = chain(Everything, num_workers=1, **settings)
    assert chain(Everything, num_workers=4, perturb=random_delays(), **settings) == alone


def test_schedules_are_different_algorithms() -> None:
    serial, concurrent = (chain("CartPole-v1", schedule=schedule) for schedule in SCHEDULES)
    assert serial[0] == concurrent[0]
    assert serial[1:] != concurrent[1:]
