"""Observations and actions as flat arrays: a leaf for every part of a space that has a fixed shape."""

from __future__ import annotations

import hashlib
import pickle
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium import Space, spaces

from raceway.errors import SettingError
from raceway.messages import quoted

_FIXED = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)

Empty = Callable[[Sequence[int], Any], np.ndarray]


@dataclass(frozen=True)
class Leaf:
    """One array of an observation or action."""

    path: tuple[Any, ...]
    """The keys and indices that lead to it."""
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def where(self) -> str:
        """For messages: `['camera'][0]`."""
        return "".join(f"[{key!r}]" for key in self.path)


def leaves_of(space: Space) -> list[Leaf] | None:
    """The leaves in the space's order; None if some part of it has no fixed shape."""
    try:
        return list(_walk(space, ()))
    except _NoFixedShapeError:
        return None


def only_leaf(leaves: Sequence[Leaf] | None) -> Leaf | None:
    """The leaf of a space that is one array; None if it is something else."""
    return leaves[0] if leaves and not leaves[0].path else None


def warn_of_pickling(name: str, what: str, space: Space) -> None:
    """Tells whoever makes a pool that it could be quicker with another space."""
    warnings.warn(
        f"{name}: its {what} have no fixed shape ({space}), so they are pickled between processes instead of written "
        "in place, which is slower. Spaces of fixed shape are Box, Discrete, MultiDiscrete, MultiBinary, and Dict and "
        "Tuple of them.",
        stacklevel=5,
    )


class _NoFixedShapeError(Exception):
    pass


def _walk(space: Space, path: tuple[Any, ...]) -> Iterator[Leaf]:
    if isinstance(space, _FIXED):
        assert space.shape is not None
        yield Leaf(path, space.shape, np.dtype(space.dtype))
    elif isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            yield from _walk(part, (*path, key))
    elif isinstance(space, spaces.Tuple):
        for index, part in enumerate(space.spaces):
            yield from _walk(part, (*path, index))
    else:
        raise _NoFixedShapeError


def tree_of(space: Space, arrays: Iterator[Any]) -> Any:
    """The arrays of all leaves, nested as the space is."""
    if isinstance(space, spaces.Dict):
        return {key: tree_of(part, arrays) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(tree_of(part, arrays) for part in space.spaces)
    return next(arrays)


def part_of(tree: Any, path: tuple[Any, ...]) -> Any:
    """What a path leads to."""
    for key in path:
        tree = tree[key]
    return tree


def arrays_for(leaves: Sequence[Leaf], rows: int, empty: Empty) -> list[np.ndarray]:
    """An array of so many rows for each leaf."""
    return [empty((rows, *leaf.shape), leaf.dtype) for leaf in leaves]


def write(leaf: Leaf, target: np.ndarray, row: int, value: Any, what: str) -> None:
    """Puts a value in its row, if it is of the leaf's shape and its numbers can be taken for the leaf's."""
    if type(value) is np.ndarray and value.dtype is leaf.dtype and value.shape == leaf.shape:
        target[row] = value
        return
    array = np.asarray(value)
    if array.shape != leaf.shape:
        raise ValueError(
            f"{what}{leaf.where} has shape {array.shape}, but its space says {leaf.shape}. Correct one of them."
        )
    if not np.can_cast(array.dtype, leaf.dtype, "same_kind"):
        raise TypeError(
            f"{what}{leaf.where} is {array.dtype}, which does not fit in its space's {leaf.dtype}. Correct one of them."
        )
    target[row] = array


def fingerprint(observation: Any, leaves: Sequence[Leaf] | None) -> str:
    """A hash of one observation."""
    digest = hashlib.blake2b(digest_size=16)
    if leaves is None:
        digest.update(pickle.dumps(observation, protocol=5))
    for leaf in leaves or ():
        part = np.asarray(part_of(observation, leaf.path), leaf.dtype)
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def check_has_spaces(env: gymnasium.Env) -> None:
    """Refuses an environment without spaces. The error of a space that is a property is left as it is."""
    kind = type(env.unwrapped)
    for name in ("observation_space", "action_space"):
        space = getattr(env, name) if hasattr(kind, name) else getattr(env, name, None)
        if isinstance(space, Space):
            continue
        what = f"has no {name}" if space is None else f"has {name}={quoted(space)}, which is no gymnasium.Space"
        raise SettingError(f"{kind.__name__} {what}. Set self.{name} in __init__, such as to a gymnasium.spaces.Box.")
