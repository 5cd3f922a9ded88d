"""What a collector does in a round, whichever way: run every environment for T steps under the given weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from raceway.algos.rollout import Episodes, Rollout, Weights
from raceway.training.environments import EnvSource
from raceway.training.slots import Empty


@dataclass(frozen=True)
class Sampling:
    """The settings that all samplers share."""

    source: EnvSource
    num_envs: int
    num_steps: int
    seed: int
    num_workers: int | None = None
    """Threads or processes that step environments; None: the CPUs this process may use."""
    purpose: str = "training"
    """Evaluation has environments with other seeds."""
    greedy: bool = False
    """The likeliest action instead of a drawn one."""
    action_masks: bool = True
    """Whether `info["action_mask"]` is used where an environment gives one."""


class Sampler(Protocol):
    """Runs the environments of a run, round by round."""

    def open(self) -> None:
        """Makes the environments and resets them."""

    def restart(self, purpose: str | None = None) -> None:
        """Begins again, with the seeds of the beginning, or those for another purpose."""

    def collect(self, weights: Weights, round_: int, empty: Empty) -> tuple[Rollout, Episodes]:
        """T steps of every environment."""

    def save(self) -> dict[str, Any] | None:
        """All that the next round depends on beside weights and settings, as plain data; None: that cannot be told."""

    def load(self, state: Mapping[str, Any]) -> list[int]:
        """What `save` gave, of a sampler of the same environments. KeyError, TypeError or ValueError if it is not.

        Returns the environments that could not be brought back to where they were, and have begun a new episode.
        """

    def close(self) -> None: ...
