"""What is advised for speed, by what was measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from raceway.envs.checking import CheckReport, EnvSpeed, LaneSpeed
from raceway.envs.checking.advice import advise, duration

CHEAP = EnvSpeed(step_s=6e-6, reset_s=10e-6, reset_share=0.05, slowest_s=8e-6)
DEAR = EnvSpeed(step_s=1e-3, reset_s=1e-3, reset_share=0.01, slowest_s=1.2e-3)


def report(speed: EnvSpeed, inline: float = 0.45, process: float = 0.9, free: float = 0.9) -> CheckReport:
    """The lanes reach these shares of the limit of two CPUs."""
    limit = 2 * speed.steps_per_second
    shares = {"inline": (1, inline), "process": (2, process), "process async": (2, free)}
    lanes = [LaneSpeed(name, 64, workers, share * limit, limit, share) for name, (workers, share) in shares.items()]
    return CheckReport("mine", (), speed, limit, 2, tuple(lanes))


def advice(found: CheckReport) -> str:
    return " ".join(advise(found, is_native=False))


def test_a_cheap_step_is_better_off_in_cpp() -> None:
    assert "raceway new native-env NAME" in advice(report(CHEAP))
    assert "native-env" not in advice(report(DEAR))


def test_processes_that_bring_nothing_are_advised_against_with_the_cost_from_which_they_would() -> None:
    said = advice(report(CHEAP, inline=0.45, process=0.3))
    assert "A step takes 6 µs: processes cost more than they bring below about" in said
    assert "lane='inline'" in said
    # Two workers take 3.33 steps' time for each step, this process 1.11: at c of (2.33 - 2 * 0.11) they are even.
    bare_us = 6.0 / 0.95
    assert f"below about {duration((7 / 3 - 2 / 9) * bare_us * 1e-6)} a step" in said


def test_processes_that_do_what_can_be_done_are_told_so() -> None:
    assert "processes keep 90% of 2 CPUs at it" in advice(report(DEAR))
    said = advice(report(DEAR, inline=0.45, process=0.6))
    assert "1.33 times as fast as one" in said
    assert "num_envs" in said


def test_what_waits_gets_more_workers_than_there_are_cpus() -> None:
    assert "num_workers=20" in advice(report(replace(DEAR, cpu_share=0.1)))
    assert "num_workers" not in advice(report(DEAR))


@pytest.mark.parametrize(
    ("speed", "text"),
    [
        (replace(DEAR, reset_share=0.4), "Resets take 40% of the time"),
        (replace(CHEAP, wrapper_share=0.5, wrappers=("PassiveEnvChecker",)), "disable_env_checker=True"),
        (replace(CHEAP, wrapper_share=0.5, wrappers=("Mine",)), "Wrappers (Mine) take 50% of a step."),
    ],
)
def test_what_takes_a_large_share_is_named(speed: EnvSpeed, text: str) -> None:
    assert text in advice(report(speed))
    assert text not in advice(report(DEAR))


def test_steps_of_unequal_length_are_served_as_they_are_ready() -> None:
    uneven = replace(DEAR, slowest_s=5e-3)
    assert "send and recv" in advice(report(uneven, process=0.6, free=0.9))
    assert "send and recv" not in advice(report(uneven, process=0.88, free=0.9))
    assert "send and recv" not in advice(report(DEAR, process=0.6, free=0.9))


def test_a_step_that_takes_a_second_is_told_in_days() -> None:
    said = advice(report(replace(DEAR, step_s=1.0, slowest_s=1.0)))
    assert "A million steps take 6 d" in said


def test_what_was_measured_while_others_were_at_work_is_no_ground_for_advice() -> None:
    found = replace(report(CHEAP, inline=0.45, process=0.3), free_cpus=0.55)
    assert "only 55% of 2 CPUs were to be had" in advice(found)
    assert "lane='inline'" not in advice(found)
    assert "to be had" not in advice(replace(found, free_cpus=0.95))


def test_a_native_one_needs_no_advice_but_where_it_runs() -> None:
    found = report(CHEAP)
    native = LaneSpeed("native", 64, 2, 100 * found.lanes[1].steps_per_second, 1e9, 0.5)
    (said,) = advise(replace(found, lanes=(native, *found.lanes)), is_native=True)
    assert "100.0 times as fast as processes" in said


def test_durations_have_the_unit_that_fits() -> None:
    assert [duration(each) for each in (2.0, 1.3e-3, 6.25e-6, 4.7e-8)] == ["2 s", "1.3 ms", "6.25 µs", "47 ns"]
