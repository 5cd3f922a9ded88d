"""Proximal Policy Optimization (Schulman et al., 2017): advantages, then epochs of minibatches on a clipped ratio."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from gymnasium import Space

from raceway.algos import counted
from raceway.algos.configs import NetworkConfig, PPOConfig
from raceway.algos.counted import Array
from raceway.algos.diagnosis import culprit_in_metrics, culprit_in_params, culprit_in_rollout, layers_not_finite
from raceway.algos.distributions import Draw, distribution_of
from raceway.algos.networks import Rows, Scales, UserNetwork, build_network
from raceway.algos.platform import computes_on_cpu
from raceway.algos.returns import explained_variance, generalized_advantages, weighted_mean
from raceway.algos.rollout import Rollout, Scaling
from raceway.algos.spaces import action_parts, flatten, observation_leaves
from raceway.algos.table import Table

# The bounds of the adaptive learning rate, and how far from zero a divergence is more than rounding.
LEAST_RATE, GREATEST_RATE = 1e-5, 1e-2
NO_DIVERGENCE = 1e-8


class PPOState(NamedTuple):
    """All that PPO carries from round to round."""

    params: Array
    """[P] every parameter, in the network's order."""
    adam: optax.ScaleByAdamState
    learning_rate: Array
    """[] of the last update."""


class Batch(NamedTuple):
    """A rollout as the compiled program takes it: its observation's leaves in the space's order."""

    leaves: tuple[Any, ...]
    scales: Scales | None
    actions: Any
    rewards: Any
    terminated: Any
    truncated: Any
    log_probs: Any
    values: Any
    final_values: Any
    action_mask: Any
    valid: Any


class Samples(NamedTuple):
    """Transitions without their order, [B, ...]: what the loss needs of each."""

    obs: Rows
    actions: Array
    log_probs: Array
    advantages: Array
    returns: Array
    values: Array
    mask: Array | None
    weights: Array | None
    """1 where the row is a transition, 0 elsewhere; None: all are."""


METRICS = ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction", "ratio_distance")


class PPO:
    """PPO for given spaces and network. Methods are pure functions of their arguments."""

    def __init__(
        self,
        config: PPOConfig,
        observation_space: Space,
        action_space: Space,
        network: NetworkConfig | UserNetwork = NetworkConfig(),  # noqa: B008 (frozen)
    ) -> None:
        self.config = config
        self.network = build_network(network, observation_space, action_space)
        self.observation_space = observation_space
        self.action = action_parts(action_space)
        self.distribution = distribution_of(self.action)
        self._adam = optax.scale_by_adam(eps=1e-5)
        self._update = jax.jit(self.learn, compiler_options=_compiler_options())
        self._act = jax.jit(self.draw)
        self._greedy = jax.jit(self.choose)
        self._value = jax.jit(self.estimate)

    # What others call: NumPy in, JAX out.

    def init(self, seed: int) -> PPOState:
        """The state before the first round."""
        params = jnp.asarray(self.network.init(seed))
        rate = jnp.asarray(self.config.learning_rate, jnp.float32)
        adam = self._adam.init(params)
        assert isinstance(adam, optax.ScaleByAdamState)
        return PPOState(params, adam, rate)

    def policy(self, state: PPOState) -> Array:
        """The parameters, as one flat vector."""
        return state.params

    def update(
        self, state: PPOState, rollout: Rollout, progress: float, seed: int, round_: int
    ) -> tuple[PPOState, dict[str, Array]]:
        """The state after a round; `progress` is the part of the run that is over, 0 to 1.

        The rollout's memory is read until the outputs are ready: it must not change before.
        """
        words = counted.split_seed(seed)
        return self._update(state, self.batch(rollout), np.float32(progress), words, np.uint32(round_))

    def act(
        self, params: Any, scaling: Scaling | None, obs: Any, mask: Any, seed: int, env_ids: Any, steps: Any
    ) -> tuple[Array, Array, Array]:
        """Actions drawn for observations [B, ...], their log-probabilities and the values, all [B, ...]."""
        draw = (counted.split_seed(seed), np.asarray(env_ids, np.uint32), np.asarray(steps, np.uint32))
        return self._act(params, self._scales(scaling), self._leaves(obs), mask, *draw)

    def greedy(self, params: Any, scaling: Scaling | None, obs: Any, mask: Any = None) -> Array:
        """The most likely actions."""
        return self._greedy(params, self._scales(scaling), self._leaves(obs), mask)

    def value(self, params: Any, scaling: Scaling | None, obs: Any) -> Array:
        """The values of observations [B, ...]."""
        return self._value(params, self._scales(scaling), self._leaves(obs))

    def native_layout(self) -> dict[str, Any] | None:
        """The network as core/policy reads it; None if that cannot run it."""
        return self.network.native_layout()

    def culprit(self, state: PPOState, rollout: Rollout, metrics: dict[str, Any]) -> str:
        """What is not finite: the first of inputs, losses and gradients. `state` is the one before the update."""
        names = [leaf.name for leaf in observation_leaves(self.observation_space)]
        in_data = culprit_in_rollout(names, self._leaves(rollout.obs), rollout)
        in_data = in_data or culprit_in_params(state.params, self.network.name_of)
        if in_data:
            return in_data
        found = culprit_in_metrics(metrics, ("policy_loss", "value_loss", "entropy", "gradient_norm"))
        if found is None:
            return "everything is finite"
        samples = jax.jit(self.samples)(self.batch(rollout))
        gradients = jax.jit(jax.grad(self.loss, has_aux=True))(self.network.unravel(state.params), samples)[0]
        layers = layers_not_finite(self.network.ravel(gradients), self.network.name_of)
        blame = f", and so is the gradient of {', '.join(layers)}" if layers else ""
        return f"{found[0]} is not finite from minibatch {found[1]} of the round on{blame}"

    def batch(self, rollout: Rollout) -> Batch:
        """A rollout as `learn` takes it."""
        return Batch(
            leaves=self._leaves(rollout.obs),
            scales=self._scales(rollout.scaling),
            actions=rollout.actions,
            rewards=rollout.rewards,
            terminated=rollout.terminated,
            truncated=rollout.truncated,
            log_probs=rollout.log_probs,
            values=rollout.values,
            final_values=rollout.final_values,
            action_mask=rollout.action_mask,
            valid=rollout.valid,
        )

    def _leaves(self, obs: Any) -> tuple[Any, ...]:
        return tuple(flatten(self.observation_space, obs))

    def _scales(self, scaling: Scaling | None) -> Scales | None:
        if scaling is None:
            return None
        return Scales(self._leaves(scaling.mean), self._leaves(scaling.rate))

    # Acting, in JAX.

    def draw(
        self, params: Array, scales: Scales | None, leaves: tuple[Any, ...], mask: Any, seed: Any, env: Any, step: Any
    ) -> tuple[Array, Array, Array]:
        """`act`, to be used within other compiled programs."""
        inputs, values = self._evaluate(params, scales, leaves, mask)
        actions = self.distribution.sample(inputs, Draw(seed, env, step))
        return self._as_stored(actions), self.distribution.log_prob(inputs, actions), values

    def choose(self, params: Array, scales: Scales | None, leaves: tuple[Any, ...], mask: Any) -> Array:
        """`greedy`, likewise."""
        return self._as_stored(self.distribution.mode(self._evaluate(params, scales, leaves, mask)[0]))

    def estimate(self, params: Array, scales: Scales | None, leaves: tuple[Any, ...]) -> Array:
        """`value`, likewise."""
        return self._evaluate(params, scales, leaves, None)[1]

    def _evaluate(
        self, params: Array, scales: Scales | None, leaves: tuple[Any, ...], mask: Any
    ) -> tuple[Array, Array]:
        rows = self.network.prepare([jnp.asarray(leaf) for leaf in leaves], scales)
        inputs, values = self.network.apply(self.network.unravel(params), rows)
        return (inputs if mask is None else self.distribution.masked(inputs, mask)), values

    def _as_stored(self, actions: Array) -> Array:
        return actions if self.action.has_axis else actions[:, 0]

    # Learning, in JAX.

    def learn(
        self, state: PPOState, batch: Batch, progress: Array, seed: Array, round_: Array
    ) -> tuple[PPOState, dict[str, Array]]:
        """`update`, likewise: n_epochs times over the round's rows, shuffled, in minibatches."""
        samples = self.samples(batch)
        table = Table(samples)
        orders = shuffles(seed, round_, self.config.n_epochs, len(samples.returns))
        rate = self._first_rate(state, progress)

        def step(carry: _Carry, index: Array) -> tuple[_Carry, tuple[Array, ...]]:
            return self._step(carry, table.pick(index))

        start = _Carry(state.params, state.adam, rate, jnp.zeros((), bool))
        end, (terms, norms, rates, applied) = jax.lax.scan(step, start, orders.reshape(-1, self.config.batch_size))
        metrics = dict(zip(METRICS, terms.T, strict=True)) | {
            "gradient_norm": norms,
            "learning_rate": rates,
            "applied": applied,
        }
        metrics["ratio_first"] = metrics.pop("ratio_distance")[0]
        metrics["explained_variance"] = explained_variance(samples.values, samples.returns, samples.weights)
        return PPOState(end.params, end.adam, end.rate), metrics

    def samples(self, batch: Batch) -> Samples:
        """The rows of a round, advantages and returns with them."""
        batch = jax.tree.map(jnp.asarray, batch)
        advantages = generalized_advantages(
            batch.rewards,
            batch.values,
            batch.final_values,
            batch.terminated,
            batch.truncated,
            self.config.gamma,
            self.config.gae_lambda,
        )
        values = batch.values[:-1].reshape(-1)
        advantages = advantages.reshape(-1)
        mask, valid = batch.action_mask, batch.valid
        return Samples(
            obs=self.network.prepare([_rows(leaf[:-1]) for leaf in batch.leaves], batch.scales),
            actions=batch.actions.astype(jnp.float32).reshape(values.size, -1),
            log_probs=batch.log_probs.reshape(-1),
            advantages=advantages,
            returns=advantages + values,
            values=values,
            mask=None if mask is None else _rows(mask.astype(jnp.float32)),
            weights=None if valid is None else valid.astype(jnp.float32).reshape(-1),
        )

    def _step(self, carry: _Carry, samples: Samples) -> tuple[_Carry, tuple[Array, ...]]:
        """One minibatch: the gradient, shortened if need be, into Adam."""
        tree = self.network.unravel(carry.params)
        (_, terms), gradients = jax.value_and_grad(self.loss, has_aux=True)(tree, samples)
        gradient = self.network.ravel(gradients)
        norm = jnp.sqrt(jnp.sum(jnp.square(gradient)))
        gradient *= jnp.minimum(1.0, self.config.max_grad_norm / (norm + 1e-6))
        divergence = terms[METRICS.index("approx_kl")]
        rate = self._next_rate(carry.rate, divergence)
        direction, adam = self._adam.update(gradient, carry.adam)
        assert isinstance(adam, optax.ScaleByAdamState)
        after = _Carry(carry.params - rate * direction, adam, rate, carry.stopped)
        if self.config.target_kl is not None:
            stopped = carry.stopped | (divergence > 1.5 * self.config.target_kl)
            after = jax.tree.map(functools.partial(jnp.where, stopped), carry, after)._replace(stopped=stopped)
        return after, (terms, norm, after.rate, ~after.stopped)

    def loss(self, params: Any, samples: Samples) -> tuple[Array, Array]:
        """-E[min(ρA, clip(ρ, 1 ± ε)A)] + c₁E[(V - R)²] - c₂E[H], with ρ = π(a|s) / π_behaviour(a|s); and METRICS."""
        config = self.config
        inputs, values = self.network.apply(params, samples.obs)
        if samples.mask is not None:
            inputs = self.distribution.masked(inputs, samples.mask > 0)
        log_ratio = self.distribution.log_prob(inputs, samples.actions) - samples.log_probs
        if samples.weights is not None:
            log_ratio = jnp.where(samples.weights > 0, log_ratio, 0.0)  # 0 * inf would not be 0
        ratio = jnp.exp(log_ratio)
        advantages = samples.advantages
        if config.normalize_advantage:
            advantages = _standardised(advantages, samples.weights)
        clipped = jnp.clip(ratio, 1 - config.clip_range, 1 + config.clip_range)
        terms = (
            -jnp.minimum(ratio * advantages, clipped * advantages),
            self._value_error(values, samples),
            self.distribution.entropy(inputs),
            (ratio - 1) - log_ratio,  # Schulman's estimate of the divergence: unbiased, never negative
            (jnp.abs(ratio - 1) > config.clip_range).astype(jnp.float32),
            jnp.abs(ratio - 1),
        )
        means = weighted_mean(jnp.stack(terms, axis=-1), samples.weights)
        policy_loss, value_loss, entropy = means[0], means[1], means[2]
        return policy_loss + config.vf_coef * value_loss - config.ent_coef * entropy, means

    def _value_error(self, values: Array, samples: Samples) -> Array:
        error = jnp.square(values - samples.returns)
        limit = self.config.clip_range_vf
        if limit is None:
            return error
        near = samples.values + jnp.clip(values - samples.values, -limit, limit)
        return jnp.maximum(error, jnp.square(near - samples.returns))

    def _first_rate(self, state: PPOState, progress: Array) -> Array:
        if self.config.lr_schedule == "linear":
            return jnp.float32(self.config.learning_rate) * (1.0 - progress)
        return state.learning_rate

    def _next_rate(self, rate: Array, divergence: Array) -> Array:
        """Adaptive: a third less when the policy moves twice as far as wanted, half more when less than half as far."""
        if self.config.lr_schedule != "adaptive_kl":
            return rate
        desired = self.config.desired_kl
        slow = (divergence < desired / 2) & (divergence > NO_DIVERGENCE)
        faster = jnp.where(slow, jnp.minimum(rate * 1.5, GREATEST_RATE), rate)
        return jnp.where(divergence > 2 * desired, jnp.maximum(rate / 1.5, LEAST_RATE), faster)


def _compiler_options() -> dict[str, Any]:
    """On CPUs a minibatch is a hundred short kernels: handed from thread to thread they take a fifth longer."""
    on_cpu = computes_on_cpu()
    return {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"} if on_cpu else {}


class _Carry(NamedTuple):
    params: Array
    adam: optax.ScaleByAdamState
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


def _standardised(x: Array, weights: Array | None) -> Array:
    mean = weighted_mean(x, weights)
    count = x.size if weights is None else jnp.sum(weights)
    variance = weighted_mean(jnp.square(x - mean), weights) * (count / jnp.maximum(count - 1.0, 1.0))
    return (x - mean) / (jnp.sqrt(variance) + 1e-8)


def _rows(x: Array) -> Array:
    """[T, N, ...] as [T * N, ...]"""
    return x.reshape(-1, *x.shape[2:])
