"""A policy as data: its arrays by name, and what is done with them in which order. Every export is made from this."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from gymnasium import Space, spaces

from raceway.algos.build import build_algorithm
from raceway.algos.convolution import LAYERS
from raceway.algos.networks import ActorCritic
from raceway.algos.parameters import Layout
from raceway.algos.rollout import Scaling
from raceway.algos.spaces import (
    ActionParts,
    Leaf,
    action_parts,
    channels_first,
    flatten,
    image_size,
    observation_leaves,
)
from raceway.errors import RunFolderError, UserError
from raceway.training.config import TrainConfig
from raceway.training.policy_files import PolicyContent


@dataclass(frozen=True)
class Layer:
    """activation(x @ weights + bias); with a stride a convolution of images [B, H, W, C] by weights [k, k, C, O].

    With scale and shift, what goes into the activation has mean 0 and variance 1 in each row, times scale, plus shift.
    """

    weights: str
    bias: str
    activation: str | None
    stride: int | None = None
    scale: str | None = None
    shift: str | None = None


@dataclass(frozen=True)
class Entry:
    """One array of an observation, as the environment gives it, and how it becomes features."""

    name: str
    path: tuple[str | int, ...]
    """Where it is in a nested observation."""
    kind: Literal["numbers", "choices", "image"]
    """numbers: normalised or scaled, flattened. choices: one-hot. image: through its layers."""
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    mean: str | None = None
    """With `rate`: clip((x - mean) * rate, -10, 10)."""
    rate: str | None = None
    scale: float | None = None
    """By what bytes are multiplied."""
    nvec: tuple[int, ...] = ()
    """How many choices each component has, flattened."""
    start: tuple[int, ...] = ()
    """What each counts from."""
    image: tuple[int, int, int] | None = None
    """Height, width, channels."""
    channels_first: bool = False
    layers: tuple[Layer, ...] = ()


@dataclass(frozen=True)
class Memory:
    """A GRU, as algos/gru.py has it: from features and memory to the next memory, which the layers above it see."""

    width: int
    weights: str = "gru.weights"
    bias: str = "gru.bias"
    memory_weights: str = "gru.memory_weights"
    memory_bias: str = "gru.memory_bias"


@dataclass(frozen=True)
class Blueprint:
    """What is needed to act."""

    inputs: tuple[Entry, ...]
    """In the order of the observation space."""
    gru: Memory | None
    """What the policy remembers by; None: it does not."""
    trunk: tuple[Layer, ...]
    actor: tuple[Layer, ...]
    critic: tuple[Layer, ...]
    """None at all: the actor gives the values of the actions, and the greatest is that of the observation."""
    observation_space: Space
    action_space: Space
    action: ActionParts
    has_masks: bool
    """Whether the environment tells which actions are allowed."""
    arrays: dict[str, np.ndarray]

    @property
    def features(self) -> tuple[Entry, ...]:
        """The inputs in the order in which the network reads them: images come last."""
        return tuple(sorted(self.inputs, key=lambda entry: entry.kind == "image"))

    @property
    def action_start(self) -> np.ndarray:
        """What the components of a categorical action count from, flattened."""
        assert isinstance(self.action_space, (spaces.Discrete, spaces.MultiDiscrete))
        return np.asarray(self.action_space.start, np.int64).reshape(-1)


def blueprint(config: TrainConfig, content: PolicyContent) -> Blueprint:
    """Of a policy with a built-in network."""
    weights, observation_space, action_space = content.weights, content.observation_space, content.action_space
    built = build_algorithm(config.algorithm, observation_space, action_space, config.network).network
    if not isinstance(built, ActorCritic):
        raise UserError(f"A network of the kind {type(built).__name__} cannot be exported: its layers are not known.")
    _check("params", weights.params, (built.num_params,))
    arrays = _named(built.layout, weights.params)
    inputs = _inputs(observation_space, arrays)
    if weights.scaling is not None:
        inputs = _normalised(inputs, observation_space, weights.scaling, arrays)
    if isinstance(action_space, spaces.Box):
        arrays |= {"action.low": action_space.low, "action.high": action_space.high}
    action, activation = action_parts(action_space), config.network.activation
    return Blueprint(
        inputs=inputs,
        gru=Memory(built.memory_size) if built.memory_size else None,
        trunk=_stack("trunk", arrays, activation, activation),
        actor=_stack("actor", arrays, activation, None) or _stack("q", arrays, activation, None),
        critic=_stack("critic", arrays, activation, None),
        observation_space=observation_space,
        action_space=action_space,
        action=action,
        has_masks=bool(content.facts.get("has_masks")) and action.kind != "gaussian",
        arrays=arrays,
    )


def _named(layout: Layout, params: np.ndarray) -> dict[str, np.ndarray]:
    blocks = layout.blocks.values()
    return {block.name: params[block.offset : block.offset + block.size].reshape(block.shape) for block in blocks}


def _stack(name: str, arrays: Mapping[str, np.ndarray], hidden: str, last: str | None) -> tuple[Layer, ...]:
    depth = sum(re.fullmatch(rf"{name}\d+\.weights", each) is not None for each in arrays)
    layers = []
    for index in range(depth):
        prefix, activation = f"{name}{index}", hidden if index < depth - 1 else last
        norm = (f"{prefix}.scale", f"{prefix}.shift") if f"{prefix}.scale" in arrays else (None, None)
        layers.append(Layer(f"{prefix}.weights", f"{prefix}.bias", activation, None, *norm))
    return tuple(layers)


def _inputs(space: Space, arrays: Mapping[str, np.ndarray]) -> tuple[Entry, ...]:
    leaves = observation_leaves(space)
    names = [".".join(["obs", *map(str, leaf.path)]) for leaf in leaves]
    if len(set(names)) < len(names):  # keys with dots in them: by their spelling in Python
        names = [leaf.name for leaf in leaves]
    raw = [np.dtype(part.dtype) for part in flatten(space, space)]
    each = zip(names, leaves, raw, strict=True)
    return tuple(_entry(name, leaf, dtype, f"encoder{i}", arrays) for i, (name, leaf, dtype) in enumerate(each))


def _entry(name: str, leaf: Leaf, dtype: np.dtype[Any], encoder: str, arrays: Mapping[str, np.ndarray]) -> Entry:
    if leaf.kind == "discrete":
        start = np.broadcast_to(leaf.start, leaf.shape).ravel().tolist()
        return Entry(name, leaf.path, "choices", dtype, leaf.shape, nvec=leaf.nvec, start=tuple(start))
    scale = float(np.float32(1 / 255)) if leaf.kind == "bytes" else None
    if f"{encoder}.dense.weights" not in arrays:
        return Entry(name, leaf.path, "numbers", dtype, leaf.shape, scale=scale)
    parts = [(f"conv{index}", stride) for index, (_, stride, _) in enumerate(LAYERS)]
    layers = [Layer(f"{encoder}.{part}.weights", f"{encoder}.{part}.bias", "relu", stride) for part, stride in parts]
    layers.append(Layer(f"{encoder}.dense.weights", f"{encoder}.dense.bias", "relu"))
    return Entry(
        name,
        leaf.path,
        "image",
        dtype,
        leaf.shape,
        scale=scale,
        image=image_size(leaf.shape),
        channels_first=channels_first(leaf.shape),
        layers=tuple(layers),
    )


def _normalised(
    inputs: tuple[Entry, ...], space: Space, scaling: Scaling, arrays: dict[str, np.ndarray]
) -> tuple[Entry, ...]:
    """Those of them that are normalised name their statistics, which join the arrays."""
    found = []
    means, rates = flatten(space, scaling.mean), flatten(space, scaling.rate)
    for entry, leaf, mean, rate in zip(inputs, observation_leaves(space), means, rates, strict=True):
        if leaf.kind == "box":
            entry = replace(entry, mean=f"{entry.name}.mean", rate=f"{entry.name}.rate")
            arrays |= {
                f"{entry.name}.mean": _check(f"the mean of {leaf.name}", mean, leaf.shape),
                f"{entry.name}.rate": _check(f"the rate of {leaf.name}", rate, leaf.shape),
            }
        found.append(entry)
    return tuple(found)


def _check(name: str, array: Any, shape: tuple[int, ...]) -> np.ndarray:
    """An array of a policy, if it fits the network and the spaces."""
    if isinstance(array, np.ndarray) and (array.dtype, array.shape) == (np.float32, shape):
        return array
    has = f"{array.dtype}{list(array.shape)}" if isinstance(array, np.ndarray) else "missing"
    raise RunFolderError(
        f"The policy and config.json do not belong together: {name} should be float32{list(shape)}, but is {has}."
    )
