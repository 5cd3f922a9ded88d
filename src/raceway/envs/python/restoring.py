"""Episodes taken up again where they were: from an environment's own state, or played again from their seed."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import Space

from raceway.envs import env_state
from raceway.envs.python.leaves import fingerprint, tree_of
from raceway.envs.python.rows import Rows
from raceway.envs.python.stage import Stage, episode_seed

Record = dict[str, Any]
"""Plain data of one environment: `base` and `number` (of its episode), `actions` (an array per leaf, a row per step;
None if there are too many), `hash` (of its last observation), `state` (None if it offers none), `obs` (if it has one).
"""

_MOST_STEPS = 100_000
"""Of an episode that is written down; to play longer ones again would take too long."""


class EpisodeLog:
    """What was done in the episodes that are under way, so that it can be done again."""

    def __init__(self, num_envs: int) -> None:
        self.bases = np.zeros(num_envs, np.int64)
        self.numbers = np.zeros(num_envs, np.int64)
        self._begun = np.zeros(num_envs, np.int64)
        """The step in which each episode began, of all that were ever added."""
        self._kept: deque[tuple[list[np.ndarray], int]] = deque()
        """Actions of some steps, and how many steps: a row for each environment."""
        self._first = self._next = 0
        """The first step that is kept, and the one after the last."""

    def begin(self, bases: Sequence[int]) -> None:
        """All environments begin anew."""
        self.bases = np.array(bases, np.int64)
        self.numbers[:] = 0
        self._begun[:] = 0
        self._kept.clear()
        self._first = self._next = 0

    def begin_next(self, envs: list[int]) -> None:
        """Some environments have given up an episode and begin the next."""
        self.numbers[envs] += 1
        self._begun[envs] = self._next

    def add(self, actions: list[np.ndarray], ended: np.ndarray) -> None:
        """Steps that were taken: actions [T, N, ...] of each leaf, and [T, N] where episodes ended."""
        steps = len(ended)
        self._kept.append((actions, steps))
        self._next += steps
        self.numbers += ended.sum(axis=0)
        any_ended = ended.any(axis=0)
        last = self._next - np.argmax(ended[::-1], axis=0)
        self._begun = np.where(any_ended, last, self._begun)
        needed = max(int(self._begun.min()), self._next - _MOST_STEPS)
        while self._kept and self._first + self._kept[0][1] <= needed:
            self._first += self._kept.popleft()[1]

    def record(self, env: int) -> Record:
        """Of one environment."""
        begun = int(self._begun[env])
        actions = None if begun < self._first else self._since(env, begun)
        return {"base": int(self.bases[env]), "number": int(self.numbers[env]), "actions": actions}

    def _since(self, env: int, begun: int) -> list[np.ndarray]:
        parts: list[list[np.ndarray]] = []
        step = self._first
        for arrays, steps in self._kept:
            skipped = max(0, begun - step)
            step += steps
            if skipped < steps:
                parts.append([array[skipped:, env] for array in arrays])
        return [np.concatenate(leaf) for leaf in zip(*parts, strict=True)]

    def load(self, records: Sequence[Record]) -> None:
        """Takes over what `record` gave of every environment; those without actions have none."""
        self.begin([record["base"] for record in records])
        self.numbers = np.array([record["number"] for record in records], np.int64)
        lengths = [len(record["actions"][0]) if record["actions"] else 0 for record in records]
        self._next = max(lengths, default=0)
        self._begun = self._next - np.array(lengths, np.int64)
        known = next((record["actions"] for record in records if record["actions"]), None)
        if known is None:
            return
        arrays = [np.zeros((self._next, len(records), *leaf.shape[1:]), leaf.dtype) for leaf in known]
        for env, (record, length) in enumerate(zip(records, lengths, strict=True)):
            for array, leaf in zip(arrays, record["actions"] or [], strict=False):
                array[self._next - length :, env] = leaf
        self._kept.append((arrays, self._next))


def mark(stage: Stage, index: int, rows: Rows) -> Record:
    """Where an environment is: its own part of a record."""
    observation = rows.observation(index)
    state = env_state.save(stage.envs[index]) if rows.form.leaves is not None else None
    obs = None if state is None else [array[index].copy() for array in rows.leaves]
    return {
        "number": stage.numbers[index],
        "hash": fingerprint(observation, rows.form.leaves),
        "state": state,
        "obs": obs,
    }


def restore(stage: Stage, index: int, record: Record, action_space: Space, rows: Rows) -> bool:
    """Brings an environment to where its record was made; False if it does not get there."""
    env = stage.envs[index]
    actions = record["actions"]
    steps = len(actions[0]) if actions else 0
    stage.settle(index, int(record["base"]), int(record["number"]), steps)
    try:
        obs, _ = env.reset(seed=episode_seed(int(record["base"]), int(record["number"])))
        if record["state"] is not None:
            env_state.load(env, record["state"])
            for array, leaf in zip(rows.leaves, record["obs"], strict=True):
                array[index] = leaf
            return True
        if actions is None:
            return False
        for step in range(steps):
            stage.called(index)
            obs, _, terminated, truncated, _ = env.step(tree_of(action_space, (leaf[step] for leaf in actions)))
            if terminated or truncated:
                return False
        rows.write(index, obs)
    except Exception:
        return False
    return fingerprint(rows.observation(index), rows.form.leaves) == record["hash"]
