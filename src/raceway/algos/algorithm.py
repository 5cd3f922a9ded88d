"""What all on-policy algorithms share: a network that acts, a state that learns, and the way from one to the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from gymnasium import Space

from raceway.algos import counted
from raceway.algos.configs import AlgorithmConfig, NetworkConfig
from raceway.algos.counted import Array
from raceway.algos.diagnosis import (
    Culprit,
    culprit_in_metrics,
    culprit_in_params,
    culprit_in_policy,
    fault_of_environment,
    fault_of_last_observation,
    layers_not_finite,
)
from raceway.algos.distributions import Draw, distribution_of
from raceway.algos.networks import ActorCritic, Scales, UserNetwork, build_network
from raceway.algos.platform import computes_on_cpu
from raceway.algos.rollout import Rollout, Scaling
from raceway.algos.spaces import action_parts, flatten, observation_leaves

FINITE_METRICS = ("policy_loss", "value_loss", "entropy", "gradient_norm")
"""Algorithms give these, as far as they have them; one that is not finite ends the run."""


class State(NamedTuple):
    """What an algorithm carries from round to round. One that needs more has a tuple of its own with these in it."""

    params: Array
    """[P] every parameter, in the network's order."""
    optimizer: Any
    """What the optimiser remembers."""
    learning_rate: Array
    """[] of the last update."""


class Batch(NamedTuple):
    """A rollout as the compiled program takes it: its observation's leaves in the space's order."""

    version: Any
    """[] int32: of the weights that it was collected under."""
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
    memory: Any


class Algorithm(ABC):
    """An algorithm for given spaces and network. Methods are pure functions of their arguments.

    One of its own has `learn` and `round_loss`. `learn` gives metrics of one number for each minibatch, or of one for
    the round: FINITE_METRICS, `applied` ([M] bool: which minibatches were learnt from), and what else it likes.
    """

    config: AlgorithmConfig

    def __init__(
        self,
        config: AlgorithmConfig,
        observation_space: Space,
        action_space: Space,
        network: NetworkConfig | UserNetwork,
        optimizer: optax.GradientTransformation,
    ) -> None:
        self.config = config
        self.network = build_network(network, observation_space, action_space)
        self.observation_space = observation_space
        self.action = action_parts(action_space)
        self.distribution = distribution_of(self.action)
        self.optimizer = optimizer
        self._update = jax.jit(self.learn, compiler_options=_compiler_options())
        self._act = jax.jit(self.draw)
        self._greedy = jax.jit(self.choose)
        self._value = jax.jit(self.estimate)

    # What each algorithm has of its own, in JAX.

    @abstractmethod
    def learn(
        self, state: Any, batch: Batch, progress: Array, seed: Array, round_: Array, ent_coef: Array
    ) -> tuple[Any, dict[str, Array]]:
        """`update`, to be used within other compiled programs. `ent_coef` is ignored where there is no such setting."""

    @abstractmethod
    def round_loss(self, params: Any, batch: Batch, round_: Array | int, ent_coef: Array | float) -> Array:
        """The loss of a whole round at once, to find out where a number that is not finite comes from."""

    # What others call: NumPy in, JAX out.

    def init(self, seed: int) -> Any:
        """The state before the first round."""
        params = jnp.asarray(self.network.init(seed))
        rate = jnp.asarray(self.config.learning_rate, jnp.float32)
        return State(params, self.optimizer.init(params), rate)

    def policy(self, state: Any) -> Array:
        """The parameters, as one flat vector."""
        return state.params

    def update(
        self, state: Any, rollout: Rollout, progress: float, seed: int, round_: int, ent_coef: float | None = None
    ) -> tuple[Any, dict[str, Array]]:
        """The state after a round; `progress` is the part of the run that is over, 0 to 1.

        ent_coef: the weight of the entropy bonus, an input of the compiled program; None: as in the settings.

        The rollout's memory is read until the outputs are ready: it must not change before.
        """
        words, bonus = counted.split_seed(seed), np.float32(self.ent_coef if ent_coef is None else ent_coef)
        return self._update(state, self.batch(rollout), np.float32(progress), words, np.uint32(round_), bonus)

    @property
    def ent_coef(self) -> float:
        """The weight of the entropy bonus in the settings; 0 for an algorithm without one."""
        return float(getattr(self.config, "ent_coef", 0.0))

    def with_params(self, state: Any, params: np.ndarray) -> Any:
        """The state before the first round with other parameters than those of `init`."""
        return state._replace(params=jnp.array(params))

    def with_learning_rate(self, state: Any, rate: float) -> Any:
        """The state with another learning rate. lr_schedule="linear" sets its own with every update."""
        return state._replace(learning_rate=jnp.asarray(rate, jnp.float32))

    def save(self, state: Any) -> dict[str, np.ndarray]:
        """The state as arrays by name."""
        return {name: np.array(leaf) for name, leaf in _named(state).items()}

    def load(self, arrays: Mapping[str, np.ndarray]) -> Any:
        """The state of which `save` gave these. Raises ValueError, with the array's name, if they do not fit."""
        example = self.init(0)
        wanted = _named(example)
        for name in [*wanted, *arrays]:
            if name not in arrays or name not in wanted:
                raise ValueError(f"{name} is {'missing' if name in wanted else 'one too many'}")
            shape, dtype = wanted[name].shape, wanted[name].dtype
            found = np.asarray(arrays[name])
            if (found.shape, found.dtype) != (shape, dtype):
                raise ValueError(f"{name} is {found.dtype}{list(found.shape)}, not {dtype}{list(shape)}")
        leaves = [jnp.array(arrays[name]) for name in wanted]  # copies: nobody else is to change them
        return jax.tree.unflatten(jax.tree.structure(example), leaves)

    def act(
        self,
        params: Any,
        scaling: Scaling | None,
        obs: Any,
        mask: Any,
        seed: int,
        env_ids: Any,
        steps: Any,
        memory: Any = None,
    ) -> tuple[Array, Array, Array, Array | None]:
        """Actions drawn for observations [B, ...], their log-probabilities, the values, and the memory after them.

        All [B, ...]. A recurrent network gets its `memory` [B, H] and gives the next; the others have None.
        """
        draw = (counted.split_seed(seed), np.asarray(env_ids, np.uint32), np.asarray(steps, np.uint32))
        return self._act(params, self._scales(scaling), self._leaves(obs), mask, *draw, memory)

    def greedy(
        self, params: Any, scaling: Scaling | None, obs: Any, mask: Any = None, memory: Any = None
    ) -> tuple[Array, Array | None]:
        """The most likely actions, and the memory after them."""
        return self._greedy(params, self._scales(scaling), self._leaves(obs), mask, memory)

    def value(self, params: Any, scaling: Scaling | None, obs: Any, memory: Any = None) -> Array:
        """The values of observations [B, ...], with what is remembered of the steps before."""
        return self._value(params, self._scales(scaling), self._leaves(obs), memory)

    def native_layout(self) -> dict[str, Any] | None:
        """The network as core/policy reads it; None if that cannot run it."""
        return self.network.native_layout()

    def culprit(
        self, state: Any, rollout: Rollout, metrics: dict[str, Any], round_: int, ent_coef: float | None = None
    ) -> Culprit:
        """What is not finite: the first of what the environments gave, the policy's outputs, losses and gradients.

        `state` is the one before the update, `round_` and `ent_coef` what that update was called with.
        """
        names = [leaf.name for leaf in observation_leaves(self.observation_space)]
        if fault := fault_of_environment(names, self._leaves(rollout.obs), rollout):
            return Culprit(fault, is_environment=True)
        if found := culprit_in_params(state.params, self.network.name_of) or culprit_in_policy(rollout):
            return Culprit(found, is_environment=False)
        if fault := fault_of_last_observation(rollout):
            return Culprit(fault, is_environment=True)
        return Culprit(self._culprit_in_learning(state, rollout, metrics, round_, ent_coef), is_environment=False)

    def _culprit_in_learning(
        self, state: Any, rollout: Rollout, metrics: dict[str, Any], round_: int, ent_coef: float | None
    ) -> str:
        found = culprit_in_metrics(metrics, [name for name in FINITE_METRICS if name in metrics])
        if found is None:
            return "everything is finite"
        tree = self.network.unravel(state.params)
        entropy = np.float32(self.ent_coef if ent_coef is None else ent_coef)
        gradients = jax.jit(jax.grad(self.round_loss))(tree, self.batch(rollout), np.uint32(round_), entropy)
        layers = layers_not_finite(self.network.ravel(gradients), self.network.name_of)
        blame = f", and so is the gradient of {', '.join(layers)}" if layers else ""
        return f"{found[0]} is not finite from minibatch {found[1]} of the round on{blame}"

    def batch(self, rollout: Rollout) -> Batch:
        """A rollout as `learn` takes it."""
        return Batch(
            version=np.int32(rollout.version),
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
            memory=rollout.memory,
        )

    def _leaves(self, obs: Any) -> tuple[Any, ...]:
        return tuple(flatten(self.observation_space, obs))

    def _scales(self, scaling: Scaling | None) -> Scales | None:
        if scaling is None:
            return None
        return Scales(self._leaves(scaling.mean), self._leaves(scaling.rate))

    # Acting, in JAX.

    def draw(
        self,
        params: Array,
        scales: Scales | None,
        leaves: tuple[Any, ...],
        mask: Any,
        seed: Any,
        env: Any,
        step: Any,
        memory: Any = None,
    ) -> tuple[Array, Array, Array, Array | None]:
        """`act`, to be used within other compiled programs."""
        inputs, values, after = self._evaluate(params, scales, leaves, mask, memory)
        actions = self.distribution.sample(inputs, Draw(seed, env, step))
        return self._as_stored(actions), self.distribution.log_prob(inputs, actions), values, after

    def choose(
        self, params: Array, scales: Scales | None, leaves: tuple[Any, ...], mask: Any, memory: Any = None
    ) -> tuple[Array, Array | None]:
        """`greedy`, likewise."""
        inputs, _, after = self._evaluate(params, scales, leaves, mask, memory)
        return self._as_stored(self.distribution.mode(inputs)), after

    def estimate(self, params: Array, scales: Scales | None, leaves: tuple[Any, ...], memory: Any = None) -> Array:
        """`value`, likewise."""
        return self._evaluate(params, scales, leaves, None, memory)[1]

    def _evaluate(
        self, params: Array, scales: Scales | None, leaves: tuple[Any, ...], mask: Any, memory: Any
    ) -> tuple[Array, Array, Array | None]:
        rows = self.network.prepare([jnp.asarray(leaf) for leaf in leaves], scales)
        tree, after = self.network.unravel(params), None
        if isinstance(self.network, ActorCritic) and memory is not None:
            inputs, values, after = self.network.step(tree, rows, jnp.asarray(memory))
        else:
            inputs, values = self.network.apply(tree, rows)
        return (inputs if mask is None else self.distribution.masked(inputs, mask)), values, after

    def _as_stored(self, actions: Array) -> Array:
        return actions if self.action.has_axis else actions[:, 0]

    # What `learn` is made of, in JAX.

    def scheduled_rate(self, state: Any, progress: Array) -> Array:
        """The learning rate that a round begins with."""
        if self.config.lr_schedule == "linear":
            return jnp.float32(self.config.learning_rate) * (1.0 - progress)
        return state.learning_rate

    def shortened(self, gradient: Array) -> tuple[Array, Array]:
        """A flat gradient, at most max_grad_norm long, and how long it was."""
        norm = jnp.sqrt(jnp.sum(jnp.square(gradient)))
        return gradient * jnp.minimum(1.0, self.config.max_grad_norm / (norm + 1e-6)), norm


def _named(state: Any) -> dict[str, Any]:
    """The arrays of a state by the names of its fields: `optimizer.mu`."""
    paths = jax.tree_util.tree_flatten_with_path(state)[0]
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in paths}


def _compiler_options() -> dict[str, Any]:
    """On CPUs a minibatch is a hundred short kernels: handed from thread to thread they take a fifth longer."""
    on_cpu = computes_on_cpu()
    return {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"} if on_cpu else {}
