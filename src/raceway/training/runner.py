"""A round of some Python environments, run where they live: the policy is computed there, and nobody is asked.

What is imported here is imported by worker processes: no JAX.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

from raceway.algos.rollout import Scaling
from raceway.training.group import Group, InfoSums
from raceway.training.native_actor import NativeActor
from raceway.training.slots import Slots, read
from raceway.training.underway import Underway


@dataclass(frozen=True)
class Part:
    """What a worker gives back of a round, beside what it has written into it."""

    underway: Underway
    info_sums: InfoSums
    fault: str
    """As `Group.fault`."""


class RoundRunner:
    """Goes to every worker once. Between rounds it remembers nothing: a worker can be replaced by another."""

    def __init__(self, layout: Mapping[str, Any], num_steps: int, seed: int, greedy: bool, action_masks: bool) -> None:
        self._layout = layout
        self._num_steps = num_steps
        self._seed = seed
        self._greedy = greedy
        self._action_masks = action_masks

    def open(self, env: VectorEnv, first: int) -> None:
        """The environments that live here, of which the first is number `first` of all."""
        self._group = Group(env, first, self._action_masks)
        self._actor = NativeActor(self._layout, env.single_observation_space, env.single_action_space, self._seed)

    def run(
        self, underway: Underway, slots: Slots, params: np.ndarray, scaling: Scaling | None, first_step: int
    ) -> Part:
        """All steps of a round, which goes on from the observations that are in its first row already."""
        group, actor = self._group, self._actor
        actor.put(params, scaling)
        group.go_on(underway.part(range(group.size)), read(slots.obs, (0, group.columns)))
        group.begin(slots)
        for step in range(first_step, first_step + self._num_steps):
            actions, log_probs, values, _ = actor.act(
                None, group.observations, group.mask, group.envs, step, self._greedy
            )
            group.keep_actions(actions, log_probs, values)
            group.step()
            if (last := group.last_observations()) is not None:
                group.keep_last_values(actor.value(None, last))
            group.advance()
        group.end(actor.value(None, group.observations))
        return Part(group.underway, group.info_sums, group.fault)
