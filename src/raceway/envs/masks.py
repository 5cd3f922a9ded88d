"""Action masks: what environments put into their infos, and the flags [N, K] that a policy reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
from gymnasium import Space

from raceway.algos.spaces import action_parts, environment_actions
from raceway.errors import EnvError
from raceway.messages import quoted

IGNORE = "or set action_masks to False (--no-action-masks) to train without masks"


class MaskReader:
    """Turns the masks of an action space into flags, one for each logit."""

    def __init__(self, space: Space) -> None:
        self._space = space
        parts = action_parts(space)
        self._is_continuous = parts.kind == "gaussian"
        self.num_logits = parts.num_logits
        self._nvec = parts.nvec
        self._starts = [0, *accumulate(parts.nvec)][:-1]

    def read(self, given: Any, rows: Sequence[int], who: Callable[[int], str]) -> np.ndarray:
        """[len(rows), K] of those rows of a batch. `who` names a row, for messages."""
        if self._is_continuous:
            raise EnvError(
                f"{who(rows[0])} gave an action_mask, but masks work for Discrete, MultiDiscrete and MultiBinary "
                f"actions, and these are {self._space}. Give none, {IGNORE}."
            )
        if isinstance(given, np.ndarray) and given.dtype != object and given[0].size == self.num_logits:
            return self._flags(given.reshape(len(given), -1)[rows], lambda index: who(rows[index]))
        if not _is_array_like(given):  # such as a dict, which holds a batch for each of its keys
            raise self._not_a_mask(f"a {type(given).__name__}", who(rows[0]))
        found = [self.read_one(given[row], partial(who, row)) for row in rows]
        return np.array(found, bool).reshape(len(rows), self.num_logits)

    def read_one(self, given: Any, who: Callable[[], str]) -> np.ndarray:
        """[K] of one environment: as many flags, or a tuple or list of one mask for each component."""
        if not _is_array_like(given):
            raise self._not_a_mask(quoted(given), who())
        shape = _shape_of(given)
        if shape is None:
            came = "a mask of irregular shape"
        elif isinstance(shape, list):
            came = f"masks of shapes {quoted(shape)[1:-1]}"
            if shape == [(n,) for n in self._nvec]:
                return np.concatenate([self._flags(np.asarray(part), lambda _: who()) for part in given])
        else:
            came = f"a mask of shape {shape}"
            if np.prod(shape, dtype=int) == self.num_logits:
                return self._flags(np.asarray(given).ravel(), lambda _: who())
        raise EnvError(f"action_mask: {who()} gave {came}, but {self._space} needs {self._needed()}.")

    def _flags(self, values: np.ndarray, who: Callable[[int], str]) -> np.ndarray:
        """Whether each value is 1. Anything but 0 and 1, such as what is added to logits, may mean the opposite."""
        if values.dtype == bool:
            return values
        if values.dtype.kind in "iu" and values.itemsize == 1 and values.view(np.uint8).max(initial=0) <= 1:
            return values.view(bool)  # what most environments give, at half the cost of comparing
        if values.dtype.kind in "iuf":
            flags = values.astype(bool)
            if (wrong := flags != values).any():
                index = tuple(np.argwhere(wrong)[0])
                raise self._not_a_flag(values[index].item(), who(int(index[0])))
            return flags
        for index, value in np.ndenumerate(values.astype(object)):
            if not isinstance(value, (bool, int, float, np.bool_, np.number)) or value not in (0, 1):
                raise self._not_a_flag(value, who(index[0]))
        return values.astype(bool)

    def _not_a_flag(self, value: Any, who: str) -> EnvError:
        return EnvError(
            f"{who} gave an action_mask with the value {quoted(value)}. Give 1 for allowed, 0 for forbidden."
        )

    def _not_a_mask(self, given: str, who: str) -> EnvError:
        return EnvError(
            f"{who} gave {given} as its action_mask, which is not an array, list or tuple. {self._space} needs "
            f"{self._needed()}: masks work for Discrete, MultiDiscrete and MultiBinary actions."
        )

    def _needed(self) -> str:
        if len(self._nvec) < 2:
            return f"shape ({self.num_logits},)"
        each = ", ".join(f"({n},)" for n in self._nvec)
        return f"shape ({self.num_logits},), or a tuple of one mask for each component, of shapes {each}"

    def without_choice(self, masks: np.ndarray) -> np.ndarray:
        """[...] where a component has no action that is allowed. Flags of a MultiBinary may all be forbidden."""
        if not self._nvec:
            return np.zeros(masks.shape[:-1], bool)
        has_choice = np.logical_or.reduceat(masks, self._starts, axis=-1).all(axis=-1)
        return np.asarray(~has_choice)

    def draw(self, masks: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """[N, ...] actions, drawn uniformly from those that each row of `masks`, [N, K], allows."""
        numbers = np.where(masks, random.random(masks.shape), -1.0)
        if not self._nvec:
            return environment_actions(self._space)(numbers >= 0.5)
        drawn = [part.argmax(axis=1) for part in np.split(numbers, self._starts[1:], axis=1)]
        return environment_actions(self._space)(np.stack(drawn, axis=1) if len(drawn) > 1 else drawn[0])

    def check_first(self, infos: Mapping[str, Any], num_envs: int) -> None:
        """Refuses masks that a first reset has given but that nobody can use."""
        masks = np.ones((num_envs, self.num_logits), bool)
        everyone = np.ones(num_envs, bool)
        self.take(masks, ~everyone, infos, everyone, lambda row: f"Environment {row} in reset()")

    def take(
        self,
        masks: np.ndarray,
        has_given: np.ndarray,
        infos: Mapping[str, Any],
        expected: np.ndarray,
        who: Callable[[int], str],
    ) -> None:
        """Writes the masks in `infos` to their rows of `masks`, [N, K].

        has_given: [N] whether each environment has given a mask so far, updated in place. One that has must give one
            with every reset and step.
        expected: [N] whether its next action needs one.
        """
        present = np.zeros(len(masks), bool)
        if "action_mask" in infos:
            present = np.asarray(infos.get("_action_mask", ~present), bool)
        if (missing := expected & has_given & ~present).any():
            raise EnvError(
                f"{who(int(np.argmax(missing)))} gave no action_mask, though it gave one before, which may not hold "
                f"any more. Give one with reset() and with every step, {IGNORE}."
            )
        has_given |= present
        rows = np.flatnonzero(present).tolist()
        if not rows:
            return
        masks[rows] = self.read(infos["action_mask"], rows, who)
        if (stuck := self.without_choice(masks) & present & expected).any():
            raise EnvError(
                f"{who(int(np.argmax(stuck)))} gave an action_mask that allows no action"
                f"{' of a component' if len(self._nvec) > 1 else ''}. Allow at least one, end the episode, {IGNORE}."
            )


def _is_array_like(given: Any) -> bool:
    return isinstance(given, (list, tuple)) or hasattr(given, "__array__")


def _shape_of(given: Any) -> tuple[int, ...] | list[tuple[int, ...]] | None:
    """The shape of a mask; a list of shapes if it has one for each component; None if it is irregular."""
    is_nested = isinstance(given, (tuple, list)) or (isinstance(given, np.ndarray) and given.dtype == object)
    try:
        if is_nested and any(np.ndim(part) > 0 for part in given):
            return [np.shape(part) for part in given]
        return np.shape(given)
    except ValueError:  # lists of several lengths, within one component
        return None
