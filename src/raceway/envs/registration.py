"""Makes every task known to Gymnasium, so that `gymnasium.make_vec("raceway/CartPole-v1", 64)` gives a pool."""

from __future__ import annotations

import gymnasium

from raceway.envs.catalog import gymnasium_spec, tasks


def register_all() -> None:
    """Registers what is not registered yet."""
    for task in tasks().values():
        name = f"raceway/{task.id}"
        if name in gymnasium.registry:
            continue
        known = gymnasium_spec(task.id) if task.is_built_in else None
        gymnasium.register(
            name,
            vector_entry_point="raceway.envs.make:make",
            kwargs={"id": task.id},
            max_episode_steps=task.max_episode_steps,
            reward_threshold=known.reward_threshold if known else None,
        )
