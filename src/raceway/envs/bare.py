"""A plain C++ loop over native environments: the limit that the native lane is compared with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from raceway import _core
from raceway.envs.catalog import find_task, native_arguments


def bare_loop(
    id: str,  # noqa: A002
    num_envs: int,
    actions: np.ndarray,
    *,
    num_threads: int | None = None,
    seed: int = 0,
    loop: Callable[..., float] = _core.table_loop,
    **kwargs: Any,
) -> float:
    """Seconds that a plain C++ loop takes for `actions` [T, num_envs, ...]: one thread per CPU, no pool at all.

    loop: the native function that runs it.
    """
    task = find_task(id)
    given = native_arguments(task, kwargs)
    column = _core.Configurations(task.id, [given]).layout(0)["action"]
    steps = len(actions)
    flat = np.ascontiguousarray(actions, dtype=column["dtype"]).reshape(steps, -1)
    if column["discrete"] and flat.size and not (flat.min() >= 0 and flat.max() < column["n"]):
        raise ValueError(f"actions from {flat.min()} to {flat.max()}: {task.id} takes 0 to {column['n'] - 1}.")
    limit = task.max_episode_steps or 0
    return loop(task.id, given, limit, num_envs, flat, steps, min(num_threads or 0, num_envs), seed)
