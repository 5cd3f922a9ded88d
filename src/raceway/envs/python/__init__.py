"""Environments written in Python: in worker processes, or inline in the calling thread."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from gymnasium.vector import AutoresetMode

from raceway._core import usable_cpus
from raceway.envs.arguments import autoreset_mode
from raceway.envs.catalog import MOST_WORKERS, flag, positive
from raceway.envs.python.inline import InlinePool
from raceway.envs.python.makers import makers_of
from raceway.envs.python.pool import PythonPool
from raceway.envs.python.process import ProcessPool
from raceway.envs.python.settings import PoolSettings
from raceway.envs.python.stage import Rules
from raceway.memory import require_memory
from raceway.names import did_you_mean

__all__ = ["InlinePool", "ProcessPool", "PythonPool", "python_pool"]

_ON_ERROR = ("raise", "restart")
_PROCESS_BYTES = 30 << 20
"""What an interpreter with NumPy and Gymnasium takes of its own."""


def python_pool(
    target: Any,
    num_envs: int | None = None,
    *,
    lane: str = "process",
    batch_size: int | None = None,
    num_workers: int | None = None,
    seed: int | Sequence[int | None] | None = None,
    autoreset: str | AutoresetMode = "next_step",
    max_episode_steps: int | None = None,
    record_episodes: bool = False,
    copy: bool = True,
    pin: bool = False,
    env_kwargs: Sequence[Mapping[str, Any]] | None = None,
    on_error: str = "raise",
    worker_timeout: float | None = None,
    episode_seeds: bool = False,
    kwargs: Mapping[str, Any] | None = None,
) -> InlinePool | ProcessPool:
    """See `raceway.make`. `episode_seeds` is for training: each episode has a seed, and can be played again from it."""
    if on_error not in _ON_ERROR:
        raise ValueError(f"on_error={on_error!r}.{did_you_mean(str(on_error), _ON_ERROR)} Use 'raise' or 'restart'.")
    made = makers_of(target, num_envs, shared=kwargs or {}, own=env_kwargs, max_episode_steps=max_episode_steps)
    settings = PoolSettings(
        name=made.name,
        makers=made.makers,
        rules=Rules(autoreset_mode(autoreset), on_error == "restart", episode_seeds),
        spec=made.spec,
        batch_size=batch_size,
        seed=seed,
        record_episodes=record_episodes,
        copy=copy,
    )
    timeout = _seconds(worker_timeout)
    if lane == "inline":
        return InlinePool(settings)
    workers = min(positive("num_workers", usable_cpus() if num_workers is None else num_workers), len(made.makers))
    if workers > MOST_WORKERS:
        raise ValueError(f"num_workers={workers} is out of range. Use a number from 1 to {MOST_WORKERS}.")
    require_memory(
        workers * _PROCESS_BYTES, f"num_workers={workers} processes", "Use fewer; one for each CPU is usual."
    )
    cpus = sorted(os.sched_getaffinity(0)) if flag("pin", pin) else []
    return ProcessPool(settings, workers, timeout, cpus)


def _seconds(worker_timeout: Any) -> float | None:
    if worker_timeout is None:
        return None
    if not isinstance(worker_timeout, (int, float)) or isinstance(worker_timeout, bool) or not worker_timeout > 0:
        raise ValueError(
            f"worker_timeout={worker_timeout!r} is not a number of seconds. Use one above 0, or None to wait for as "
            "long as it takes."
        )
    return float(worker_timeout)
