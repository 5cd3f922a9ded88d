from typing import Any

import jax
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from raceway.algos.returns import generalized_advantages
from raceway.algos.vtrace import Traced, vtrace

_compiled = jax.jit(vtrace)


def _traced(log_ratios: np.ndarray, *rest: Any, rho_bar: float, c_bar: float) -> Traced:
    ratios = np.exp(log_ratios)
    return _compiled(np.minimum(ratios, rho_bar), np.minimum(ratios, c_bar), *rest)


def papers_targets(ratios: np.ndarray, *rest: Any) -> np.ndarray:
    """Equation 1 of the paper, sums and products written out. A plain loop over everything."""
    rewards, values, final_values, terminated, truncated, gamma, rho_bar, c_bar = rest
    num_steps, num_envs = rewards.shape
    targets = np.zeros((num_steps, num_envs))
    for env in range(num_envs):
        for s in range(num_steps):
            total, product = values[s, env], 1.0
            for t in range(s, num_steps):
                after = values[t + 1, env]
                if truncated[t, env]:
                    after = final_values[t, env]
                if terminated[t, env]:
                    after = 0.0
                delta = min(rho_bar, ratios[t, env]) * (rewards[t, env] + gamma * after - values[t, env])
                total += gamma ** (t - s) * product * delta
                product *= min(c_bar, ratios[t, env])
                if terminated[t, env] or truncated[t, env]:
                    break
            targets[s, env] = total
    return targets


def papers_advantages(targets: np.ndarray, ratios: np.ndarray, *rest: Any) -> np.ndarray:
    """ρₛ (rₛ + γ vₛ₊₁ - V(xₛ)), where vₛ₊₁ after an end is 0 or the last observation's value."""
    rewards, values, final_values, terminated, truncated, gamma, rho_bar = rest
    after = np.concatenate([targets[1:], values[-1:]])
    after = np.where(terminated, 0.0, np.where(truncated, final_values, after))
    return np.minimum(rho_bar, ratios) * (rewards + gamma * after - values[:-1])


def _random_round(num_steps: int, seed: int):
    rng = np.random.default_rng(seed)
    shape = (num_steps, 3)
    log_ratios, rewards, final_values = rng.normal(size=(3, *shape)).astype(np.float32)
    values = rng.normal(size=(num_steps + 1, 3)).astype(np.float32)
    terminated, truncated = rng.random((2, *shape)) < 0.2
    return log_ratios, rewards, values, final_values, terminated, truncated


@given(st.sampled_from([1, 2, 9]), st.floats(0, 1), st.floats(0.5, 3), st.floats(0.3, 2), st.integers(0, 2**32 - 1))
def test_targets_and_advantages_are_the_papers(num_steps, gamma, rho_bar, c_bar, seed):
    log_ratios, *rest = _random_round(num_steps, seed)
    ratios = np.exp(log_ratios.astype(np.float64))
    found = _traced(log_ratios, *rest, gamma, rho_bar=rho_bar, c_bar=c_bar)
    targets = papers_targets(ratios, *rest, gamma, rho_bar, c_bar)
    np.testing.assert_allclose(found.targets, targets, rtol=1e-4, atol=1e-4)
    advantages = papers_advantages(targets, ratios, *rest, gamma, rho_bar)
    np.testing.assert_allclose(np.minimum(ratios, rho_bar) * found.advantages, advantages, rtol=1e-4, atol=1e-4)


@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_of_the_policys_own_steps_it_makes_generalised_advantages(gamma, lambda_, seed):
    log_ratios, *rest = _random_round(9, seed)
    found = _compiled(np.ones_like(log_ratios), np.ones_like(log_ratios), *rest, gamma, lambda_)
    rewards, values, final_values, terminated, truncated = rest
    advantages = generalized_advantages(rewards, values, final_values, terminated, truncated, gamma, lambda_)
    np.testing.assert_allclose(found.advantages, advantages, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.targets, values[:-1] + advantages, rtol=1e-4, atol=1e-4)


def test_of_the_policys_own_steps_it_makes_whole_returns():
    """With ratios of 1: R = A + V of generalised advantages with λ = 1, bootstrapped at the round's end."""
    _, rewards, values, final_values, terminated, truncated = _random_round(9, 5)
    one = np.ones_like(rewards)
    found = _compiled(one, one, rewards, values, final_values, terminated, truncated, 0.9)
    advantages = generalized_advantages(rewards, values, final_values, terminated, truncated, 0.9, 1.0)
    np.testing.assert_allclose(found.targets, values[:-1] + advantages, atol=1e-5)
    np.testing.assert_allclose(found.advantages, advantages, atol=1e-5)


def test_by_hand():
    """γ = 1/2, ρ̄ = 1, c̄ = 1/2, rewards 1, 2; values 4, 8, 12; ratios 1/2 and 3; running on, terminated, truncated at 0.

    δ₁ = 1 (2 + 6 - 8) = 0: v₁ = 8 + 0 = 8, and its advantage is 1 (2 + 6 - 8) = 0.
    Running:    δ₀ = 1/2 (1 + 4 - 4) = 1/2:  v₀ = 4 + 1/2 + 1/2 · 1/2 · 0;  advantage 1/2 (1 + 4 - 4) = 1/2
    Terminated: δ₀ = 1/2 (1 + 0 - 4) = -3/2: v₀ = 5/2;                       advantage -3/2
    Truncated, its last observation worth 20: δ₀ = 1/2 (1 + 10 - 4) = 7/2: v₀ = 15/2; advantage 7/2
    """
    ends = np.zeros((2, 2, 3), bool)
    ends[0, 0, 1] = ends[1, 0, 2] = True
    columns = [np.repeat(np.array(x, np.float32)[:, None], 3, axis=1) for x in ([0.5, 3], [1, 2], [4, 8, 12])]
    ratios, rewards, values = columns
    final_values = np.where(ends[1], 20, 0).astype(np.float32)
    found = _traced(np.log(ratios), rewards, values, final_values, *ends, 0.5, rho_bar=1.0, c_bar=0.5)
    np.testing.assert_allclose(found.targets, [[4.5, 2.5, 7.5], [8.0, 8.0, 8.0]], atol=1e-5)
    np.testing.assert_allclose(np.minimum(ratios, 1) * found.advantages, [[0.5, -1.5, 3.5], [0.0, 0.0, 0.0]], atol=1e-5)


def test_no_gradient_flows_through_it():
    log_ratios, rewards, values, final_values, terminated, truncated = _random_round(4, 1)

    def total(ratios, values):
        traced: Traced = vtrace(ratios, ratios, rewards, values, final_values, terminated, truncated, 0.9)
        return traced.targets.sum() + traced.advantages.sum()

    for gradient in jax.grad(total, argnums=(0, 1))(log_ratios, values):
        np.testing.assert_array_equal(gradient, 0)
