"""What tests of training share.

Most of a small run's time goes into compiling: programs that are equal are compiled once for all tests.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.compiling import without_optimizing


@pytest.fixture(scope="session", autouse=True)
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    import jax

    settings = {
        "jax_compilation_cache_dir": str(tmp_path_factory.mktemp("compiled")),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    for name, value in settings.items():
        jax.config.update(name, value)  # type: ignore[no-untyped-call]


@pytest.fixture(scope="module")
def compiled_without_optimizing() -> Iterator[None]:
    """For what is about other things than what JAX computes, and compares no run here with one in another process."""
    with without_optimizing():
        yield


@pytest.fixture(autouse=True)
def ctrl_c_is_heard() -> Any:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a run in the background ignores it
    yield
    signal.signal(signal.SIGINT, before)
