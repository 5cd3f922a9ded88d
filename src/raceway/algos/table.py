"""Rows of many arrays side by side, so that picking a minibatch is one gather instead of one for each array."""

from __future__ import annotations

from typing import Generic, TypeVar

import jax
import jax.numpy as jnp

from raceway.algos.counted import Array

T = TypeVar("T")


class Table(Generic[T]):
    """A tree of arrays [B, ...]. Floats of one or two axes share a matrix; what is wider stays by itself."""

    def __init__(self, tree: T) -> None:
        self._leaves, self._structure = jax.tree.flatten(tree)
        narrow = [leaf.reshape(len(leaf), -1) for leaf in self._leaves if _is_narrow(leaf)]
        self._matrix = jnp.concatenate(narrow, axis=-1)

    def pick(self, index: Array) -> T:
        """The tree of these rows."""
        picked, start = [], 0
        rows = _take(self._matrix, index)
        for leaf in self._leaves:
            if not _is_narrow(leaf):
                picked.append(_take(leaf, index))
                continue
            width = leaf.shape[1] if leaf.ndim == 2 else 1
            part = rows[:, start : start + width]
            picked.append(part if leaf.ndim == 2 else part[:, 0])
            start += width
        return jax.tree.unflatten(self._structure, picked)


def _is_narrow(leaf: Array) -> bool:
    return leaf.ndim <= 2 and leaf.dtype == jnp.float32


def _take(rows: Array, index: Array) -> Array:
    return rows.at[index].get(mode="promise_in_bounds", unique_indices=True)
