"""Evaluation: greedy episodes in environments of their own, the same ones every time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from raceway.algos.rollout import Weights
from raceway.training.sampler import Sampler

CHUNK_STEPS = 128


@dataclass(frozen=True)
class Evaluation:
    """What a policy reached."""

    version: int
    """How many updates were behind it."""
    steps: int
    """How many environment steps of training."""
    returns: tuple[float, ...]
    """Of each episode that ended."""
    lengths: tuple[int, ...]

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Evaluation:
        """What its fields were, on disk."""
        returns, lengths = tuple(map(float, told["returns"])), tuple(map(int, told["lengths"]))
        return cls(int(told["version"]), int(told["steps"]), returns, lengths)

    @property
    def mean(self) -> float:
        return float(np.mean(self.returns)) if self.returns else float("nan")

    @property
    def std(self) -> float:
        return float(np.std(self.returns)) if self.returns else float("nan")

    @property
    def length(self) -> float:
        return float(np.mean(self.lengths)) if self.lengths else float("nan")


@dataclass(frozen=True)
class Trial:
    """How a policy is evaluated."""

    num_envs: int
    episodes: int
    max_steps: int
    """Of an episode: one that has not ended by then is given up."""


def evaluate_weights(sampler: Sampler, weights: Weights, trial: Trial, steps: int) -> Evaluation:
    """Evaluates in one go."""
    return next(found for found in evaluating(sampler, weights, trial, steps) if found is not None)


def evaluating(sampler: Sampler, weights: Weights, trial: Trial, steps: int) -> Iterator[Evaluation | None]:
    """Some steps of every environment at a time; what came of it is last, None is not yet.

    Lets every environment end its share of the episodes: taking those that end first would favour short ones.
    """
    num_envs, episodes = trial.num_envs, trial.episodes
    sampler.restart()
    wanted = np.full(num_envs, episodes // num_envs) + (np.arange(num_envs) < episodes % num_envs)
    returns: list[float] = []
    lengths: list[int] = []
    for chunk in range(math.ceil(int(wanted.max()) * trial.max_steps / CHUNK_STEPS)):
        _, ended = sampler.collect(weights, chunk, np.empty)
        for env, return_, length in zip(ended.envs, ended.returns, ended.lengths, strict=True):
            if wanted[env] > 0:
                wanted[env] -= 1
                returns.append(float(return_))
                lengths.append(int(length))
        if not wanted.any():
            break
        yield None
    yield Evaluation(weights.version, steps, tuple(returns), tuple(lengths))
