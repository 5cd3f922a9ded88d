"""Whether action masks are such that training takes them: read by the same code, at every reset and step."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import Space

from raceway.algos.spaces import action_parts
from raceway.envs.checking.returns import WrongReturnError
from raceway.envs.masks import IGNORE, MaskReader
from raceway.errors import EnvError


class Masks:
    """Those of one environment, info by info."""

    def __init__(self, space: Space | None) -> None:
        """None: they are not looked at."""
        self._reader = None if space is None or not _is_usable(space) else MaskReader(space)
        self._last: np.ndarray | None = None
        self._has_given = np.zeros(1, bool)
        self._length = 0

    def after_reset(self, info: dict[str, Any]) -> None:
        """What may be done first."""
        if self._reader is None:
            return
        self._length = 0
        if self._last is None and "action_mask" in info:
            self._last = np.ones((1, self._reader.num_logits), bool)
        self._take(info, is_needed=True)

    def after_step(self, info: dict[str, Any], is_end: bool) -> None:
        """What may be done next, unless the episode has ended."""
        if self._reader is None:
            return
        self._length += 1
        if self._last is None and "action_mask" in info:
            text = "An action_mask comes with step, but not with reset, so the first action could not use it."
            raise WrongReturnError("action-mask", text, f"give one with reset too, {IGNORE}")
        self._take(info, is_needed=not is_end)

    def _take(self, info: dict[str, Any], is_needed: bool) -> None:
        if self._reader is None or self._last is None:
            return
        batch = {"action_mask": [info["action_mask"]]} if "action_mask" in info else {}
        try:
            self._reader.take(self._last, self._has_given, batch, np.array([is_needed]), self._who)
        except EnvError as error:
            raise WrongReturnError("action-mask", str(error), "") from None

    def _who(self, row: int) -> str:
        return f"Step {self._length} of an episode" if self._length else "reset()"


def _is_usable(space: Space) -> bool:
    try:
        action_parts(space)
    except ValueError:  # which is a finding of its own
        return False
    return True
