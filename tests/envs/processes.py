"""Runs scripts in processes of their own, and counts what a process holds."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Ended:
    """How a script ended."""

    code: int
    output: str
    errors: str
    seconds: float


def run_script(script: str, *arguments: str, timeout_s: float = 60.0) -> Ended:
    """Runs Python source in a fresh interpreter that can import `tests`. One that hangs fails the test."""
    command = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    start = time.perf_counter()
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired as expired:
        said = (expired.stdout or b"").decode(), (expired.stderr or b"").decode()
        raise AssertionError(f"the script did not end within {timeout_s} s. It said: {said}") from None
    return Ended(done.returncode, done.stdout.strip(), done.stderr.strip(), time.perf_counter() - start)


def output_of(script: str, *arguments: str, timeout_s: float = 60.0) -> str:
    """What a script printed that must end without an error."""
    ended = run_script(script, *arguments, timeout_s=timeout_s)
    assert (ended.code, ended.errors) == (0, ""), ended
    return ended.output


def resident_kib() -> int:
    """The memory of this process that is in RAM."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() // 1024


def threads() -> list[int]:
    """The ids of this process's threads."""
    return [int(name) for name in os.listdir("/proc/self/task")]


def pool_threads() -> list[int]:
    """Those of them that work for pools."""
    found = []
    for thread in threads():
        try:
            name = Path(f"/proc/self/task/{thread}/comm").read_text()
        except FileNotFoundError:  # it ended since
            continue
        if name.startswith("raceway-"):
            found.append(thread)
    return found


def open_files() -> int:
    """How many file descriptors this process has."""
    return len(os.listdir("/proc/self/fd"))
