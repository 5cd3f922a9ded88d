"""What a step gave, a row for each environment: in memory of this process or in memory that processes share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from sys import getrefcount
from types import SimpleNamespace
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.vector.utils import concatenate, create_empty_array

from raceway._core import PythonSteps
from raceway.envs.python.leaves import Leaf, leaves_of, only_leaf, part_of, tree_of, write

_ALIGN = 64

_probe = SimpleNamespace(held=object())
_COUNTED = getrefcount(_probe.held)
"""What is counted of an object that one attribute refers to: that, and the counting itself."""

Writer = Callable[[int, Any], None]


class Form:
    """How the rows of an observation space lie in memory, one array after the other."""

    def __init__(self, space: Space, rows: int) -> None:
        self.space = space
        self.rows = rows
        self.leaves = leaves_of(space)
        """None: observations have no fixed shape, and are passed on as objects."""
        places: list[tuple[tuple[int, ...], np.dtype, int]] = []
        end = 0
        shapes = [((rows, *leaf.shape), leaf.dtype) for leaf in self.leaves or ()]
        for shape, dtype in [*shapes, ((rows,), np.dtype(np.float64)), *[((rows,), np.dtype(np.bool_))] * 2]:
            places.append((shape, dtype, end))
            end += -(-math.prod(shape) * dtype.itemsize // _ALIGN) * _ALIGN
        self._places = places
        self.size = end
        """In bytes."""

    def over(self, memory: np.ndarray) -> Rows:
        """Rows in memory of that size."""
        arrays = [np.ndarray(shape, dtype, memory, offset) for shape, dtype, offset in self._places]
        return Rows(self, arrays, memory)

    def new(self) -> Rows:
        """Rows in memory of this process."""
        return self.over(np.empty(max(1, self.size), np.uint8))


class Rows:
    """Arrays of the leaves of observations, of rewards and of flags."""

    def __init__(self, form: Form, arrays: Sequence[np.ndarray], memory: np.ndarray | None = None) -> None:
        """`memory`: what the arrays are views of, and nothing else is yet."""
        self.form = form
        self._memory = memory
        self._free_count = _COUNTED + len(arrays)  # each of them refers to it
        self.is_one_array = only_leaf(form.leaves) is not None
        self.steps: PythonSteps | None = None
        """What steps environments into these rows, once they have been."""
        self.place = 0
        """Where in shared memory they lie."""
        *self.leaves, self.rewards, self.terminated, self.truncated = arrays
        self.objects: list[Any] = [] if form.leaves is not None else [None] * form.rows
        self.write = _writer(form.leaves, self.leaves, self.objects)
        """Puts an observation in its row."""

    def observation(self, row: int) -> Any:
        """One environment's, as it would give it: a copy."""
        if self.form.leaves is None:
            return self.objects[row]
        rows = (target[row].copy() if target.ndim > 1 else target[row] for target in self.leaves)
        return tree_of(self.form.space, rows)

    def results(self, shared: bool) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
        """Observations, as Gymnasium batches them, rewards and flags: arrays for a caller to have.

        Unless all are to be shared, only observations are views: whoever keeps rewards would keep those as well.
        """
        flags = self.rewards, self.terminated, self.truncated
        if not shared:
            flags = self.rewards.copy(), self.terminated.copy(), self.truncated.copy()
        if self.form.leaves is None:
            return self._joined(self.objects), *flags
        if self.is_one_array:
            return self.leaves[0][...], *flags
        return tree_of(self.form.space, (leaf[...] for leaf in self.leaves)), *flags

    def is_free(self) -> bool:
        """Whether nobody has such an array any more: a view of one, and of that, keeps the memory itself."""
        return getrefcount(self._memory) == self._free_count

    def some(self, which: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
        """Copies of some rows: observations, rewards and flags."""
        flags = self.rewards[which], self.terminated[which], self.truncated[which]
        if self.form.leaves is None:
            return self._joined([self.objects[row] for row in which.tolist()]), *flags
        return tree_of(self.form.space, (target[which] for target in self.leaves)), *flags

    def _joined(self, objects: list[Any]) -> Any:
        empty: Any = create_empty_array(self.form.space, len(objects))
        return concatenate(self.form.space, objects, empty)

    def take_over(self, other: Rows, which: np.ndarray) -> None:
        """Observations of other rows, for environments that have no new one."""
        for target, source in zip(self.leaves, other.leaves, strict=True):
            target[which] = source[which]
        for row in which.tolist() if self.form.leaves is None else ():
            self.objects[row] = other.objects[row]


def _writer(leaves: Sequence[Leaf] | None, targets: Sequence[np.ndarray], objects: list[Any]) -> Writer:
    # None of them refers to the rows: with those, their memory must go at once.
    if leaves is None:
        return objects.__setitem__
    if (only := only_leaf(leaves)) is not None:
        return _array_writer(only, targets[0])

    def put(row: int, observation: Any) -> None:
        for leaf, target in zip(leaves, targets, strict=True):
            try:
                part = part_of(observation, leaf.path)
            except (KeyError, IndexError, TypeError):
                raise ValueError(f"the observation lacks {leaf.where}, which its space has.") from None
            write(leaf, target, row, part, "the observation")

    return put


def _array_writer(leaf: Leaf, target: np.ndarray) -> Writer:
    dtype, shape = leaf.dtype, leaf.shape

    def put(row: int, observation: Any) -> None:
        if type(observation) is np.ndarray and observation.dtype is dtype and observation.shape == shape:
            target[row] = observation
        else:
            write(leaf, target, row, observation, "the observation")

    return put
