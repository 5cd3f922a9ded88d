"""What carries messages between the processes of a program: on one machine shared memory, elsewhere something else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from raceway._core import Patience


class Bell(Protocol):
    """What the threads of one process wait on: read `now`, look for work, and only then wait for it to change."""

    def now(self) -> int: ...
    def ring(self) -> None: ...
    def ring_all(self) -> None: ...
    def wait(self, seen: int, patience: Patience, timeout_s: float | None = None) -> bool: ...


class Transport(Bell, Protocol):
    """One process's end of it. Messages from one process to another arrive in order; its bell rings when one does."""

    @property
    def host(self) -> int: ...
    @property
    def hosts(self) -> int: ...
    def lease(self, size: int) -> np.ndarray:
        """Memory to fill and to send without another copy, used again when nobody holds it."""

    def write(self, head: bytes, parts: Sequence[Any], readers: int) -> Any:
        """Puts a message where so many readers can read it; what it gives is posted to each."""

    def post(self, to: int, letter: Any) -> bool:
        """False if there is no room now: the bell rings when there is."""

    def receive(self) -> Sequence[tuple[bytes, Sequence[Any]]]: ...
