"""V-trace (Espeholt et al. 2018): what states are worth to a policy, from steps that another one took."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from raceway.algos.counted import Array
from raceway.algos.returns import discounted_sums


class Traced(NamedTuple):
    """What V-trace makes of a round, [T, N] each. Constants: no gradient flows through them."""

    targets: Array
    """vₜ: what the values are to become."""
    advantages: Array
    """rₜ + γ V(sₜ₊₁) + γλ (vₜ₊₁ - V(sₜ₊₁)) - V(sₜ): how much better the action was than expected."""


def vtrace(
    rhos: Array,
    cs: Array,
    rewards: Array,
    values: Array,
    final_values: Array,
    terminated: Array,
    truncated: Array,
    gamma: float,
    lambda_: float = 1.0,
) -> Traced:
    """vₜ = V(sₜ) + Σₖ (γλ)ᵏ (cₜ ⋯ cₜ₊ₖ₋₁) δₜ₊ₖ over k = 0, 1, ... to the episode's or the round's end, all [T, N].

    δₜ = ρₜ (rₜ + γ V(sₜ₊₁) - V(sₜ)). ρ and c are the importance ratios π(aₜ|sₜ) / π_behaviour(aₜ|sₜ), truncated; values
    [T+1, N] are those of the policy π that learns. After a terminated step nothing follows. After a truncated one the
    value of its true last observation does, `final_values`, as the behaviour's critic has it: the observation itself is
    not kept.

    With all ratios 1 the advantages are the generalised ones (Schulman et al. 2015), and vₜ = V(sₜ) + Aₜ.
    """
    rhos, cs, values = jax.lax.stop_gradient((rhos, cs, values))
    ended = terminated | truncated
    after_end = jnp.where(terminated, 0.0, final_values)
    errors = rewards + gamma * jnp.where(ended, after_end, values[1:]) - values[:-1]
    discounts = jnp.where(ended, 0.0, gamma * lambda_)
    surplus = discounted_sums(rhos * errors, discounts * cs)  # vₜ - V(sₜ) = ρₜδₜ + γλ cₜ (vₜ₊₁ - V(sₜ₊₁))
    following = jnp.concatenate([surplus[1:], jnp.zeros_like(surplus[:1])])
    return Traced(values[:-1] + surplus, errors + discounts * following)
