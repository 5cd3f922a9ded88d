import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from raceway.algos.moments import Moments, Normaliser, discounted_returns
from tests.algos.rollouts import random_rollout

SPACE = spaces.Dict({"place": spaces.Box(-1, 1, (3,)), "camera": spaces.Box(0, 255, (4, 4), np.uint8)})
ACTIONS = spaces.Discrete(2)


def test_nothing_here_needs_jax():
    code = "import sys, raceway.algos.moments, raceway.algos.configs; assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=6))
def test_merged_moments_are_those_of_all_samples(sizes):
    samples = np.random.default_rng(0).normal(5, 2, size=(sum(sizes), 3))
    merged = Moments.empty((3,))
    for part in np.split(samples, np.cumsum(sizes)[:-1]):
        merged = merged.merge(Moments.of(part))
    assert merged.count == len(samples)
    np.testing.assert_allclose(merged.mean, samples.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(merged.variance, samples.var(axis=0), rtol=1e-9)


@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_discounted_returns_follow_their_recurrence(num_steps, seed):
    rng = np.random.default_rng(seed)
    rewards, ended, running = rng.normal(size=(num_steps, 2)), rng.random((num_steps, 2)) < 0.3, rng.normal(size=2)
    expected, carried = [], running
    for t in range(num_steps):
        carried = rewards[t] + 0.9 * carried
        expected.append(carried)
        carried = np.where(ended[t], 0, carried)
    returns, after = discounted_returns(rewards, ended, running, 0.9)
    np.testing.assert_allclose(returns, expected, atol=1e-9)
    np.testing.assert_allclose(after, carried, atol=1e-9)


def _normaliser() -> Normaliser:
    return Normaliser(SPACE, num_envs=4, gamma=0.9, observations=True, rewards=True)


def test_nothing_is_scaled_before_the_first_round():
    scaling = _normaliser().scaling()
    assert scaling is not None
    assert scaling.mean["camera"] is None
    np.testing.assert_array_equal(scaling.mean["place"], np.zeros(3))
    np.testing.assert_allclose(scaling.rate["place"], np.ones(3), rtol=1e-6)


def test_observations_are_scaled_by_all_rounds_so_far():
    normaliser = _normaliser()
    rounds = [random_rollout(SPACE, ACTIONS, 10, 4) for _ in range(2)]
    rounds[1] = replace(rounds[1], obs=rounds[1].obs | {"place": rounds[1].obs["place"] * 3 + 1})
    for each in rounds:
        normaliser.absorb(each)
    seen = np.concatenate([each.obs["place"][:-1].reshape(-1, 3) for each in rounds])
    scaling = normaliser.scaling()
    assert scaling is not None
    assert scaling.mean["place"].dtype == np.float32
    np.testing.assert_allclose(scaling.mean["place"], seen.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(scaling.rate["place"], 1 / seen.std(axis=0), rtol=1e-5)


def test_rewards_are_divided_by_the_deviation_of_returns_and_clipped():
    normaliser = _normaliser()
    rollout = random_rollout(SPACE, ACTIONS, 10, 4)
    rollout.rewards[3, 2] = 1e6
    scaled = normaliser.absorb(rollout).rewards
    returns, _ = discounted_returns(rollout.rewards, rollout.terminated | rollout.truncated, np.zeros(4), 0.9)
    np.testing.assert_allclose(scaled, np.clip(rollout.rewards / returns.std(), -10, 10), rtol=1e-5)
    assert scaled.dtype == np.float32


def test_rows_that_are_no_transitions_leave_no_trace():
    rollout = random_rollout(SPACE, ACTIONS, 10, 4)
    valid = np.ones((10, 4), bool)
    valid[4, 1] = False
    rollout.rewards[4, 1] = 0
    rollout.terminated[3:5, 1] = [True, False]
    rollout.truncated[3:5, 1] = False
    first, second = _normaliser(), _normaliser()
    first.absorb(replace(rollout, valid=valid))
    rollout.obs["place"][4, 1] = 1e9
    second.absorb(replace(rollout, valid=valid))
    assert all(np.array_equal(a, b) for a, b in zip(first.save().values(), second.save().values(), strict=True))
    assert first.save()["returns.count"] == 39


def test_a_loaded_normaliser_goes_on_to_the_bit():
    first, second = _normaliser(), _normaliser()
    rollout = random_rollout(SPACE, ACTIONS, 10, 4)
    first.absorb(rollout)
    second.load(first.save())
    for each in (first, second):
        each.absorb(rollout)
    one, other = first.save(), second.save()
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_what_is_off_changes_nothing():
    normaliser = Normaliser(SPACE, 4, 0.9, observations=False, rewards=False)
    rollout = random_rollout(SPACE, ACTIONS, 10, 4)
    assert normaliser.absorb(rollout) is rollout
    assert normaliser.scaling() is None


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38])
def test_numbers_that_are_not_finite_are_noticed_without_a_warning(value):
    rollout = random_rollout(SPACE, ACTIONS, 6, 4)
    normaliser = _normaliser()
    rewards = rollout.rewards.copy()
    rewards[2, 1] = value
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        normaliser.absorb(replace(rollout, rewards=rewards))
    assert normaliser.is_finite == bool(np.isfinite(value))
