"""The native collector: what it writes is what stepping the pool by hand gives, for any number of workers."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import closing
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded

import raceway
from raceway import _core
from raceway.envs import NativePool
from tests.training.native_policies import (
    NUM_ENVS,
    NUM_STEPS,
    TASKS,
    Net,
    assert_same_bits,
    buffers,
    collected,
    make,
)


def as_leaves(obs: Any) -> list[np.ndarray]:
    return list(obs) if isinstance(obs, tuple) else [obs]


def replay(pool: NativePool, rollout: dict[str, Any], net: Net) -> None:
    """Steps a pool by hand with the recorded actions and compares every row."""
    action = pool.single_action_space
    steps, sums = len(rollout["rewards"]), np.zeros(len(rollout["info_means"]))
    obs = as_leaves(pool.observe())
    runner_names = _core.Rollout(pool._pool, net.policy()).info_names
    for t in range(steps):
        for leaf, expected in zip(rollout["obs"], obs, strict=True):
            np.testing.assert_array_equal(leaf[t], expected.astype(leaf.dtype))
        acted = rollout["actions"][t]
        if isinstance(action, gym.spaces.Box):
            acted = np.clip(acted, action.low, action.high)
        observed, rewards, terminated, truncated, infos = pool.step(acted)
        obs = as_leaves(observed)
        np.testing.assert_array_equal(rollout["rewards"][t], rewards.astype(np.float32))
        np.testing.assert_array_equal(rollout["terminated"][t], terminated)
        np.testing.assert_array_equal(rollout["truncated"][t], truncated)
        ended = terminated | truncated
        np.testing.assert_array_equal(rollout["episode_lengths"][t] > 0, ended)
        cut = truncated & ~terminated
        if cut.any():
            last = [np.stack(infos["final_obs"][cut])]  # tasks with several leaves are never cut off here
            expected = net.outputs([x.astype(leaf.dtype) for x, leaf in zip(last, rollout["obs"], strict=True)])[1]
            np.testing.assert_allclose(rollout["final_values"][t][cut], expected, atol=1e-5)
        assert (rollout["final_values"][t][~cut] == 0).all()
        for i, name in enumerate(runner_names):
            values = infos.get(name, np.zeros(pool.num_envs))  # none has it if all episodes ended
            values = np.where(ended, infos["final_info"][name], values) if ended.any() else values
            sums[i] += values.sum(dtype=np.float64)
    for leaf, expected in zip(rollout["obs"], obs, strict=True):
        np.testing.assert_array_equal(leaf[steps], expected.astype(leaf.dtype))
    np.testing.assert_allclose(rollout["info_means"], sums / (steps * pool.num_envs), rtol=1e-12)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("trunk", [False, True])
def test_the_recorded_actions_taken_by_hand_give_the_same_rows(task: str, trunk: bool) -> None:
    with closing(make(task)) as pool, closing(make(task)) as twin:
        net = Net(pool, trunk=trunk)
        for rollout in collected(pool, net, rounds=2):
            replay(twin, rollout, net)


@pytest.mark.parametrize("task", TASKS)
def test_values_and_log_probs_are_the_networks(task: str) -> None:
    with closing(make(task)) as pool:
        net = Net(pool, log_std=-0.3)
        rollout = collected(pool, net)[0]
    logits, values = net.outputs(rollout["obs"])
    np.testing.assert_allclose(rollout["values"], values, atol=1e-5)
    logits, actions = logits[:-1], rollout["actions"]
    if net.discrete:
        if rollout["action_mask"] is not None:
            logits = np.where(rollout["action_mask"], logits, -1e8)
        logits = logits - logits.max(-1, keepdims=True)
        every = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        expected = np.take_along_axis(every, actions[..., None], -1)[..., 0]
    else:
        z = (actions - logits) / np.exp(net.log_std)
        expected = (-0.5 * z**2 - net.log_std - 0.5 * np.log(2 * np.pi)).sum(-1)
    np.testing.assert_allclose(rollout["log_probs"], expected, atol=3e-5)


@pytest.mark.parametrize("task", TASKS)
def test_workers_and_groups_change_no_bit(task: str) -> None:
    def run(num_workers: int, group: int) -> list[dict[str, Any]]:
        with closing(make(task, num_workers=num_workers)) as pool:
            return collected(pool, Net(pool), rounds=2, group=group)

    expected = run(1, 1)
    for num_workers, group in [(1, 8), (2, 0), (2, 3), (4, 1), (4, 8)]:
        for one, other in zip(expected, run(num_workers, group), strict=True):
            assert_same_bits(one, other)


def test_an_action_that_the_mask_forbids_is_never_taken() -> None:
    with closing(make("Taxi-v3")) as pool, closing(make("Taxi-v3")) as twin:
        _, infos = twin.reset(seed=5)
        rollout = collected(pool, Net(pool), steps=300)[0]
        mask = rollout["action_mask"]
        assert np.take_along_axis(mask, rollout["actions"][..., None], -1).all()
        assert not mask.all()
        for t in range(300):
            np.testing.assert_array_equal(mask[t], infos["action_mask"] == 1)
            *_, infos = twin.step(rollout["actions"][t])


def test_masks_that_are_not_asked_for_are_not_applied() -> None:
    with closing(make("Taxi-v3")) as pool:
        net = Net(pool)
        runner = _core.Rollout(pool._pool, net.policy())
        filled = buffers(pool, runner) | {"action_mask": None}
        runner.collect(filled, NUM_STEPS, 17, 0)
        logits = net.outputs(filled["obs"])[0][:-1]
        every = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        expected = np.take_along_axis(every, filled["actions"][..., None], -1)[..., 0]
        np.testing.assert_allclose(filled["log_probs"], expected, atol=3e-5)


@pytest.mark.parametrize("task", ["CartPole-v1", "Taxi-v3", "HalfCheetah-v5"])
def test_a_pool_whose_state_was_put_back_goes_on_to_the_bit(task: str) -> None:
    with closing(make(task)) as pool, closing(make(task, seed=99)) as other:
        net = Net(pool)
        runner = _core.Rollout(pool._pool, net.policy())
        runner.collect(buffers(pool, runner), NUM_STEPS, 17, 0)
        other.set_state(pool.state())
        first, second = collected(pool, net)[0], collected(other, net)[0]
    assert_same_bits(first, second)


def test_actions_are_kept_as_drawn_and_clipped_for_the_environment() -> None:
    with closing(make("Pendulum-v1")) as pool, closing(make("Pendulum-v1")) as twin:
        net = Net(pool, log_std=1.5)
        rollout = collected(pool, net)[0]
        assert (np.abs(rollout["actions"]) > 2).any()
        replay(twin, rollout, net)


@pytest.mark.parametrize("task", ["CartPole-v1", "HalfCheetah-v5"])
def test_greedy_actions_are_the_most_likely_ones(task: str) -> None:
    with closing(make(task)) as pool:
        net = Net(pool)
        rollout = collected(pool, net, greedy=True)[0]
    logits = net.outputs(rollout["obs"])[0][:-1]
    if net.discrete:
        sure = np.abs(logits[..., 0] - logits[..., 1]) > 1e-5
        np.testing.assert_array_equal(rollout["actions"][sure], logits.argmax(-1)[sure])
    else:
        np.testing.assert_allclose(rollout["actions"], logits, atol=1e-5)


def test_episodes_are_summed_up_across_rounds() -> None:
    with closing(make("CartPole-v1")) as pool:
        rounds = collected(pool, Net(pool), rounds=5)
    returns = np.concatenate([each["episode_returns"] for each in rounds])
    lengths = np.concatenate([each["episode_lengths"] for each in rounds])
    since = np.zeros(NUM_ENVS, int)
    for t in range(len(lengths)):
        since += 1
        ended = lengths[t] > 0
        np.testing.assert_array_equal(lengths[t][ended], since[ended])
        np.testing.assert_array_equal(returns[t], np.where(ended, since, 0))  # CartPole pays one for each step
        since[ended] = 0
    assert lengths.max() > NUM_STEPS or (lengths > 0).sum() > NUM_ENVS


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("rewards", lambda x: x.astype(np.float64), r"buffers\['rewards'\] is an array of float64"),
        ("rewards", lambda x: x[:, :-1], r"shape \(40, 10\)"),
        ("values", lambda x: x[:-1], r"expected a C-contiguous writable array of float32 and shape \(41, 11\)"),
        ("log_probs", np.asfortranarray, "not C-contiguous"),
        ("actions", lambda x: x.astype(np.int64), r"buffers\['actions'\] is an array of int64"),
        ("obs", lambda x: [*x, *x], "has 2 arrays: an observation has 1 leaves"),
        ("obs", lambda x: [x[0].astype(np.float64)], r"buffers\['obs'\]\[0\] is an array of float64"),
        ("action_mask", lambda _: np.zeros((40, 11, 2), bool), "gives no action_mask"),
    ],
)
def test_buffers_that_do_not_fit_are_refused_before_a_step(name: str, change: Any, message: str) -> None:
    with closing(make("CartPole-v1")) as pool:
        runner = _core.Rollout(pool._pool, Net(pool).policy())
        filled = buffers(pool, runner)
        before = pool.observe().copy()
        with pytest.raises(ValueError, match=message):
            runner.collect(filled | {name: change(filled[name])}, NUM_STEPS, 0, 0)
        np.testing.assert_array_equal(pool.observe(), before)


def test_buffers_that_are_missing_unknown_or_read_only_are_named() -> None:
    with closing(make("CartPole-v1")) as pool:
        runner = _core.Rollout(pool._pool, Net(pool).policy())
        filled = buffers(pool, runner)
        with pytest.raises(KeyError, match="no 'values'"):
            runner.collect({k: v for k, v in filled.items() if k != "values"}, NUM_STEPS, 0, 0)
        with pytest.raises(ValueError, match="no buffer 'reward'"):
            runner.collect(filled | {"reward": filled["rewards"]}, NUM_STEPS, 0, 0)
        with pytest.raises(TypeError, match="is of type list"):
            runner.collect(filled | {"rewards": [1.0]}, NUM_STEPS, 0, 0)
        filled["rewards"].flags.writeable = False
        with pytest.raises(ValueError, match="is read-only"):
            runner.collect(filled, NUM_STEPS, 0, 0)


def test_weights_that_do_not_fit_are_refused() -> None:
    with closing(make("CartPole-v1")) as pool:
        net = Net(pool)
        policy = _core.Policy(net.layout)
        assert policy.num_params == net.params.size
        assert policy.num_scaled == 4
        runner = _core.Rollout(pool._pool, policy)
        with pytest.raises(RuntimeError, match="no weights yet"):
            runner.collect(buffers(pool, runner), NUM_STEPS, 0, 0)
        with pytest.raises(ValueError, match="layers take"):
            policy.load(net.params[:-1])
        with pytest.raises(ValueError, match="float64"):
            policy.load(net.params.astype(np.float64))
        with pytest.raises(ValueError, match="go together"):
            policy.load(net.params, net.mean, None)
        with pytest.raises(ValueError, match="mean is an array of float32 and shape \\(3,\\)"):
            policy.load(net.params, net.mean[:3], net.rate[:3])
        for key, value, message in [("activation", "gelu", "no activation 'gelu'"), ("inputs", [], "no inputs")]:
            with pytest.raises(ValueError, match=message):
                _core.Policy(net.layout | {key: value})


def test_weights_that_are_not_finite_are_told_and_no_environment_gets_the_action() -> None:
    with closing(make("Pendulum-v1")) as pool:
        net = Net(pool)
        net.params[:] = np.nan
        runner = _core.Rollout(pool._pool, net.policy())
        before = pool.observe().copy()
        with pytest.raises(
            FloatingPointError,
            match=r"output for environment 0 of Pendulum in step 0 .*, though the observation",
        ):
            runner.collect(buffers(pool, runner), NUM_STEPS, 0, 0)
        np.testing.assert_array_equal(pool.observe(), before)


def test_a_rollout_needs_a_pool_that_was_reset_and_is_open() -> None:
    pool = raceway.make("CartPole-v1", 3, autoreset="same_step")
    assert isinstance(pool, NativePool)
    runner = _core.Rollout(pool._pool, Net(pool).policy())
    filled = buffers(pool, runner)
    with pytest.raises(ResetNeeded, match="have not been reset"):
        runner.collect(filled, NUM_STEPS, 0, 0)
    pool.close()
    with pytest.raises(ClosedEnvironmentError):
        runner.collect(filled, NUM_STEPS, 0, 0)
    with closing(raceway.make("CartPole-v1", 3)) as other:
        assert isinstance(other, NativePool)
        policy = Net(other).policy()
        with pytest.raises(ValueError, match="autoreset='same_step'"):
            _core.Rollout(other._pool, policy)


def waiting_runner(num_envs: int, num_workers: int, step_us: float = 2000.0) -> tuple[NativePool, _core.Rollout]:
    pool = make("Busy-v0", num_envs, num_workers=num_workers, step_us=step_us, spread="exponential", wait=True)
    return pool, _core.Rollout(pool._pool, Net(pool).policy())


def test_environments_that_wait_are_stepped_side_by_side() -> None:
    pool, runner = waiting_runner(16, 16, step_us=15_000.0)
    with closing(pool):
        start = time.perf_counter()
        runner.collect(buffers(pool, runner), NUM_STEPS, 0, 0)
        assert time.perf_counter() - start < 7  # one after the other it is 10 s, side by side 0.8 s


def test_closing_the_pool_ends_a_rollout() -> None:
    pool, runner = waiting_runner(4, 2)
    filled, raised = buffers(pool, runner, 100_000), []

    def collect() -> None:
        with pytest.raises(ClosedEnvironmentError, match="closed while a rollout was under way") as caught:
            runner.collect(filled, 100_000, 0, 0)
        raised.append(caught.value)

    thread = threading.Thread(target=collect)
    thread.start()
    time.sleep(0.1)
    with pytest.raises(RuntimeError, match="another call is inside"):
        pool.step(np.zeros(4, int))
    start = time.perf_counter()
    pool.close()
    thread.join(5)
    assert raised
    assert time.perf_counter() - start < 4


def test_ctrl_c_ends_a_rollout() -> None:
    pool, runner = waiting_runner(4, 2)
    with closing(pool):
        filled = buffers(pool, runner, 100_000)
        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            start = time.perf_counter()
            with pytest.raises(KeyboardInterrupt):
                runner.collect(filled, 100_000, 0, 0)
            assert time.perf_counter() - start < 4
        finally:
            signal.signal(signal.SIGALRM, before)
        few = buffers(pool, runner, 3)
        runner.collect(few, 3, 0, 0)
        assert np.isfinite(few["values"]).all()
