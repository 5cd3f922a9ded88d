"""Batches of actions, as they are given and as environments take them."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.vector.utils import batch_space, iterate

from raceway.envs.python.leaves import leaves_of, only_leaf, part_of, tree_of


class ActionReader:
    """Takes batches apart, and tells what is wrong with one."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.leaves = leaves_of(space)
        """None: actions have no fixed shape."""
        self._one = only_leaf(self.leaves)
        """The only leaf, if actions are plain arrays."""

    def read(self, actions: Any, count: int) -> Any:
        """An array of so many rows for every leaf, of the space's own types; a list of actions if there are none.

        It may be the caller's own: who keeps it copies it.
        """
        one = self._one
        if (
            one is not None
            and type(actions) is np.ndarray
            and actions.dtype is one.dtype
            and actions.shape == (count, *one.shape)
        ):
            return [actions]
        if self.leaves is None:
            given = list(iterate(batch_space(self.space, count), actions))
            if len(given) != count:
                raise ValueError(f"{len(given)} actions for {count} environments. Give one for each.")
            return given
        arrays = []
        for leaf in self.leaves:
            try:
                array = np.asarray(part_of(actions, leaf.path))
            except (KeyError, IndexError, TypeError, ValueError):
                raise ValueError(
                    f"actions{leaf.where} is missing or no array: a batch for {count} environments is needed, as "
                    "action_space.sample() gives it."
                ) from None
            if array.shape != (count, *leaf.shape):
                raise ValueError(
                    f"actions{leaf.where} has shape {array.shape}: {(count, *leaf.shape)} is expected, a row for each "
                    "environment."
                )
            are_whole = array.dtype.kind in "iub" and leaf.dtype.kind in "iu"
            if not are_whole and not np.can_cast(array.dtype, leaf.dtype, "same_kind"):
                raise TypeError(
                    f"actions{leaf.where} is {array.dtype}, which does not fit in the action space's {leaf.dtype}."
                )
            arrays.append(np.asarray(array, leaf.dtype))
        return arrays

    def split(self, actions: Any) -> list[np.ndarray]:
        """The leaves of a batch of batches."""
        return [np.asarray(part_of(actions, leaf.path), leaf.dtype) for leaf in self.leaves or ()]

    def each(self, given: Any) -> list[Any]:
        """What `read` gave, one action per environment, which may keep it."""
        if self.leaves is None:
            return given
        if self._one is not None and not self._one.shape:
            return list(given[0])  # numbers are nobody's
        own = [leaf.copy() for leaf in given]
        if self._one is not None:
            return list(own[0])
        return [tree_of(self.space, (leaf[row] for leaf in own)) for row in range(len(own[0]))]
