"""The arrays that a round is written into: every datum has its address, no matter what writes it and when."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import Space

from raceway.algos.rollout import Episodes, Faults, Rollout, Weights
from raceway.algos.spaces import action_parts, observation_leaves, unflatten

NO_FAULTS = Faults()

Empty = Callable[[Sequence[int], Any], np.ndarray]
"""Where the arrays come from, such as `Output.empty`: they need not be zero."""


@dataclass(frozen=True)
class Slots:
    """A round's arrays, time first: see `Rollout` for what they mean."""

    obs: Any
    actions: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    log_probs: np.ndarray
    values: np.ndarray
    final_values: np.ndarray
    action_mask: np.ndarray | None
    valid: np.ndarray | None
    memory: np.ndarray | None
    episode_returns: np.ndarray
    episode_lengths: np.ndarray
    """Zero where none ended."""

    def rollout(self, weights: Weights) -> Rollout:
        """What the learner gets."""
        return Rollout(
            version=weights.version,
            scaling=weights.scaling,
            obs=self.obs,
            actions=self.actions,
            rewards=self.rewards,
            terminated=self.terminated,
            truncated=self.truncated,
            log_probs=self.log_probs,
            values=self.values,
            final_values=self.final_values,
            action_mask=self.action_mask,
            valid=self.valid,
            memory=self.memory,
        )

    def episodes(self, infos: dict[str, float], seconds: float, faults: Faults = NO_FAULTS) -> Episodes:
        """What the report gets: the episodes that ended, by time and then by environment."""
        times, envs = np.nonzero(self.episode_lengths)
        return Episodes(
            returns=self.episode_returns[times, envs],
            lengths=self.episode_lengths[times, envs],
            envs=envs.astype(np.int32),
            infos=infos,
            seconds=seconds,
            faults=faults,
        )


@dataclass(frozen=True)
class Shape:
    """What decides how large the arrays are."""

    observation: Space
    action: Space
    num_steps: int
    num_envs: int
    num_logits: int | None = None
    """How many entries an action mask has; None: there are no masks."""
    marks_valid: bool = False
    """Whether some rows may be no transitions."""
    memory_size: int = 0
    """How many numbers a recurrent network remembers of each environment; 0: it is none."""

    @property
    def num_bytes(self) -> int:
        """Of all arrays of one round."""
        sizes: list[int] = []

        def count(shape: Sequence[int], dtype: Any) -> np.ndarray:
            sizes.append(math.prod(shape) * np.dtype(dtype).itemsize)
            return np.empty(0)

        self.slots(count)
        return sum(sizes)

    def slots(self, empty: Empty) -> Slots:
        """Arrays for one round."""
        steps, envs = self.num_steps, self.num_envs
        parts = action_parts(self.action)
        return Slots(
            obs=obs_slots(self.observation, (steps + 1, envs), empty),
            actions=empty((steps, envs, parts.size) if parts.has_axis else (steps, envs), parts.dtype),
            rewards=empty((steps, envs), np.float32),
            terminated=empty((steps, envs), np.bool_),
            truncated=empty((steps, envs), np.bool_),
            log_probs=empty((steps, envs), np.float32),
            values=empty((steps + 1, envs), np.float32),
            final_values=empty((steps, envs), np.float32),
            action_mask=None if self.num_logits is None else empty((steps, envs, self.num_logits), np.bool_),
            valid=empty((steps, envs), np.bool_) if self.marks_valid else None,
            memory=empty((envs, self.memory_size), np.float32) if self.memory_size else None,
            episode_returns=empty((steps, envs), np.float32),
            episode_lengths=empty((steps, envs), np.int32),
        )


def obs_slots(space: Space, axes: tuple[int, ...], empty: Empty) -> Any:
    """An array per leaf of an observation, nested as the space is."""
    return unflatten(space, [empty((*axes, *leaf.shape), leaf.dtype) for leaf in observation_leaves(space)])


def write(target: Any, where: Any, source: Any) -> None:
    """Writes a batch of observations to their rows, leaf by leaf."""
    if isinstance(target, dict):
        for name, part in target.items():
            write(part, where, source[name])
    elif isinstance(target, tuple):
        for part, value in zip(target, source, strict=True):
            write(part, where, value)
    else:
        target[where] = source


def read(tree: Any, where: Any) -> Any:
    """The same rows of every leaf."""
    if isinstance(tree, dict):
        return {name: read(part, where) for name, part in tree.items()}
    if isinstance(tree, tuple):
        return tuple(read(part, where) for part in tree)
    return tree[where]
