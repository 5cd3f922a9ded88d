"""Parameters as one flat float32 vector, and the named arrays that it consists of.

One vector is what travels to collectors, what is saved, and what the optimiser works on: a few long kernels instead of
a dozen short ones for each of a network's arrays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from raceway.algos.counted import Array


@dataclass(frozen=True)
class Block:
    """One array within the vector."""

    name: str
    offset: int
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class Layout:
    """The named arrays of a network, in the order in which they stand in the vector."""

    def __init__(self, shapes: Sequence[tuple[str, tuple[int, ...]]]) -> None:
        self.blocks: dict[str, Block] = {}
        self.size = 0
        for name, shape in shapes:
            self.blocks[name] = Block(name, self.size, shape)
            self.size += self.blocks[name].size

    def unravel(self, flat: Array) -> dict[str, Array]:
        """The arrays by name."""
        blocks = self.blocks.values()
        return {block.name: flat[block.offset : block.offset + block.size].reshape(block.shape) for block in blocks}

    def ravel(self, arrays: Mapping[str, Any]) -> Array:
        """The vector of these arrays."""
        return jnp.concatenate([jnp.ravel(arrays[name]) for name in self.blocks])

    def assemble(self, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
        """The same, without JAX."""
        return np.concatenate([np.ravel(arrays[name]) for name in self.blocks]).astype(np.float32)


def orthogonal(rng: np.random.Generator, inputs: int, outputs: int, gain: float) -> np.ndarray:
    """A matrix [inputs, outputs] with orthonormal rows or columns (whichever are fewer), times `gain`."""
    normal = rng.standard_normal((max(inputs, outputs), min(inputs, outputs)))
    q, r = np.linalg.qr(normal)
    q *= np.sign(np.diag(r))  # without it the matrices are not uniformly distributed
    return (gain * (q if inputs >= outputs else q.T)).astype(np.float32)
