"""Facts about this machine and the packages in it, for run folders and the doctor."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from typing import Any

from raceway._core import usable_cpus
from raceway.memory import memory_bytes

PACKAGES = ("raceway", "jax", "jaxlib", "numpy", "gymnasium", "mujoco", "optax")


def versions() -> dict[str, str | None]:
    """The versions of what decides results; None for what is not installed. Nothing is imported for it."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = None
    return found


def cpu_name() -> str:
    """The CPU's type, as the system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                name, _, value = line.partition(":")
                if name.strip() == "model name":
                    return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def xla_threads() -> int:
    """Threads that XLA computes with on the CPU. How sums are split among them shows in the last bits."""
    given = os.environ.get("NPROC", "")
    return int(given) if given.isdigit() and int(given) > 0 else usable_cpus()


def system_facts() -> dict[str, Any]:
    """What a run's bits depend on beside its settings, as plain data."""
    return {
        "versions": versions(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpu": cpu_name(),
        "cpus": os.cpu_count(),
        "usable_cpus": usable_cpus(),
        "xla_threads": xla_threads(),
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
        "memory_bytes": memory_bytes()[0],
    }
