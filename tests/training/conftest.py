"""What tests of training share.

Most of a small run's time goes into compiling: programs that are equal are compiled once for all tests.
"""

from __future__ import annotations

import signal
from typing import Any

import pytest


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


@pytest.fixture(autouse=True)
def ctrl_c_is_heard() -> Any:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a run in the background ignores it
    yield
    signal.signal(signal.SIGINT, before)
