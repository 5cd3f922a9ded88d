"""One sentence on what holds a run up."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raceway.report.verdict import verdict, wait_share


@pytest.mark.parametrize(
    ("collect", "learn", "schedule", "workers", "says"),
    [
        (0.62, 0.97, "concurrent", 4, "Learner-bound: collecting waits 38% of the time"),
        (
            0.99,
            0.40,
            "concurrent",
            2,
            "Collector-bound: learning waits 60% of the time. More workers would help: 2 of 4",
        ),
        (0.99, 0.40, "concurrent", 4, "All CPUs step environments"),
        (0.97, 0.95, "concurrent", 4, "Balanced"),
        (0.20, 0.25, "concurrent", 4, "Handing over: nobody is at work for 75%"),
        (0.50, 0.45, "serial", 4, "--schedule concurrent would overlap them: up to 1.9 times"),
        (0.95, 0.04, "serial", 4, "Collector-bound: 95%"),
        (0.03, 0.95, "serial", 4, "Learner-bound: 95%"),
        (0.25, 0.20, "serial", 4, "Handing over: nobody is at work for 55%"),
    ],
)
def test_it_names_the_bottleneck_and_the_remedy(
    collect: float, learn: float, schedule: str, workers: int, says: str
) -> None:
    told = verdict(collect, learn, schedule=schedule, num_workers=workers, num_envs=8, cpus=4)
    assert says in told
    assert told.endswith(".")


def test_environments_are_what_is_missing_where_there_are_fewer_than_cpus() -> None:
    told = verdict(0.99, 0.4, schedule="concurrent", num_workers=2, num_envs=2, cpus=8)
    assert "--num-envs 8" in told


def test_epochs_are_not_spoken_of_where_the_algorithm_has_none() -> None:
    bound = {"schedule": "async", "num_workers": 4, "num_envs": 8, "epochs": False, "cpus": 4}
    learner = verdict(0.3, 0.95, **bound)  # type: ignore[arg-type]
    assert "More steps a round (--n-steps) would help" in learner
    collector = verdict(0.99, 0.4, **bound)  # type: ignore[arg-type]
    assert "All CPUs step environments" in collector
    assert "epochs" not in learner + collector


def test_where_inference_is_batched_workers_are_not_what_is_missing() -> None:
    told = verdict(0.99, 0.4, schedule="concurrent", num_workers=4, num_envs=8, cpus=4, central=True)
    assert "Inference is batched: more environments (--num-envs), or a smaller network, would help" in told
    assert "workers" not in told
    told = verdict(0.99, 0.4, schedule="concurrent", num_workers=1, num_envs=8, cpus=4, central=True)
    assert "more workers (--num-workers 4) would help if steps are slow" in told
    told = verdict(0.99, 0.4, schedule="concurrent", num_workers=None, num_envs=8, cpus=4, central=True)
    assert "stepped one after the other" in told


def test_one_cpu_cannot_overlap() -> None:
    assert "With one CPU" in verdict(0.5, 0.45, schedule="serial", num_workers=1, num_envs=8, cpus=1)


@pytest.mark.parametrize("shares", [(math.nan, 0.5), (0.0, 0.0)])
def test_nothing_is_said_before_anything_is_known(shares: tuple[float, float]) -> None:
    assert verdict(*shares, schedule="serial", num_workers=1) == ""


@given(
    st.floats(0, 1), st.floats(0, 1), st.sampled_from(["serial", "concurrent"]), st.integers(1, 9), st.integers(1, 9)
)
def test_it_is_one_line_for_any_run(collect: float, learn: float, schedule: str, workers: int, cpus: int) -> None:
    told = verdict(collect, learn, schedule=schedule, num_workers=workers, num_envs=workers, cpus=cpus)
    assert "\n" not in told
    assert bool(told) == (collect + learn > 0)
    assert 0 <= wait_share(collect, learn, schedule) <= 1
