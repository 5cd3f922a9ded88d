import functools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from raceway.algos.a2c import A2C
from raceway.algos.configs import A2CConfig, NetworkConfig
from raceway.algos.rollout import Rollout
from tests.algos.linear import LINEAR, evaluate, numeric_gradient
from tests.algos.rollouts import ACTION_SPACES, SOME_ACTIONS, drawn_rollout, random_rollout

T, N = 5, 4
BOX = spaces.Box(-1, 1, (3,))


@functools.cache
def _a2c(action: str = "discrete", network: NetworkConfig = LINEAR, **settings) -> A2C:
    return A2C(A2CConfig(n_steps=T, **settings), BOX, ACTION_SPACES[action], network)


def _drawn(a2c: A2C, params, version: int = 0, action: str = "discrete", **changes) -> Rollout:
    rollout = replace(random_rollout(BOX, ACTION_SPACES[action], T, N), version=version, **changes)
    return drawn_rollout(a2c, params, rollout)


def _descent(a2c: A2C, state, rollout: Rollout) -> np.ndarray:
    """The gradient that an update was made of: RMSProp's squares tell its size, and the step its sign."""
    after, _ = a2c.update(state, rollout, 0.0, 1, 0)
    squares = (np.asarray(after.optimizer.nu) - 0.99 * np.asarray(state.optimizer.nu)) / 0.01
    return np.sqrt(np.maximum(squares, 0)) * np.sign(np.asarray(state.params) - np.asarray(after.params))


@pytest.mark.parametrize("correction", ["none", "ratio"])
def test_the_gradient_is_that_of_the_papers_loss(correction):
    """By finite differences of -E[w A ln π] + c₁E[(V - R)²] - c₂E[H] in float64, with A, R and w held fast."""
    a2c = _a2c(correction=correction, ent_coef=0.02, vf_coef=0.7, rho_bar=1.2, max_grad_norm=1e9)
    params = np.asarray(a2c.init(1).params) + np.random.default_rng(0).normal(0, 0.3, a2c.network.num_params)
    rollout = random_rollout(BOX, ACTION_SPACES["discrete"], T, N)
    samples = a2c.samples(a2c.batch(rollout))
    advantages, returns = (np.asarray(x, np.float64).reshape(T, N) for x in (samples.advantages, samples.returns))
    said = evaluate(a2c, params, rollout.obs, rollout.actions)
    ratios = np.minimum(np.exp(said.log_probs - rollout.log_probs), 1.2)
    assert (ratios == 1.2).any()
    assert (ratios < 1.2).any()
    weights = ratios if correction == "ratio" else 1.0

    def loss(at: np.ndarray) -> float:
        said = evaluate(a2c, at, rollout.obs, rollout.actions)
        value_loss = np.square(said.values[:-1] - returns).mean()
        return -(weights * advantages * said.log_probs).mean() + 0.7 * value_loss - 0.02 * said.entropies.mean()

    tree = a2c.network.unravel(jnp.asarray(params, jnp.float32))
    found = a2c.network.ravel(jax.grad(a2c.round_loss)(tree, a2c.batch(rollout), 0, a2c.ent_coef))
    np.testing.assert_allclose(found, numeric_gradient(loss, params), atol=2e-5)


def test_at_lag_0_all_corrections_are_one():
    state = _a2c().init(1)
    rollout = _drawn(_a2c(), state.params)
    after = [_a2c(correction=name).update(state, rollout, 0.0, 1, 0)[0].params for name in ("none", "ratio", "delayed")]
    np.testing.assert_allclose(after[1], after[0], atol=1e-6)
    np.testing.assert_array_equal(after[2], after[0])


def test_delayed_takes_the_gradient_of_the_parameters_that_collected_and_applies_it_to_the_current_ones():
    """θ₂ = θ₁ + η∇J(θ₀, rollout of θ₀)."""
    delayed = _a2c(correction="delayed", learning_rate=0.05)
    first = delayed.init(1)
    old = _drawn(delayed, first.params, version=0)
    second, _ = delayed.update(first, _drawn(delayed, first.params, rewards=-old.rewards), 0.0, 1, 0)
    assert int(second.updates) == 1
    np.testing.assert_array_equal(second.previous, first.params)
    wanted = _descent(delayed, second._replace(params=first.params, updates=second.updates * 0), old)
    found = _descent(delayed, second, old)
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    plain = _descent(_a2c(correction="none", learning_rate=0.05), second, old)
    assert np.abs(plain - wanted).max() > 1e-3
    _, metrics = delayed.update(second, old, 0.0, 1, 1)
    assert float(metrics["ratio_first"][0]) < 1e-5  # the policy that learns is the one that collected
    # What the current parameters collected is learnt from where they are.
    fresh = _drawn(delayed, second.params, version=1)
    _, metrics = delayed.update(second, fresh, 0.0, 1, 1)
    assert float(metrics["ratio_first"][0]) < 1e-5


def test_ratios_count_up_to_their_bound():
    ratio = _a2c(correction="ratio", learning_rate=0.05)
    state = ratio.init(1)
    rollout = _drawn(ratio, state.params)
    state, _ = ratio.update(state, rollout, 0.0, 1, 0)
    _, metrics = ratio.update(state, rollout, 0.0, 1, 1)
    assert float(metrics["ratio_first"][0]) > 1e-3
    assert 0 < float(metrics["clip_fraction"][0]) < 1
    # All far above the bound: the same as if none were above it.
    near, far = (replace(rollout, log_probs=rollout.log_probs - shift) for shift in (3.0, 5.0))
    one, other = (ratio.update(state, each, 0.0, 1, 1)[0].params for each in (near, far))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("correction", ["none", "ratio", "delayed"])
def test_a_state_survives_being_saved(correction):
    a2c = _a2c(correction=correction)
    state = a2c.init(1)
    for version in range(2):
        state, _ = a2c.update(state, _drawn(a2c, state.params, version), 0.0, 1, version)
    again = a2c.load(a2c.save(state))
    assert type(again) is type(state)
    old = _drawn(a2c, state.previous, version=1)
    one, other = (a2c.update(each, old, 0.0, 1, 2)[0] for each in (state, again))
    for left, right in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(left, right)


def test_rows_that_are_no_transitions_have_no_influence():
    a2c = _a2c(ent_coef=0.01, correction="ratio", normalize_advantage=True)
    state = a2c.init(1)
    rollout = _drawn(a2c, state.params)
    valid, ended = np.ones((T, N), bool), rollout.terminated.copy()
    valid[3, 1] = False
    ended[2, 1] = True  # such a row follows an episode's end
    rollout = replace(rollout, valid=valid, terminated=ended)
    names = ("rewards", "actions", "log_probs", "values", "obs")
    spoilt = replace(rollout, **{name: getattr(rollout, name).copy() for name in names})
    spoilt.rewards[3, 1], spoilt.actions[3, 1], spoilt.log_probs[3, 1] = 50, 2, -2000
    spoilt.values[3, 1], spoilt.obs[3, 1] = 70, 8
    one, other = (a2c.update(state, each, 0.0, 1, 0) for each in (rollout, spoilt))
    np.testing.assert_allclose(one[0].params, other[0].params, atol=1e-6)
    for name, values in one[1].items():
        np.testing.assert_allclose(values, other[1][name], atol=1e-5, err_msg=name)
    everything = a2c.update(state, replace(spoilt, valid=None), 0.0, 1, 0)[0]
    assert not np.allclose(everything.params, one[0].params, atol=1e-4)


def test_masked_actions_stay_impossible():
    a2c = _a2c("multi-discrete", ent_coef=0.01)
    state = a2c.init(1)
    mask = np.ones((T, N, 5), bool)
    mask[..., 0] = mask[..., 3] = False
    rollout = _drawn(a2c, state.params, action="multi-discrete", action_mask=mask)
    assert (rollout.actions[..., 0] == 1).all()
    after, metrics = a2c.update(state, rollout, 0.0, 1, 0)
    assert float(metrics["ratio_first"][0]) < 1e-5
    assert np.isfinite(np.asarray(after.params)).all()


@pytest.mark.parametrize("name", SOME_ACTIONS)
def test_rewarded_actions_become_more_likely(name):
    a2c = _a2c(name, NetworkConfig(hidden=(6,)), optimizer="adam", learning_rate=0.02)
    state = a2c.init(1)
    blank = random_rollout(BOX, ACTION_SPACES[name], T, N)
    blank = replace(blank, obs=np.ones((T + 1, N, 3), np.float32), terminated=np.ones((T, N), bool))

    def reward_of(rollout: Rollout) -> np.ndarray:
        first = rollout.actions if rollout.actions.ndim == 2 else rollout.actions[..., 0]
        return -np.abs(first - 1).astype(np.float32)

    rewards = []
    for round_ in range(150):
        rollout = drawn_rollout(a2c, state.params, replace(blank, version=round_))
        rewards.append(reward_of(rollout).mean())
        state, _ = a2c.update(state, replace(rollout, rewards=reward_of(rollout)), 0.0, 1, round_)
    assert np.mean(rewards[-10:]) > 0.5 * np.mean(rewards[:10])  # losses: less than half of them is left


def test_linear_learning_rate_follows_the_progress_and_long_gradients_are_shortened():
    a2c = _a2c(lr_schedule="linear", learning_rate=0.01, max_grad_norm=1e-3)
    state = a2c.init(1)
    rollout = _drawn(a2c, state.params)
    for progress in (0.0, 0.25, 1.0):
        after, metrics = a2c.update(state, rollout, progress, 1, 0)
        np.testing.assert_allclose(metrics["learning_rate"], [0.01 * (1 - progress)], rtol=1e-5)
    np.testing.assert_array_equal(after.params, state.params)
    assert float(metrics["gradient_norm"][0]) > 0.01  # told as it was
    squares = (np.asarray(after.optimizer.nu, np.float64) - 0.99) / 0.01
    assert squares.max() < 1e-3
