"""What a pool and its workers write for each other to read, in one block of memory that they share."""

from __future__ import annotations

import io
import math
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from raceway._core import Exchange, Tally
from raceway.envs.python.leaves import Leaf

_LINE = 128  # CPUs fetch lines in pairs


class Board:
    """Actions for the environments, what the workers are to do, and how far they are."""

    def __init__(self, exchange: Exchange, place: int, num_envs: int, num_workers: int, leaves: Sequence[Leaf]) -> None:
        self._memory = exchange.window(0, place, size_of(num_envs, num_workers, leaves))
        self._end = 0
        self.tally = Tally(exchange, 0, place)
        """Environments that have finished; it rings for the one who waits for them."""
        self._array((3,), np.int64)
        self.places = self._array((2,), np.int64)
        """Where the rows of what the tally's number says lie, and those before it."""
        self.sent = self._array((num_workers, _LINE // 8), np.int64)[:, 0]
        """How often each worker was told to look at `pending`."""
        self.done = self._array((num_workers, _LINE // 8), np.int64)[:, 0]
        """The number of the last step of all that each worker has finished."""
        self.beats = self._array((num_workers, _LINE // 8), np.int64)
        """Of each worker: how many environments it has called so far, and the one that it is calling."""
        self.pending = self._array((num_envs,), np.uint8)
        """Environments that have an action and are to be stepped, or reset."""
        self.finished = self._array((num_envs,), np.int64)
        """When each finished, in nanoseconds of a clock that all processes share; 0: it has not."""
        self.actions = [self._array((num_envs, *leaf.shape), leaf.dtype) for leaf in leaves]

    def _array(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        array = np.ndarray(shape, dtype, self._memory, self._end)
        self._end += _rounded(array.nbytes)
        return array


STEP, RESET = 1, 2
"""What `pending` says."""


def size_of(num_envs: int, num_workers: int, leaves: Sequence[Leaf]) -> int:
    """Bytes of a board."""
    fixed = 2 * _LINE + 3 * num_workers * _LINE + _rounded(num_envs) + _rounded(8 * num_envs)
    return fixed + sum(_rounded(num_envs * math.prod(leaf.shape) * leaf.dtype.itemsize) for leaf in leaves)


def _rounded(size: int) -> int:
    return -(-size // _LINE) * _LINE


class SharedPickler(pickle.Pickler):
    """Leaves arrays that the pool has leased where they are, and says where that is."""

    def __init__(self, exchange: Exchange, file: Any, buffer_callback: Callable[[pickle.PickleBuffer], Any]) -> None:
        super().__init__(file, protocol=5, buffer_callback=buffer_callback)
        self._exchange = exchange

    def persistent_id(self, obj: Any) -> Any:
        if type(obj) is not np.ndarray or not obj.flags.c_contiguous or not obj.nbytes:
            return None
        place = self._exchange.place_of(obj)
        return None if place is None else (place, obj.shape, obj.dtype.str)


class SharedUnpickler(pickle.Unpickler):
    """Finds them there."""

    def __init__(self, exchange: Exchange, head: bytes, parts: Sequence[Any]) -> None:
        super().__init__(io.BytesIO(head), buffers=parts)
        self._exchange = exchange

    def persistent_load(self, pid: Any) -> np.ndarray:
        place, shape, dtype = pid
        size = math.prod(shape) * np.dtype(dtype).itemsize
        return np.ndarray(shape, dtype, self._exchange.window(0, place, size))


def pack(exchange: Exchange, message: Any) -> tuple[bytes, list[Any]]:
    """A message whose arrays in shared memory are not copied, and whose others are beside it."""
    buffers: list[pickle.PickleBuffer] = []
    file = io.BytesIO()
    SharedPickler(exchange, file, buffers.append).dump(message)
    return file.getvalue(), [buffer.raw() for buffer in buffers]
