"""Makes every task known to Gymnasium, so that `gymnasium.make_vec("raceway/CartPole-v1", 64)` gives a pool."""

from __future__ import annotations

import functools

import gymnasium

from raceway.envs.catalog import tasks
from raceway.envs.make import make


def register_all() -> None:
    """Registers what is not registered yet."""
    for task in tasks().values():
        name = f"raceway/{task.id}"
        if name in gymnasium.registry:
            continue
        ours = gymnasium.registry.get(task.id)
        gymnasium.register(
            name,
            vector_entry_point=functools.partial(make, task.id),
            max_episode_steps=task.max_episode_steps,
            reward_threshold=ours.reward_threshold if ours else None,
        )
