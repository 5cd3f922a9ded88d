"""The schedule is the delay of one connection."""

from __future__ import annotations

import numpy as np

from tests.training.small_runs import run


def test_the_serial_schedule_learns_from_what_its_own_weights_collected() -> None:
    told, _ = run("CartPole-v1", 5, schedule="serial")
    assert [progress.lag for progress in told] == [0, 0, 0, 0, 0]


def test_the_concurrent_schedule_is_always_one_update_behind() -> None:
    told, _ = run("CartPole-v1", 5, schedule="concurrent")
    assert [progress.lag for progress in told] == [0, 1, 1, 1, 1]


def test_at_lag_0_the_first_ratios_are_1() -> None:
    told, _ = run("HalfCheetah-v5", 3, schedule="serial", normalize_observations=True)
    for progress in told:
        assert progress.values["ratio_first"] < 1e-5


def test_at_lag_1_the_first_ratios_tell_of_the_update_between() -> None:
    told, _ = run("HalfCheetah-v5", 3, schedule="concurrent", learning_rate=1e-3)
    assert told[0].values["ratio_first"] < 1e-5
    assert all(1e-5 < progress.values["ratio_first"] < 1.0 for progress in told[1:])


def test_both_schedules_give_finite_metrics() -> None:
    for schedule in ("serial", "concurrent"):
        told, _ = run("Pendulum-v1", 3, schedule=schedule)
        assert all(np.isfinite(list(progress.values.values())).all() for progress in told)
