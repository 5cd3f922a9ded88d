"""What a step gave, a row for each environment: in memory of this process or in memory that processes share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.vector.utils import concatenate, create_empty_array

from raceway._core import PythonSteps
from raceway.envs.python.leaves import Leaf, leaves_of, part_of, tree_of, write

_ALIGN = 64


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
        return Rows(self, arrays)

    def new(self) -> Rows:
        """Rows in memory of their own."""
        return Rows(self, [np.empty(shape, dtype) for shape, dtype, _ in self._places])


class Rows:
    """Arrays of the leaves of observations, of rewards and of flags."""

    def __init__(self, form: Form, arrays: Sequence[np.ndarray]) -> None:
        self.form = form
        self.is_one_array = form.leaves is not None and len(form.leaves) == 1 and not form.leaves[0].path
        self.steps: PythonSteps | None = None
        """What steps environments into these rows, once they have been."""
        self.place = 0
        """Where in shared memory they lie."""
        *self.leaves, self.rewards, self.terminated, self.truncated = arrays
        self.objects: list[Any] = [] if form.leaves is not None else [None] * form.rows

    def writer(self) -> Callable[[int, Any], None]:
        """What puts an observation in its row: looked up once for many."""
        leaves = self.form.leaves
        if leaves is None:
            return self.objects.__setitem__
        if self.is_one_array:
            return _array_writer(leaves[0], self.leaves[0])
        return self._write_parts

    def _write_parts(self, row: int, observation: Any) -> None:
        for leaf, target in zip(self.form.leaves or (), self.leaves, strict=True):
            try:
                part = part_of(observation, leaf.path)
            except (KeyError, IndexError, TypeError):
                raise ValueError(f"the observation lacks {leaf.where}, which its space has.") from None
            write(leaf, target, row, part, "the observation")

    def observation(self, row: int) -> Any:
        """One environment's, as it would give it: a copy."""
        if self.form.leaves is None:
            return self.objects[row]
        rows = (target[row].copy() if target.ndim > 1 else target[row] for target in self.leaves)
        return tree_of(self.form.space, rows)

    def observations(self) -> Any:
        """All of them, as Gymnasium batches them."""
        if self.form.leaves is None:
            return self._joined(self.objects)
        return tree_of(self.form.space, iter(self.leaves))

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


def _array_writer(leaf: Leaf, target: np.ndarray) -> Callable[[int, Any], None]:
    dtype, shape = leaf.dtype, leaf.shape

    def put(row: int, observation: Any) -> None:
        if type(observation) is np.ndarray and observation.dtype is dtype and observation.shape == shape:
            target[row] = observation
        else:
            write(leaf, target, row, observation, "the observation")

    return put
