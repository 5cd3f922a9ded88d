"""How much memory there is, so that what cannot fit is refused before it is allocated."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

from raceway.errors import SettingError
from raceway.messages import quantity

_CGROUPS = Path("/sys/fs/cgroup")


def memory_bytes() -> tuple[int, int]:
    """Memory of the machine: (in all, free for use). Zeros where the system does not tell."""
    found = {}
    try:
        with open("/proc/meminfo", encoding="utf-8") as lines:
            for line in lines:
                name, _, value = line.partition(":")
                found[name] = int(value.split()[0]) * 1024
    except OSError:
        pass
    return found.get("MemTotal", 0), found.get("MemAvailable", 0)


def available_bytes() -> int | None:
    """What this process may still allocate: of the machine's memory, its control group's and its own limit.

    None where nothing tells.
    """
    limits = [each for each in (memory_bytes()[1], *_left_in_cgroups(), _left_of_own_limit()) if each]
    return max(min(limits), 1) if limits else None


def require_memory(wanted: int, what: str, fix: str) -> None:
    """Refuses what would take more than the memory there is. `what`: a sentence's subject; `fix`: what to do."""
    available = available_bytes()
    if available is not None and wanted > available:
        raise SettingError(
            f"{what} would take {quantity(wanted)} of memory, and {quantity(available)} are available. {fix}"
        )


def _left_in_cgroups() -> Iterator[int]:
    """What the control groups of this process leave, containers among them."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if not controllers:  # version 2
            yield from _left(_CGROUPS, name, "memory.max", "memory.current", "")
        elif "memory" in controllers.split(","):
            yield from _left(_CGROUPS / "memory", name, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_")


def _left(root: Path, name: str, limit: str, used: str, prefix: str) -> Iterator[int]:
    """What a group and each of its parents leave. A container sees itself as the root."""
    own = root / name.strip("/")
    for group in (own, *own.parents):
        try:
            limit_text = (group / limit).read_text(encoding="utf-8").strip()
            if limit_text.isdigit():  # or "max"
                taken = int((group / used).read_text(encoding="utf-8")) - _page_cache(group, prefix)
                yield max(int(limit_text) - taken, 1)
        except (OSError, ValueError):
            pass
        if group == root:
            return


def _page_cache(group: Path, prefix: str) -> int:
    """Bytes of files that a control group has read or written, which the kernel gives up before it runs out."""
    found = {}
    for line in (group / "memory.stat").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(" ")
        found[name] = int(value)
    return sum(found.get(f"{prefix}{each}_file", 0) for each in ("active", "inactive"))


def _left_of_own_limit() -> int:
    """Of `ulimit -v`; 0 if there is none."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return 0
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
    except (OSError, ValueError):
        pages = 0
    return max(limit - pages * os.sysconf("SC_PAGE_SIZE"), 1)
