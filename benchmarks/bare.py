"""The limit that pools and collectors are measured against: environments inlined into a plain C++ loop.

Compiled by `make benchmarks/.bare`, and not a part of the package: users would wait for it while installing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from raceway.envs import bare
from raceway.envs.catalog import find_task, native_arguments

try:
    from benchmarks import _bare_loops  # type: ignore[attr-defined]
except ImportError as error:
    raise ImportError(f"The bare loops are not compiled ({error}). Compile them: make benchmarks/.bare") from None


def bare_loop(task: str, num_envs: int, actions: np.ndarray, **others: Any) -> float:
    """Seconds for `actions` [T, num_envs, ...], as `raceway.envs.bare.bare_loop`, with the environment inlined."""
    return bare.bare_loop(task, num_envs, actions, loop=_bare_loops.bare_loop, **others)


def bare_policy_loop(
    task: str, num_envs: int, policy: Any, num_steps: int, *, num_threads: int = 0, seed: int
) -> float:
    """Seconds for `num_steps` steps of each environment, driven by a native policy; 0 threads: one per CPU."""
    found = find_task(task)
    given, limit = native_arguments(found, {}), found.max_episode_steps or 0
    seconds: float = _bare_loops.bare_policy_loop(
        found.id, given, limit, num_envs, policy, num_steps, num_threads, seed
    )
    return seconds
