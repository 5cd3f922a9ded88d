"""PPO with a GRU: the learner goes through a round's steps as the actor did."""

import functools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from raceway.algos.configs import NetworkConfig, PPOConfig
from raceway.algos.ppo import PPO
from raceway.algos.reevaluation import reevaluate
from raceway.algos.rollout import Rollout
from raceway.algos.samples import by_environment, in_order
from tests.algos.rollouts import drawn_rollout, random_rollout

T, N, H = 8, 4, 5
BOX, ACTIONS = spaces.Box(-1, 1, (3,)), spaces.Box(-1, 1, (2,))
GRU = NetworkConfig(hidden=(6,), gru=H)


@functools.cache
def _ppo(network: NetworkConfig = GRU, **settings) -> PPO:
    given = {"n_steps": T, "batch_size": 2 * T, "n_epochs": 2} | settings
    return PPO(PPOConfig(**given), BOX, ACTIONS, network)


def _drawn(ppo: PPO, params, **changes) -> Rollout:
    memory = np.random.default_rng(4).normal(size=(N, H)).astype(np.float32)
    return drawn_rollout(ppo, params, replace(random_rollout(BOX, ACTIONS, T, N), memory=memory, **changes))


def _resets_on_the_next_step(rollout: Rollout) -> Rollout:
    """With a row after every end that only resets."""
    ended, valid = rollout.terminated | rollout.truncated, np.ones((T, N), bool)
    for t in range(1, T):
        valid[t] = ~(ended[t - 1] & valid[t - 1])
    return replace(rollout, valid=valid, terminated=rollout.terminated & valid, truncated=rollout.truncated & valid)


@pytest.mark.parametrize("later", [False, True], ids=["same step", "next step"])
def test_the_learner_remembers_what_the_actor_did(later: bool):
    ppo = _ppo(n_epochs=1, batch_size=T * N)
    state = ppo.init(1)
    params = state.params * 3
    raw = random_rollout(BOX, ACTIONS, T, N)
    changes = {"valid": _resets_on_the_next_step(raw).valid} if later else {}
    rollout = _drawn(ppo, params, terminated=raw.terminated, truncated=raw.truncated, **changes)
    if later:
        assert rollout.valid is not None
        assert not rollout.valid.all()
    _, metrics = ppo.update(state._replace(params=params), rollout, 0.0, 1, 0)
    assert float(metrics["ratio_first"]) < 1e-5
    samples = ppo.samples(ppo.batch(rollout))
    _, values = ppo._apply(ppo.network.unravel(params), samples)
    np.testing.assert_allclose(values, rollout.values[:-1].reshape(-1), atol=1e-5)
    _, metrics = ppo.update(
        state._replace(params=params), replace(rollout, memory=-np.asarray(rollout.memory)), 0.0, 1, 0
    )
    assert float(metrics["ratio_first"]) > 1e-3


def test_nothing_of_an_episode_reaches_the_next():
    ppo = _ppo()
    params = ppo.network.unravel(ppo.init(1).params)
    rollout = random_rollout(BOX, ACTIONS, T, N)
    ends = np.zeros((T, N), bool)
    ends[3, 1] = True
    rollout = replace(rollout, terminated=ends, truncated=np.zeros((T, N), bool), memory=np.ones((N, H), np.float32))
    other = replace(rollout, obs=rollout.obs.copy(), memory=np.zeros((N, H), np.float32))
    other.obs[:4, 1] += 1
    one, two = (
        np.asarray(ppo._apply(params, ppo.samples(ppo.batch(each)))[1]).reshape(T, N) for each in (rollout, other)
    )
    np.testing.assert_array_equal(one[4:, 1], two[4:, 1])
    assert (one[:4, 1] != two[:4, 1]).all()
    assert (one[4:, 0] != two[4:, 0]).all()


def test_a_minibatch_is_whole_environments_in_their_order():
    ppo = _ppo()
    samples = ppo.samples(ppo.batch(_drawn(ppo, ppo.init(1).params)))
    again = in_order(by_environment(samples))
    jax.tree.map(np.testing.assert_array_equal, again, samples)
    pick, indices = ppo._minibatches(samples, jnp.array([1, 0], jnp.uint32), jnp.uint32(0))
    assert indices.shape == (2 * N // 2, 2)
    np.testing.assert_array_equal(np.sort(np.asarray(indices).reshape(2, N), axis=1), np.tile(np.arange(N), (2, 1)))
    picked = pick(indices[0])
    assert picked.memory is not None
    assert samples.memory is not None
    for place, env in enumerate(np.asarray(indices[0])):
        np.testing.assert_array_equal(picked.memory[place], samples.memory[env])
        for mine, all_ in ((picked.obs[0], samples.obs[0]), (picked.log_probs, samples.log_probs)):
            np.testing.assert_array_equal(mine.reshape(T, 2, -1)[:, place], all_.reshape(T, N, -1)[:, env])


@pytest.mark.parametrize("later", [False, True], ids=["same step", "next step"])
def test_a_round_seen_again_has_the_actors_values_also_after_its_end(later: bool):
    ppo = _ppo()
    state = ppo.init(1)
    params = state.params * 3
    raw = random_rollout(BOX, ACTIONS, T, N)
    raw.terminated[-1], raw.truncated[-1] = [True, False, False, False], [False, True, False, False]
    changes = {"valid": _resets_on_the_next_step(raw).valid} if later else {}
    rollout = _drawn(ppo, params, terminated=raw.terminated, truncated=raw.truncated, **changes)
    seen = reevaluate(ppo.network, ppo.distribution, ppo.network.unravel(params), ppo.batch(rollout))
    np.testing.assert_allclose(seen.values, rollout.values, atol=1e-5)
    moved = reevaluate(ppo.network, ppo.distribution, ppo.network.unravel(state.params), ppo.batch(rollout))
    valid = np.ones((T, N), bool) if rollout.valid is None else rollout.valid
    assert (np.asarray(moved.log_ratios)[valid] != 0).all()
    assert (np.asarray(moved.log_ratios)[~valid] == 0).all()


@pytest.mark.parametrize("correction", ["decoupled", "vtrace"])
def test_a_correction_that_finds_nothing_to_correct_changes_nothing(correction):
    """Seen from the policy that collected the round, memory and all."""
    one, other = (_ppo(correction=each, n_epochs=3) for each in ("none", correction))
    state = one.init(1)
    rollout = _drawn(one, state.params)
    params, batch = one.network.unravel(state.params), one.batch(rollout)
    seen = reevaluate(one.network, one.distribution, params, batch)
    np.testing.assert_allclose(seen.log_ratios, 0, atol=1e-5)
    rollout = replace(rollout, values=np.array(seen.values))
    (plain, _), (corrected, _) = (ppo.update(state, rollout, 0.0, 1, rollout.version + 1) for ppo in (one, other))
    np.testing.assert_allclose(corrected.params, plain.params, atol=1e-4)


@pytest.mark.slow
def test_images_can_be_remembered():
    space = spaces.Box(0, 255, (36, 36, 1), np.uint8)
    ppo = PPO(PPOConfig(n_steps=2, batch_size=4, n_epochs=1), space, ACTIONS, NetworkConfig(gru=H))
    state = ppo.init(1)
    rollout = drawn_rollout(ppo, state.params, random_rollout(space, ACTIONS, 2, N))
    after, metrics = ppo.update(state, rollout, 0.0, 1, 0)
    assert float(metrics["ratio_first"]) < 1e-4
    assert not np.array_equal(after.params, state.params)


def test_the_native_kernel_leaves_it_alone():
    assert _ppo().native_layout() is None
    assert _ppo(NetworkConfig(hidden=(6,))).native_layout() is not None


def test_minibatches_that_cut_environments_are_refused():
    PPOConfig(n_steps=64, batch_size=128).check_num_envs(8, recurrent=True)
    for size in (32, 96, 192):
        with pytest.raises(ValueError, match=r"whole environments.*Use batch_size 64, 128, 256 or 512"):
            PPOConfig(n_steps=64, batch_size=size).check_num_envs(8, recurrent=True)
