"""What collectors and learners hand each other: rollouts one way, weights the other. NumPy only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Scaling:
    """How observations are normalised before a network sees them: clip((x - mean) * rate, -10, 10)."""

    mean: Any
    """A tree like the observation, float32 leaves without time and environment; None where nothing is scaled."""
    rate: Any
    """1 / sqrt(variance + 1e-8), likewise."""


@dataclass(frozen=True)
class Weights:
    """A policy as it travels to whoever acts by it."""

    version: int
    """How many updates are behind it."""
    params: np.ndarray
    """All parameters as one flat float32 vector, in the order that the algorithm fixes."""
    scaling: Scaling | None
    """None: observations are not normalised."""
    env_args: dict[str, Any] | None = None
    """Arguments that the environments are to have from now on, beside those of the settings; None: no others."""


@dataclass(frozen=True)
class Rollout:
    """T transitions of each of N environments, time first.

    Episodes reset within the step: where t ended an episode, obs[t + 1] is the first observation of the next.
    """

    version: int
    """Of the weights that it was collected under."""
    scaling: Scaling | None
    """Likewise: the learner normalises by what the policy saw."""
    obs: Any
    """A tree like the space, leaves [T+1, N, ...], raw. Floats are float32, bytes stay bytes, the rest is int32."""
    actions: np.ndarray
    """Discrete: int32 [T, N] from 0. MultiDiscrete, MultiBinary: int32 [T, N, K]. Box: float32 [T, N, K], unclipped."""
    rewards: np.ndarray
    """[T, N] float32."""
    terminated: np.ndarray
    """[T, N] bool: the episode is over, nothing follows."""
    truncated: np.ndarray
    """[T, N] bool: the episode was cut off, its value goes on."""
    log_probs: np.ndarray
    """[T, N] of the actions, under the weights that drew them."""
    values: np.ndarray
    """[T+1, N] under the same weights."""
    final_values: np.ndarray
    """[T, N]: the value of the true last observation where truncated and not terminated, 0 elsewhere."""
    action_mask: np.ndarray | None = None
    """[T, N, K] bool over the logits, True where allowed; None if the environment has none."""
    valid: np.ndarray | None = None
    """[T, N] bool: rows that are transitions; None if all are."""
    memory: np.ndarray | None = None
    """[N, H]: what a recurrent network remembered when the round began, 0 where an episode did; None without one."""


@dataclass(frozen=True)
class Faults:
    """What went wrong in a round, and the run went on nevertheless."""

    envs: int = 0
    """How often an environment was made anew, and its episode cut off."""
    workers: int = 0
    """How often a worker process was started again."""
    first: str = ""
    """The first environment's error, in words."""


@dataclass(frozen=True)
class Episodes:
    """The episodes that ended in a round, for the report."""

    returns: np.ndarray
    """In the order of (time, environment)."""
    lengths: np.ndarray
    """Likewise."""
    envs: np.ndarray
    """In which environment each was, likewise."""
    infos: dict[str, float]
    """The mean over the round of every scalar info entry."""
    seconds: float
    """How long the round took."""
    faults: Faults = Faults()
    """What went wrong meanwhile."""


@dataclass(frozen=True)
class Collected:
    """What a collector gives in a round."""

    rollout: Rollout
    """To learn from."""
    episodes: Episodes
    """To tell."""
    env_args: dict[str, Any] = field(default_factory=dict)
    """Arguments of the environments that it was collected in, beside those of the settings."""
