"""Proximal Policy Optimization (Schulman et al., 2017): advantages, then epochs of minibatches on a clipped ratio."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import Space

from raceway.algos import counted
from raceway.algos.algorithm import Algorithm, Batch, State
from raceway.algos.configs import NetworkConfig, PPOConfig
from raceway.algos.counted import Array
from raceway.algos.networks import ActorCritic, UserNetwork
from raceway.algos.optimizers import adam
from raceway.algos.reevaluation import reevaluate
from raceway.algos.returns import explained_variance, weighted_mean
from raceway.algos.samples import Samples, by_environment, in_order, samples_of, standardised
from raceway.algos.table import Table
from raceway.algos.vtrace import vtrace

# The bounds of the adaptive learning rate, and how far from zero a divergence is more than rounding.
LEAST_RATE, GREATEST_RATE = 1e-5, 1e-2
NO_DIVERGENCE = 1e-8

METRICS = ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction", "ratio_distance")


class PPO(Algorithm):
    """PPO for given spaces and network."""

    config: PPOConfig

    def __init__(
        self,
        config: PPOConfig,
        observation_space: Space,
        action_space: Space,
        network: NetworkConfig | UserNetwork = NetworkConfig(),  # noqa: B008 (frozen)
    ) -> None:
        super().__init__(config, observation_space, action_space, network, adam())

    def learn(
        self, state: State, batch: Batch, progress: Array, seed: Array, round_: Array, ent_coef: Array
    ) -> tuple[State, dict[str, Array]]:
        """n_epochs times over the round's rows, shuffled, in minibatches."""
        samples, shift = self.corrected(self.network.unravel(state.params), batch, round_)
        pick, indices = self._minibatches(samples, seed, round_)
        rate = self.scheduled_rate(state, progress)

        def step(carry: _Carry, index: Array) -> tuple[_Carry, tuple[Array, ...]]:
            return self._step(carry, pick(index), ent_coef)

        start = _Carry(state.params, state.optimizer, rate, jnp.zeros((), bool))
        end, (terms, norms, rates, applied) = jax.lax.scan(step, start, indices)
        metrics = dict(zip(METRICS, terms.T, strict=True)) | {
            "gradient_norm": norms,
            "learning_rate": rates,
            "applied": applied,
        }
        metrics["ratio_first"] = metrics.pop("ratio_distance")[0] + shift
        metrics["explained_variance"] = explained_variance(samples.values, samples.returns, samples.weights)
        return State(end.params, end.optimizer, end.rate), metrics

    def samples(self, batch: Batch) -> Samples:
        """The rows of a round, advantages and returns with them, from the values that it was collected with."""
        return samples_of(batch, self.network, self.config.gamma, self.config.gae_lambda)

    def corrected(self, params: Any, batch: Batch, round_: Array | int) -> tuple[Samples, Array]:
        """Builds the samples of a round, corrected if `params` are newer than the policy that collected it.

        Also returns how far that policy is from theirs: the mean of |π / π_behaviour - 1|.
        """
        batch = jax.tree.map(jnp.asarray, batch)
        samples = self.samples(batch)
        if self.config.correction == "none":
            return samples, jnp.zeros(())
        ones = jnp.ones_like(samples.log_probs)
        as_collected = _Targets(samples.log_probs, ones, samples.advantages, samples.returns, samples.values)
        # Every round is one update. At lag 0 there is nothing to correct, and nothing is computed.
        is_old = jnp.asarray(batch.version, jnp.int32) < jnp.asarray(round_, jnp.int32)
        targets, shift = jax.lax.cond(
            is_old, lambda: self._corrected(params, batch, as_collected), lambda: (as_collected, jnp.zeros(()))
        )
        return samples._replace(**targets._asdict()), shift

    def _corrected(self, params: Any, batch: Batch, targets: _Targets) -> tuple[_Targets, Array]:
        config = self.config
        seen = jax.lax.stop_gradient(reevaluate(self.network, self.distribution, params, batch))
        ratios = jnp.exp(seen.log_ratios)
        valid = None if batch.valid is None else batch.valid.astype(jnp.float32).reshape(-1)
        shift = weighted_mean(jnp.abs(ratios - 1).reshape(-1), valid)
        importance = jnp.minimum(ratios, config.rho_bar).reshape(-1)
        targets = targets._replace(log_probs=seen.log_probs.reshape(-1), importance=importance)
        if config.correction == "decoupled":
            return targets, shift
        # V-trace's truncation, rescaled: steps that are as likely as before count fully.
        cs = jnp.minimum(ratios, config.c_bar) / config.c_bar if config.c_bar else jnp.ones_like(ratios)
        ends = batch.final_values, batch.terminated, batch.truncated
        traced = vtrace(cs, cs, batch.rewards, seen.values, *ends, config.gamma, config.gae_lambda)
        advantages, returns, values = (x.reshape(-1) for x in (traced.advantages, traced.targets, seen.values[:-1]))
        return targets._replace(advantages=advantages, returns=returns, values=values), shift

    def round_loss(self, params: Any, batch: Batch, round_: Array | int, ent_coef: Array | float) -> Array:
        return self.loss(params, self.corrected(params, batch, round_)[0], ent_coef)[0]

    def _minibatches(self, samples: Samples, seed: Array, round_: Array) -> tuple[Callable[[Array], Samples], Array]:
        """How to pick a minibatch, and the indices to pick each by, [M, B]. With memory they are of environments."""
        epochs, size = self.config.n_epochs, self.config.batch_size
        if samples.memory is None:
            return Table(samples).pick, shuffles(seed, round_, epochs, len(samples.returns)).reshape(-1, size)
        table = Table(by_environment(samples))
        orders = shuffles(seed, round_, epochs, len(samples.memory))
        return lambda index: in_order(table.pick(index)), orders.reshape(-1, size // self.config.n_steps)

    def _step(self, carry: _Carry, samples: Samples, ent_coef: Array) -> tuple[_Carry, tuple[Array, ...]]:
        """One minibatch: the gradient, shortened if need be, into Adam."""
        tree = self.network.unravel(carry.params)
        (_, terms), gradients = jax.value_and_grad(self.loss, has_aux=True)(tree, samples, ent_coef)
        gradient, norm = self.shortened(self.network.ravel(gradients))
        divergence = terms[METRICS.index("approx_kl")]
        rate = self._next_rate(carry.rate, divergence)
        direction, optimizer = self.optimizer.update(gradient, carry.optimizer)
        after = _Carry(carry.params - rate * direction, optimizer, rate, carry.stopped)
        if self.config.target_kl is not None:
            stopped = carry.stopped | (divergence > 1.5 * self.config.target_kl)
            after = jax.tree.map(functools.partial(jnp.where, stopped), carry, after)._replace(stopped=stopped)
        return after, (terms, norm, after.rate, ~after.stopped)

    def loss(self, params: Any, samples: Samples, ent_coef: Array | float) -> tuple[Array, Array]:
        """-E[min(ρA, clip(ρ, 1 ± ε)A)] + c₁E[(V - R)²] - c₂E[H], with ρ = π(a|s) / π_behaviour(a|s); and METRICS.

        Corrected, ρ = π / π_proximal, and every row of the first term counts min(ρ̄, π_proximal / π_behaviour) times:
        `importance`.
        """
        config = self.config
        inputs, values = self._apply(params, samples)
        log_ratio = self.distribution.log_prob(inputs, samples.actions) - samples.log_probs
        if samples.weights is not None:
            log_ratio = jnp.where(samples.weights > 0, log_ratio, 0.0)  # 0 * inf would not be 0
        ratio = jnp.exp(log_ratio)
        advantages = samples.advantages
        if config.normalize_advantage:
            advantages = standardised(advantages, samples.weights)
        clipped = jnp.clip(ratio, 1 - config.clip_range, 1 + config.clip_range)
        gain = jnp.minimum(ratio * advantages, clipped * advantages)
        distance = jnp.abs(ratio - 1)
        terms = (
            -gain if samples.importance is None else -gain * samples.importance,
            self._value_error(values, samples),
            self.distribution.entropy(inputs),
            (ratio - 1) - log_ratio,  # Schulman's estimate of the divergence: unbiased, never negative
            (distance > config.clip_range).astype(jnp.float32),
            distance,
        )
        means = weighted_mean(jnp.stack(terms, axis=-1), samples.weights)
        policy_loss, value_loss, entropy = means[0], means[1], means[2]
        return policy_loss + config.vf_coef * value_loss - ent_coef * entropy, means

    def _apply(self, params: Any, samples: Samples) -> tuple[Array, Array]:
        """What describes the actions' distributions, and the values."""
        if isinstance(self.network, ActorCritic) and samples.memory is not None and samples.begins is not None:
            begins = samples.begins.reshape(-1, len(samples.memory)) > 0
            inputs, values = self.network.unroll(params, samples.obs, samples.memory, begins)
        else:
            inputs, values = self.network.apply(params, samples.obs)
        return (inputs if samples.mask is None else self.distribution.masked(inputs, samples.mask > 0)), values

    def _value_error(self, values: Array, samples: Samples) -> Array:
        error = jnp.square(values - samples.returns)
        limit = self.config.clip_range_vf
        if limit is None:
            return error
        near = samples.values + jnp.clip(values - samples.values, -limit, limit)
        return jnp.maximum(error, jnp.square(near - samples.returns))

    def _next_rate(self, rate: Array, divergence: Array) -> Array:
        """Adaptive: a third less when the policy moves twice as far as wanted, half more when less than half as far."""
        if self.config.lr_schedule != "adaptive_kl":
            return rate
        desired = self.config.desired_kl
        slow = (divergence < desired / 2) & (divergence > NO_DIVERGENCE)
        faster = jnp.where(slow, jnp.minimum(rate * 1.5, GREATEST_RATE), rate)
        return jnp.where(divergence > 2 * desired, jnp.maximum(rate / 1.5, LEAST_RATE), faster)


class _Targets(NamedTuple):
    """What a correction changes of the samples."""

    log_probs: Array
    importance: Array
    advantages: Array
    returns: Array
    values: Array


class _Carry(NamedTuple):
    params: Array
    optimizer: Any
    rate: Array
    stopped: Array


def shuffles(seed: Array, round_: Array, epochs: int, count: int) -> Array:
    """An order of `count` rows for each epoch, [epochs, count]: the rows sorted by a random word each."""
    epoch, row = jnp.arange(epochs, dtype=jnp.uint32)[:, None], jnp.arange(count, dtype=jnp.uint32)
    keys, _ = counted.words(seed, counted.Purpose.MINIBATCHES, epoch, row, round_)
    if count > 2**16:
        return jnp.argsort(keys, axis=-1).astype(jnp.int32)
    # With the row's number as the low bits of its word there is one array to sort, four times as fast as two.
    low = np.uint32(2 ** (count - 1).bit_length() - 1)
    return (jnp.sort((keys & ~low) | row, axis=-1) & low).astype(jnp.int32)
