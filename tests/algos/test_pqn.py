import functools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from raceway.algos.configs import NetworkConfig, PQNConfig
from raceway.algos.networks import UserNetwork
from raceway.algos.pqn import PQN
from raceway.algos.rollout import Rollout
from tests.algos.rollouts import SEED, drawn_rollout, random_obs, random_rollout

T, N = 6, 4
BOX, ACTIONS = spaces.Box(-1, 1, (3,)), spaces.Discrete(3)
SMALL = NetworkConfig(hidden=(8,), activation="relu")


@functools.cache
def _pqn(**settings) -> PQN:
    given = {"n_steps": T, "batch_size": T * N // 2, "n_epochs": 2} | settings
    return PQN(PQNConfig(**given), BOX, ACTIONS, SMALL)


def _values(pqn: PQN, params, obs: np.ndarray) -> np.ndarray:
    rows = pqn.network.prepare([jnp.asarray(obs)], None)
    return np.asarray(pqn.network.values_of(pqn.network.unravel(params), rows))


def _with_epsilon(params, epsilon: float):
    return jnp.asarray(params).at[-1].set(epsilon)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_actions_are_drawn_epsilon_greedily(epsilon):
    pqn = _pqn()
    params = _with_epsilon(pqn.init(1).params, epsilon)
    obs = np.repeat(random_obs(BOX, (1,), np.random.default_rng(0)), 20_000, axis=0)
    best = int(_values(pqn, params, obs[:1])[0].argmax())
    actions, log_probs, values, _ = pqn.act(params, None, obs, None, SEED, np.arange(len(obs)), np.zeros(len(obs)))
    shares = np.full(3, epsilon / 3)
    shares[best] += 1 - epsilon
    np.testing.assert_allclose(np.bincount(actions, minlength=3) / len(obs), shares, atol=0.015)
    np.testing.assert_allclose(np.exp(log_probs), shares[np.asarray(actions)], rtol=1e-5)
    np.testing.assert_allclose(values, _values(pqn, params, obs).max(axis=-1), rtol=1e-5)
    assert (np.asarray(pqn.greedy(params, None, obs)[0]) == best).all()


def test_forbidden_actions_are_neither_tried_nor_taken_for_the_best():
    pqn = _pqn()
    params = _with_epsilon(pqn.init(1).params, 0.5)
    obs = random_obs(BOX, (2000,), np.random.default_rng(0))
    found = _values(pqn, params, obs)
    mask = np.ones((len(obs), 3), bool)
    mask[np.arange(len(obs)), found.argmax(axis=-1)] = False
    second = np.where(mask, found, -np.inf)
    actions, log_probs, values, _ = pqn.act(params, None, obs, mask, SEED, np.arange(len(obs)), np.zeros(len(obs)))
    assert mask[np.arange(len(obs)), actions].all()
    np.testing.assert_allclose(values, second.max(axis=-1), atol=1e-6)
    is_best = np.asarray(actions) == second.argmax(axis=-1)
    np.testing.assert_allclose(is_best.mean(), 0.75, atol=0.04)
    np.testing.assert_allclose(np.exp(log_probs), np.where(is_best, 0.75, 0.25), rtol=1e-5)
    np.testing.assert_array_equal(pqn.greedy(params, None, obs, mask)[0], second.argmax(axis=-1))


def test_targets_are_those_of_q_lambda():
    """Rₜ = rₜ + γ(λRₜ₊₁ + (1 - λ) max Q(sₜ₊₁)), by a plain loop; after an end nothing or the last observation's."""
    pqn = _pqn(q_lambda=0.7, gamma=0.9)
    rollout = random_rollout(BOX, ACTIONS, T, N)
    found = np.asarray(pqn.samples(pqn.batch(rollout)).returns).reshape(T, N)
    for env in range(N):
        later = rollout.values[T, env]
        for t in reversed(range(T)):
            after = 0.7 * later + 0.3 * rollout.values[t + 1, env]
            if rollout.truncated[t, env]:
                after = rollout.final_values[t, env]
            if rollout.terminated[t, env]:
                after = 0.0
            later = rollout.rewards[t, env] + 0.9 * after
            assert found[t, env] == pytest.approx(later, abs=1e-5)


def test_only_the_value_of_the_action_that_was_taken_is_pulled_towards_its_target():
    pqn = _pqn()
    rollout = random_rollout(BOX, ACTIONS, T, N)
    params = pqn.init(1).params
    samples = pqn.samples(pqn.batch(rollout))
    chosen = _values(pqn, params, rollout.obs[:-1].reshape(-1, 3))[np.arange(T * N), rollout.actions.reshape(-1)]
    loss, gradient = jax.value_and_grad(pqn.loss)(pqn.network.unravel(params), samples)
    np.testing.assert_allclose(loss, np.square(chosen - np.asarray(samples.returns)).mean(), rtol=1e-5)
    # The last layer's bias moves by the errors of the rows that took that action.
    errors = 2 * (chosen - np.asarray(samples.returns)) / (T * N)
    wanted = [errors[rollout.actions.reshape(-1) == action].sum() for action in range(3)]
    np.testing.assert_allclose(gradient["q1.bias"], wanted, rtol=1e-4, atol=1e-5)
    assert float(gradient["epsilon"][0]) == 0


def test_epsilon_follows_the_progress_and_travels_with_the_parameters():
    pqn = _pqn(exploration_initial_eps=0.8, exploration_final_eps=0.2, exploration_fraction=0.5)
    state = pqn.init(1)
    assert float(pqn.policy(state)[-1]) == 1
    rollout = drawn_rollout(pqn, state.params, random_rollout(BOX, ACTIONS, T, N))
    for progress, wanted in ((0.0, 0.8), (0.25, 0.5), (0.5, 0.2), (1.0, 0.2)):
        after, metrics = pqn.update(state, rollout, progress, 1, 0)
        assert float(pqn.policy(after)[-1]) == pytest.approx(wanted)
        assert float(metrics["epsilon"]) == pytest.approx(wanted)
    again = pqn.load(pqn.save(after))
    np.testing.assert_array_equal(again.params, after.params)


def test_rows_that_are_no_transitions_have_no_influence():
    pqn = _pqn()
    state = pqn.init(1)
    rollout = drawn_rollout(pqn, state.params, random_rollout(BOX, ACTIONS, T, N))
    valid, ended = np.ones((T, N), bool), rollout.terminated.copy()
    valid[3, 1] = False
    ended[2, 1] = True  # such a row follows an episode's end
    rollout = replace(rollout, valid=valid, terminated=ended)
    names = ("rewards", "actions", "values", "obs")
    spoilt = replace(rollout, **{name: getattr(rollout, name).copy() for name in names})
    spoilt.rewards[3, 1], spoilt.actions[3, 1], spoilt.values[3, 1], spoilt.obs[3, 1] = 50, 2, 70, 8
    one, other = (pqn.update(state, each, 0.0, 1, 0)[0].params for each in (rollout, spoilt))
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_rewarded_actions_become_the_best():
    pqn = _pqn(learning_rate=0.02, exploration_final_eps=0.1)
    state = pqn.init(1)
    blank = random_rollout(BOX, ACTIONS, T, N)
    blank = replace(blank, obs=np.ones((T + 1, N, 3), np.float32), terminated=np.ones((T, N), bool))
    for round_ in range(30):
        rollout: Rollout = drawn_rollout(pqn, state.params, blank)
        rewards = -np.abs(rollout.actions - 1).astype(np.float32)
        state, _ = pqn.update(state, replace(rollout, rewards=rewards), round_ / 30, 1, round_)
    np.testing.assert_allclose(_values(pqn, state.params, np.ones((1, 3), np.float32))[0], [-1, 0, -1], atol=0.4)


@pytest.mark.slow
def test_images_learn():
    space = spaces.Box(0, 255, (36, 36, 1), np.uint8)
    pqn = PQN(PQNConfig(n_steps=2, batch_size=4, n_epochs=1), space, ACTIONS)
    state = pqn.init(1)
    rollout = drawn_rollout(pqn, state.params, random_rollout(space, ACTIONS, 2, N))
    after, _ = pqn.update(state, rollout, 0.0, 1, 0)
    assert not np.array_equal(after.params, state.params)


def test_what_it_cannot_learn_is_refused():
    with pytest.raises(ValueError, match="needs a Discrete action space; this one is Box"):
        PQN(PQNConfig(), BOX, spaces.Box(-1, 1, (2,)))
    with pytest.raises(ValueError, match="MultiDiscrete"):
        PQN(PQNConfig(), BOX, spaces.MultiDiscrete([2, 2]))
    with pytest.raises(ValueError, match="a network of its own kind"):
        PQN(
            PQNConfig(),
            BOX,
            ACTIONS,
            UserNetwork(lambda key, obs: jnp.zeros(3), lambda p, x: (jnp.zeros((len(x), 3)), jnp.zeros(len(x)))),
        )
