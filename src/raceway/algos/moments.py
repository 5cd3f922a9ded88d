"""Running means and variances in float64, and the normalisation of observations and rewards by them. NumPy only.

Batches are merged in the order of the rounds, never by arrival, so that the same rounds give the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from gymnasium import Space

from raceway.algos.rollout import Rollout, Scaling
from raceway.algos.spaces import flatten, observation_leaves, unflatten

REWARD_LIMIT = 10.0
EPSILON = 1e-8


@dataclass(frozen=True)
class Moments:
    """How many samples there were, their mean, and the sum of their squared distances from it."""

    count: float
    mean: np.ndarray
    m2: np.ndarray

    @staticmethod
    def empty(shape: tuple[int, ...] = ()) -> Moments:
        return Moments(0.0, np.zeros(shape), np.zeros(shape))

    @staticmethod
    def of(samples: np.ndarray) -> Moments:
        """Of samples [n, ...]."""
        if len(samples) == 0:
            return Moments.empty(samples.shape[1:])
        mean = samples.mean(axis=0, dtype=np.float64)
        distances = samples - mean
        np.square(distances, out=distances)
        return Moments(float(len(samples)), mean, distances.sum(axis=0))

    def merge(self, other: Moments) -> Moments:
        """Of both sets of samples (Chan, Golub and LeVeque's formula)."""
        if other.count == 0:
            return self
        count = self.count + other.count
        shift = other.mean - self.mean
        mean = self.mean + shift * (other.count / count)
        return Moments(count, mean, self.m2 + other.m2 + np.square(shift) * (self.count * other.count / count))

    @property
    def variance(self) -> np.ndarray:
        """Of the samples so far; 1 before there are any, so that nothing is scaled yet."""
        return self.m2 / self.count if self.count else np.ones_like(self.m2)


class Normaliser:
    """Observations to mean 0 and variance 1, rewards to discounted returns of variance 1.

    Rewards are divided and not shifted: a constant added to all of them would change what the best policy is.
    """

    def __init__(
        self, observation_space: Space, num_envs: int, gamma: float, *, observations: bool, rewards: bool
    ) -> None:
        self._space = observation_space
        self._gamma = gamma
        self._observations = observations
        self._rewards = rewards
        self._leaves = observation_leaves(observation_space)
        self._moments = [Moments.empty(leaf.shape) if leaf.kind == "box" else None for leaf in self._leaves]
        self._returns = Moments.empty()
        # The discounted return of each environment's running episode, up to the last step seen.
        self._running = np.zeros(num_envs)

    def scaling(self) -> Scaling | None:
        """By what the next observations are normalised; None if they are not."""
        if not self._observations:
            return None
        means = [part and part.mean.astype(np.float32) for part in self._moments]
        rates = [part and (1.0 / np.sqrt(part.variance + EPSILON)).astype(np.float32) for part in self._moments]
        return Scaling(unflatten(self._space, means), unflatten(self._space, rates))

    def begin_from(self, scaling: Scaling, count: float) -> None:
        """Takes over the statistics of observations from which `scaling` was made, as if of `count` samples.

        Those of rewards are not part of a scaling and begin anew.
        """
        means, rates = flatten(self._space, scaling.mean), flatten(self._space, scaling.rate)
        for index, (part, mean, rate) in enumerate(zip(self._moments, means, rates, strict=True)):
            if part is not None:
                variance = np.maximum(np.float64(1.0) / np.square(rate, dtype=np.float64) - EPSILON, 0.0)
                self._moments[index] = Moments(count, np.asarray(mean, np.float64), variance * count)

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def absorb(self, rollout: Rollout) -> Rollout:
        """Takes a round into the statistics; returns it with its rewards scaled by them.

        Numbers that are not finite, or too large for their squares, make statistics that are not: see `is_finite`.
        """
        if self._observations:
            self._absorb_observations(rollout)
        if not self._rewards:
            return rollout
        self._absorb_returns(rollout)
        return replace(rollout, rewards=self._scaled(rollout.rewards))

    @property
    def is_finite(self) -> bool:
        """Whether all statistics are: one infinite number among the samples is never forgotten."""
        parts = [self._returns, *(part for part in self._moments if part)]
        return all(np.isfinite(part.mean).all() and np.isfinite(part.m2).all() for part in parts)

    def save(self) -> dict[str, np.ndarray]:
        """The whole state, as arrays by name."""
        parts = {f"observations.{index}": part for index, part in enumerate(self._moments) if part}
        state: dict[str, Any] = {"running": self._running}
        for name, part in (parts | {"returns": self._returns}).items():
            state |= {f"{name}.count": part.count, f"{name}.mean": part.mean, f"{name}.m2": part.m2}
        return {name: np.array(value, np.float64) for name, value in state.items()}

    def load(self, state: Mapping[str, Any]) -> None:
        """The state as save() gave it."""

        def array(name: str, like: np.ndarray) -> np.ndarray:
            found = np.array(state[name], np.float64)
            if found.shape != like.shape:
                raise ValueError(f"{name} has the shape {found.shape}, not {like.shape}")
            return found

        def moments(name: str, like: Moments) -> Moments:
            mean, m2 = array(f"{name}.mean", like.mean), array(f"{name}.m2", like.m2)
            count = float(array(f"{name}.count", np.zeros(())))
            if not (count >= 0 and (m2 >= 0).all()):
                raise ValueError(f"{name} has a count or squares below 0")
            return Moments(count, mean, m2)

        self._running = array("running", self._running)
        self._returns = moments("returns", self._returns)
        parts = enumerate(self._moments)
        self._moments = [part and moments(f"observations.{index}", part) for index, part in parts]

    def _absorb_observations(self, rollout: Rollout) -> None:
        for index, leaf in enumerate(flatten(self._space, rollout.obs)):
            part = self._moments[index]
            if part is not None:
                # The last observation is the first of the next round, and counted there.
                self._moments[index] = part.merge(Moments.of(_rows(leaf[:-1], rollout.valid)))

    def _absorb_returns(self, rollout: Rollout) -> None:
        returns, self._running = discounted_returns(
            rollout.rewards, rollout.terminated | rollout.truncated, self._running, self._gamma
        )
        self._returns = self._returns.merge(Moments.of(_rows(returns, rollout.valid)))

    def _scaled(self, rewards: np.ndarray) -> np.ndarray:
        scaled = rewards / np.sqrt(self._returns.variance + EPSILON)
        return np.clip(scaled, -REWARD_LIMIT, REWARD_LIMIT).astype(np.float32)


def discounted_returns(
    rewards: np.ndarray, ended: np.ndarray, running: np.ndarray, gamma: float
) -> tuple[np.ndarray, np.ndarray]:
    """Rₜ = rₜ + γ(1 - endedₜ₋₁)Rₜ₋₁ in float64, [T, N], from R₋₁ = `running`; and the R from which the next goes on.

    By doubling: after the pass of step s every row holds the sum over the 2s steps up to it, so that log₂ T passes over
    whole arrays replace T over single rows.
    """
    sums = rewards.astype(np.float64)
    discounts = np.full_like(sums, gamma)
    discounts[1:] *= ~ended[:-1]
    sums[0] += gamma * running
    step = 1
    while step < len(sums):
        sums[step:] += discounts[step:] * sums[:-step]
        discounts[step:] *= discounts[:-step]
        step *= 2
    return sums, np.where(ended[-1], 0.0, sums[-1])


def _rows(values: np.ndarray, valid: np.ndarray | None) -> np.ndarray:
    """[T, N, ...] as [T * N, ...], without the rows that are no transitions."""
    return values.reshape(-1, *values.shape[2:]) if valid is None else values[valid]
