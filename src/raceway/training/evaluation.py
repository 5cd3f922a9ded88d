"""Evaluation: greedy episodes in environments of their own, the same ones every time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from raceway.algos.rollout import Weights
from raceway.errors import DivergedError
from raceway.interrupts import raise_lost_ctrl_c
from raceway.report.metrics import EVALUATION
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
    env_args: dict[str, Any] | None = None
    """Arguments of its environments beside those of the settings, such as a curriculum's level; None: no others."""

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Evaluation:
        """What `to_dict` gave."""
        returns = tuple(math.nan if each is None else float(each) for each in told["returns"])
        args = told.get("env_args")
        lengths = tuple(map(int, told["lengths"]))
        return cls(int(told["version"]), int(told["steps"]), returns, lengths, None if args is None else dict(args))

    def to_dict(self) -> dict[str, Any]:
        """As plain data for JSON, which has no infinity and no NaN: a return that is not finite is None."""
        returns = [each if math.isfinite(each) else None for each in self.returns]
        return {**asdict(self), "returns": returns}

    @property
    def mean(self) -> float:
        """Mean return; NaN if no episode ended."""
        if not self.returns:
            return math.nan
        with np.errstate(over="ignore", invalid="ignore"):  # rewards may be as large as they like
            return float(np.mean(self.returns))

    @property
    def std(self) -> float:
        """Standard deviation of the returns; NaN if no episode ended."""
        if not self.returns:
            return math.nan
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.std(self.returns))

    @property
    def length(self) -> float:
        return float(np.mean(self.lengths)) if self.lengths else float("nan")


def evaluation_row(found: Evaluation) -> dict[str, float]:
    """The metrics of an evaluation."""
    return {
        EVALUATION: found.mean,
        "evaluation/return_std": found.std,
        "evaluation/length": found.length,
        "evaluation/episodes": float(len(found.returns)),
    }


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

    Lets every environment end its share of the episodes: taking those that end first would favour short ones. One whose
    episode takes more than `max_steps` is not waited for any longer.
    """
    num_envs, episodes = trial.num_envs, trial.episodes
    sampler.restart()
    wanted = np.full(num_envs, episodes // num_envs) + (np.arange(num_envs) < episodes % num_envs)
    returns: list[float] = []
    lengths: list[int] = []
    since = np.zeros(num_envs, np.int64)  # when the episode under way began, to the chunk
    for chunk in range(math.ceil(int(wanted.max()) * trial.max_steps / CHUNK_STEPS)):
        raise_lost_ctrl_c()
        try:
            _, ended = sampler.collect(weights, chunk, np.empty)
        except FloatingPointError as error:
            raise DivergedError(f"Evaluation after {weights.version} updates: {error}") from None
        for env, return_, length in zip(ended.envs, ended.returns, ended.lengths, strict=True):
            since[env] = (chunk + 1) * CHUNK_STEPS
            if wanted[env] > 0:
                wanted[env] -= 1
                returns.append(float(return_))
                lengths.append(int(length))
        is_given_up = (chunk + 1) * CHUNK_STEPS - since >= trial.max_steps
        if not (wanted[~is_given_up] > 0).any():
            break
        yield None
    yield Evaluation(weights.version, steps, tuple(returns), tuple(lengths), weights.env_args or None)
