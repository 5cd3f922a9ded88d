"""The gated recurrent unit (Cho et al., 2014): a memory that a network carries from one observation to the next."""

from __future__ import annotations

import math
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from raceway.algos.counted import Array
from raceway.algos.parameters import orthogonal


class GRU:
    """Features [B, F] and memory [B, H] to the next memory, which is also what the layers above it see.

    r = σ(x Wᵣ + bᵣ + h Uᵣ)        what of the memory the candidate sees
    z = σ(x W_z + b_z + h U_z)      what of it is kept
    n = tanh(x Wₙ + bₙ + r (h Uₙ + c))
    h' = (1 - z) n + z h
    """

    def __init__(self, num_inputs: int, width: int) -> None:
        self._num_inputs = num_inputs
        self.width = width

    def shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """The names and shapes of its arrays: W, b, U side by side in the order r, z, n; and c."""
        three = 3 * self.width
        return [
            ("weights", (self._num_inputs, three)),
            ("bias", (three,)),
            ("memory_weights", (self.width, three)),
            ("memory_bias", (self.width,)),
        ]

    def init(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Orthogonal matrices, no biases."""
        width = self.width
        gain = math.sqrt(2)
        return {
            "weights": np.hstack([orthogonal(rng, self._num_inputs, width, gain) for _ in range(3)]),
            "bias": np.zeros(3 * width),
            "memory_weights": np.hstack([orthogonal(rng, width, width, 1.0) for _ in range(3)]),
            "memory_bias": np.zeros(width),
        }

    def step(self, params: Mapping[str, Array], features: Array, memory: Array) -> Array:
        """The memory after one observation."""
        return self._next(params, self._driven(params, features), memory)

    def run(self, params: Mapping[str, Array], features: Array, memory: Array, begins: Array) -> Array:
        """The memories after each of T observations: [T, B, F] to [T, B, H], from zero where an episode `begins`."""

        def step(before: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
            driven, begin = now
            after = self._next(params, driven, jnp.where(begin[:, None], 0.0, before))
            return after, after

        return jax.lax.scan(step, memory, (self._driven(params, features), begins))[1]

    def _driven(self, params: Mapping[str, Array], features: Array) -> Array:
        """x W + b: what does not depend on the memory, so that it is one product for all steps."""
        return features @ params["weights"] + params["bias"]

    def _next(self, params: Mapping[str, Array], driven: Array, memory: Array) -> Array:
        width = self.width
        recalled = memory @ params["memory_weights"]
        gates = jax.nn.sigmoid(driven[:, : 2 * width] + recalled[:, : 2 * width])
        reset, keep = gates[:, :width], gates[:, width:]
        candidate = jnp.tanh(driven[:, 2 * width :] + reset * (recalled[:, 2 * width :] + params["memory_bias"]))
        return (1 - keep) * candidate + keep * memory
