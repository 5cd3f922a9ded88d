import functools
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from raceway.algos.configs import NetworkConfig, PPOConfig
from raceway.algos.networks import UserNetwork
from raceway.algos.ppo import GREATEST_RATE, PPO, shuffles
from raceway.algos.rollout import Rollout, Scaling
from tests.algos.rollouts import SEED, drawn_rollout, random_obs, random_rollout

T, N = 8, 4
BOX = spaces.Box(-1, 1, (3,))
SMALL = NetworkConfig(hidden=(6,))
ACTION_SPACES = {
    "discrete": spaces.Discrete(3),
    "multi-discrete": spaces.MultiDiscrete([2, 3]),
    "box": spaces.Box(-1, 1, (2,)),
    "multi-binary": spaces.MultiBinary(3),
}


@functools.cache  # tests that ask for the same one share its compiled programs
def _ppo(action: str = "box", **settings) -> PPO:
    return _build(ACTION_SPACES[action], **settings)


def _build(action_space=ACTION_SPACES["box"], observation_space=BOX, network=SMALL, **settings) -> PPO:
    given = {"n_steps": T, "batch_size": T * N // 2, "n_epochs": 2} | settings
    return PPO(PPOConfig(**given), observation_space, action_space, network)


def _drawn(ppo: PPO, state, action_space=ACTION_SPACES["box"], observation_space=BOX, **changes) -> Rollout:
    rollout = replace(random_rollout(observation_space, action_space, T, N), **changes)
    return drawn_rollout(ppo, state.params, rollout)


def _fast(state, rate: float):
    """With another learning rate, without another program."""
    return state._replace(learning_rate=jnp.float32(rate))


def _as_numpy(metrics: dict[str, Any]) -> dict[str, np.ndarray]:
    return {name: np.asarray(values) for name, values in metrics.items()}


@pytest.mark.parametrize("name", ACTION_SPACES)
def test_at_lag_0_the_first_minibatch_has_ratio_1_whatever_the_actions(name):
    ppo = _ppo(name)
    state = ppo.init(1)
    rollout = _drawn(ppo, state, ACTION_SPACES[name])
    after, found = ppo.update(state, rollout, 0.0, 1, 0)
    metrics = _as_numpy(found)
    assert metrics["ratio_first"] < 1e-5
    assert metrics["clip_fraction"][0] == 0
    assert abs(metrics["approx_kl"][0]) < 1e-5
    assert metrics["policy_loss"].shape == (4,)
    assert all(np.isfinite(values).all() for values in metrics.values())
    assert not np.array_equal(after.params, state.params)
    assert metrics["applied"].all()


def test_at_lag_1_the_ratio_is_against_the_behaviour():
    ppo = _ppo("box", correction="none")
    old = _fast(ppo.init(1), 0.01)
    rollout = _drawn(ppo, old)
    state, _ = ppo.update(old, rollout, 0.0, 1, 0)
    _, metrics = ppo.update(state, rollout, 0.0, 1, 1)
    order = np.asarray(shuffles(jnp.array([1, 0], jnp.uint32), jnp.uint32(1), 2, T * N))[0, : T * N // 2]
    obs, actions = jnp.asarray(rollout.obs[:-1].reshape(-1, 3)), jnp.asarray(rollout.actions.reshape(-1, 2))
    inputs, _ = ppo.network.apply(ppo.network.unravel(state.params), (obs,))
    log_ratio = np.asarray(ppo.distribution.log_prob(inputs, actions)) - rollout.log_probs.reshape(-1)
    ratio = np.exp(log_ratio)[order]
    assert np.abs(ratio - 1).mean() > 0.01
    np.testing.assert_allclose(float(metrics["ratio_first"]), np.abs(ratio - 1).mean(), rtol=1e-4)
    kl = (ratio - 1 - log_ratio[order]).mean()
    np.testing.assert_allclose(float(metrics["approx_kl"][0]), kl, rtol=1e-3)


def test_the_loss_is_the_papers():
    ppo = _ppo(ent_coef=0.01, vf_coef=0.7, clip_range=0.1)
    state = ppo.init(1)
    rollout = random_rollout(BOX, ACTION_SPACES["box"], T, N)
    samples = ppo.samples(ppo.batch(rollout))
    loss, _ = ppo.loss(ppo.network.unravel(state.params), samples, 0.01)
    inputs, values = ppo.network.apply(ppo.network.unravel(state.params), samples.obs)
    log_probs = np.asarray(ppo.distribution.log_prob(inputs, samples.actions), np.float64)
    ratio = np.exp(log_probs - rollout.log_probs.reshape(-1))
    advantages = np.asarray(samples.advantages, np.float64)
    advantages = (advantages - advantages.mean()) / (advantages.std(ddof=1) + 1e-8)
    surrogate = np.minimum(ratio * advantages, np.clip(ratio, 0.9, 1.1) * advantages).mean()
    value_loss = np.square(np.asarray(values) - np.asarray(samples.returns)).mean()
    entropy = 2 * 0.5 * np.log(2 * np.pi * np.e)
    np.testing.assert_allclose(float(loss), -surrogate + 0.7 * value_loss - 0.01 * entropy, rtol=1e-5)


@pytest.mark.parametrize("name", ACTION_SPACES)
def test_rewarded_actions_become_more_likely(name):
    ppo = _ppo(name)
    state = _fast(ppo.init(1), 0.02)
    blank = random_rollout(BOX, ACTION_SPACES[name], T, N)
    blank = replace(blank, obs=np.ones((T + 1, N, 3), np.float32), terminated=np.ones((T, N), bool))

    def reward_of(rollout: Rollout) -> np.ndarray:
        first = rollout.actions if rollout.actions.ndim == 2 else rollout.actions[..., 0]
        return -np.abs(first - 1).astype(np.float32)

    rewards = []
    for round_ in range(40):
        rollout = drawn_rollout(ppo, state.params, blank)
        rewards.append(reward_of(rollout).mean())
        state, _ = ppo.update(state, replace(rollout, rewards=reward_of(rollout)), 0.0, 1, round_)
    assert np.mean(rewards[-5:]) > 0.4 * np.mean(rewards[:5])  # losses: less than half of them is left


def test_the_same_update_gives_the_same_bits_and_another_round_other_ones():
    ppo = _ppo("box")
    state = ppo.init(1)
    rollout = _drawn(ppo, state)
    one, other, later, seeded = (
        ppo.update(state, rollout, 0.0, *at)[0].params for at in ((1, 0), (1, 0), (1, 1), (2, 0))
    )
    np.testing.assert_array_equal(one, other)
    assert not np.array_equal(one, later)
    assert not np.array_equal(one, seeded)


@pytest.mark.parametrize("count", [12, 2048, 2**16 + 2])
def test_every_epoch_goes_through_every_row_once(count):
    orders = np.asarray(shuffles(jnp.array([1, 0], jnp.uint32), jnp.uint32(3), 3, count))
    assert all(np.array_equal(np.sort(order), np.arange(count)) for order in orders)
    assert len({order.tobytes() for order in orders}) == 3
    assert abs(np.corrcoef(orders[0], np.arange(count))[0, 1]) < 0.5


def test_rows_that_are_no_transitions_have_no_influence():
    ppo = _ppo(clip_range_vf=0.2, ent_coef=0.01)
    state = ppo.init(1)
    rollout = _drawn(ppo, state)
    valid = np.ones((T, N), bool)
    valid[3, 1] = valid[6, 2] = False
    ended = rollout.terminated.copy()
    ended[2, 1] = ended[5, 2] = True  # such a row follows an episode's end
    rollout = replace(rollout, valid=valid, terminated=ended)
    spoilt = replace(
        rollout,
        **{name: getattr(rollout, name).copy() for name in ("rewards", "actions", "log_probs", "values", "obs")},
    )
    for t, env in ((3, 1), (6, 2)):
        spoilt.rewards[t, env], spoilt.actions[t, env], spoilt.log_probs[t, env] = 50, 9, -2000
        spoilt.values[t, env], spoilt.obs[t, env] = 70, 8
    results = [ppo.update(state, each, 0.0, 1, 0) for each in (rollout, spoilt)]
    np.testing.assert_allclose(results[0][0].params, results[1][0].params, atol=1e-6)
    for name, values in results[0][1].items():
        np.testing.assert_allclose(values, results[1][1][name], atol=1e-5, err_msg=name)
    everything = ppo.update(state, replace(spoilt, valid=None), 0.0, 1, 0)[0]
    assert not np.allclose(everything.params, results[0][0].params, atol=1e-4)
    # And a mask that leaves out nothing changes nothing.
    all_valid = replace(rollout, valid=np.ones((T, N), bool))
    plain, masked = (ppo.update(state, each, 0.0, 1, 0)[0] for each in (replace(rollout, valid=None), all_valid))
    np.testing.assert_allclose(plain.params, masked.params, atol=1e-6)


def test_values_that_move_far_count_by_the_larger_error():
    ppo = _ppo(clip_range_vf=0.5)
    rollout = random_rollout(BOX, ACTION_SPACES["box"], T, N)
    samples = ppo.samples(ppo.batch(rollout))._replace(
        returns=jnp.array([2.0, 2.0, 2.0]), values=jnp.array([0.0, 0.0, 3.0])
    )
    errors = ppo._value_error(jnp.array([1.0, 0.25, 2.0]), samples)
    np.testing.assert_allclose(errors, [1.5**2, 1.75**2, 0.5**2])


def test_target_kl_stops_the_rest_of_the_round():
    free, bound = _ppo("box"), _ppo("box", target_kl=0.01)
    state = _fast(free.init(1), 0.06)
    rollout = _drawn(free, state)
    divergences = np.asarray(free.update(state, rollout, 0.0, 1, 0)[1]["approx_kl"])
    stop = int(np.argmax(divergences > 0.015))
    assert 0 < stop < len(divergences) - 1
    stopped, metrics = bound.update(state, rollout, 0.0, 1, 0)
    np.testing.assert_allclose(np.asarray(metrics["approx_kl"])[: stop + 1], divergences[: stop + 1], rtol=1e-4)
    assert int(stopped.optimizer.count) == stop
    # The first update of the next round is not held back by this one's end.
    again, _ = bound.update(stopped, drawn_rollout(bound, stopped.params, rollout), 0.0, 1, 1)
    assert int(again.optimizer.count) > stop


def test_linear_learning_rate_follows_the_progress():
    ppo = _ppo(lr_schedule="linear", learning_rate=0.01)
    state = ppo.init(1)
    rollout = _drawn(ppo, state)
    for progress in (0.0, 0.25, 1.0):
        after, metrics = ppo.update(state, rollout, progress, 1, 0)
        np.testing.assert_allclose(metrics["learning_rate"], np.full(4, 0.01 * (1 - progress)), rtol=1e-5)
    np.testing.assert_array_equal(after.params, state.params)


def test_adaptive_learning_rate_follows_the_divergence():
    ppo = _ppo(lr_schedule="adaptive_kl", learning_rate=1e-3, n_epochs=8)
    state = ppo.init(1)
    rollout = _drawn(ppo, state)
    after, metrics = ppo.update(state, rollout, 0.0, 1, 0)
    rates, divergences = np.asarray(metrics["learning_rate"]), np.asarray(metrics["approx_kl"])
    before = np.concatenate([[1e-3], rates[:-1]])
    factor = np.where(divergences > 0.02, 1 / 1.5, np.where((divergences < 0.005) & (divergences > 1e-8), 1.5, 1.0))
    np.testing.assert_allclose(rates, np.clip(before * factor, 1e-5, GREATEST_RATE), rtol=1e-5)
    assert len(set(factor)) > 1
    np.testing.assert_array_equal(after.learning_rate, rates[-1])


def test_gradients_are_shortened_to_the_largest_norm():
    ppo = _ppo("box", max_grad_norm=1e-3, n_epochs=1, batch_size=T * N)
    state = ppo.init(1)
    after, metrics = ppo.update(state, _drawn(ppo, state), 0.0, 1, 0)
    assert float(metrics["gradient_norm"][0]) > 0.01  # told as it was
    np.testing.assert_allclose(np.linalg.norm(after.optimizer.mu), 0.1 * 1e-3, rtol=1e-3)


def test_the_learner_sees_observations_as_the_policy_did():
    ppo = _ppo("box")
    state = ppo.init(1)
    scaling = Scaling(np.array([1, -2, 0], np.float32), np.array([0.5, 3, 100], np.float32))
    rollout = _drawn(ppo, state, scaling=scaling)
    _, metrics = ppo.update(state, rollout, 0.0, 1, 0)
    assert float(metrics["ratio_first"]) < 1e-5
    _, metrics = ppo.update(state, replace(rollout, scaling=None), 0.0, 1, 0)
    assert float(metrics["ratio_first"]) > 1e-4


def test_masked_actions_stay_impossible():
    action_space = ACTION_SPACES["multi-discrete"]
    ppo = _build(action_space, ent_coef=0.01)
    state = ppo.init(1)
    mask = np.random.default_rng(0).random((T, N, 5)) < 0.5
    mask[..., 0] |= ~mask[..., :2].any(axis=-1)
    mask[..., 4] |= ~mask[..., 2:].any(axis=-1)
    rollout = _drawn(ppo, state, action_space, action_mask=mask)
    assert np.take_along_axis(mask[..., :2], rollout.actions[..., :1], axis=-1).all()
    assert np.take_along_axis(mask[..., 2:], rollout.actions[..., 1:], axis=-1).all()
    after, metrics = ppo.update(state, rollout, 0.0, 1, 0)
    assert float(metrics["ratio_first"]) < 1e-5
    assert np.isfinite(np.asarray(after.params)).all()


def test_nested_observations_and_a_users_network_learn():
    space = spaces.Dict({"b": spaces.Tuple((BOX, spaces.Discrete(4))), "a": spaces.MultiBinary(2)})
    action_space = ACTION_SPACES["discrete"]

    def init(key, obs):
        return [jax.random.normal(key, (9, 3)) * 0.1, jnp.zeros(9)]

    def apply(params, obs):
        one_hot = jax.nn.one_hot(obs["b"][1], 4)
        x = jnp.concatenate([obs["b"][0], one_hot, obs["a"].astype(jnp.float32)], axis=-1)
        return x @ params[0], x @ params[1]

    for network in (SMALL, UserNetwork(init, apply)):
        ppo = _build(action_space, space, network)
        state = ppo.init(1)
        rollout = _drawn(ppo, state, action_space, space)
        after, metrics = ppo.update(state, rollout, 0.0, 1, 0)
        assert float(metrics["ratio_first"]) < 1e-5
        assert np.isfinite(np.asarray(after.params)).all()
        assert not np.array_equal(after.params, state.params)


def test_images_learn():
    space = spaces.Box(0, 255, (36, 36, 1), np.uint8)
    action_space = ACTION_SPACES["discrete"]
    ppo = _build(action_space, space, NetworkConfig(), n_steps=2, batch_size=4, n_epochs=1)
    state = ppo.init(1)
    rollout = drawn_rollout(ppo, state.params, random_rollout(space, action_space, 2, N))
    after, metrics = ppo.update(state, rollout, 0.0, 1, 0)
    assert float(metrics["ratio_first"]) < 1e-4
    assert not np.array_equal(after.params, state.params)


def test_a_row_acts_by_itself_wherever_it_stands_in_its_group():
    ppo = _ppo("box")
    params = ppo.init(1).params
    obs = random_obs(BOX, (6,), np.random.default_rng(0))
    envs, steps = np.arange(6), np.full(6, 5)
    order = np.array([3, 1, 5, 0, 2, 4])
    straight = ppo.act(params, None, obs, None, SEED, envs, steps)
    mixed = ppo.act(params, None, obs[order], None, SEED, envs[order], steps)
    for one, other in zip(straight[:3], mixed[:3], strict=True):
        np.testing.assert_array_equal(np.asarray(one)[order], other)
    np.testing.assert_allclose(ppo.value(params, None, obs), straight[2], atol=1e-6)
    assert not np.array_equal(ppo.act(params, None, obs, None, SEED, envs, steps + 1)[0], straight[0])
    assert ppo.greedy(params, None, obs)[0].shape == (6, 2)
