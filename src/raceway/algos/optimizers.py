"""The optimisers that algorithms may ask for, as optax has them, without the learning rate: that is in the state."""

from __future__ import annotations

import optax


def adam() -> optax.GradientTransformation:
    """Adam (Kingma and Ba 2014) with the ε that PPO is used with."""
    return optax.scale_by_adam(eps=1e-5)


def rmsprop() -> optax.GradientTransformation:
    """RMSProp as TensorFlow and SB3's A2C have it: squares begin at 1, ε is under the root."""
    return optax.scale_by_rms(decay=0.99, eps=1e-5, initial_scale=1.0, eps_in_sqrt=True)


def optimizer_named(name: str) -> optax.GradientTransformation:
    return {"adam": adam, "rmsprop": rmsprop}[name]()
