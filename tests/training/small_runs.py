"""Short runs without a folder, and what they tell."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from raceway.algos.rollout import Episodes, Rollout
from raceway.graph import Input, Reactor, reaction
from raceway.training.environments import EnvSource
from raceway.training.learner import Progress
from raceway.training.programs import Training, build, training_sampler
from raceway.training.resolve import resolve
from raceway.training.setup import Setup

SMALL = {"num_envs": 4, "n_steps": 8, "batch_size": 16, "n_epochs": 2, "hidden": (8, 8), "preset": False}
WITHOUT_MINIBATCHES = ("a2c", "impala")


class Recorder(Reactor):
    """Keeps what the learner tells."""

    progress = Input[Progress]()

    def __init__(self) -> None:
        self.kept: list[Progress] = []

    @reaction(progress)
    def keep(self, progress: Progress) -> None:
        self.kept.append(progress)


def set_up(env: Any, *, network: Any = None, **settings: Any) -> Setup:
    left_out = ("batch_size", "n_epochs") if settings.get("algo") in WITHOUT_MINIBATCHES else ()
    small = {name: value for name, value in SMALL.items() if name not in left_out}
    config = resolve(env, **{**small, **settings})
    return Setup.of(config, EnvSource(env, config.env_args), network)


def run(
    env: Any,
    rounds: int = 4,
    *,
    inline: bool = False,
    perturb: Callable[[str], None] | None = None,
    network: Any = None,
    **settings: Any,
) -> tuple[list[Progress], Training]:
    """What the learner told in each round."""
    settings.setdefault("total_steps", 1_000_000)
    setup = set_up(env, network=network, **settings)
    training = build(setup, None)
    recorder = training.program.add(Recorder())
    training.program.connect(training.learner.progress, recorder.progress)
    training.program.run(rounds, inline=inline, perturb=perturb)
    return recorder.kept, training


def chain(env: Any, rounds: int = 4, **settings: Any) -> list[str]:
    """The hash chain of a run."""
    told, _ = run(env, rounds, **settings)
    return [progress.digest for progress in told]


def random_delays(most_s: float = 0.01) -> Callable[[str], None]:
    """Sleeps now and then, never twice the same."""
    generator = random.SystemRandom()

    def sleep(_: str) -> None:
        if generator.random() < 0.5:
            time.sleep(generator.random() * most_s)

    return sleep


def values_of(training: Training, setup: Setup, obs: np.ndarray) -> np.ndarray:
    """What the learned value function says."""
    weights = training.learner.current
    algorithm = setup.algorithm()
    return np.asarray(algorithm.value(weights.params, weights.scaling, obs))


def collected(env: Any, rounds: int = 3, **settings: Any) -> list[tuple[Rollout, Episodes]]:
    """Rounds under the weights of the beginning."""
    setup = set_up(env, **settings)
    training = build(setup, None)
    sampler = training_sampler(setup, training.layout)
    sampler.open()
    try:
        return [sampler.collect(training.learner.current, round_, np.empty) for round_ in range(rounds)]
    finally:
        sampler.close()
