"""Several groups of environments that are stepped together, since there are fewer workers than groups.

What is computed and what is saved is as if each group were by itself: the number of workers does not show in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from raceway.algos.rollout import Scaling


class InParts:
    """A policy as central inference calls it, which sees one group at a time."""

    def __init__(self, actor: Any, size: int) -> None:
        """`size`: of a group."""
        self.num_logits: int = actor.num_logits
        self.memory_size: int = actor.memory_size
        self._actor = actor
        self._size = size

    def prepare(self, obs: Any, mask: Any, envs: np.ndarray, greedy: bool, memory: Any) -> None:
        """For one group, since all are alike."""
        obs, mask, envs, memory = rows_of((obs, mask, envs, memory), slice(0, self._size))
        self._actor.prepare(obs, mask, envs, greedy, memory)

    def put(self, params: np.ndarray, scaling: Scaling | None) -> Any:
        """The weights, where they are computed with."""
        return self._actor.put(params, scaling)

    def act(
        self, weights: Any, obs: Any, mask: Any, envs: np.ndarray, step: int, greedy: bool, memory: Any
    ) -> tuple[Any, ...]:
        """Actions, their log-probabilities, values, and what is remembered from then on."""
        found = []
        for seen, allowed, which, known in self._split((obs, mask, envs, memory)):
            found.append(self._actor.act(weights, seen, allowed, which, step, greedy, known))
        together: tuple[Any, ...] = joined(found)
        return together

    def value(self, weights: Any, obs: Any, memory: Any) -> Any:
        """Of the observations of all groups."""
        return joined([self._actor.value(weights, *each) for each in self._split((obs, memory))])

    def _split(self, batch: tuple[Any, ...]) -> list[Any]:
        return split(batch, self._size)


def split(tree: Any, size: int) -> list[Any]:
    """Data of several groups, a row for each environment, as those of each group."""
    return [rows_of(tree, slice(first, first + size)) for first in range(0, _num_rows(tree), size)]


def joined(parts: Sequence[Any]) -> Any:
    """What `split` took apart."""
    first = parts[0]
    if first is None:
        return None
    if isinstance(first, dict):
        return {name: joined([part[name] for part in parts]) for name in first}
    if isinstance(first, tuple):
        return tuple(joined(its) for its in zip(*parts, strict=True))
    if isinstance(first, list):
        return [row for part in parts for row in part]
    return np.concatenate(parts)


def rows_of(tree: Any, rows: slice) -> Any:
    """The same rows of every array and list in dicts and tuples."""
    if tree is None:
        return None
    if isinstance(tree, dict):
        return {name: rows_of(part, rows) for name, part in tree.items()}
    return tuple(rows_of(part, rows) for part in tree) if isinstance(tree, tuple) else tree[rows]


def _num_rows(tree: Any) -> int:
    """Of the first array or list in it."""
    if isinstance(tree, (dict, tuple)):
        parts = tree.values() if isinstance(tree, dict) else tree
        return next((rows for part in parts if (rows := _num_rows(part))), 0)
    return 0 if tree is None else len(tree)
