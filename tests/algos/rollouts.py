"""Rollouts for tests: random data, or drawn by a policy so that its log-probabilities and values are the true ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gymnasium import Space, spaces

from raceway.algos.algorithm import Algorithm
from raceway.algos.rollout import Rollout, Scaling
from raceway.algos.spaces import Leaf, action_parts, flatten, observation_leaves, unflatten

SEED = 7

ACTION_SPACES = {
    "discrete": spaces.Discrete(3),
    "multi-discrete": spaces.MultiDiscrete([2, 3]),
    "box": spaces.Box(-1, 1, (2,)),
    "multi-binary": spaces.MultiBinary(3),
}

SOME_ACTIONS = [
    pytest.param(name, marks=[] if name in ("box", "multi-discrete") else [pytest.mark.slow]) for name in ACTION_SPACES
]
"""Numbers and choices; the others, which have the same code in most places, take long."""


def random_obs(space: Space, lead: tuple[int, ...], rng: np.random.Generator) -> Any:
    """Observations [*lead, ...] as a rollout holds them."""

    def leaf_values(leaf: Leaf) -> np.ndarray:
        shape = (*lead, *leaf.shape)
        if leaf.kind == "box":
            return rng.normal(size=shape).astype(np.float32)
        most = (
            np.array(leaf.nvec).reshape(leaf.shape)
            if leaf.kind == "discrete"
            else (2 if leaf.kind == "binary" else 256)
        )
        return rng.integers(0, most, size=shape).astype(leaf.dtype)

    return unflatten(space, [leaf_values(leaf) for leaf in observation_leaves(space)])


def random_rollout(
    observation_space: Space, action_space: Space, num_steps: int, num_envs: int, *, scaling: Scaling | None = None
) -> Rollout:
    """Numbers that no policy has drawn, ends of both kinds among them."""
    rng = np.random.default_rng(3)
    shape = (num_steps, num_envs)
    parts = action_parts(action_space)
    if parts.kind == "gaussian":
        actions = rng.normal(size=(*shape, parts.size)).astype(np.float32)
    else:
        actions = rng.integers(0, parts.nvec or 2, size=(*shape, parts.size)).astype(np.int32)
    terminated, truncated = rng.random(shape) < 0.1, rng.random(shape) < 0.1
    return Rollout(
        version=0,
        scaling=scaling,
        obs=random_obs(observation_space, (num_steps + 1, num_envs), rng),
        actions=actions if parts.has_axis else actions[..., 0],
        rewards=rng.normal(size=shape).astype(np.float32),
        terminated=terminated,
        truncated=truncated,
        log_probs=rng.normal(-1, 0.1, size=shape).astype(np.float32),
        values=rng.normal(size=(num_steps + 1, num_envs)).astype(np.float32),
        final_values=np.where(truncated & ~terminated, rng.normal(size=shape), 0).astype(np.float32),
    )


def drawn_rollout(algorithm: Algorithm, params: Any, rollout: Rollout) -> Rollout:
    """The same with actions, log-probabilities, values and memory of this policy."""
    num_steps, num_envs = rollout.rewards.shape
    space, size = algorithm.observation_space, algorithm.network.memory_size
    start = rollout.memory
    if size and start is None:
        start = np.zeros((num_envs, size), np.float32)
    memory: Any = start
    resets = rollout.terminated | rollout.truncated if rollout.valid is None else ~rollout.valid
    kept: list[list[np.ndarray]] = []
    for t in range(num_steps + 1):
        obs = unflatten(space, [leaf[t] for leaf in flatten(space, rollout.obs)])
        mask = None if rollout.action_mask is None else rollout.action_mask[min(t, num_steps - 1)]
        draw = SEED, np.arange(num_envs), np.full(num_envs, t)
        *drawn, memory = algorithm.act(params, rollout.scaling, obs, mask, *draw, memory)
        kept.append([np.asarray(part) for part in drawn])
        if memory is not None and t < num_steps:
            memory = np.where(resets[t][:, None], np.float32(0), memory)
    actions, log_probs, values = (np.stack(parts) for parts in zip(*kept, strict=True))
    return replace(rollout, actions=actions[:-1], log_probs=log_probs[:-1], values=values, memory=start)
