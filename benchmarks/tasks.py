"""The tasks that are measured: how their actions are drawn, and what the peers call them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Discrete:
    """Actions 0 to n - 1."""

    n: int

    def draw(self, generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Uniform actions of this shape, int64 as Gymnasium samples them."""
        return generator.integers(self.n, size=shape)


@dataclass(frozen=True)
class Continuous:
    """`size` numbers between -bound and bound."""

    bound: float
    size: int = 1

    def draw(self, generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Uniform actions of this shape and a last axis of `size`, float32 as Gymnasium samples them."""
        return generator.uniform(-self.bound, self.bound, size=(*shape, self.size)).astype(np.float32)


CLASSIC: dict[str, Discrete | Continuous] = {
    "CartPole-v0": Discrete(2),
    "CartPole-v1": Discrete(2),
    "MountainCar-v0": Discrete(3),
    "MountainCarContinuous-v0": Continuous(1.0),
    "Acrobot-v1": Discrete(3),
    "Pendulum-v1": Continuous(2.0),
}

TOY: dict[str, Discrete | Continuous] = {
    "FrozenLake-v1": Discrete(4),
    "FrozenLake8x8-v1": Discrete(4),
    "Taxi-v3": Discrete(6),
    "CliffWalking-v1": Discrete(4),
    "Blackjack-v1": Discrete(2),
}

MUJOCO: dict[str, Discrete | Continuous] = {
    "Ant-v5": Continuous(1.0, 8),
    "HalfCheetah-v5": Continuous(1.0, 6),
    "Hopper-v5": Continuous(1.0, 3),
    "Walker2d-v5": Continuous(1.0, 6),
    "Humanoid-v5": Continuous(0.4, 17),
    "HumanoidStandup-v5": Continuous(0.4, 17),
    "Swimmer-v5": Continuous(1.0, 2),
    "Reacher-v5": Continuous(1.0, 2),
    "Pusher-v5": Continuous(2.0, 7),
    "InvertedPendulum-v5": Continuous(3.0, 1),
    "InvertedDoublePendulum-v5": Continuous(1.0, 1),
}

# Computes (or waits) for a given time and nothing else: what a pool costs shows at a known price per step.
SYNTHETIC: dict[str, Discrete | Continuous] = {"Busy-v0": Discrete(2)}

# Those of benchmarks/python_tasks.py.
PYTHON: dict[str, Discrete | Continuous] = {"Work": Discrete(2), "Pictures": Discrete(2)}

ACTIONS = {**CLASSIC, **TOY, **MUJOCO, **SYNTHETIC, **PYTHON}

# Gymnasium 1.4 has only Taxi-v4, which by default is the same game.
GYMNASIUM_NAMES = {"Taxi-v3": "Taxi-v4"}
