"""What is known of the episodes that are under way between two rounds: plain data, which may go elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np


@dataclass
class Underway:
    """Of some environments in a row, the first axis of everything."""

    returns: np.ndarray
    """[N] float64: the rewards so far."""
    lengths: np.ndarray
    """[N] int32: the steps so far."""
    is_resetting: np.ndarray
    """[N] bool: the episode is over, and the next step only resets it."""
    mask: np.ndarray | None
    """[N, K] bool: the actions that are allowed next; None if nobody tells."""
    gives_masks: np.ndarray
    """[N] bool: whether each environment has given an action mask so far, and so must go on giving them."""
    memory: np.ndarray | None
    """[N, H] float32: what a recurrent policy remembers; None if it is none."""

    @classmethod
    def of_new(cls, size: int, memory_size: int = 0) -> Underway:
        """Episodes that begin."""
        memory = np.zeros((size, memory_size), np.float32) if memory_size else None
        flags = np.zeros(size, bool), np.zeros(size, bool)
        return cls(np.zeros(size), np.zeros(size, np.int32), flags[0], None, flags[1], memory)

    @classmethod
    def joined(cls, parts: Sequence[Underway]) -> Underway:
        """Those of all parts, in their order."""
        columns = {name: [getattr(part, name) for part in parts] for name in _NAMES}
        joined: dict[str, Any] = {n: None if its[0] is None else np.concatenate(its) for n, its in columns.items()}
        return cls(**joined)

    def part(self, envs: range) -> Underway:
        """Those of some environments."""
        rows = slice(envs.start, envs.stop)
        columns = {name: getattr(self, name) for name in _NAMES}
        part: dict[str, Any] = {name: None if it is None else it[rows].copy() for name, it in columns.items()}
        return Underway(**part)

    def begin_anew(self, which: np.ndarray) -> None:
        """Forgets the episodes of `which`, [N] bool: others have begun in their places."""
        self.returns[which] = 0.0
        self.lengths[which] = 0
        self.is_resetting[which] = False
        self.forget(which)

    def forget(self, which: np.ndarray) -> None:
        """An episode begins with nothing remembered."""
        if self.memory is not None and which.any():
            self.memory = np.where(which[:, None], np.float32(0), self.memory)

    def save(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    def like(self, saved: Mapping[str, Any]) -> Underway:
        """What `save` gave, if it is of the same kind as this."""
        present = {name: getattr(self, name) for name in _NAMES}
        found: dict[str, Any] = {n: None if it is None else alike(it, saved[n], n) for n, it in present.items()}
        return Underway(**found)


_NAMES = [field.name for field in fields(Underway)]


def alike(present: Any, saved: Any, name: str) -> Any:
    """A tree of arrays that was saved, if it is of the same kind as the one that is there."""
    if isinstance(present, dict):
        return {key: alike(part, saved[key], f"{name}.{key}") for key, part in present.items()}
    if isinstance(present, tuple):
        parts = zip(present, saved, strict=True)
        return tuple(alike(part, its, f"{name}.{index}") for index, (part, its) in enumerate(parts))
    here, array = np.asarray(present), np.asarray(saved)
    if (array.dtype, array.shape) != (here.dtype, here.shape):
        raise ValueError(f"{name} is {array.dtype}{list(array.shape)}, not {here.dtype}{list(here.shape)}.")
    return array.copy()


def copied(tree: Any) -> Any:
    """A tree of arrays with memory of its own."""
    if isinstance(tree, dict):
        return {name: copied(part) for name, part in tree.items()}
    return tuple(map(copied, tree)) if isinstance(tree, tuple) else tree.copy()
