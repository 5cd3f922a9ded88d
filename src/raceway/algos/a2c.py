"""Advantage actor-critic (Mnih et al. 2016): one gradient a round, by HTS-RL (Liu et al. 2020) delayed."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import Space

from raceway.algos.algorithm import Algorithm, Batch
from raceway.algos.configs import A2CConfig, NetworkConfig
from raceway.algos.counted import Array
from raceway.algos.networks import UserNetwork
from raceway.algos.optimizers import optimizer_named
from raceway.algos.returns import explained_variance, weighted_mean
from raceway.algos.samples import Samples, samples_of, standardised

METRICS = ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction", "ratio_first")


class A2CState(NamedTuple):
    """What A2C carries from round to round."""

    params: Array
    """[P] every parameter, in the network's order."""
    optimizer: Any
    """What the optimiser remembers."""
    learning_rate: Array
    """[] of the last update."""
    previous: Array
    """[P] the parameters before the last update."""
    updates: Array
    """[] int32: how many there were."""


class A2C(Algorithm):
    """A2C for given spaces and network."""

    config: A2CConfig

    def __init__(
        self,
        config: A2CConfig,
        observation_space: Space,
        action_space: Space,
        network: NetworkConfig | UserNetwork = NetworkConfig(),  # noqa: B008 (frozen)
    ) -> None:
        super().__init__(config, observation_space, action_space, network, optimizer_named(config.optimizer))

    def init(self, seed: int) -> A2CState:
        params, optimizer, rate = super().init(seed)
        return A2CState(params, optimizer, rate, params, jnp.zeros((), jnp.int32))

    def with_params(self, state: A2CState, params: np.ndarray) -> A2CState:
        state = super().with_params(state, params)
        return state._replace(previous=state.params)

    def learn(
        self, state: A2CState, batch: Batch, progress: Array, seed: Array, round_: Array, ent_coef: Array
    ) -> tuple[A2CState, dict[str, Array]]:
        """θⱼ₊₁ = θⱼ + η∇J(θ), with θ = θⱼ, or if delayed θ = those that collected the round: θⱼ or θⱼ₋₁."""
        samples = self.samples(batch)
        at = self._behaviour(state, batch) if self.config.correction == "delayed" else state.params
        tree = self.network.unravel(at)
        (_, terms), gradients = jax.value_and_grad(self.loss, has_aux=True)(tree, samples, ent_coef)
        gradient, norm = self.shortened(self.network.ravel(gradients))
        rate = self.scheduled_rate(state, progress)
        direction, optimizer = self.optimizer.update(gradient, state.optimizer)
        after = A2CState(state.params - rate * direction, optimizer, rate, state.params, state.updates + 1)
        metrics = dict(zip(METRICS, terms[:, None], strict=True)) | {
            "gradient_norm": norm[None],
            "learning_rate": rate[None],
            "applied": jnp.ones(1, bool),
            "explained_variance": explained_variance(samples.values, samples.returns, samples.weights),
        }
        return after, metrics

    def samples(self, batch: Batch) -> Samples:
        """The rows of a round, advantages and returns with them, from the values that it was collected with."""
        return samples_of(batch, self.network, self.config.gamma, self.config.gae_lambda)

    def round_loss(self, params: Any, batch: Batch, round_: Array | int, ent_coef: Array | float) -> Array:
        return self.loss(params, self.samples(batch), ent_coef)[0]

    def loss(self, params: Any, samples: Samples, ent_coef: Array | float) -> tuple[Array, Array]:
        """-E[w A ln π(a|s)] + c₁E[(V - R)²] - c₂E[H]; w = min(ρ̄, π / π_behaviour) or 1, a constant; and METRICS."""
        config = self.config
        inputs, values = self.network.apply(params, samples.obs)
        if samples.mask is not None:
            inputs = self.distribution.masked(inputs, samples.mask > 0)
        log_probs = self.distribution.log_prob(inputs, samples.actions)
        log_ratio = log_probs - samples.log_probs
        if samples.weights is not None:  # 0 * inf would not be 0
            log_probs, log_ratio = (jnp.where(samples.weights > 0, x, 0.0) for x in (log_probs, log_ratio))
        ratio = jnp.exp(log_ratio)
        corrects = config.correction == "ratio"
        weight = jax.lax.stop_gradient(jnp.minimum(ratio, config.rho_bar)) if corrects else 1.0
        advantages = samples.advantages
        if config.normalize_advantage:
            advantages = standardised(advantages, samples.weights)
        terms = (
            -weight * advantages * log_probs,
            jnp.square(values - samples.returns),
            self.distribution.entropy(inputs),
            (ratio - 1) - log_ratio,  # Schulman's estimate of the divergence: unbiased, never negative
            (ratio > config.rho_bar).astype(jnp.float32) if corrects else jnp.zeros_like(ratio),
            jnp.abs(ratio - 1),
        )
        means = weighted_mean(jnp.stack(terms, axis=-1), samples.weights)
        policy_loss, value_loss, entropy = means[0], means[1], means[2]
        return policy_loss + config.vf_coef * value_loss - ent_coef * entropy, means

    def _behaviour(self, state: A2CState, batch: Batch) -> Array:
        """The parameters that the round was collected under, at a lag of 0 or 1."""
        return jnp.where(batch.version < state.updates, state.previous, state.params)
