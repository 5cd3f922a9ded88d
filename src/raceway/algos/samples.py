"""A round as transitions: advantages and returns worked out, the order of time given up."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from raceway.algos.algorithm import Batch
from raceway.algos.counted import Array
from raceway.algos.networks import Network, Rows
from raceway.algos.returns import generalized_advantages, weighted_mean


class Samples(NamedTuple):
    """Transitions without their order, [B, ...]: what the loss needs of each."""

    obs: Rows
    actions: Array
    log_probs: Array
    """Of the actions, under the policy to clip around: the one that collected them, unless they are corrected."""
    advantages: Array
    returns: Array
    values: Array
    mask: Array | None
    weights: Array | None
    """1 where the row is a transition, 0 elsewhere; None: all are."""
    importance: Array | None = None
    """How much each row counts in the policy's loss; None: 1."""
    memory: Array | None = None
    """[N, H] what a recurrent network remembered of each environment when the rows' time began. With it the rows are in
    order: first the N environments' first step, then their second, ..."""
    begins: Array | None = None
    """1 where an episode begins within the rows, so that nothing is remembered; only with memory."""


def samples_of(batch: Batch, network: Network, gamma: float, gae_lambda: float) -> Samples:
    """The rows of a round, generalised advantages and returns with them."""
    batch = jax.tree.map(jnp.asarray, batch)
    advantages = generalized_advantages(
        batch.rewards, batch.values, batch.final_values, batch.terminated, batch.truncated, gamma, gae_lambda
    )
    values = batch.values[:-1].reshape(-1)
    advantages = advantages.reshape(-1)
    mask, valid = batch.action_mask, batch.valid
    return Samples(
        obs=network.prepare([_rows(leaf[:-1]) for leaf in batch.leaves], batch.scales),
        actions=batch.actions.astype(jnp.float32).reshape(values.size, -1),
        log_probs=batch.log_probs.reshape(-1),
        advantages=advantages,
        returns=advantages + values,
        values=values,
        mask=None if mask is None else _rows(mask.astype(jnp.float32)),
        weights=None if valid is None else valid.astype(jnp.float32).reshape(-1),
        memory=batch.memory,
        begins=None if batch.memory is None else episode_begins(batch)[:-1].astype(jnp.float32).reshape(-1),
    )


def episode_begins(batch: Batch) -> Array:
    """[T+1, N]: where an observation is an episode's first; of those at the round's start the memory is 0 already.

    A row that is no transition is the step that resets: it is the one after it that begins.
    """
    resets = batch.terminated | batch.truncated if batch.valid is None else ~batch.valid
    return jnp.concatenate([jnp.zeros_like(resets[:1]), resets])


def by_environment(samples: Samples) -> Samples:
    """Rows [T * N, ...] with memory as [N, T, ...], to pick environments from."""
    assert samples.memory is not None
    num_envs = len(samples.memory)
    rows = jax.tree.map(lambda x: x.reshape(-1, num_envs, *x.shape[1:]).swapaxes(0, 1), samples._replace(memory=None))
    return rows._replace(memory=samples.memory)


def in_order(picked: Samples) -> Samples:
    """The reverse for those that were picked: [B, T, ...] as [T * B, ...]."""
    rows = jax.tree.map(lambda x: _rows(x.swapaxes(0, 1)), picked._replace(memory=None))
    return rows._replace(memory=picked.memory)


def standardised(x: Array, weights: Array | None) -> Array:
    """To mean 0 and standard deviation 1, over the rows of weight 1."""
    mean = weighted_mean(x, weights)
    count = x.size if weights is None else jnp.sum(weights)
    variance = weighted_mean(jnp.square(x - mean), weights) * (count / jnp.maximum(count - 1.0, 1.0))
    return (x - mean) / (jnp.sqrt(variance) + 1e-8)


def _rows(x: Array) -> Array:
    """[T, N, ...] as [T * N, ...]"""
    return x.reshape(-1, *x.shape[2:])
