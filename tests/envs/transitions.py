"""What every environment of a pool goes through, row by row, so that two runs can be compared to the bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete

from raceway.envs import NativePool

Row = tuple[Any, ...]
"""One environment's part of what `step` returns: observation, reward, terminated, truncated, infos."""

PATIENCE_S = 20.0
"""A test that waits longer for a batch has found a hang."""


def action_plan(pool: NativePool, length: int, seed: int = 0) -> np.ndarray:
    """Random actions [length, num_envs, ...]: entry [t, i] is for the step t of environment i."""
    rng = np.random.default_rng(seed)
    space = pool.single_action_space
    if isinstance(space, Discrete):
        return rng.integers(space.n, size=(length, pool.num_envs))
    assert isinstance(space, Box)
    return rng.uniform(-3, 3, size=(length, pool.num_envs, *space.shape)).astype(np.float32)


def rows_of(result: tuple[Any, ...]) -> list[Row]:
    """The rows of what `step` or `recv` returned."""
    observations, rewards, terminated, truncated, infos = result
    leaves = observations if isinstance(observations, tuple) else (observations,)
    return [
        (
            tuple(leaf[i].tobytes() for leaf in leaves),
            float(rewards[i]),
            bool(terminated[i]),
            bool(truncated[i]),
            _info_row(infos, i),
        )
        for i in range(len(rewards))
    ]


def _info_row(infos: Mapping[str, Any], index: int) -> tuple[str, ...]:
    found = []
    for name, values in infos.items():
        if f"_{name}" not in infos or not infos[f"_{name}"][index]:
            continue
        if isinstance(values, dict):
            found.append(f"{name}: {_part_row(values, index)!r}")
        else:
            found.append(f"{name}: {np.asarray(values[index]).tolist()!r}")
    return tuple(found)


def _part_row(values: Mapping[str, Any], index: int) -> dict[str, Any]:
    """What a dict in the infos holds for one environment; what took seconds is never equal."""
    everyone = [True] * (index + 1)
    names = [name for name in values if name != "t" and not name.startswith("_")]
    return {name: np.asarray(values[name][index]).tolist() for name in names if values.get(f"_{name}", everyone)[index]}


def step_all(pool: NativePool, plan: np.ndarray) -> list[list[Row]]:
    """The rows of each environment under `plan`, by `step`, from where the pool stands."""
    rows: list[list[Row]] = [[] for _ in range(pool.num_envs)]
    for actions in plan:
        for env, row in enumerate(rows_of(pool.step(actions))):
            rows[env].append(row)
    return rows


def send_and_receive(pool: NativePool, plan: np.ndarray) -> list[list[Row]]:
    """The rows of each environment under `plan`, by `send` and `recv`, in whatever order they come.

    All must be in flight or freshly reset by `async_reset`. An environment that is through with its plan goes on with
    its last action until all are, so that batches stay full; those rows are not returned.
    """
    length = len(plan)
    rows: list[list[Row]] = [[] for _ in range(pool.num_envs)]
    received = np.zeros(pool.num_envs, dtype=np.int64)
    while received.min() < length + 1:
        result = pool.recv(timeout=PATIENCE_S)
        env_ids = result[4]["env_id"]
        for env, row in zip(env_ids, rows_of(result), strict=True):
            rows[env].append(row)
        pool.send(plan[np.minimum(received[env_ids], length - 1), env_ids], env_ids)
        received[env_ids] += 1
    return [each[: length + 1] for each in rows]


def same_state(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    """Whether two states of pools are equal to the bit, but for the seconds that their episodes have lasted."""
    return left.keys() == right.keys() and all(
        np.asarray(left[name]).tobytes() == np.asarray(right[name]).tobytes()
        for name in left
        if name not in ("id", "episode.seconds")
    )
