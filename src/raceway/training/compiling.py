"""Compiled programs are kept between runs: what took seconds to compile is read in milliseconds."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import jax

from raceway.cache import private_folder, remove_foreign
from raceway.report.system import cpu_name, versions

_LEAST_COMPILE_S = 0.05
_LARGEST_PROGRAM = 1 << 28


def keep_compiled() -> None:
    """Lets JAX keep what it compiles, unless a place for that has been chosen already (JAX_COMPILATION_CACHE_DIR)."""
    if jax.config.jax_compilation_cache_dir is not None:  # type: ignore[attr-defined]
        return
    directory = cache_directory()
    if directory is None:
        return
    settings = {
        "jax_compilation_cache_dir": str(directory),
        "jax_persistent_cache_min_compile_time_secs": _LEAST_COMPILE_S,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    for name, value in settings.items():
        jax.config.update(name, value)  # type: ignore[no-untyped-call]


def cache_directory() -> Path | None:
    """One for each kind of CPU and version of JAX: programs compiled for another may not run, or not be equal.

    None where there is no place that only this user can write to: training works without, and takes longer to begin.
    """
    found = versions()
    kind = f"{cpu_name()} {_cpu_features()} {found['jax']} {found['jaxlib']}"
    directory = private_folder(f"compiled/{hashlib.sha256(kind.encode()).hexdigest()[:16]}")
    if directory is not None:
        remove_foreign(directory, _LARGEST_PROGRAM)  # JAX opens whatever has the right name
    return directory


def _cpu_features() -> str:
    try:
        found = re.search(r"^(?:flags|Features)\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.M)
    except OSError:
        return ""
    return found[1] if found else ""
