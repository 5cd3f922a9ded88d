"""What a process holds: children, descriptors, shared memory; and waiting for what is to happen."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def children(pid: int | None = None) -> set[int]:
    """The processes that a process (this one) has started, the dead that nobody has waited for too."""
    parent = os.getpid() if pid is None else pid
    return {int(name) for name in _listed("/proc") if name.isdigit() and _facts(int(name))[1] == parent}


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    return _facts(pid)[0] not in "ZX"


def _facts(pid: int) -> tuple[str, int]:
    """The state of a process, as one letter, and its parent."""
    try:
        state, parent, *_ = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return "X", -1
    return state, int(parent)


def descriptors() -> list[str]:
    """What each open descriptor of this process leads to."""
    found = []
    for name in _listed("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:  # the folder's own, while it was listed
            continue
    return sorted(found)


def shared_mappings() -> int:
    """How many pieces of memory of this process others may see."""
    return sum(" rw-s " in line for line in Path("/proc/self/maps").read_text().splitlines())


def segments() -> set[str]:
    """Shared memory that has a name, which outlives those who made it."""
    return set(_listed("/dev/shm"))


def holdings() -> dict[str, Any]:
    """All that must not grow, however many pools have come and gone."""
    return {
        "children": children(),
        "descriptors": len(descriptors()),
        "memfds": sum("memfd:" in each for each in descriptors()),
        "mappings": shared_mappings(),
        "segments": segments(),
        "threads": len(_listed("/proc/self/task")),
    }


def grown(before: dict[str, Any]) -> dict[str, Any]:
    """Of what this process holds, that of which it is more than before; what others have left may end meanwhile."""
    return {name: now for name, now in holdings().items() if not now <= before[name]}


def command_of(pid: int) -> str:
    """How a process was started."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
    except (FileNotFoundError, ProcessLookupError):
        return "gone"


def wait_until(happens: Callable[[], bool], seconds: float, told: Callable[[], str] = str) -> float:
    """Waits, and returns how long it took; fails the test when it takes longer than `seconds`."""
    start = time.perf_counter()
    while not happens():
        took = time.perf_counter() - start
        assert took < seconds, told() or f"it has not happened within {seconds} s"
        time.sleep(0.005)
    return time.perf_counter() - start


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, ProcessLookupError):
        return []
