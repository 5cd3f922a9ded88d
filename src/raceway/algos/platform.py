"""What programs are compiled for: some are written one way for CPUs and another way for accelerators."""

from __future__ import annotations

import jax


def computes_on_cpu() -> bool:
    """Whether the device that is chosen, or else JAX's own choice, is the CPU."""
    chosen = getattr(jax.config, "jax_default_device")  # noqa: B009 (its type is not declared)
    if chosen is None:
        return jax.default_backend() == "cpu"
    return str(getattr(chosen, "platform", chosen)) == "cpu"
