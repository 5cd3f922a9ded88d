"""Presets: each can be run as it is."""

from __future__ import annotations

import json
from importlib.resources import files

import gymnasium
import pytest

import raceway
from raceway.training.presets import Preset, Result, measured, preset_for, presets
from raceway.training.resolve import resolve

PROMISED = [
    "CartPole-v1",
    "Acrobot-v1",
    "MountainCar-v0",
    "MountainCarContinuous-v0",
    "Pendulum-v1",
    "HalfCheetah-v5",
    "Hopper-v5",
    "Walker2d-v5",
    "Swimmer-v5",
    "Reacher-v5",
    "Pusher-v5",
    "InvertedPendulum-v5",
    "InvertedDoublePendulum-v5",
    "Ant-v5",
    "Humanoid-v5",
    "HumanoidStandup-v5",
    "LunarLander-v3",
    "LunarLanderContinuous-v3",
    "BipedalWalker-v3",
]
AT_LEAST = {
    "HalfCheetah-v5": 4000,
    "Hopper-v5": 2800,
    "Walker2d-v5": 3800,
    "Ant-v5": 3500,
    "Humanoid-v5": 4500,
    "Swimmer-v5": 200,
    "Reacher-v5": -6,
    "Pusher-v5": -35,
    "InvertedPendulum-v5": 1000,
    "InvertedDoublePendulum-v5": 9000,
    "LunarLander-v3": 240,
}
"""Returns that the final policies of PPO's presets reach, in the mean over seeds."""


NOT_MEASURED = {
    *(
        f"{env} ppo"
        for env in ("Pendulum-v1", "HalfCheetah-v5", "Ant-v5", "Humanoid-v5", "HumanoidStandup-v5", "BipedalWalker-v3")
    ),
    *(f"{env} impala" for env in ("CartPole-v1", "Acrobot-v1", "HalfCheetah-v5")),
}
"""With their present settings."""


def test_the_tasks_that_people_meet_first_have_one() -> None:
    assert {(env, "ppo") for env in PROMISED} <= {(preset.env, preset.algo) for preset in presets()}


def test_every_preset_is_measured_but_those_that_are_named() -> None:
    assert {f"{preset.env} {preset.algo}" for preset in presets() if preset.result is None} == NOT_MEASURED


@pytest.mark.parametrize("env", [env for env in AT_LEAST if f"{env} ppo" not in NOT_MEASURED])
def test_it_reaches_what_it_is_there_for(env: str) -> None:
    preset = preset_for(env, "ppo")
    assert preset is not None
    assert preset.result is not None
    assert preset.result.evaluation >= AT_LEAST[env]


@pytest.mark.parametrize("preset", presets(), ids=lambda preset: f"{preset.env} {preset.algo}")
def test_its_settings_go_together(preset: Preset) -> None:
    assert preset.env in raceway.list_envs() or preset.env in gymnasium.registry
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
