"""Distributions over actions: sampling from counted words, log-probabilities, entropies, modes.

`inputs` are what the network gives, [B, K]; actions are [B, size], whatever the space's shape. Every row's result is a
function of that row alone. Draws follow core/policy.hpp number by number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np

from raceway.algos import counted
from raceway.algos.counted import Array
from raceway.algos.spaces import ActionParts

# What a masked logit becomes: small enough for probability 0, finite so that 0 * logit stays 0.
MASKED = -1e8


@dataclass(frozen=True)
class Draw:
    """Which random numbers a batch of actions is drawn from."""

    seed: Array | np.ndarray
    """As counted.split_seed gives it."""
    env: Array
    """[B] the environment's number."""
    step: Array
    """[B] or [] its step since the run began."""

    def words(self, count: int) -> counted.Words:
        """`count` pairs of words for each row, [B, count] each."""
        env, step = jnp.broadcast_arrays(jnp.asarray(self.env, jnp.uint32), jnp.asarray(self.step, jnp.uint32))
        draws = jnp.arange(count, dtype=jnp.uint32)
        return counted.words(self.seed, counted.Purpose.ACTIONS, draws, env[:, None], step[:, None])


class Distribution(Protocol):
    """A family of distributions over actions."""

    @property
    def num_inputs(self) -> int:
        """How many numbers per row describe one of them."""

    def masked(self, inputs: Array, mask: Array) -> Array:
        """Without the actions whose mask is False."""

    def sample(self, inputs: Array, draw: Draw) -> Array: ...
    def mode(self, inputs: Array) -> Array: ...
    def log_prob(self, inputs: Array, actions: Array) -> Array: ...
    def entropy(self, inputs: Array) -> Array: ...


@dataclass(frozen=True)
class Categorical:
    """One choice out of nvec[j] for each component j; inputs are the logits, one component after the other."""

    nvec: tuple[int, ...]

    @property
    def num_inputs(self) -> int:
        return sum(self.nvec)

    def masked(self, inputs: Array, mask: Array) -> Array:
        """A mask that allows nothing of a component is as good as none, as for the native kernel."""
        parts = [part | ~part.any(axis=-1, keepdims=True) for part in self._split(jnp.asarray(mask, bool))]
        return jnp.where(jnp.concatenate(parts, axis=-1), inputs, MASKED)

    def sample(self, inputs: Array, draw: Draw) -> Array:
        u = counted.uniform(draw.words(len(self.nvec))[0])
        choices = [_invert(logits, u[:, j]) for j, logits in enumerate(self._split(inputs))]
        return jnp.stack(choices, axis=-1)

    def mode(self, inputs: Array) -> Array:
        return jnp.stack([jnp.argmax(logits, axis=-1) for logits in self._split(inputs)], axis=-1).astype(jnp.int32)

    def log_prob(self, inputs: Array, actions: Array) -> Array:
        chosen = jnp.zeros(len(inputs))
        for j, logits in enumerate(self._split(inputs)):
            # A product with a one-hot row, as the gradient of an index is a slow scatter.
            one_hot = actions[:, j, None] == jnp.arange(self.nvec[j], dtype=actions.dtype)
            chosen += jnp.sum(jnp.where(one_hot, jax.nn.log_softmax(logits), 0.0), axis=-1)
        return chosen

    def entropy(self, inputs: Array) -> Array:
        total = jnp.zeros(len(inputs))
        for logits in self._split(inputs):
            log_probs = jax.nn.log_softmax(logits)
            total -= jnp.sum(jnp.exp(log_probs) * log_probs, axis=-1)
        return total

    def _split(self, inputs: Array) -> list[Array]:
        ends = np.cumsum(self.nvec)
        return [inputs[:, end - n : end] for n, end in zip(self.nvec, ends, strict=True)]


def _invert(logits: Array, u: Array) -> Array:
    """The first index whose cumulative probability exceeds u; the last possible one if rounding leaves none."""
    weights = jnp.exp(logits - jnp.max(logits, axis=-1, keepdims=True))
    sums = jnp.cumsum(weights, axis=-1)
    possible = weights > 0
    reached = possible & (sums > u[:, None] * sums[:, -1:])
    last = logits.shape[-1] - 1 - jnp.argmax(possible[:, ::-1], axis=-1)
    return jnp.where(jnp.any(reached, axis=-1), jnp.argmax(reached, axis=-1), last).astype(jnp.int32)


@dataclass(frozen=True)
class Gaussian:
    """Independent normal components; inputs are all means, then all logarithms of standard deviations."""

    size: int

    @property
    def num_inputs(self) -> int:
        return 2 * self.size

    def masked(self, inputs: Array, mask: Array) -> Array:
        raise ValueError(
            "An action mask was given for a Box of actions: of real numbers none can be forbidden. Drop the mask, or "
            "bound the actions in the environment."
        )

    def sample(self, inputs: Array, draw: Draw) -> Array:
        """By Box and Muller: each pair of words gives two components, r cos(2πu₂) and r sin(2πu₂), r = √(-2 ln u₁)."""
        a, b = draw.words((self.size + 1) // 2)
        radius = jnp.sqrt(-2.0 * jnp.log(counted.uniform(a)))
        angle = np.float32(2 * math.pi) * counted.uniform(b)
        pairs = jnp.stack([radius * jnp.cos(angle), radius * jnp.sin(angle)], axis=-1)
        noise = pairs.reshape(len(inputs), -1)[:, : self.size]
        mean, log_std = self._split(inputs)
        return mean + jnp.exp(log_std) * noise

    def mode(self, inputs: Array) -> Array:
        return inputs[:, : self.size]

    def log_prob(self, inputs: Array, actions: Array) -> Array:
        mean, log_std = self._split(inputs)
        distances = (actions - mean) * jnp.exp(-log_std)
        return jnp.sum(-0.5 * jnp.square(distances) - log_std - 0.5 * math.log(2 * math.pi), axis=-1)

    def entropy(self, inputs: Array) -> Array:
        return jnp.sum(self._split(inputs)[1] + 0.5 * (1 + math.log(2 * math.pi)), axis=-1)

    def _split(self, inputs: Array) -> tuple[Array, Array]:
        return inputs[:, : self.size], inputs[:, self.size :]


@dataclass(frozen=True)
class Bernoulli:
    """Independent yes or no for each component; inputs are logits. A masked component is always no."""

    size: int

    @property
    def num_inputs(self) -> int:
        return self.size

    def masked(self, inputs: Array, mask: Array) -> Array:
        return jnp.where(mask, inputs, MASKED)

    def sample(self, inputs: Array, draw: Draw) -> Array:
        u = counted.uniform(draw.words(self.size)[0])
        return (u < jax.nn.sigmoid(inputs)).astype(jnp.int32)

    def mode(self, inputs: Array) -> Array:
        return (inputs > 0).astype(jnp.int32)

    def log_prob(self, inputs: Array, actions: Array) -> Array:
        return jnp.sum(jax.nn.log_sigmoid(jnp.where(actions > 0, inputs, -inputs)), axis=-1)

    def entropy(self, inputs: Array) -> Array:
        p = jax.nn.sigmoid(inputs)
        return -jnp.sum(p * jax.nn.log_sigmoid(inputs) + (1 - p) * jax.nn.log_sigmoid(-inputs), axis=-1)


def distribution_of(parts: ActionParts) -> Distribution:
    """The family that fits an action space."""
    if parts.kind == "categorical":
        return Categorical(parts.nvec)
    return Gaussian(parts.size) if parts.kind == "gaussian" else Bernoulli(parts.size)
