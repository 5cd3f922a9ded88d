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

    def round_loss(self, params: Any, batch: Batch, ent_coef: Array | float) -> Array:
        return self.loss(params, batch, ent_coef)[0]

    def loss(self, params: Any, batch: Batch, ent_coef: Array | float) -> tuple[Array, Array]:
        """-E[A ln π(a|s)] + c₁E[(V(s) - v)²] - c₂E[H], with V-trace's advantages A and targets v; and METRICS."""
        config = self.config
        batch = jax.tree.map(jnp.asarray, batch)
        shape = batch.rewards.shape
        inputs, values = self._evaluate_round(params, batch)
        log_probs = self.distribution.log_prob(
            inputs, batch.actions.astype(jnp.float32).reshape(batch.rewards.size, -1)
        )
        log_ratios = log_probs - batch.log_probs.reshape(-1)
        weights = None if batch.valid is None else batch.valid.astype(jnp.float32).reshape(-1)
        if weights is not None:  # 0 * inf would not be 0
            log_probs, log_ratios = (jnp.where(weights > 0, x, 0.0) for x in (log_probs, log_ratios))
        traced = vtrace(
            log_ratios.reshape(shape),
            batch.rewards,
            values,
            batch.final_values,
            batch.terminated,
            batch.truncated,
            config.gamma,
            config.rho_bar,
            config.c_bar,
        )
        targets, values = traced.targets.reshape(-1), values[:-1].reshape(-1)
        ratios = jnp.exp(log_ratios)
        terms = (
            -traced.advantages.reshape(-1) * log_probs,
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

    def _evaluate_round(self, params: Any, batch: Batch) -> tuple[Array, Array]:
        """Under the parameters that learn: what describes the actions [T N, K], and the values [T+1, N]."""
        steps, envs = batch.rewards.shape
        rows = [leaf.reshape(-1, *leaf.shape[2:]) for leaf in batch.leaves]
        inputs, values = self.network.apply(params, self.network.prepare(rows, batch.scales))
        inputs = inputs[: steps * envs]
        if batch.action_mask is not None:
            inputs = self.distribution.masked(inputs, batch.action_mask.reshape(steps * envs, -1))
        return inputs, values.reshape(steps + 1, envs)
