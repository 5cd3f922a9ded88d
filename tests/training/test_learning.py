"""Probe environments: what must be learned is known beforehand."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.training.probes import Forever, Probe
from tests.training.small_runs import run, set_up, values_of

SCHEDULES = ("serial", "concurrent")
SETTINGS: dict[str, Any] = {
    "num_envs": 8,
    "n_steps": 16,
    "batch_size": 64,
    "n_epochs": 4,
    "learning_rate": 1e-2,
    "gamma": 0.5,
    "normalize_observations": False,
    "normalize_rewards": False,
}


def learned_values(env: Any, obs: list[float], schedule: str, rounds: int = 60) -> np.ndarray:
    _, training = run(env, rounds, schedule=schedule, **SETTINGS)
    setup = set_up(env, schedule=schedule, **SETTINGS)
    return values_of(training, setup, np.array(obs, np.float32)[:, None])


def with_schedules(quickly: str) -> pytest.MarkDecorator:
    """Both schedules, of which only this one is for the quick tests."""
    params = [pytest.param(each, marks=[] if each == quickly else [pytest.mark.slow]) for each in SCHEDULES]
    return pytest.mark.parametrize("schedule", params)


@with_schedules("serial")
def test_a_constant_reward_is_its_own_value(schedule: str) -> None:
    assert learned_values(partial(Probe, "constant"), [0.0], schedule) == pytest.approx([1.0], abs=0.05)


@with_schedules("concurrent")
def test_the_observation_decides_the_value(schedule: str) -> None:
    assert learned_values(partial(Probe, "observation"), [-1.0, 1.0], schedule) == pytest.approx([-1.0, 1.0], abs=0.1)


@with_schedules("serial")
def test_a_later_reward_is_discounted(schedule: str) -> None:
    assert learned_values(partial(Probe, "two steps"), [-1.0, 1.0], schedule) == pytest.approx([0.5, 1.0], abs=0.1)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("rule", "obs"), [pytest.param("action", [0.0], marks=pytest.mark.slow), ("both", [-1.0, 1.0])]
)
def test_the_right_action_is_found(rule: str, obs: list[float], schedule: str) -> None:
    values = learned_values(partial(Probe, rule), obs, schedule)
    assert values == pytest.approx([1.0] * len(obs), abs=0.2)


@with_schedules("concurrent")
def test_an_episode_that_was_cut_off_goes_on_in_its_value(schedule: str) -> None:
    """1 + 0.5 + 0.25 + ... = 2; taken for an end, the last step would be worth 1."""
    assert learned_values(Forever, [0.0], schedule) == pytest.approx([2.0], abs=0.1)
