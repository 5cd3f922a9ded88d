"""Gymnasium spaces as an algorithm sees them: the leaves of an observation, the parts of an action. NumPy only."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
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
        return math.prod(self.shape)

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


def flattened_images(space: Space) -> list[str]:
    """A note for each part of an observation that looks like an image, but does not go through a CNN."""
    notes = []
    for leaf in observation_leaves(space):
        if leaf.is_image or leaf.kind not in ("bytes", "box") or len(leaf.shape) not in (2, 3):
            continue
        height, width, _ = image_size(leaf.shape)
        least = max(height, SMALLEST_IMAGE), max(width, SMALLEST_IMAGE)
        if leaf.kind == "bytes":
            why = f"smaller than the {SMALLEST_IMAGE}x{SMALLEST_IMAGE} that the CNN needs"
            fix = f"make it {least[0]}x{least[1]} or larger"
            if _can_be_resized(space):
                fix += f", such as by gymnasium.wrappers.ResizeObservation(env, {least})"
        elif (height, width) == least and len(leaf.shape) == 3:
            why, fix = "but not of bytes, as the CNN needs it", "make it uint8, from 0 to 255"
        else:
            continue
        notes.append(
            f"{leaf.name} is an image of {height}x{width} pixels, {why}: it is flattened for an MLP. To use the CNN: "
            f"{fix}. To keep the MLP without this note: --network.kind mlp"
        )
    return notes


def _can_be_resized(space: Space) -> bool:
    """Whether gymnasium.wrappers.ResizeObservation supports it: a single image of bytes, channels last."""
    is_image = isinstance(space, spaces.Box) and space.dtype == np.uint8 and not channels_first(space.shape)
    return is_image and bool((space.low == 0).all() and (space.high == 255).all())  # type: ignore[attr-defined]


def different_spaces(
    ones: tuple[Space, Space], others: tuple[Space, Space]
) -> Iterator[tuple[Literal["observation", "action"], Space, Space]]:
    """Yields those of two pairs (observation, action) between which no policy can be carried over, and their names.

    The bounds of a Box may differ. A space that no policy can have differs from all.
    """
    if not _agree(_observation_parts, ones[0], others[0]):
        yield "observation", ones[0], others[0]
    if not _agree(_action_parts, ones[1], others[1]):
        yield "action", ones[1], others[1]


def _agree(parts: Callable[[Space], Any], one: Space, other: Space) -> bool:
    try:
        return bool(parts(one) == parts(other))
    except ValueError:
        return False


def _observation_parts(space: Space) -> list[Any]:
    leaves = observation_leaves(space)
    return [(leaf.path, leaf.kind, leaf.shape, leaf.nvec, np.asarray(leaf.start).tolist()) for leaf in leaves]


def _action_parts(space: Space) -> Any:
    return action_parts(space), space.shape


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
