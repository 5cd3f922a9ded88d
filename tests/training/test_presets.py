"""Presets: each can be run as it is."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

import raceway
from raceway.training.presets import Preset, Result, measured, preset_for, presets
from raceway.training.resolve import resolve

PROMISED = [
    "CartPole-v1",
    "Acrobot-v1",
    "MountainCarContinuous-v0",
    "Pendulum-v1",
    "Hopper-v5",
    "HalfCheetah-v5",
    "Walker2d-v5",
    "Ant-v5",
    "Humanoid-v5",
]


def test_the_tasks_that_people_meet_first_have_one() -> None:
    assert {(env, "ppo") for env in PROMISED} <= {(preset.env, preset.algo) for preset in presets()}


@pytest.mark.parametrize("preset", presets(), ids=lambda preset: f"{preset.env} {preset.algo}")
def test_its_settings_go_together(preset: Preset) -> None:
    assert preset.env in raceway.list_envs()
    config = resolve(preset.env, algo=preset.algo)
    assert config.total_steps == preset.settings["total_steps"]
    given = preset.settings[preset.algo]
    assert {name: getattr(config.algorithm, name) for name in given} == given  # nothing had to be made to fit
    rounds = config.total_steps / (config.num_envs * config.algorithm.n_steps)
    assert rounds >= 20, "too few updates to learn anything"


def test_what_was_measured_is_of_presets_that_there_are() -> None:
    content = json.loads((files("raceway.training") / "presets.json").read_text())
    assert set(content) <= {f"{preset.env} {preset.algo}" for preset in presets()}
    for result in measured().values():
        assert isinstance(result, Result)
        assert result.low <= result.evaluation <= result.high
        assert result.command.startswith("raceway train ")


def test_a_namespace_makes_no_difference_and_others_have_none() -> None:
    assert preset_for("raceway/CartPole-v1", "ppo") == preset_for("CartPole-v1", "ppo")
    assert preset_for("Blackjack-v1", "ppo") is None
