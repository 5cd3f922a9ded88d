"""A policy that the native kernel can run, for central inference: no compiling, and microseconds a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import Space

from raceway import _core
from raceway.algos.rollout import Scaling
from raceway.algos.spaces import action_parts, flatten


class NativeActor:
    """The same numbers as with the policy in the worker, to the bit, whatever the groups."""

    memory_size = 0
    """It runs no recurrent networks."""

    def __init__(self, layout: Mapping[str, Any], observation_space: Space, action_space: Space, seed: int) -> None:
        parts = action_parts(action_space)
        self.num_logits = parts.num_logits
        self._size, self._dtype, self._has_axis = parts.size, parts.dtype, parts.has_axis
        self._policy = _core.Policy(dict(layout))
        self._space = observation_space
        self._seed = seed

    def prepare(self, obs: Any, mask: Any, envs: np.ndarray, greedy: bool, memory: None) -> None:
        """There is nothing to prepare."""

    def put(self, params: np.ndarray, scaling: Scaling | None) -> None:
        """Loads the weights."""
        self._policy.load(params, *flat_scaling(self._space, scaling))

    def act(
        self, weights: None, obs: Any, mask: Any, envs: np.ndarray, step: int, greedy: bool, memory: None = None
    ) -> tuple[Any, ...]:
        """Actions, their log-probabilities, values and no memory."""
        count = len(envs)
        actions = np.empty((count, self._size), self._dtype)
        log_probs, values = np.empty(count, np.float32), np.empty(count, np.float32)
        rows = self._rows(obs, count)
        self._policy.act(rows, actions, log_probs, values, self._seed, int(envs[0]), step, greedy, mask)
        return (actions if self._has_axis else actions[:, 0]), log_probs, values, None

    def value(self, weights: None, obs: Any, memory: None = None) -> np.ndarray:
        """Of a group's observations."""
        leaves = flatten(self._space, obs)
        values = np.empty(len(leaves[0]), np.float32)
        self._policy.value(self._rows(obs, len(values)), values)
        return values

    def _rows(self, obs: Any, count: int) -> np.ndarray:
        """Leaves one after the other: all numbers of an observation in a row."""
        leaves = [leaf.reshape(count, -1) for leaf in flatten(self._space, obs)]
        rows = leaves[0] if len(leaves) == 1 else np.concatenate(leaves, axis=1)
        return np.ascontiguousarray(rows, np.float32)


def flat_scaling(space: Space, scaling: Scaling | None) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Mean and rate of all leaves that are normalised, one after the other."""
    if scaling is None:
        return None, None
    parts = [
        [np.ravel(leaf) for leaf in flatten(space, tree) if leaf is not None] for tree in (scaling.mean, scaling.rate)
    ]
    mean, rate = (np.concatenate(part) if part else None for part in parts)
    return mean, rate
