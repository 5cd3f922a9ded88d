"""What the examined process is doing at this moment, in memory that it shares with the one that watches it.

A call that never returns can tell nobody, and a process that is killed has no last words: this outlives both.
"""

from __future__ import annotations

import mmap
import os
import struct

CALLS = ("between", "import", "make", "reset", "step", "close", "render", "get_state", "set_state", "lanes", "sample")
_ENTRY = struct.Struct("<QQQ")


class Board:
    """One line: a count that every entry raises, the call that was entered, its number."""

    def __init__(self, descriptor: int | None = None) -> None:
        self.descriptor = os.memfd_create("raceway-check") if descriptor is None else descriptor
        if descriptor is None:
            os.ftruncate(self.descriptor, mmap.PAGESIZE)
        self._memory = mmap.mmap(self.descriptor, mmap.PAGESIZE)
        self._count = 0

    def enter(self, call: str, number: int = 0) -> None:
        """From now on it is in this call."""
        self._count += 1
        _ENTRY.pack_into(self._memory, 0, self._count, CALLS.index(call), number)

    def leave(self) -> None:
        self.enter("between")

    @property
    def count(self) -> int:
        return int(_ENTRY.unpack_from(self._memory, 0)[0])

    @property
    def call(self) -> str:
        """Where it is: `reset`, or `step 17`."""
        _, call, number = _ENTRY.unpack_from(self._memory, 0)
        name = CALLS[call] if call < len(CALLS) else CALLS[0]
        return f"{name} {number}" if name == "step" else name

    def close(self) -> None:
        self._memory.close()
        os.close(self.descriptor)
