"""Both ways of collecting give the same rollout, of any environment."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import batch_space

import raceway
from raceway.algos.spaces import flatten
from raceway.errors import EnvError, SettingError
from raceway.training.actor import JaxActor
from raceway.training.native_actor import NativeActor
from raceway.training.programs import build, training_sampler
from tests.training.probes import Choices, Everything, Forever, Probe
from tests.training.small_runs import SMALL, collected, run, set_up

pytestmark = pytest.mark.usefixtures("compiled_without_optimizing")


@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1", "Blackjack-v1", "FrozenLake-v1", "Taxi-v3", "Hopper-v5"])
def test_both_collectors_give_the_same_rollout(env: str) -> None:
    settings = {"n_steps": 64, "num_envs": 4}
    natively = collected(env, collector="worker", **settings)
    centrally = collected(env, collector="central", **settings)
    for (ours, our_episodes), (theirs, their_episodes) in zip(natively, centrally, strict=True):
        for name in ("actions", "rewards", "terminated", "truncated", "log_probs", "values", "final_values"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)
        setup = set_up(env)
        for a, b in zip(*(flatten(setup.observation_space, r.obs) for r in (ours, theirs)), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
        assert (ours.action_mask is None) == (theirs.action_mask is None)
        if ours.action_mask is not None:
            np.testing.assert_array_equal(ours.action_mask, theirs.action_mask)
        np.testing.assert_array_equal(our_episodes.lengths, their_episodes.lengths)
        np.testing.assert_allclose(our_episodes.returns, their_episodes.returns, rtol=1e-6)


@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1", "Taxi-v3"])
@pytest.mark.parametrize("greedy", [False, True])
def test_jax_acts_as_the_native_kernel_does(env: str, greedy: bool) -> None:
    """Two forward passes differ in the last bits only, and both draw the same random words."""
    setup = set_up(env, hidden=(64, 64))
    algorithm = setup.algorithm()
    layout = algorithm.native_layout()
    assert layout is not None
    native = NativeActor(layout, setup.observation_space, setup.action_space, seed=3)
    jax = JaxActor(algorithm, seed=3)
    params = np.array(algorithm.policy(algorithm.init(1)))
    obs = batch_space(setup.observation_space, 16).sample()
    obs = obs.astype(np.int32 if obs.dtype.kind == "i" else np.float32)
    envs = np.arange(5, 21, dtype=np.uint32)
    native.put(params, None)
    ours = native.act(None, obs, None, envs, 7, greedy)
    theirs = [np.asarray(each) for each in jax.act(jax.put(params, None), obs, None, envs, 7, greedy)[:3]]
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-4, atol=1e-5)
    if not greedy:
        np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(ours[2], theirs[2], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("group_size", [1, 2, 4])
def test_groups_hold_the_environments_of_their_place(group_size: int) -> None:
    (whole, _), *_ = collected("CartPole-v1", 1, collector="central", group_size=4)
    (parts, _), *_ = collected("CartPole-v1", 1, collector="central", group_size=group_size)
    np.testing.assert_array_equal(whole.obs[0], parts.obs[0])
    np.testing.assert_array_equal(whole.actions[:3], parts.actions[:3])


def test_masked_actions_are_never_taken() -> None:
    """The environment itself refuses them."""
    (rollout, _), *_ = collected(Everything, n_steps=40)
    assert rollout.action_mask is not None
    assert not rollout.action_mask.all()
    chosen = np.take_along_axis(rollout.action_mask, rollout.actions[..., None], axis=-1)
    assert chosen.all()


def test_the_info_of_an_episodes_last_step_counts() -> None:
    class Won(Probe):
        def step(self, action: int) -> Any:
            obs, reward, ended, cut_off, _ = super().step(action)
            return obs, reward, ended, cut_off, {"success": 1.0} if ended else {}

    (_, episodes), *_ = collected(partial(Won, "both", length=4))
    assert episodes.infos == {"success": 1.0}


def test_a_callable_makes_one_environment() -> None:
    with pytest.raises(EnvError, match="a SyncVectorEnv was made"):
        collected(partial(vector, AutoresetMode.SAME_STEP))
    with pytest.raises(SettingError, match="Did you mean 'length'"):
        collected(Probe, env_args={"rule": "both", "lenth": 3})
    with pytest.raises(SettingError, match="no environment"):
        collected(3)


def test_the_native_kernel_uses_masks_of_flags_and_counts_from_zero() -> None:
    told, training = run(Choices, 3, n_steps=16, schedule="serial")
    assert training.layout is not None
    assert all(progress.values["ratio_first"] < 1e-5 for progress in told)
    (rollout, _), *_ = collected(Choices, n_steps=16)
    assert set(np.unique(rollout.obs)) == {0, 1, 2}
    assert rollout.action_mask is not None
    assert not (rollout.actions.astype(bool) & ~rollout.action_mask).any()
    assert rollout.actions.any()


def test_masks_that_come_too_late_are_refused() -> None:
    with pytest.raises(SettingError, match=r"with step\(\) that it did not give with reset"):
        collected(partial(Choices, masks_late=True))


def test_who_was_not_reset_keeps_its_mask() -> None:
    env = SyncVectorEnv([Everything] * 4, autoreset_mode=AutoresetMode.DISABLED)
    (rollout, _), *_ = collected(env, n_steps=24)
    assert rollout.action_mask is not None
    assert rollout.action_mask.any(axis=-1).all()


def test_groups_are_for_training_alone(tmp_path: Path) -> None:
    """Evaluation has another number of environments, which need not be a multiple."""
    quiet = {"directory": str(tmp_path), "quiet": True}
    settings: dict[str, Any] = {**SMALL, "collector": "central", "group_size": 4, "total_steps": 128, "log": quiet}
    assert raceway.train("CartPole-v1", **settings).evaluation is not None


def test_infos_become_metrics() -> None:
    (_, episodes), *_ = collected(partial(Everything, "box"), n_steps=12)
    assert episodes.infos["height"] > 0.0
    (_, episodes), *_ = collected("HalfCheetah-v5", 1)
    assert {"x_velocity", "reward_forward", "reward_ctrl"} <= set(episodes.infos)


def vector(mode: AutoresetMode) -> SyncVectorEnv:
    return SyncVectorEnv([Forever] * 4, autoreset_mode=mode)


def test_a_truncated_episode_has_its_last_value_whatever_the_autoreset() -> None:
    for mode in (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED):
        (rollout, _), *_ = collected(vector(mode), 1, n_steps=12)
        assert rollout.truncated.any()
        # Its observations are all alike, and so are their values.
        np.testing.assert_array_equal(rollout.final_values[rollout.truncated], rollout.values[0, 0])
        assert (rollout.final_values[~rollout.truncated] == 0).all()


def test_rows_of_a_later_reset_are_no_transitions() -> None:
    (rollout, episodes), *_ = collected(vector(AutoresetMode.NEXT_STEP), 1, n_steps=12)
    assert rollout.valid is not None
    np.testing.assert_array_equal(rollout.valid[:, 0], [1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0])
    assert (episodes.lengths == 5).all()
    assert (episodes.returns == 5.0).all()
    (within, _), *_ = collected(vector(AutoresetMode.SAME_STEP), 1, n_steps=12)
    assert within.valid is None


def test_a_vector_environment_is_taken_as_it_is() -> None:
    envs = SyncVectorEnv([partial(gymnasium.make, "CartPole-v1")] * 4)
    told, _ = run(envs, 2, num_envs=4)
    assert len(told) == 2
    with pytest.raises(ValueError, match="steps all of its 4 at once"):
        collected(envs, num_envs=4, group_size=2)


def test_an_environment_that_raises_is_named() -> None:
    class Broken(Probe):
        def step(self, action: int) -> Any:
            if self.np_random.random() < 0.2:
                raise RuntimeError("the cable is loose")
            return super().step(action)

    with pytest.raises(Exception, match="the cable is loose"):
        run(partial(Broken, "both"), 5)


def test_nothing_that_is_not_finite_reaches_an_environment() -> None:
    setup = set_up(partial(Probe, "both"))
    training = build(setup, None)
    sampler = training_sampler(setup, training.layout)
    sampler.open()
    weights = dataclasses.replace(
        training.learner.current, params=np.full_like(training.learner.current.params, np.nan)
    )
    with pytest.raises(FloatingPointError, match=r"output for environment 0 in step 0 .*, though the observation is"):
        sampler.collect(weights, 0, np.empty)
    sampler.close()
