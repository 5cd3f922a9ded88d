"""Advantages and returns."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from raceway.algos.counted import Array


def generalized_advantages(
    rewards: Array,
    values: Array,
    final_values: Array,
    terminated: Array,
    truncated: Array,
    gamma: float,
    lambda_: float,
) -> Array:
    """Aₜ = δₜ + γλ(1 - endₜ)Aₜ₊₁ with δₜ = rₜ + γ(1 - terminatedₜ)V(sₜ₊₁) - V(sₜ), all [T, N] but values [T+1, N].

    An episode that was cut off (truncated) still bootstraps, from the value of its true last observation: there
    V(sₜ₊₁) is `final_values`, for values[t + 1] belongs to the next episode already.
    """
    ended = terminated | truncated
    next_values = jnp.where(terminated, 0.0, jnp.where(truncated, final_values, values[1:]))
    deltas = rewards + gamma * next_values - values[:-1]
    discounts = jnp.where(ended, 0.0, gamma * lambda_)
    return discounted_sums(deltas, discounts)


def discounted_sums(deltas: Array, discounts: Array) -> Array:
    """Sₜ = δₜ + dₜ Sₜ₊₁ from the last step back, with nothing after it, all [T, N]."""

    def back(following: Array, step: tuple[Array, Array]) -> tuple[Array, Array]:
        delta, discount = step
        total = delta + discount * following
        return total, total

    return jax.lax.scan(back, jnp.zeros_like(deltas[0]), (deltas, discounts), reverse=True)[1]


def explained_variance(values: Array, returns: Array, weights: Array | None) -> Array:
    """1 - Var[returns - values] / Var[returns]: 1 for a perfect critic, 0 for one that says nothing.

    0 too where returns do not vary: there is nothing to explain.
    """

    def variance(x: Array) -> Array:
        return weighted_mean(jnp.square(x - weighted_mean(x, weights)), weights)

    whole = variance(returns)
    return jnp.where(whole == 0, 0.0, 1.0 - variance(returns - values) / jnp.where(whole == 0, 1.0, whole))


def weighted_mean(x: Array, weights: Array | None) -> Array:
    """The mean over the rows of weight 1, [B, ...] to [...]; over all if there are no weights. 0 if no row counts."""
    if weights is None:
        return jnp.mean(x, axis=0)
    return weights @ x / jnp.maximum(jnp.sum(weights), 1.0)
