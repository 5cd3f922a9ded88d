"""IMPALA (Espeholt et al. 2018): an actor-critic that learns from rounds of older policies, corrected by V-trace."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from gymnasium import Space

from raceway.algos.algorithm import Algorithm, Batch, State
from raceway.algos.configs import ImpalaConfig, NetworkConfig
from raceway.algos.counted import Array
from raceway.algos.networks import UserNetwork
from raceway.algos.optimizers import optimizer_named
from raceway.algos.reevaluation import reevaluate
from raceway.algos.returns import explained_variance, weighted_mean
from raceway.algos.vtrace import vtrace

METRICS = ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction", "ratio_first", "explained_variance")


class Impala(Algorithm):
    """IMPALA's learner for given spaces and network."""

    config: ImpalaConfig

    def __init__(
        self,
        config: ImpalaConfig,
        observation_space: Space,
        action_space: Space,
        network: NetworkConfig | UserNetwork = NetworkConfig(),  # noqa: B008 (frozen)
    ) -> None:
        super().__init__(config, observation_space, action_space, network, optimizer_named(config.optimizer))

    def learn(
        self, state: State, batch: Batch, progress: Array, seed: Array, round_: Array, ent_coef: Array
    ) -> tuple[State, dict[str, Array]]:
        """One gradient, of the whole round."""
        tree = self.network.unravel(state.params)
        (_, terms), gradients = jax.value_and_grad(self.loss, has_aux=True)(tree, batch, ent_coef)
        gradient, norm = self.shortened(self.network.ravel(gradients))
        rate = self.scheduled_rate(state, progress)
        direction, optimizer = self.optimizer.update(gradient, state.optimizer)
        metrics = dict(zip(METRICS, terms[:, None], strict=True)) | {
            "gradient_norm": norm[None],
            "learning_rate": rate[None],
            "applied": jnp.ones(1, bool),
        }
        return State(state.params - rate * direction, optimizer, rate), metrics

    def round_loss(self, params: Any, batch: Batch, round_: Array | int, ent_coef: Array | float) -> Array:
        return self.loss(params, batch, ent_coef)[0]

    def loss(self, params: Any, batch: Batch, ent_coef: Array | float) -> tuple[Array, Array]:
        """-E[A ln π(a|s)] + c₁E[(V(s) - v)²] - c₂E[H], with V-trace's advantages A and targets v; and METRICS."""
        config = self.config
        batch = jax.tree.map(jnp.asarray, batch)
        inputs, log_probs, log_ratios, values = reevaluate(self.network, self.distribution, params, batch)
        weights = None if batch.valid is None else batch.valid.astype(jnp.float32).reshape(-1)
        ratios = jnp.exp(log_ratios)
        rhos = jax.lax.stop_gradient(jnp.minimum(ratios, config.rho_bar))
        traced = vtrace(
            rhos,
            jnp.minimum(ratios, config.c_bar),
            batch.rewards,
            values,
            batch.final_values,
            batch.terminated,
            batch.truncated,
            config.gamma,
        )
        targets, values = traced.targets.reshape(-1), values[:-1].reshape(-1)
        advantages = (rhos * traced.advantages).reshape(-1)
        log_probs, log_ratios, ratios = (x.reshape(-1) for x in (log_probs, log_ratios, ratios))
        terms = (
            -advantages * log_probs,
            jnp.square(values - targets),
            self.distribution.entropy(inputs),
            (ratios - 1) - log_ratios,  # Schulman's estimate of the divergence: unbiased, never negative
            (ratios > config.rho_bar).astype(jnp.float32),
            jnp.abs(ratios - 1),
        )
        means = weighted_mean(jnp.stack(terms, axis=-1), weights)
        policy_loss, value_loss, entropy = means[0], means[1], means[2]
        explained = explained_variance(values, targets, weights)
        loss = policy_loss + config.vf_coef * value_loss - ent_coef * entropy
        return loss, jnp.append(means, explained)
