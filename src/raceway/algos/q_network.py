"""The network of PQN: layer normalisation in its hidden layers, a value for each action, and how much it explores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import jax.numpy as jnp
import numpy as np

from raceway.algos.counted import Array, Purpose
from raceway.algos.networks import ACTIVATIONS, ActorCritic, Rows
from raceway.algos.parameters import orthogonal


class QNetwork(ActorCritic):
    """Observations as those of the built-in network, then one stack of layers.

    The last of its parameters is ε, so that it travels with the others to whoever acts. No gradient changes it.
    """

    def values_of(self, params: Mapping[str, Array], rows: Rows) -> Array:
        """Q(s, ·), [B, K]."""
        x = self._features(params, rows)
        layers = self._stacks["q"]
        for depth in range(len(layers)):
            x = x @ params[f"q{depth}.weights"] + params[f"q{depth}.bias"]
            if depth < len(layers) - 1:
                x = _normalised(x) * params[f"q{depth}.scale"] + params[f"q{depth}.shift"]
                x = ACTIVATIONS[self._config.activation](x)
        return x

    def apply(self, params: Mapping[str, Array], rows: Rows) -> tuple[Array, Array]:
        """Q(s, ·) and its maximum."""
        found = self.values_of(params, rows)
        return found, jnp.max(found, axis=-1)

    def init(self, seed: int) -> np.ndarray:
        """Orthogonal weights: gain √2 in hidden layers, 0.01 in the last. ε is 1."""
        # An array: in a list, seeds from 2**63 on would become floats.
        key = np.array([seed & (2**64 - 1), Purpose.PARAMETERS], np.uint64)
        rng = np.random.Generator(np.random.Philox(key=key))
        arrays = {name: np.zeros(block.shape) for name, block in self.layout.blocks.items()}
        for index, encoder in self._encoders.items():
            arrays |= {f"encoder{index}.{name}": array for name, array in encoder.init(rng).items()}
        layers = self._stacks["q"]
        for depth, (inputs, outputs) in enumerate(layers):
            is_last = depth == len(layers) - 1
            arrays[f"q{depth}.weights"] = orthogonal(rng, inputs, outputs, 0.01 if is_last else math.sqrt(2))
            if not is_last:
                arrays[f"q{depth}.scale"] = np.ones(outputs)
        arrays["epsilon"] = np.ones(1)
        return self.layout.assemble(arrays)

    def native_layout(self) -> dict[str, Any] | None:
        return None

    def _describe_stacks(self) -> dict[str, list[tuple[int, int]]]:
        return {"q": list(pairwise((self._num_features, *self._hidden, self._action.num_logits)))}

    def _shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        shapes = super()._shapes()
        for depth, (_, outputs) in enumerate(self._stacks["q"][:-1]):
            shapes += [(f"q{depth}.scale", (outputs,)), (f"q{depth}.shift", (outputs,))]
        return [*shapes, ("epsilon", (1,))]


def _normalised(x: Array) -> Array:
    """Each row to mean 0 and variance 1."""
    x = x - jnp.mean(x, axis=-1, keepdims=True)
    return x / jnp.sqrt(jnp.mean(jnp.square(x), axis=-1, keepdims=True) + 1e-6)
