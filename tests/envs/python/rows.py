"""What each environment of a pool goes through, row by row, so that two ways of driving it can be compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.vector.utils import batch_space, iterate

from tests.envs.transitions import PATIENCE_S

Row = tuple[Any, ...]
"""One environment's part of what `step` returns: observation, reward, terminated, truncated, its infos."""


def rows_of(pool: Any, result: tuple[Any, ...]) -> list[Row]:
    """The rows of what `step` or `recv` returned."""
    obs, rewards, terminated, truncated, infos = result
    count = len(rewards)
    each = iterate(batch_space(pool.single_observation_space, count), obs)
    flags = zip(rewards.tolist(), terminated.tolist(), truncated.tolist(), strict=True)
    return [(one, *its, _info(infos, row)) for row, (one, its) in enumerate(zip(each, flags, strict=True))]


def _info(infos: Mapping[str, Any], row: int) -> dict[str, Any]:
    """Of one environment; what took seconds is never equal."""
    found: dict[str, Any] = {}
    for name, column in infos.items():
        if name.startswith("_") or name in ("env_id", "t") or not infos.get(f"_{name}", _EVERYONE)[row]:
            continue
        found[name] = _info(column, row) if isinstance(column, dict) else column[row]
    return found


class _Everyone:
    def __getitem__(self, row: int) -> bool:
        return True


_EVERYONE = _Everyone()


def by_step(pool: Any, plan: np.ndarray) -> list[list[Row]]:
    """The rows of each environment from a reset on, under a plan of actions [steps, num_envs]."""
    obs, infos = pool.reset()
    none = np.zeros(pool.num_envs, bool)
    rows = [[row] for row in rows_of(pool, (obs, np.zeros(pool.num_envs), none, none, infos))]
    for actions in plan:
        for its, row in zip(rows, rows_of(pool, pool.step(actions)), strict=True):
            its.append(row)
    return rows


def by_send(pool: Any, plan: np.ndarray) -> list[list[Row]]:
    """The same by `async_reset`, `send` and `recv`, in whatever order they come.

    An environment that is through with its plan goes on with its last action until all are, so that batches stay
    full; those rows are not returned.
    """
    pool.async_reset()
    rows: list[list[Row]] = [[] for _ in range(pool.num_envs)]
    while min(map(len, rows)) < len(plan) + 1:
        result = pool.recv(timeout=PATIENCE_S)
        env_ids = result[4]["env_id"].tolist()
        actions = [plan[min(len(rows[env]), len(plan) - 1), env] for env in env_ids]
        for env, row in zip(env_ids, rows_of(pool, result), strict=True):
            rows[env].append(row)
        pool.send(np.array(actions), env_ids)
    return [each[: len(plan) + 1] for each in rows]
