"""The limit that pools are measured against."""

from __future__ import annotations

from typing import Any

import numpy as np

from raceway import _core
from raceway.envs.catalog import arguments, find_task


def bare_loop(
    id: str,  # noqa: A002
    num_envs: int,
    actions: np.ndarray,
    *,
    num_threads: int | None = None,
    seed: int = 0,
    **kwargs: Any,
) -> float:
    """Seconds that a plain C++ loop takes for `actions` [T, num_envs, ...]: one thread per CPU, no pool at all."""
    task = find_task(id)
    steps = len(actions)
    dtype = _core.describe_layout(task.id, arguments(task, kwargs))["action"]["dtype"]
    flat = np.ascontiguousarray(actions, dtype=dtype).reshape(steps, -1)
    limit = task.max_episode_steps or 0
    return _core.bare_loop(
        task.id, arguments(task, kwargs), limit, num_envs, flat, steps, min(num_threads or 0, num_envs), seed
    )
