"""Evaluates a round again under newer parameters than those that collected it."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from raceway.algos.algorithm import Batch
from raceway.algos.counted import Array
from raceway.algos.distributions import Distribution
from raceway.algos.networks import ActorCritic, Network
from raceway.algos.samples import episode_begins


class Reevaluation(NamedTuple):
    """What one more forward pass over a round gives."""

    inputs: Array
    """[T * N, K] what describes the actions' distributions."""
    log_probs: Array
    """[T, N] of the actions that were taken; 0 where a row is no transition."""
    log_ratios: Array
    """[T, N] log_probs less those of the policy that collected; 0 where a row is no transition."""
    values: Array
    """[T+1, N]"""


def reevaluate(network: Network, distribution: Distribution, params: Any, batch: Batch) -> Reevaluation:
    """Evaluates a round's observations, the one after its end included, and its actions under `params`."""
    steps, envs = batch.rewards.shape
    rows = network.prepare([leaf.reshape(-1, *leaf.shape[2:]) for leaf in batch.leaves], batch.scales)
    if isinstance(network, ActorCritic) and batch.memory is not None:
        inputs, values = network.unroll(params, rows, batch.memory, episode_begins(batch))
    else:
        inputs, values = network.apply(params, rows)
    inputs = inputs[: steps * envs]
    if batch.action_mask is not None:
        inputs = distribution.masked(inputs, batch.action_mask.reshape(steps * envs, -1) > 0)
    actions = batch.actions.astype(jnp.float32).reshape(steps * envs, -1)
    log_probs = distribution.log_prob(inputs, actions).reshape(steps, envs)
    log_ratios = log_probs - batch.log_probs
    if batch.valid is not None:  # 0 * inf would not be 0
        log_probs, log_ratios = (jnp.where(batch.valid, x, 0.0) for x in (log_probs, log_ratios))
    return Reevaluation(inputs, log_probs, log_ratios, values.reshape(steps + 1, envs))
