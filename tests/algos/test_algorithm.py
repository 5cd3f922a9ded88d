import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from raceway.algos.algorithm import Algorithm
from raceway.algos.build import build_algorithm
from raceway.algos.configs import A2CConfig, ImpalaConfig, NetworkConfig, PPOConfig, PQNConfig
from tests.algos.rollouts import drawn_rollout, random_rollout

BOX, ACTIONS = spaces.Box(-1, 1, (3,)), spaces.Discrete(3)
T, N = 4, 2


@functools.cache
def _ppo() -> Algorithm:
    return build_algorithm(PPOConfig(n_steps=T, batch_size=4, n_epochs=1), BOX, ACTIONS, NetworkConfig(hidden=(4,)))


def _after_a_round(algorithm: Algorithm, state):
    rollout = drawn_rollout(algorithm, state.params, random_rollout(BOX, ACTIONS, T, N))
    return algorithm.update(state, rollout, 0.0, 1, 0)[0]


def test_a_state_survives_being_saved():
    algorithm = _ppo()
    state = _after_a_round(algorithm, algorithm.init(1))
    arrays = algorithm.save(state)
    assert list(arrays) == ["params", "optimizer.count", "optimizer.mu", "optimizer.nu", "learning_rate"]
    again = algorithm.load(arrays)
    assert type(again) is type(state)
    arrays["params"][:] = 0  # the state has its own
    for one, other in zip(jax.tree.leaves(state), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(_after_a_round(algorithm, state).params, _after_a_round(algorithm, again).params)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"optimizer.mu": None}, "optimizer.mu is missing"),
        ({"more": np.zeros(1)}, "more is one too many"),
        ({"params": np.zeros(3, np.float32)}, r"params is float32\[3\], not float32\[\d+\]"),
        ({"optimizer.count": np.zeros((), np.float32)}, r"optimizer.count is float32\[\], not int32\[\]"),
    ],
)
def test_arrays_that_do_not_fit_are_named(change, message):
    algorithm = _ppo()
    arrays = {name: array for name, array in (algorithm.save(algorithm.init(1)) | change).items() if array is not None}
    with pytest.raises(ValueError, match=message):
        algorithm.load(arrays)


def test_the_learning_rate_can_be_set():
    algorithm = _ppo()
    state = algorithm.init(1)
    still = _after_a_round(algorithm, algorithm.with_learning_rate(state, 0.0))
    np.testing.assert_array_equal(still.params, state.params)
    assert algorithm.with_learning_rate(state, 0.5).learning_rate == jnp.float32(0.5)


@pytest.mark.parametrize(
    "config", [PPOConfig(n_steps=T, batch_size=4, n_epochs=1), A2CConfig(n_steps=T), ImpalaConfig()]
)
def test_the_entropy_bonus_is_an_input_of_the_compiled_update(config):
    algorithm = build_algorithm(config, BOX, ACTIONS, NetworkConfig(hidden=(4,)))
    state = algorithm.init(1)
    rollout = drawn_rollout(algorithm, state.params, random_rollout(BOX, ACTIONS, T, N))
    as_set, same, other = (
        algorithm.update(state, rollout, 0.0, 1, 0, ent_coef)[0].params for ent_coef in (None, config.ent_coef, 0.7)
    )
    np.testing.assert_array_equal(as_set, same)
    assert (np.asarray(as_set) != np.asarray(other)).any()
    outright = build_algorithm(dataclasses.replace(config, ent_coef=0.7), BOX, ACTIONS, NetworkConfig(hidden=(4,)))
    np.testing.assert_array_equal(outright.update(state, rollout, 0.0, 1, 0)[0].params, other)
    assert algorithm._update._cache_size() == 1, "it is compiled once"  # type: ignore[attr-defined]


def test_an_algorithm_without_an_entropy_bonus_takes_no_notice():
    config = PQNConfig(n_steps=T, batch_size=4, n_epochs=1)
    algorithm = build_algorithm(config, BOX, ACTIONS, NetworkConfig(hidden=(4,)))
    state = algorithm.init(1)
    rollout = drawn_rollout(algorithm, state.params, random_rollout(BOX, ACTIONS, T, N))
    one, other = (algorithm.update(state, rollout, 0.0, 1, 0, ent_coef)[0].params for ent_coef in (None, 0.7))
    np.testing.assert_array_equal(one, other)
