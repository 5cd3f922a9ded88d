"""What is compiled here runs a few times on small arrays: most of the time would go into optimizing it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def compiled_without_optimizing() -> Iterator[None]:
    import jax

    jax.config.update("jax_disable_most_optimizations", True)  # type: ignore[no-untyped-call]
    yield
    jax.config.update("jax_disable_most_optimizations", False)  # type: ignore[no-untyped-call]
