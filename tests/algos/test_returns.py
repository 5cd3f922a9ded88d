import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from raceway.algos.returns import explained_variance, generalized_advantages

_compiled = jax.jit(generalized_advantages)


def test_advantages_by_hand_with_termination_and_truncation_apart():
    """γ = 0.5, λ = 0.5, three steps of three environments: running on, terminated at t = 1, truncated at t = 1.

    Rewards 1, 2, 3; values 4, 8, 12, 16; the truncated episode's true last observation is worth 20.
    Running:    δ = 1 + 4 - 4 = 1,  2 + 6 - 8 = 0,   3 + 8 - 12 = -1;  A₂ = -1, A₁ = 0 - 1/4,  A₀ = 1 - 1/16
    Terminated: δ₁ = 2 + 0 - 8 = -6;                                   A₂ = -1, A₁ = -6,       A₀ = 1 - 6/4
    Truncated:  δ₁ = 2 + 10 - 8 = 4;                                   A₂ = -1, A₁ = 4,        A₀ = 1 + 4/4
    """
    ends = np.zeros((2, 3, 3), bool)
    ends[0, 1, 1] = ends[1, 1, 2] = True
    rewards = np.repeat(np.array([[1.0], [2.0], [3.0]], np.float32), 3, axis=1)
    values = np.repeat(np.array([[4.0], [8.0], [12.0], [16.0]], np.float32), 3, axis=1)
    final_values = np.where(ends[1], 20.0, 0.0).astype(np.float32)
    advantages = _compiled(rewards, values, final_values, *ends, 0.5, 0.5)
    expected = [[1 - 1 / 16, -0.5, 2.0], [-0.25, -6.0, 4.0], [-1.0, -1.0, -1.0]]
    np.testing.assert_array_equal(np.asarray(advantages), np.array(expected, np.float32))


def test_an_episode_that_terminates_as_its_time_runs_out_has_no_value_after_it():
    one = np.ones((1, 1), np.float32)
    both = np.ones((1, 1), bool)
    advantages = _compiled(one, np.full((2, 1), 3, np.float32), one * 100, both, both, 0.9, 0.9)
    assert float(advantages[0, 0]) == 1 - 3


@given(st.sampled_from([1, 2, 12]), st.floats(0, 1), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_advantages_are_those_of_a_plain_loop(num_steps, gamma, lambda_, seed):
    rng = np.random.default_rng(seed)
    num_envs = 3
    rewards, final_values = rng.normal(size=(2, num_steps, num_envs)).astype(np.float32)
    values = rng.normal(size=(num_steps + 1, num_envs)).astype(np.float32)
    terminated, truncated = rng.random((2, num_steps, num_envs)) < 0.3
    expected = np.zeros((num_steps, num_envs))
    for env in range(num_envs):
        later = 0.0
        for t in reversed(range(num_steps)):
            after = final_values[t, env] if truncated[t, env] else values[t + 1, env]
            delta = rewards[t, env] + gamma * (0.0 if terminated[t, env] else after) - values[t, env]
            later = delta + (0.0 if terminated[t, env] or truncated[t, env] else gamma * lambda_ * later)
            expected[t, env] = later
    advantages = _compiled(rewards, values, final_values, terminated, truncated, gamma, lambda_)
    np.testing.assert_allclose(np.asarray(advantages), expected, atol=1e-5)


def test_explained_variance_of_perfect_and_useless_critics():
    returns, weights = jnp.array([1.0, 2.0, 3.0, 99.0]), jnp.array([1.0, 1.0, 1.0, 0.0])
    assert float(explained_variance(returns, returns, weights)) == 1
    assert float(explained_variance(jnp.zeros(4), returns, weights)) == 0
