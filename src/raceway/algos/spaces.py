"""Gymnasium spaces as an algorithm sees them: the leaves of an observation, the parts of an action. NumPy only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from gymnasium import Space, spaces

# The least height and width that the three layers of a Nature CNN leave something of.
SMALLEST_IMAGE = 36


@dataclass(frozen=True)
class Leaf:
    """One array of an observation, as a rollout holds it."""

    path: tuple[str | int, ...]
    kind: Literal["box", "bytes", "discrete", "binary"]
    """box: floats, normalised if asked for. bytes: uint8, over 255. discrete: one-hot by `nvec`. binary: 0 or 1."""
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    nvec: tuple[int, ...] = ()
    start: Any = 0
    """What the discrete count from in the environment: a rollout holds them from zero."""

    @property
    def name(self) -> str:
        return "obs" + "".join(f"[{step!r}]" for step in self.path)

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def num_features(self) -> int:
        """How many inputs of a network it becomes."""
        return sum(self.nvec) if self.kind == "discrete" else self.size

    @property
    def is_image(self) -> bool:
        """Bytes of two axes, or of three with the channels first or last, large enough for a Nature CNN."""
        if self.kind != "bytes" or len(self.shape) not in (2, 3):
            return False
        return min(image_size(self.shape)[:2]) >= SMALLEST_IMAGE


def image_size(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Height, width and channels of an image of two or three axes."""
    if len(shape) == 2:
        return (*shape, 1)
    return (shape[1], shape[2], shape[0]) if channels_first(shape) else (shape[0], shape[1], shape[2])


def channels_first(shape: tuple[int, ...]) -> bool:
    """Whether the first of three axes is the channels (a stack of frames): the shortest axis is, at either end."""
    return len(shape) == 3 and shape[0] < shape[2]


def observation_leaves(space: Space) -> tuple[Leaf, ...]:
    """The leaves of an observation space, in the space's own order."""
    return tuple(_leaves_of(space, ()))


def flatten(space: Space, tree: Any) -> list[Any]:
    """The leaves of a tree that is nested like the space, in the space's own order."""
    if isinstance(space, spaces.Dict):
        return [leaf for key, part in space.spaces.items() for leaf in flatten(part, tree[key])]
    if isinstance(space, spaces.Tuple):
        return [leaf for index, part in enumerate(space.spaces) for leaf in flatten(part, tree[index])]
    return [tree]


def unflatten(space: Space, leaves: Sequence[Any]) -> Any:
    """The tree whose leaves these are: dicts and tuples nested like the space."""
    remaining = iter(leaves)

    def build(part: Space) -> Any:
        if isinstance(part, spaces.Dict):
            return {key: build(inner) for key, inner in part.spaces.items()}
        if isinstance(part, spaces.Tuple):
            return tuple(build(inner) for inner in part.spaces)
        return next(remaining)

    return build(space)


def counted_from_zero(space: Space) -> Callable[[Any], Any]:
    """Turns observations as environments give them into those that a rollout holds."""
    starts = [leaf.start for leaf in observation_leaves(space)]
    if not any(np.any(start) for start in starts):
        return lambda tree: tree

    def shift(tree: Any) -> Any:
        leaves = zip(flatten(space, tree), starts, strict=True)
        return unflatten(space, [leaf - start if np.any(start) else leaf for leaf, start in leaves])

    return shift


def _leaves_of(space: Space, path: tuple[str | int, ...]) -> list[Leaf]:
    if isinstance(space, spaces.Dict):
        return [leaf for key, part in space.spaces.items() for leaf in _leaves_of(part, (*path, key))]
    if isinstance(space, spaces.Tuple):
        return [leaf for index, part in enumerate(space.spaces) for leaf in _leaves_of(part, (*path, index))]
    return [_leaf_of(space, path)]


def _leaf_of(space: Space, path: tuple[str | int, ...]) -> Leaf:
    integers = np.dtype(np.int32)
    match space:
        case spaces.Box() if space.dtype == np.uint8:
            return Leaf(path, "bytes", space.shape, np.dtype(np.uint8))
        case spaces.Box():
            return Leaf(path, "box", space.shape, np.dtype(np.float32))
        case spaces.Discrete():
            return Leaf(path, "discrete", (), integers, (int(space.n),), int(space.start))
        case spaces.MultiDiscrete():
            nvec = tuple(int(n) for n in space.nvec.flat)
            return Leaf(path, "discrete", space.shape, integers, nvec, space.start.astype(np.int32))
        case spaces.MultiBinary():
            return Leaf(path, "binary", space.shape, integers)
    where = Leaf(path, "box", (), integers).name
    raise ValueError(
        f"{where} is {space}, which has no fixed number of values for a network to read. Observations may be Box, "
        "Discrete, MultiDiscrete, MultiBinary, and Dict or Tuple of these: wrap the environment in one that turns "
        f"{type(space).__name__} into one of them, such as gymnasium.wrappers.TransformObservation."
    )


@dataclass(frozen=True)
class ActionParts:
    """What an action consists of."""

    kind: Literal["categorical", "gaussian", "bernoulli"]
    size: int
    """How many components it has."""
    nvec: tuple[int, ...]
    """The choices of each component, if categorical."""
    has_axis: bool
    """Whether a rollout holds it as [T, N, K]; a single choice is [T, N]."""

    @property
    def num_logits(self) -> int:
        """How many numbers an action mask has; without the standard deviations, how many the network gives."""
        return sum(self.nvec) if self.kind == "categorical" else self.size

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float32 if self.kind == "gaussian" else np.int32)


def action_parts(space: Space) -> ActionParts:
    """The parts of an action space."""
    match space:
        case spaces.Discrete():
            return ActionParts("categorical", 1, (int(space.n),), has_axis=False)
        case spaces.MultiDiscrete():
            nvec = tuple(int(n) for n in space.nvec.flat)
            return ActionParts("categorical", len(nvec), nvec, has_axis=True)
        case spaces.MultiBinary():
            return ActionParts("bernoulli", int(np.prod(space.shape)), (), has_axis=True)
        case spaces.Box() if np.issubdtype(space.dtype, np.floating):
            return ActionParts("gaussian", int(np.prod(space.shape)), (), has_axis=True)
    fix = (
        "describe whole numbers by MultiDiscrete"
        if isinstance(space, spaces.Box)
        else "flatten the action in a wrapper, such as gymnasium.wrappers.TransformAction"
    )
    raise ValueError(f"Actions of {space} cannot be drawn: they may be Discrete, MultiDiscrete, MultiBinary or a Box "
                     f"of floats. To use this environment, {fix}.")  # fmt: skip


def environment_actions(space: Space) -> Callable[[np.ndarray], np.ndarray]:
    """Turns actions as a policy draws them ([..., K], or [...] for Discrete) into those that the space holds."""
    if isinstance(space, spaces.Box):
        low, high = space.low, space.high
        return lambda drawn: np.clip(drawn.reshape(-1, *space.shape), low, high).astype(space.dtype)
    if isinstance(space, spaces.Discrete):
        return lambda drawn: (drawn + space.start).astype(space.dtype)
    if isinstance(space, spaces.MultiDiscrete):
        return lambda drawn: (drawn.reshape(-1, *space.shape) + space.start).astype(space.dtype)
    return lambda drawn: drawn.reshape(-1, *(space.shape or ())).astype(space.dtype)
