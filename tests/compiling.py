"""For what runs a few times on small arrays: most of the time would go into optimizing it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_optimizing() -> Iterator[None]:
    """What JAX compiles meanwhile is compiled in less time, and runs slower."""
    import jax

    jax.config.update("jax_disable_most_optimizations", True)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        jax.config.update("jax_disable_most_optimizations", False)  # type: ignore[no-untyped-call]
