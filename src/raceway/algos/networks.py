"""Actor and critic: perceptrons, with a CNN before them for images and a GRU for memory, or the user's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import Space
from jax.flatten_util import ravel_pytree

from raceway.algos.configs import NetworkConfig
from raceway.algos.convolution import NUM_FEATURES, NatureCNN
from raceway.algos.counted import Array, Purpose, split_seed
from raceway.algos.gru import GRU
from raceway.algos.parameters import Layout, orthogonal
from raceway.algos.spaces import SMALLEST_IMAGE, ActionParts, Leaf, action_parts, observation_leaves, unflatten

OBSERVATION_LIMIT = 10.0
ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {"tanh": jnp.tanh, "relu": jax.nn.relu}


class UserNetwork(NamedTuple):
    """A network of the user's own: any pair of functions.

    `init(key, observation) -> params` gets a JAX random key and an example of an observation with a batch axis of 1;
    `params` is any tree of float32 arrays. `apply(params, observation) -> (inputs [B, K], values [B])` gets
    observations nested like the space with a batch axis in front: floats normalised if the run normalises them, bytes
    as they are, the discrete as int32. Both are traced by JAX, so they must be pure.

    `inputs` describe the action's distribution. Discrete and MultiDiscrete: the logits of all components side by side,
    K = sum(nvec). MultiBinary of n: K = n logits. Box of n: K = 2n, the means, then the logarithms of the standard
    deviations.
    """

    init: Callable[[Array, Any], Any]
    apply: Callable[[Any, Any], tuple[Array, Array]]


class Scales(NamedTuple):
    """A Scaling's leaves in the space's order, None where a leaf is not scaled."""

    mean: tuple[Any, ...]
    rate: tuple[Any, ...]


Rows = tuple[Array, ...]


class Network(Protocol):
    """What an algorithm needs of a network."""

    num_params: int
    memory_size: int
    """How many numbers it remembers of each environment; 0: none."""

    def init(self, seed: int) -> np.ndarray:
        """The first parameters, as a flat vector."""

    def unravel(self, flat: Array) -> Any:
        """The tree of the parameters, to differentiate by."""

    def ravel(self, tree: Any) -> Array:
        """The flat vector of a tree."""

    def name_of(self, index: int) -> str:
        """The array that holds this entry of the flat vector."""

    def prepare(self, leaves: Sequence[Array], scales: Scales | None) -> Rows:
        """Observations [B, ...] as rows to pick minibatches from: whatever does not depend on parameters."""

    def apply(self, params: Any, rows: Rows) -> tuple[Array, Array]:
        """What describes the actions [B, K], and values [B]."""

    def native_layout(self) -> dict[str, Any] | None:
        """The network as core/policy reads it; None if that cannot run it."""


def build_network(config: NetworkConfig | UserNetwork, observation_space: Space, action_space: Space) -> Network:
    """The network for these spaces."""
    leaves, action = observation_leaves(observation_space), action_parts(action_space)
    if isinstance(config, UserNetwork):
        return UserPair(config, observation_space, leaves, action)
    return ActorCritic(config, leaves, action)


def scaled(leaf: Array, mean: Any, rate: Any) -> Array:
    """clip((x - mean) * rate, -10, 10)"""
    return jnp.clip((leaf - mean) * rate, -OBSERVATION_LIMIT, OBSERVATION_LIMIT)


class ActorCritic:
    """The built-in network."""

    def __init__(self, config: NetworkConfig, leaves: Sequence[Leaf], action: ActionParts) -> None:
        self._config, self._leaves, self._action = config, leaves, action
        self._images = _images(config, leaves)
        self._encoders = {index: NatureCNN(leaves[index].shape) for index in self._images}
        self._flat = [leaf for index, leaf in enumerate(leaves) if index not in self._images]
        self._hidden = hidden_widths(config, leaves)
        num_features = sum(leaf.num_features for leaf in self._flat) + NUM_FEATURES * len(self._images)
        self._gru = None if config.gru is None else GRU(num_features, config.gru)
        self.memory_size = config.gru or 0
        self._num_features = config.gru or num_features
        self._stacks = self._describe_stacks()
        self.layout = Layout(self._shapes())
        self.num_params = self.layout.size

    def _describe_stacks(self) -> dict[str, list[tuple[int, int]]]:
        """Inputs and outputs of each dense layer of trunk, actor and critic."""
        trunk = (self._num_features, *self._hidden) if self._config.shared else (self._num_features,)
        rest = () if self._config.shared else self._hidden
        actor, critic = ((trunk[-1], *rest, outputs) for outputs in (self._action.num_logits, 1))
        return {
            name: list(pairwise(widths)) for name, widths in (("trunk", trunk), ("actor", actor), ("critic", critic))
        }

    def _shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        shapes: list[tuple[str, tuple[int, ...]]] = []
        for index, encoder in self._encoders.items():
            shapes += [(f"encoder{index}.{name}", shape) for name, shape in encoder.shapes()]
        if self._gru is not None:
            shapes += [(f"gru.{name}", shape) for name, shape in self._gru.shapes()]
        for stack, layers in self._stacks.items():
            for depth, (inputs, outputs) in enumerate(layers):
                shapes += [(f"{stack}{depth}.weights", (inputs, outputs)), (f"{stack}{depth}.bias", (outputs,))]
        if self._action.kind == "gaussian":
            shapes.append(("log_std", (self._action.size,)))
        return shapes

    def init(self, seed: int) -> np.ndarray:
        """Orthogonal weights: gain √2 in hidden layers, 0.01 for the policy's last, 1 for the value's last."""
        # An array: in a list, seeds from 2**63 on would become floats.
        key = np.array([seed & (2**64 - 1), Purpose.PARAMETERS], np.uint64)
        rng = np.random.Generator(np.random.Philox(key=key))
        arrays: dict[str, np.ndarray] = {}
        for index, encoder in self._encoders.items():
            arrays |= {f"encoder{index}.{name}": array for name, array in encoder.init(rng).items()}
        if self._gru is not None:
            arrays |= {f"gru.{name}": array for name, array in self._gru.init(rng).items()}
        for stack, layers in self._stacks.items():
            for depth, (inputs, outputs) in enumerate(layers):
                last = depth == len(layers) - 1 and stack != "trunk"
                gain = (0.01 if stack == "actor" else 1.0) if last else math.sqrt(2)
                arrays[f"{stack}{depth}.weights"] = orthogonal(rng, inputs, outputs, gain)
                arrays[f"{stack}{depth}.bias"] = np.zeros(outputs)
        if self._action.kind == "gaussian":
            arrays["log_std"] = np.full(self._action.size, self._config.log_std_init)
        return self.layout.assemble(arrays)

    def unravel(self, flat: Array) -> dict[str, Array]:
        return self.layout.unravel(flat)

    def ravel(self, tree: Any) -> Array:
        return self.layout.ravel(tree)

    def name_of(self, index: int) -> str:
        blocks = self.layout.blocks.values()
        return next(block.name for block in blocks if index < block.offset + block.size)

    def prepare(self, leaves: Sequence[Array], scales: Scales | None) -> Rows:
        """One matrix of all that is not an image (choices by their number), then the images."""
        columns, images = [], []
        for index, (leaf, values) in enumerate(zip(self._leaves, leaves, strict=True)):
            if index in self._encoders:
                images.append(self._encoders[index].prepare(values))
                continue
            if scales is not None and leaf.kind == "box":
                values = scaled(values, scales.mean[index], scales.rate[index])
            elif leaf.kind == "bytes":
                values = values.astype(jnp.float32) * np.float32(1 / 255)
            columns.append(values.astype(jnp.float32).reshape(len(values), -1))
        return (*([jnp.concatenate(columns, axis=-1)] if columns else []), *images)

    def apply(self, params: Mapping[str, Array], rows: Rows) -> tuple[Array, Array]:
        return self._heads(params, self._features(params, rows))

    def step(self, params: Mapping[str, Array], rows: Rows, memory: Array) -> tuple[Array, Array, Array]:
        """`apply` for one observation of each environment and what is remembered of it [B, H]; and what is then."""
        assert self._gru is not None
        memory = self._gru.step(_part("gru.", params), self._features(params, rows), memory)
        return *self._heads(params, memory), memory

    def unroll(self, params: Mapping[str, Array], rows: Rows, memory: Array, begins: Array) -> tuple[Array, Array]:
        """`apply` for T steps of B environments, [T * B, ...], from `memory` [B, H]; from none where `begins`."""
        assert self._gru is not None
        features = self._features(params, rows).reshape(*begins.shape, -1)
        memories = self._gru.run(_part("gru.", params), features, memory, begins)
        return self._heads(params, memories.reshape(-1, self._gru.width))

    def _heads(self, params: Mapping[str, Array], x: Array) -> tuple[Array, Array]:
        x = self._run("trunk", params, x, linear_end=False)
        logits = self._run("actor", params, x, linear_end=True)
        values = self._run("critic", params, x, linear_end=True)[:, 0]
        if self._action.kind == "gaussian":
            logits = jnp.concatenate([logits, jnp.broadcast_to(params["log_std"], logits.shape)], axis=-1)
        return logits, values

    def _features(self, params: Mapping[str, Array], rows: Rows) -> Array:
        features, images = [], rows
        if self._flat:
            columns, images = rows[0], rows[1:]
            features += [columns] if all(leaf.kind != "discrete" for leaf in self._flat) else self._one_hot(columns)
        for (index, encoder), image in zip(self._encoders.items(), images, strict=True):
            features.append(encoder.apply(_part(f"encoder{index}.", params), image))
        return features[0] if len(features) == 1 else jnp.concatenate(features, axis=-1)

    def _one_hot(self, columns: Array) -> list[Array]:
        features, start = [], 0
        for leaf in self._flat:
            part = columns[:, start : start + leaf.size]
            start += leaf.size
            if leaf.kind != "discrete":
                features.append(part)
                continue
            for j, n in enumerate(leaf.nvec):
                features.append((part[:, j, None] == jnp.arange(n, dtype=jnp.float32)).astype(jnp.float32))
        return features

    def _run(self, stack: str, params: Mapping[str, Array], x: Array, *, linear_end: bool) -> Array:
        layers = self._stacks[stack]
        for depth in range(len(layers)):
            x = x @ params[f"{stack}{depth}.weights"] + params[f"{stack}{depth}.bias"]
            if depth < len(layers) - 1 or not linear_end:
                x = ACTIVATIONS[self._config.activation](x)
        return x

    def native_layout(self) -> dict[str, Any] | None:
        if (
            self._gru
            or self._images
            or any(leaf.kind not in ("box", "discrete") or len(leaf.nvec) > 1 for leaf in self._leaves)
        ):
            return None
        blocks = self.layout.blocks
        stacks = {
            stack: [
                {
                    "weights": blocks[f"{stack}{depth}.weights"].offset,
                    "bias": blocks[f"{stack}{depth}.bias"].offset,
                    "inputs": inputs,
                    "outputs": outputs,
                }
                for depth, (inputs, outputs) in enumerate(layers)
            ]
            for stack, layers in self._stacks.items()
        }
        inputs = [
            {"kind": "discrete", "n": leaf.nvec[0]} if leaf.kind == "discrete" else {"kind": "box", "size": leaf.size}
            for leaf in self._leaves
        ]
        return {"inputs": inputs, **stacks, "activation": self._config.activation, "action": self._native_action()}

    def _native_action(self) -> dict[str, Any]:
        if self._action.kind == "categorical":
            return {"kind": "categorical", "nvec": list(self._action.nvec)}
        if self._action.kind == "gaussian":
            return {"kind": "gaussian", "size": self._action.size, "log_std": self.layout.blocks["log_std"].offset}
        return {"kind": "bernoulli", "size": self._action.size}


def _part(prefix: str, params: Mapping[str, Array]) -> dict[str, Array]:
    """The parameters of one part, by its own names for them."""
    return {name.removeprefix(prefix): params[name] for name in params if name.startswith(prefix)}


def hidden_widths(config: NetworkConfig, leaves: Sequence[Leaf]) -> tuple[int, ...]:
    """Widths of the hidden layers, those that the settings leave open included."""
    return config.hidden if config.hidden is not None else (() if _images(config, leaves) else (64, 64))


def _images(config: NetworkConfig, leaves: Sequence[Leaf]) -> list[int]:
    """Which leaves go through a CNN."""
    if config.kind == "mlp":
        return []
    images = [index for index, leaf in enumerate(leaves) if leaf.is_image]
    if config.kind == "cnn" and not images:
        shapes = ", ".join(f"{leaf.name} {leaf.dtype}{list(leaf.shape)}" for leaf in leaves)
        raise ValueError(
            f"kind='cnn' needs an image: uint8 [height, width, channels], [channels, height, width] or [height, width] "
            f"of at least {SMALLEST_IMAGE}x{SMALLEST_IMAGE} pixels; the observation has {shapes}. Use kind='mlp', or a "
            "wrapper that makes it an image (gymnasium.wrappers.ResizeObservation)."
        )
    return images


class UserPair:
    """A user's (init, apply), its tree of parameters as a flat vector."""

    memory_size = 0

    def __init__(self, pair: UserNetwork, space: Space, leaves: Sequence[Leaf], action: ActionParts) -> None:
        self._pair, self._space, self._leaves = pair, space, leaves
        example = jax.eval_shape(pair.init, _key(0), self._example())
        self._names = _names_of(example)
        blank = jax.tree.map(lambda array: jnp.zeros(array.shape, array.dtype), example)
        flat, self._unravel = ravel_pytree(blank)
        self.num_params = flat.size
        self._check_outputs(blank, action.num_logits * (2 if action.kind == "gaussian" else 1), action)

    def init(self, seed: int) -> np.ndarray:
        return np.array(ravel_pytree(self._pair.init(_key(seed), self._example()))[0])

    def unravel(self, flat: Array) -> Any:
        return self._unravel(flat)

    def ravel(self, tree: Any) -> Array:
        return ravel_pytree(tree)[0]

    def name_of(self, index: int) -> str:
        return next(name for name, end in self._names if index < end)

    def prepare(self, leaves: Sequence[Array], scales: Scales | None) -> Rows:
        if scales is None:
            return tuple(leaves)
        each = zip(leaves, scales.mean, scales.rate, strict=True)
        return tuple(leaf if mean is None else scaled(leaf, mean, rate) for leaf, mean, rate in each)

    def apply(self, params: Any, rows: Rows) -> tuple[Array, Array]:
        return self._pair.apply(params, unflatten(self._space, rows))

    def native_layout(self) -> dict[str, Any] | None:
        return None

    def _example(self) -> Any:
        return unflatten(self._space, [jnp.zeros((1, *leaf.shape), leaf.dtype) for leaf in self._leaves])

    def _check_outputs(self, params: Any, num_inputs: int, action: ActionParts) -> None:
        outputs = jax.eval_shape(self._pair.apply, params, self._example())
        shapes = [tuple(getattr(part, "shape", ())) for part in jax.tree.leaves(outputs)]
        if shapes != [(1, num_inputs), (1,)]:
            raise ValueError(
                f"The network's apply() gives arrays of shapes {shapes} for a batch of 1. For this {action.kind} "
                f"action it must give a pair: what describes the distribution, (1, {num_inputs}), and the values, (1,)."
            )


def _key(seed: int) -> Array:
    low, high = split_seed(seed)
    return jax.random.fold_in(jax.random.key(int(low)), int(high))


def _names_of(tree: Any) -> list[tuple[str, int]]:
    """The name of each array, and where it ends in the flat vector."""
    names, end = [], 0
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        if leaf.dtype != jnp.float32:
            raise ValueError(
                f"The network's parameter {jax.tree_util.keystr(path)} is {leaf.dtype}; all must be float32, as they "
                "travel as one vector. Convert it in init()."
            )
        end += leaf.size
        names.append((f"params{jax.tree_util.keystr(path)}", end))
    return names
