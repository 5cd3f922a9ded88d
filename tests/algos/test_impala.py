import functools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from raceway.algos.configs import ImpalaConfig, NetworkConfig
from raceway.algos.impala import Impala
from raceway.algos.rollout import Rollout
from tests.algos.linear import LINEAR, evaluate, numeric_gradient
from tests.algos.rollouts import ACTION_SPACES, SOME_ACTIONS, drawn_rollout, random_rollout
from tests.algos.test_vtrace import papers_advantages, papers_targets

T, N = 5, 4
BOX = spaces.Box(-1, 1, (3,))


@functools.cache
def _impala(action: str = "discrete", network: NetworkConfig = LINEAR, **settings) -> Impala:
    return Impala(ImpalaConfig(n_steps=T, **settings), BOX, ACTION_SPACES[action], network)


def _drawn(impala: Impala, params, action: str = "discrete", **changes) -> Rollout:
    return drawn_rollout(impala, params, replace(random_rollout(BOX, ACTION_SPACES[action], T, N), **changes))


def test_the_gradient_is_the_papers():
    """By finite differences in float64, with V-trace's own sums, of a round that nobody like the learner collected."""
    impala = _impala(ent_coef=0.02, vf_coef=0.7, rho_bar=1.3, c_bar=0.9)
    params = np.asarray(impala.init(1).params) + np.random.default_rng(0).normal(0, 0.3, impala.network.num_params)
    rollout = random_rollout(BOX, ACTION_SPACES["discrete"], T, N)
    said = evaluate(impala, params, rollout.obs, rollout.actions)
    ratios = np.exp(said.log_probs - rollout.log_probs)
    assert (ratios > 1.3).any()
    assert (ratios < 0.9).any()
    rest = rollout.rewards, said.values, rollout.final_values, rollout.terminated, rollout.truncated, 0.99, 1.3
    targets = papers_targets(ratios, *rest, 0.9)
    advantages = papers_advantages(targets, ratios, *rest)

    def loss(at: np.ndarray) -> float:
        said = evaluate(impala, at, rollout.obs, rollout.actions)
        value_loss = np.square(said.values[:-1] - targets).mean()
        return -(advantages * said.log_probs).mean() + 0.7 * value_loss - 0.02 * said.entropies.mean()

    tree = impala.network.unravel(jnp.asarray(params, jnp.float32))
    found = impala.network.ravel(jax.grad(impala.round_loss)(tree, impala.batch(rollout), 0, impala.ent_coef))
    np.testing.assert_allclose(found, numeric_gradient(loss, params), atol=2e-5)


def test_values_are_the_learners_own_but_after_truncation():
    impala = _impala()
    state = impala.init(1)
    rollout = _drawn(impala, state.params)
    assert (rollout.truncated & ~rollout.terminated).any()
    other_values = replace(rollout, values=rollout.values + 100)
    other_last = replace(rollout, final_values=np.where(rollout.truncated, rollout.final_values + 100, 0))
    plain, same, different = (
        impala.update(state, each, 0.0, 1, 0)[0].params for each in (rollout, other_values, other_last)
    )
    np.testing.assert_array_equal(plain, same)
    assert not np.allclose(plain, different)


@pytest.mark.parametrize("name", SOME_ACTIONS)
def test_on_its_own_rounds_ratios_are_1_whatever_the_actions(name):
    impala = _impala(name)
    state = impala.init(1)
    after, metrics = impala.update(state, _drawn(impala, state.params, name), 0.0, 1, 0)
    assert float(metrics["ratio_first"][0]) < 1e-5
    assert all(np.isfinite(np.asarray(values)).all() for values in metrics.values())
    assert not np.array_equal(after.params, state.params)


def test_rows_that_are_no_transitions_have_no_influence():
    impala = _impala(ent_coef=0.01)
    state = impala.init(1)
    rollout = _drawn(impala, state.params)
    valid, ended = np.ones((T, N), bool), rollout.terminated.copy()
    valid[3, 1] = False
    ended[2, 1] = True  # such a row follows an episode's end
    rollout = replace(rollout, valid=valid, terminated=ended)
    names = ("rewards", "actions", "log_probs", "obs")
    spoilt = replace(rollout, **{name: getattr(rollout, name).copy() for name in names})
    spoilt.rewards[3, 1], spoilt.actions[3, 1], spoilt.log_probs[3, 1], spoilt.obs[3, 1] = 50, 2, -2000, 8
    one, other = (impala.update(state, each, 0.0, 1, 0) for each in (rollout, spoilt))
    np.testing.assert_allclose(one[0].params, other[0].params, atol=1e-6)
    for name, values in one[1].items():
        np.testing.assert_allclose(values, other[1][name], atol=1e-5, err_msg=name)
    everything = impala.update(state, replace(spoilt, valid=None), 0.0, 1, 0)[0]
    assert not np.allclose(everything.params, one[0].params, atol=1e-4)


def test_masked_actions_stay_impossible():
    impala = _impala("multi-discrete", ent_coef=0.01)
    state = impala.init(1)
    mask = np.ones((T, N, 5), bool)
    mask[..., 0] = mask[..., 3] = False
    rollout = _drawn(impala, state.params, "multi-discrete", action_mask=mask)
    assert (rollout.actions[..., 0] == 1).all()
    after, metrics = impala.update(state, rollout, 0.0, 1, 0)
    assert float(metrics["ratio_first"][0]) < 1e-5
    assert np.isfinite(np.asarray(after.params)).all()


def test_a_state_survives_being_saved():
    impala = _impala()
    state = impala.init(1)
    rollout = _drawn(impala, state.params)
    state, _ = impala.update(state, rollout, 0.0, 1, 0)
    one, other = (impala.update(each, rollout, 0.0, 1, 1)[0] for each in (state, impala.load(impala.save(state))))
    for left, right in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(left, right)


def test_what_an_older_policy_was_rewarded_for_becomes_more_likely():
    """The rounds are eight updates old."""
    impala = _impala("discrete", NetworkConfig(hidden=(6,)), optimizer="adam", learning_rate=0.02)
    state = impala.init(1)
    blank = random_rollout(BOX, ACTION_SPACES["discrete"], T, N)
    blank = replace(blank, obs=np.ones((T + 1, N, 3), np.float32), terminated=np.ones((T, N), bool))
    behaviours, rewards = [state.params] * 9, []
    for round_ in range(150):
        rollout = drawn_rollout(impala, behaviours.pop(0), blank)
        rollout = replace(rollout, rewards=-np.abs(rollout.actions - 1).astype(np.float32))
        rewards.append(rollout.rewards.mean())
        state, _ = impala.update(state, rollout, 0.0, 1, round_)
        behaviours.append(state.params)
    assert np.mean(rewards[-10:]) > 0.5 * np.mean(rewards[:10])  # losses: less than half of them is left
