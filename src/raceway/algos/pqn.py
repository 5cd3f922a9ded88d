"""PQN (Gallici et al. 2024): Q-learning without replay and target network; layer normalisation keeps it stable."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import Space

from raceway.algos.algorithm import Algorithm, Batch, State
from raceway.algos.configs import NetworkConfig, PQNConfig
from raceway.algos.counted import Array
from raceway.algos.distributions import MASKED
from raceway.algos.networks import Scales, UserNetwork
from raceway.algos.optimizers import adam
from raceway.algos.ppo import shuffles
from raceway.algos.q_network import QNetwork
from raceway.algos.returns import explained_variance, weighted_mean
from raceway.algos.samples import Samples, samples_of
from raceway.algos.spaces import observation_leaves
from raceway.algos.table import Table


class PQN(Algorithm):
    """PQN for given spaces and network."""

    config: PQNConfig
    network: QNetwork

    def __init__(
        self,
        config: PQNConfig,
        observation_space: Space,
        action_space: Space,
        network: NetworkConfig | UserNetwork = NetworkConfig(),  # noqa: B008 (frozen)
    ) -> None:
        super().__init__(config, observation_space, action_space, network, adam())
        if isinstance(network, UserNetwork):
            raise ValueError("pqn needs a network of its own kind: none can be given. Use network settings, or ppo.")
        if len(self.action.nvec) != 1:
            raise ValueError(
                f"pqn learns a value for each action, so it needs a Discrete action space; this one is {action_space}. "
                "Use ppo."
            )
        self.network = QNetwork(network, observation_leaves(observation_space), self.action)

    def with_params(self, state: State, params: np.ndarray) -> State:
        """Exploration begins anew: ε is part of the schedule, not of what was learnt."""
        return state._replace(params=jnp.array(params).at[-1].set(state.params[-1]))

    def learn(
        self, state: State, batch: Batch, progress: Array, seed: Array, round_: Array, ent_coef: Array
    ) -> tuple[State, dict[str, Array]]:
        """n_epochs times over the round's rows, shuffled, in minibatches. Then ε is what it is to be by now."""
        samples = self.samples(batch)
        table = Table(samples)
        orders = shuffles(seed, round_, self.config.n_epochs, len(samples.returns))
        rate = self.scheduled_rate(state, progress)

        def step(carry: _Carry, index: Array) -> tuple[_Carry, tuple[Array, Array]]:
            tree = self.network.unravel(carry.params)
            loss, gradients = jax.value_and_grad(self.loss)(tree, table.pick(index))
            gradient, norm = self.shortened(self.network.ravel(gradients))
            direction, optimizer = self.optimizer.update(gradient, carry.optimizer)
            return _Carry(carry.params - rate * direction, optimizer), (loss, norm)

        start = _Carry(state.params, state.optimizer)
        end, (losses, norms) = jax.lax.scan(step, start, orders.reshape(-1, self.config.batch_size))
        epsilon = self.epsilon(progress)
        metrics = {
            "value_loss": losses,
            "gradient_norm": norms,
            "learning_rate": rate,
            "applied": jnp.ones(len(losses), bool),
            "epsilon": epsilon,
            "explained_variance": explained_variance(samples.values, samples.returns, samples.weights),
        }
        return State(end.params.at[-1].set(epsilon), end.optimizer, rate), metrics

    def samples(self, batch: Batch) -> Samples:
        """The rows of a round. Their returns are Q(λ)'s: Rₜ = rₜ + γ(λRₜ₊₁ + (1 - λ)maxₐ Q(sₜ₊₁, a)), as V is max Q."""
        return samples_of(batch, self.network, self.config.gamma, self.config.q_lambda)

    def loss(self, params: Any, samples: Samples) -> Array:
        """E[(Q(s, a) - R)²]"""
        found = self.network.values_of(params, samples.obs)
        # A product with a one-hot row, as the gradient of an index is a slow scatter.
        one_hot = samples.actions == jnp.arange(found.shape[-1], dtype=samples.actions.dtype)
        chosen = jnp.sum(jnp.where(one_hot, found, 0.0), axis=-1)
        return weighted_mean(jnp.square(chosen - samples.returns), samples.weights)

    def round_loss(self, params: Any, batch: Batch, round_: Array | int, ent_coef: Array | float) -> Array:
        return self.loss(params, self.samples(batch))

    def epsilon(self, progress: Array) -> Array:
        """Down in a straight line over the first part of the run, then constant."""
        config = self.config
        share = jnp.minimum(progress / config.exploration_fraction, 1.0)
        return config.exploration_initial_eps + share * (config.exploration_final_eps - config.exploration_initial_eps)

    def choose(
        self, params: Array, scales: Scales | None, leaves: tuple[Any, ...], mask: Any, memory: Any = None
    ) -> tuple[Array, Array | None]:
        """`greedy`: by the values themselves, for with ε = 1 all actions are equally likely."""
        return self._as_stored(self.distribution.mode(self._values(params, scales, leaves, mask))), None

    def _evaluate(
        self, params: Array, scales: Scales | None, leaves: tuple[Any, ...], mask: Any, memory: Any
    ) -> tuple[Array, Array, Array | None]:
        """ε-greedy as the logits of a categorical distribution; and max Q."""
        found = self._values(params, scales, leaves, mask)
        return _epsilon_greedy(found, params[-1]), jnp.max(found, axis=-1), None

    def _values(self, params: Array, scales: Scales | None, leaves: tuple[Any, ...], mask: Any) -> Array:
        """Q(s, ·), [B, K], MASKED where an action is not allowed."""
        rows = self.network.prepare([jnp.asarray(leaf) for leaf in leaves], scales)
        found = self.network.values_of(self.network.unravel(params), rows)
        return found if mask is None else self.distribution.masked(found, mask)


class _Carry(NamedTuple):
    params: Array
    optimizer: Any


def _epsilon_greedy(values: Array, epsilon: Array) -> Array:
    """Logits [B, K]: ε spread over all actions that are allowed, the rest for the one of greatest value."""
    allowed = values > MASKED
    even = epsilon / jnp.sum(allowed, axis=-1, keepdims=True)
    best = jnp.argmax(values, axis=-1, keepdims=True) == jnp.arange(values.shape[-1])
    shares = jnp.where(best, 1.0 - epsilon, 0.0) + jnp.where(allowed, even, 0.0)
    return jnp.where(shares > 0, jnp.log(jnp.where(shares > 0, shares, 1.0)), MASKED)
