"""Which device the learner computes on."""

from __future__ import annotations

import jax

from raceway.errors import SettingError


def choose_device(wanted: str) -> str:
    """Makes JAX compute on a kind of device from now on; returns what it is."""
    if wanted == "auto":
        wanted = "cpu" if jax.default_backend() == "cpu" else "gpu"
    try:
        device = jax.devices(wanted)[0]
    except RuntimeError:
        raise SettingError(
            f"device={wanted!r}, but JAX sees none. `raceway doctor` says why and how to change it; device='cpu' "
            "always works."
        ) from None
    jax.config.update("jax_default_device", device)  # type: ignore[no-untyped-call]
    return str(device.device_kind)
