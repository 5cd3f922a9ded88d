"""After Ctrl-C: whether a user's own native environment keeps the last round from ending."""

from __future__ import annotations

import time
from collections.abc import Callable

from raceway._core import user_code

_PATIENCE_S = 5.0
"""That a step may take after Ctrl-C."""


class StuckHeader:
    """Called again and again after Ctrl-C: true once threads are in the header's code and none has come back from it.

    tell: hears at once that Ctrl-C was heard, and what is given up.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._left_behind = user_code()[0]
        """Threads that an earlier pool could not stop."""
        self._seen: tuple[int, int] | None = None
        self._since = 0.0

    def __call__(self) -> bool:
        if self._seen is None:
            self._tell("Ends after this round. Press Ctrl-C again to end at once.")
        now = time.monotonic()
        if (seen := user_code()) != self._seen or seen[0] <= self._left_behind:
            self._seen, self._since = seen, now
        if now - self._since < _PATIENCE_S:
            return False
        self._tell(f"An environment step has not returned for {_PATIENCE_S:g} s. Stopping without this round.")
        return True
