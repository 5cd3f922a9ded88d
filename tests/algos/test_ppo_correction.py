"""PPO's corrections of rounds that an older policy collected, against plain NumPy."""

import functools
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from raceway.algos.configs import NetworkConfig, PPOConfig
from raceway.algos.ppo import PPO
from raceway.algos.rollout import Rollout
from tests.algos.rollouts import drawn_rollout, random_rollout

T, N = 8, 4
BOX, ACTIONS = spaces.Box(-1, 1, (3,)), spaces.Discrete(3)
LINEAR = NetworkConfig(hidden=())
CLIP = 0.2
CORRECTIONS = ("decoupled", "vtrace")


@functools.cache
def _ppo(correction: Any, **settings) -> PPO:
    given = {"n_steps": T, "batch_size": T * N, "n_epochs": 1, "clip_range": CLIP, "normalize_advantage": False}
    return PPO(PPOConfig(correction=correction, **(given | settings)), BOX, ACTIONS, LINEAR)


def _moved(ppo: PPO, distance: float, seed: int = 5):
    """Parameters some way off the first ones."""
    params = np.array(ppo.init(1).params)
    return jnp.asarray(params + distance * np.random.default_rng(seed).normal(size=params.shape).astype(np.float32))


def _round(ppo: PPO, params, **changes) -> Rollout:
    return drawn_rollout(ppo, params, replace(random_rollout(BOX, ACTIONS, T, N), **changes))


def _gradient(ppo: PPO, params, rollout: Rollout, proximal=None) -> dict[str, np.ndarray]:
    tree = ppo.network.unravel(params)
    before = tree if proximal is None else ppo.network.unravel(proximal)
    samples, _ = ppo.corrected(before, ppo.batch(rollout), jnp.uint32(rollout.version + 1))
    gradient = jax.jit(jax.grad(lambda p: ppo.loss(p, samples, ppo.ent_coef)[0]))(tree)
    return {name: np.asarray(part) for name, part in gradient.items()}


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("valid", [None, np.random.default_rng(0).random((T, N)) < 0.7])
def test_at_lag_0_it_is_plain_ppo(correction, valid):
    plain, corrected = _ppo("none"), _ppo(correction)
    params = _moved(plain, 0.5)
    rollout = replace(_round(plain, params, valid=valid), version=3)
    state = plain.init(1)._replace(params=params)
    (one, metrics), (other, others) = (ppo.update(state, rollout, 0.0, 1, 3) for ppo in (plain, corrected))
    np.testing.assert_array_equal(other.params, one.params)
    for name in metrics:
        np.testing.assert_array_equal(others[name], metrics[name], err_msg=name)


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_seen_from_the_policy_that_collected_it_changes_nothing(correction):
    """The correction itself, not its being left out at lag 0."""
    plain, corrected = _ppo("none"), _ppo(correction)
    params = _moved(plain, 0.5)
    rollout = _round(plain, params)
    tree = {name: np.asarray(part, np.float64) for name, part in plain.network.unravel(params).items()}
    values = (rollout.obs.astype(np.float64) @ tree["critic0.weights"] + tree["critic0.bias"])[..., 0]
    rollout = replace(rollout, values=values.astype(np.float32))
    gradients = _gradient(corrected, params, rollout)
    for name, part in _gradient(plain, params, rollout).items():
        np.testing.assert_allclose(gradients[name], part, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("correction", "c_bar"), [("decoupled", 0.8), ("vtrace", 0.0), ("vtrace", 0.8), ("vtrace", 1.0)]
)
def test_targets_are_those_of_a_plain_computation(correction, c_bar):
    ppo = _ppo(correction, gamma=0.9, gae_lambda=0.8, c_bar=c_bar)
    behaviour, params = _moved(ppo, 0.5, 5), _moved(ppo, 0.5, 6)
    rollout = _round(ppo, behaviour)
    found, shift = ppo.corrected(ppo.network.unravel(params), ppo.batch(rollout), jnp.uint32(rollout.version + 1))
    tree = {name: np.asarray(part, np.float64) for name, part in ppo.network.unravel(params).items()}
    obs = rollout.obs.astype(np.float64)
    logits = obs[:-1] @ tree["actor0.weights"] + tree["actor0.bias"]
    log_probs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    now = np.take_along_axis(log_probs, rollout.actions[..., None].astype(int), axis=-1)[..., 0]
    ratios = np.exp(now - rollout.log_probs)
    if correction == "decoupled":
        values = rollout.values.astype(np.float64)
    else:
        values = (obs @ tree["critic0.weights"] + tree["critic0.bias"])[..., 0]
    cuts = np.minimum(1.0, ratios / c_bar) if correction == "vtrace" and c_bar else np.ones((T, N))
    advantages, returns = np.zeros((T, N)), np.zeros((T, N))
    for env in range(N):
        following = 0.0  # v - V of the next step
        for t in reversed(range(T)):
            ends = rollout.terminated[t, env] or rollout.truncated[t, env]
            after = rollout.final_values[t, env] if rollout.truncated[t, env] else values[t + 1, env]
            after = 0.0 if rollout.terminated[t, env] else after
            error = rollout.rewards[t, env] + 0.9 * after - values[t, env]
            advantages[t, env] = error + (0.0 if ends else 0.9 * 0.8 * following)
            following = cuts[t, env] * advantages[t, env]
            returns[t, env] = values[t, env] + following
    assert rollout.terminated.any()
    assert rollout.truncated.any()
    close = functools.partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5)
    close(found.log_probs, now.reshape(-1))
    close(found.importance, np.minimum(2.0, ratios).reshape(-1))
    assert ratios.max() > 2.0
    close(shift, np.abs(ratios - 1).mean())
    close(found.advantages, advantages.reshape(-1))
    close(found.returns, returns.reshape(-1))
    close(found.values, values[:-1].reshape(-1))


def test_the_gradient_is_the_papers():
    """Linear logits, so that it can be worked out: ∂/∂W = E[w ρ A x (e_a - π)ᵀ] where the ratio is not cut."""
    ppo = _ppo("decoupled", vf_coef=0.0)
    behaviour, proximal, params = _moved(ppo, 1.0, 5), _moved(ppo, 1.0, 6), _moved(ppo, 1.0, 7)
    rollout = _round(ppo, behaviour)
    found = _gradient(ppo, params, rollout, proximal)

    x, actions = rollout.obs[:-1].reshape(-1, 3).astype(np.float64), rollout.actions.reshape(-1)

    def probabilities(flat: Any) -> np.ndarray:
        tree = {name: np.asarray(part, np.float64) for name, part in ppo.network.unravel(flat).items()}
        logits = x @ tree["actor0.weights"] + tree["actor0.bias"]
        likely = np.exp(logits - logits.max(axis=1, keepdims=True))
        return likely / likely.sum(axis=1, keepdims=True)

    rows = np.arange(T * N)
    pi, pi_proximal, pi_behaviour = (probabilities(flat) for flat in (params, proximal, behaviour))
    ratio = pi[rows, actions] / pi_proximal[rows, actions]
    weight = pi_proximal[rows, actions] / pi_behaviour[rows, actions]
    advantages = np.asarray(ppo.samples(ppo.batch(rollout)).advantages, np.float64)
    cut = np.where(advantages > 0, ratio > 1 + CLIP, ratio < 1 - CLIP)
    assert 0 < cut.sum() < T * N
    slope = -np.minimum(weight, 2.0) * ratio * advantages * ~cut
    by_logits = slope[:, None] * (np.eye(3)[actions] - pi)
    np.testing.assert_allclose(found["actor0.weights"], x.T @ by_logits / (T * N), rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(found["actor0.bias"], by_logits.mean(axis=0), rtol=1e-3, atol=1e-5)
    assert np.abs(found["critic0.weights"]).max() == 0


def test_clipping_is_around_the_policy_that_the_updates_begin_with():
    plain, decoupled = _ppo("none", n_epochs=4), _ppo("decoupled", n_epochs=4, rho_bar=1e30)
    behaviour = _moved(plain, 2.0)
    state = plain.init(1)._replace(learning_rate=jnp.float32(0.05))
    rollout = _round(plain, behaviour)
    before, after = (
        {name: np.asarray(part) for name, part in ppo.update(state, rollout, 0.0, 1, rollout.version + 1)[1].items()}
        for ppo in (plain, decoupled)
    )
    assert before["clip_fraction"][0] > 0.5  # most rows are beyond the clip before anything was learnt from them
    assert after["clip_fraction"][0] == 0
    assert abs(after["approx_kl"][0]) < 1e-6
    assert after["clip_fraction"][-1] > 0  # but the round's own updates are held back
    np.testing.assert_allclose(after["ratio_first"], before["ratio_first"], rtol=1e-4)  # how old the rows are
    assert after["ratio_first"] > 0.1


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_rows_that_are_no_transitions_do_not_count(correction):
    ppo = _ppo(correction)
    rollout = _round(ppo, _moved(ppo, 1.0), valid=np.random.default_rng(0).random((T, N)) < 0.7)
    assert rollout.valid is not None
    odd = np.where(rollout.valid, rollout.log_probs, -1e4).astype(np.float32)  # a ratio of e^10000
    params = _moved(ppo, 1.0, 8)
    one, other = _gradient(ppo, params, rollout), _gradient(ppo, params, replace(rollout, log_probs=odd))
    for name, part in one.items():
        np.testing.assert_array_equal(other[name], part)


def test_choices_that_are_masked_are_impossible_under_both_policies():
    ppo = _ppo("vtrace")
    mask = np.random.default_rng(3).random((T, N, 3)) < 0.6
    mask[..., 0] = True
    rollout = _round(ppo, _moved(ppo, 0.5), action_mask=mask)
    params = _moved(ppo, 0.5, 6)
    found, _ = ppo.corrected(ppo.network.unravel(params), ppo.batch(rollout), jnp.uint32(rollout.version + 1))
    tree = {name: np.asarray(part, np.float64) for name, part in ppo.network.unravel(params).items()}
    logits = rollout.obs[:-1].astype(np.float64) @ tree["actor0.weights"] + tree["actor0.bias"]
    likely = np.where(mask, np.exp(logits), 0.0)
    chosen = np.take_along_axis(likely / likely.sum(axis=-1, keepdims=True), rollout.actions[..., None], axis=-1)
    np.testing.assert_allclose(found.log_probs, np.log(chosen).reshape(-1), rtol=1e-4, atol=1e-5)


def test_actions_that_are_numbers_are_corrected_as_choices_are():
    actions = spaces.Box(-1, 1, (2,))
    ppo = PPO(PPOConfig(n_steps=T, batch_size=T * N, clip_range_vf=0.2), BOX, actions, LINEAR)
    behaviour, params = _moved(ppo, 0.3, 5), _moved(ppo, 0.3, 6)
    rollout = drawn_rollout(ppo, behaviour, random_rollout(BOX, actions, T, N))
    found, shift = ppo.corrected(ppo.network.unravel(params), ppo.batch(rollout), jnp.uint32(rollout.version + 1))
    tree = {name: np.asarray(part, np.float64) for name, part in ppo.network.unravel(params).items()}
    mean = rollout.obs[:-1].astype(np.float64) @ tree["actor0.weights"] + tree["actor0.bias"]
    std = np.exp(tree["log_std"])
    now = (-0.5 * ((rollout.actions - mean) / std) ** 2 - np.log(std) - 0.5 * np.log(2 * np.pi)).sum(axis=-1)
    np.testing.assert_allclose(found.log_probs, now.reshape(-1), rtol=1e-4, atol=1e-4)
    ratios = np.exp(now - rollout.log_probs)
    assert found.importance is not None
    np.testing.assert_allclose(found.importance, np.minimum(2, ratios).reshape(-1), rtol=1e-3)
    assert float(shift) > 0.1
    state, metrics = ppo.update(ppo.init(1)._replace(params=params), rollout, 0.0, 1, rollout.version + 1)
    assert np.isfinite(state.params).all()
    np.testing.assert_allclose(metrics["ratio_first"], shift, atol=1e-5)
    assert abs(float(metrics["approx_kl"][0])) < 1e-6
