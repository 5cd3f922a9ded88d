"""Policies with a memory: it goes where its environment goes, from the first step of an episode to the last."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import raceway
from raceway.algos.rollout import Rollout, Weights
from raceway.errors import SettingError
from raceway.training.outcome import Run
from raceway.training.programs import build, training_sampler
from raceway.training.resolve import resolve
from raceway.training.sampler import Sampler
from raceway.training.setup import Setup
from tests.training.probes import Recall, Staircase, Unsteady
from tests.training.small_runs import SMALL, chain, random_delays, run, set_up

pytestmark = pytest.mark.usefixtures("compiled_without_optimizing")

SMALL_GRU: dict[str, Any] = {"gru": 6, "batch_size": 16}
RECALL = "tests.training.probes:Recall"
ENOUGH: dict[str, Any] = {
    "num_envs": 16,
    "n_steps": 32,
    "batch_size": 128,
    "n_epochs": 4,
    "learning_rate": 3e-3,
    "gamma": 0.9,
    "hidden": (16,),
}


# The serial ones take as long, and have less that could go wrong.
@pytest.fixture(params=[pytest.param("serial", marks=pytest.mark.slow), "concurrent"])
def schedule(request: pytest.FixtureRequest) -> str:
    return request.param


# Determinism


def test_a_rerun_gives_the_same_chain_in_one_thread_too(schedule: str) -> None:
    settings: dict[str, Any] = {"schedule": schedule, "normalize_observations": True, **SMALL_GRU}
    first = chain("CartPole-v1", **settings)
    assert len(set(first)) == 4
    assert chain("CartPole-v1", **settings) == first
    assert chain("CartPole-v1", inline=True, **settings) == first
    assert chain("CartPole-v1", seed=2, **settings)[0] != first[0]


@pytest.mark.parametrize(
    ("schedule", "group_size"), [pytest.param("serial", 2, marks=pytest.mark.slow), ("concurrent", 1)]
)
def test_delays_and_workers_change_nothing(schedule: str, group_size: int) -> None:
    settings: dict[str, Any] = {"schedule": schedule, "group_size": group_size, **SMALL_GRU}
    undisturbed = chain("CartPole-v1", num_workers=1, **settings)
    assert chain("CartPole-v1", num_workers=4, perturb=random_delays(), **settings) == undisturbed


@pytest.mark.slow
def test_environments_that_take_their_time_change_nothing(schedule: str) -> None:
    settings: dict[str, Any] = {"schedule": schedule, "group_size": 1, "rounds": 3, **SMALL_GRU}
    undisturbed = chain(Unsteady, **{**settings, "env_args": {"most_s": 0.0}})
    assert chain(Unsteady, **settings) == undisturbed


# Collecting


def opened(setup: Setup) -> tuple[Sampler, Weights]:
    training = build(setup, None)
    sampler = training_sampler(setup, training.layout)
    sampler.open()
    # Larger than at first, so that what is remembered shows.
    weights = training.learner.current
    return sampler, Weights(weights.version, weights.params * 3, weights.scaling)


def collected(setup: Setup, rounds: int) -> tuple[list[Rollout], Weights]:
    sampler, weights = opened(setup)
    found = [sampler.collect(weights, round_, np.empty)[0] for round_ in range(rounds)]
    sampler.close()
    return found, weights


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED])
def test_values_are_of_what_was_seen_in_the_episode_whatever_the_autoreset(mode: AutoresetMode) -> None:
    """Episodes of 2, 3, 4 and 5 steps that are cut off; rounds of 8, so that some go on into the next."""
    env = SyncVectorEnv([partial(Staircase, limit) for limit in (2, 3, 4, 5)], autoreset_mode=mode)
    setup = set_up(env, **SMALL_GRU)
    algorithm = setup.algorithm()
    rounds, weights = collected(setup, 3)
    later = mode == AutoresetMode.NEXT_STEP
    memory = np.zeros((4, 6), np.float32)
    for rollout in rounds:
        assert rollout.memory is not None
        np.testing.assert_allclose(rollout.memory, memory, atol=1e-5)
        for t in range(8):
            drawn = algorithm.act(weights.params, None, rollout.obs[t], None, 0, np.arange(4), 0, memory)
            values, memory = np.asarray(drawn[2]), np.asarray(drawn[3])
            np.testing.assert_allclose(rollout.values[t], values, atol=1e-5)
            cut_off = rollout.truncated[t]
            last = rollout.obs[t] + np.float32(0.1)  # a step further, which obs[t + 1] does not show
            expected = np.where(cut_off, algorithm.value(weights.params, None, last, memory), 0)
            np.testing.assert_allclose(rollout.final_values[t], expected, atol=1e-5)
            begins = ~rollout.valid[t] if later and rollout.valid is not None else cut_off
            memory = np.where(begins[:, None], np.float32(0), memory)
            assert (rollout.obs[t + 1][begins] == 0).all()
        bootstrap = algorithm.value(weights.params, None, rollout.obs[8], memory)
        np.testing.assert_allclose(rollout.values[8], bootstrap, atol=1e-5)
    assert np.any(np.asarray(rounds[1].memory) != 0, axis=1).sum() >= 2


def test_a_sampler_goes_on_with_what_it_remembered() -> None:
    setup = set_up("CartPole-v1", group_size=2, **SMALL_GRU)
    sampler, weights = opened(setup)
    other, _ = opened(setup)
    sampler.collect(weights, 0, np.empty)
    state = sampler.save()
    assert state is not None
    other.load(state)
    one, two = (each.collect(weights, 1, np.empty)[0] for each in (sampler, other))
    assert one.memory is not None
    assert two.memory is not None
    assert np.any(one.memory)
    np.testing.assert_array_equal(one.memory, two.memory)
    np.testing.assert_array_equal(one.values, two.values)
    np.testing.assert_array_equal(one.actions, two.actions)
    sampler.restart()
    assert not np.any(sampler.collect(weights, 0, np.empty)[0].memory)
    for each in (sampler, other):
        each.close()


# Learning


@pytest.mark.slow
def test_only_with_a_memory_is_a_thing_of_the_past_known() -> None:
    remembering, forgetting = (
        np.mean([progress.episodes.returns.mean() for progress in run(Recall, rounds, gru=width, **ENOUGH)[0][-5:]])
        for width, rounds in ((16, 40), (None, 20))
    )
    assert remembering > 0.9
    assert abs(forgetting) < 0.3


# A whole run, its policy


@pytest.fixture(scope="module")
def recurrent_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    log = {"quiet": True, "directory": str(tmp_path_factory.mktemp("runs")), "tensorboard": False}
    evaluation = {"times": 1, "episodes": 20}
    return raceway.train(RECALL, total_steps=20_000, gru=16, log=log, evaluation=evaluation, **ENOUGH)


def test_evaluation_remembers(recurrent_run: Run) -> None:
    assert recurrent_run.evaluation is not None
    assert recurrent_run.evaluation.mean == 1.0
    assert raceway.evaluate(recurrent_run.directory, episodes=20).mean == 1.0


def test_a_policy_remembers_each_row_until_it_is_reset(recurrent_run: Run) -> None:
    policy = raceway.load(recurrent_run.directory)
    first = np.array([[1, 0], [-1, 0]], np.float32)
    later = [np.zeros((2, 2), np.float32), np.zeros((2, 2), np.float32), np.array([[0, 1], [0, 1]], np.float32)]

    def episode(rows: Any = slice(None), signs: np.ndarray = first) -> list[int]:
        for obs in (signs, *later):
            actions = policy.act(obs[rows])
        return np.ravel(actions).tolist()

    assert episode() == [1, 0]
    policy.reset()
    assert episode(signs=-first) == [0, 1]
    with pytest.raises(ValueError, match="1 observations after 2: this policy remembers"):
        policy.act(first[:1])
    policy.reset()
    assert episode(0) == [1]
    policy.reset()
    assert episode(slice(1, 2)) == [0]


def test_some_rows_can_be_reset(recurrent_run: Run) -> None:
    policy = raceway.load(recurrent_run.directory)
    obs = np.array([[1, 0], [1, 0]], np.float32)
    policy.act(obs)
    before = np.array(policy.memory)
    policy.reset([False, True])
    assert policy.memory is not None
    np.testing.assert_array_equal(policy.memory, before * [[1], [0]])


def test_a_run_goes_on_with_what_it_remembered(schedule: str, tmp_path: Path) -> None:
    def train(name: str, rounds: int) -> Run:
        log = {"quiet": True, "directory": str(tmp_path), "tensorboard": False, "name": name}
        settings = {**SMALL, **SMALL_GRU, "schedule": schedule, "evaluation": {"enabled": False}, "log": log}
        return raceway.train("CartPole-v1", total_steps=32 * rounds, **settings)

    half = train("half", 6)
    assert raceway.resume(half.directory, total_steps=32 * 12).digest == train("whole", 12).digest


def test_a_recurrent_policy_can_be_played(tmp_path: Path) -> None:
    log = {"quiet": True, "directory": str(tmp_path), "tensorboard": False}
    made = raceway.train("CartPole-v1", total_steps=256, num_envs=4, n_steps=16, n_epochs=1, gru=8, log=log,
                         evaluation={"enabled": False})  # fmt: skip
    played = raceway.play(made.directory, episodes=2, seed=3, video=tmp_path / "a.mp4")
    policy = raceway.load(made.directory)
    env = raceway.make("CartPole-v1", 1, autoreset="same_step")
    obs, _ = env.reset(seed=3)
    returns: list[float] = []
    return_ = 0.0
    while len(returns) < 2:
        obs, rewards, terminated, truncated, _ = env.step(policy.act(obs))
        return_ += float(rewards[0])
        if terminated[0] or truncated[0]:
            policy.reset()
            returns.append(return_)
            return_ = 0.0
    assert played.returns == returns


# Settings


def test_a_batch_size_that_nobody_asked_for_holds_whole_environments() -> None:
    assert resolve("FrozenLake-v1", gru=8).ppo.batch_size == 256  # n_steps, and more than the usual batch_size
    assert resolve("FrozenLake-v1", gru=8, n_steps=16).ppo.batch_size == 64
    assert resolve("FrozenLake-v1", gru=8, n_steps=16, num_envs=6).ppo.batch_size == 48


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 100}, "whole environments, so batch_size=100 must be n_steps=256 times"),
        ({"algo": "a2c"}, "network.gru=8, but a2c has no memory"),
        ({"network": {"gru": 0}}, "network.gru=0 is out of range"),
    ],
)
def test_what_a_memory_does_not_go_with_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError) as raised:
        resolve("FrozenLake-v1", **{"network.gru": 8} | settings if "network" not in settings else settings)
    assert message in str(raised.value)


def test_the_policy_cannot_be_in_the_worker() -> None:
    setup = set_up("CartPole-v1", collector="worker", **SMALL_GRU)
    with pytest.raises(SettingError, match="its network cannot be run there"):
        training_sampler(setup, setup.algorithm().native_layout())
