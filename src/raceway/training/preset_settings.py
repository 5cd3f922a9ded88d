"""The settings of the presets, as `raceway.train` takes them, in the order in which people meet the tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def _mujoco(total_steps: int, *, num_envs: int = 8, network: Mapping[str, Any] | None = None, **ppo: Any) -> Any:
    """PPO for a MuJoCo task: short rounds, so that each update moves the policy little, everything normalised.

    A first standard deviation of exp(-1) instead of 1 keeps most actions within the bounds.
    """
    common = {"n_steps": 64, "batch_size": 64, "n_epochs": 10, "learning_rate": 1.5e-4, "clip_range": 0.1}
    normalized = {"max_grad_norm": 0.8, "normalize_observations": True, "normalize_rewards": True}
    return {
        "total_steps": total_steps,
        "num_envs": num_envs,
        "ppo": {**common, **normalized, **ppo},
        "network": {"log_std_init": -1.0} if network is None else network,
    }


_LANDER: Mapping[str, Any] = {
    "total_steps": 500_000,
    "num_envs": 16,
    "ppo": {
        "n_steps": 64,
        "batch_size": 128,
        "n_epochs": 8,
        "learning_rate": 5e-4,
        "lr_schedule": "linear",
        "gamma": 0.995,
        "gae_lambda": 0.98,
        "ent_coef": 0.01,
        "c_bar": 0.0,
        "normalize_observations": True,
        "normalize_rewards": True,
    },
}

SETTINGS: Mapping[tuple[str, str], Mapping[str, Any]] = {
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
        "total_steps": 300_000,
        "num_envs": 16,
        "ppo": {
            "n_steps": 32,
            "batch_size": 64,
            "n_epochs": 4,
            "gae_lambda": 0.94,
            "normalize_observations": True,
            "normalize_rewards": True,
        },
    },
    ("MountainCar-v0", "ppo"): {
        "total_steps": 200_000,
        "num_envs": 16,
        "ppo": {
            "n_steps": 128,
            "batch_size": 128,
            "n_epochs": 8,
            "learning_rate": 5e-4,
            "gamma": 0.999,
            "gae_lambda": 0.98,
            "ent_coef": 0.005,
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
        "ppo": {
            "n_steps": 128,
            "batch_size": 64,
            "n_epochs": 10,
            "learning_rate": 1e-3,
            "lr_schedule": "linear",
            "gamma": 0.9,
        },
    },
    ("HalfCheetah-v5", "ppo"): _mujoco(
        1_000_000,
        num_envs=16,
        n_steps=32,
        gamma=0.98,
        gae_lambda=0.92,
        c_bar=1.0,
        learning_rate=2e-4,
        lr_schedule="linear",
    ),
    ("Hopper-v5", "ppo"): _mujoco(
        1_000_000,
        network={},
        n_steps=128,
        gamma=0.995,
        gae_lambda=0.99,
        clip_range=0.2,
        learning_rate=2e-4,
        ent_coef=0.002,
    ),
    ("Walker2d-v5", "ppo"): _mujoco(1_000_000, gamma=0.99, gae_lambda=0.95, c_bar=1.0),
    # Its values are hard to learn: long segments, and with c_bar above 0 some seeds get stuck.
    ("Swimmer-v5", "ppo"): _mujoco(
        500_000,
        num_envs=4,
        network={},
        n_steps=1024,
        batch_size=256,
        gamma=0.9999,
        gae_lambda=0.98,
        clip_range=0.2,
        learning_rate=6e-4,
        c_bar=0.0,
    ),
    ("Reacher-v5", "ppo"): _mujoco(300_000, n_steps=128, gamma=0.95, clip_range=0.2, learning_rate=3e-4),
    ("Pusher-v5", "ppo"): _mujoco(300_000, n_steps=128, gamma=0.95, clip_range=0.2, learning_rate=3e-4),
    ("InvertedPendulum-v5", "ppo"): _mujoco(
        100_000, network={}, n_steps=128, clip_range=0.2, learning_rate=3e-4, lr_schedule="linear"
    ),
    ("InvertedDoublePendulum-v5", "ppo"): _mujoco(
        500_000,
        network={},
        n_steps=128,
        batch_size=128,
        n_epochs=5,
        gamma=0.98,
        gae_lambda=0.9,
        learning_rate=3e-4,
        lr_schedule="linear",
    ),
    ("Ant-v5", "ppo"): _mujoco(
        5_000_000,
        num_envs=32,
        batch_size=512,
        n_epochs=5,
        clip_range=0.2,
        learning_rate=1e-4,
        lr_schedule="adaptive_kl",
        network={"hidden": (128, 128), "log_std_init": -1.0},
    ),
    ("Humanoid-v5", "ppo"): _mujoco(
        10_000_000,
        num_envs=32,
        n_steps=32,
        batch_size=128,
        n_epochs=5,
        gamma=0.98,
        clip_range=0.2,
        learning_rate=2e-4,
        lr_schedule="linear",
        max_grad_norm=2.0,
        network={"hidden": (128, 128), "log_std_init": -1.0},
    ),
    ("HumanoidStandup-v5", "ppo"): _mujoco(
        1_000_000,
        num_envs=16,
        n_steps=128,
        batch_size=256,
        n_epochs=5,
        clip_range=0.2,
        lr_schedule="adaptive_kl",
        network={"hidden": (256, 256), "log_std_init": -1.0},
    ),
    ("LunarLander-v3", "ppo"): _LANDER,
    ("LunarLanderContinuous-v3", "ppo"): _LANDER,
    ("BipedalWalker-v3", "ppo"): {
        "total_steps": 1_000_000,
        "num_envs": 16,
        "ppo": {
            "n_steps": 128,
            "batch_size": 128,
            "n_epochs": 8,
            "lr_schedule": "linear",
            "gamma": 0.99,
            "gae_lambda": 0.95,
            "normalize_observations": True,
            "normalize_rewards": True,
        },
        "network": {"log_std_init": -0.5},
    },
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
