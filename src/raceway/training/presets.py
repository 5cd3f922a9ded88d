"""Settings that are known to work, by environment, with what they reached when they were last measured."""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Result:
    """What a preset reached."""

    evaluation: float
    """Mean return of the best policy's evaluation, over seeds."""
    low: float
    """Of the 95% interval over seeds."""
    high: float
    steps: int
    """Environment steps of a run."""
    seconds: float
    """Of training, the median over seeds."""
    seeds: int
    command: str
    """What made it."""
    machine: str = ""


@dataclass(frozen=True)
class Preset:
    """Settings for one environment and algorithm."""

    env: str
    algo: str
    settings: Mapping[str, Any]
    """As `raceway.train` takes them."""
    result: Result | None = None


def presets() -> list[Preset]:
    """All of them, in the order in which people meet the tasks."""
    results = measured()
    return [Preset(env, algo, settings, results.get(f"{env} {algo}")) for (env, algo), settings in _SETTINGS.items()]


def preset_for(env: str, algo: str) -> Preset | None:
    """The preset of an environment, if there is one."""
    name = env.removeprefix("raceway/")
    return next((each for each in presets() if (each.env, each.algo) == (name, algo)), None)


@functools.cache
def measured() -> Mapping[str, Result]:
    """What was measured, by `env algo`: presets.json beside this file, which a benchmark writes."""
    file = importlib.resources.files("raceway.training") / "presets.json"
    return {name: Result(**values) for name, values in json.loads(file.read_text(encoding="utf-8")).items()}


# What the smaller MuJoCo tasks have: SB3's defaults, the 2048 steps of a round spread over environments, with
# observations and rewards normalised as its tuned settings do.
_MUJOCO: Mapping[str, Any] = {
    "total_steps": 1_000_000,
    "num_envs": 8,
    "ppo": {
        "n_steps": 256,
        "batch_size": 64,
        "n_epochs": 10,
        "learning_rate": 3e-4,
        "normalize_observations": True,
        "normalize_rewards": True,
    },
}


def _changed(settings: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`settings` with some changed, groups included."""
    merged = {**settings, **changes}
    for name, value in changes.items():
        if isinstance(value, Mapping) and name in settings:
            merged[name] = {**settings[name], **value}
    return merged


_SETTINGS: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("CartPole-v1", "ppo"): {
        "total_steps": 150_000,
        "num_envs": 16,
        "ppo": {
            "n_steps": 64,
            "batch_size": 256,
            "n_epochs": 10,
            "learning_rate": 1e-3,
            "lr_schedule": "linear",
            "gamma": 0.98,
            "gae_lambda": 0.9,
        },
    },
    ("Acrobot-v1", "ppo"): {
        "total_steps": 500_000,
        "num_envs": 16,
        "ppo": {
            "n_steps": 256,
            "batch_size": 64,
            "n_epochs": 4,
            "gae_lambda": 0.94,
            "normalize_observations": True,
            "normalize_rewards": True,
        },
    },
    ("MountainCarContinuous-v0", "ppo"): {
        "total_steps": 500_000,
        "num_envs": 16,
        "ppo": {
            "n_steps": 256,
            "batch_size": 256,
            "n_epochs": 10,
            "learning_rate": 3e-4,
            "gamma": 0.9999,
            "gae_lambda": 0.9,
            "ent_coef": 0.01,
            "max_grad_norm": 5.0,
            "vf_coef": 0.2,
            "normalize_observations": True,
            "normalize_rewards": True,
        },
        "network": {"log_std_init": 1.0},
    },
    ("Pendulum-v1", "ppo"): {
        "total_steps": 300_000,
        "num_envs": 8,
        "ppo": {"n_steps": 256, "batch_size": 64, "n_epochs": 10, "learning_rate": 1e-3, "gamma": 0.9},
    },
    ("Hopper-v5", "ppo"): _MUJOCO,
    ("HalfCheetah-v5", "ppo"): _MUJOCO,
    ("Walker2d-v5", "ppo"): _MUJOCO,
    ("Ant-v5", "ppo"): _changed(
        _MUJOCO,
        {
            "total_steps": 5_000_000,
            "num_envs": 64,
            "ppo": {"n_steps": 64, "batch_size": 512, "n_epochs": 5, "lr_schedule": "linear"},
            "network": {"hidden": (128, 128), "log_std_init": -0.5},
        },
    ),
    ("Humanoid-v5", "ppo"): _changed(
        _MUJOCO,
        {
            "total_steps": 10_000_000,
            "num_envs": 64,
            "ppo": {"n_steps": 64, "batch_size": 1024, "n_epochs": 5, "gamma": 0.98, "max_grad_norm": 2.0},
            "network": {"hidden": (256, 256), "log_std_init": -1.0},
        },
    ),
    ("CartPole-v1", "a2c"): {
        "total_steps": 300_000,
        "num_envs": 16,
        "a2c": {
            "n_steps": 8,
            "optimizer": "adam",
            "learning_rate": 2e-3,
            "lr_schedule": "linear",
            "gamma": 0.98,
            "gae_lambda": 0.95,
        },
    },
    ("Acrobot-v1", "a2c"): {
        "total_steps": 300_000,
        "num_envs": 16,
        "a2c": {
            "n_steps": 16,
            "optimizer": "adam",
            "learning_rate": 2e-3,
            "lr_schedule": "linear",
            "gae_lambda": 0.95,
            "normalize_advantage": True,
            "normalize_observations": True,
            "normalize_rewards": True,
        },
    },
    ("HalfCheetah-v5", "a2c"): {
        "total_steps": 1_000_000,
        "num_envs": 16,
        "a2c": {
            "n_steps": 16,
            "optimizer": "adam",
            "learning_rate": 1e-3,
            "lr_schedule": "linear",
            "gae_lambda": 0.95,
            "normalize_advantage": True,
            "normalize_observations": True,
            "normalize_rewards": True,
        },
    },
    ("CartPole-v1", "impala"): {
        "total_steps": 300_000,
        "num_envs": 16,
        "impala": {
            "n_steps": 8,
            "optimizer": "adam",
            "learning_rate": 2e-3,
            "lr_schedule": "linear",
            "gamma": 0.98,
            "ent_coef": 0.0,
            "c_bar": 0.95,
        },
    },
    ("Acrobot-v1", "impala"): {
        "total_steps": 300_000,
        "num_envs": 16,
        "impala": {
            "n_steps": 16,
            "optimizer": "adam",
            "learning_rate": 2e-3,
            "lr_schedule": "linear",
            "ent_coef": 0.001,
            "normalize_observations": True,
            "normalize_rewards": True,
        },
    },
    ("HalfCheetah-v5", "impala"): {
        "total_steps": 1_000_000,
        "num_envs": 16,
        "impala": {
            "n_steps": 16,
            "optimizer": "adam",
            "learning_rate": 1e-3,
            "lr_schedule": "linear",
            "ent_coef": 0.0,
            "normalize_observations": True,
            "normalize_rewards": True,
        },
    },
    ("CartPole-v1", "pqn"): {
        "total_steps": 300_000,
        "num_envs": 32,
        "pqn": {
            "n_steps": 32,
            "batch_size": 128,
            "n_epochs": 4,
            "learning_rate": 5e-4,
            "lr_schedule": "linear",
        },
        "network": {"hidden": (128, 128), "activation": "relu"},
    },
}
