"""Environments in Python have the policy in their workers too: the same bits as any other way to run them."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import raceway
from raceway.algos.rollout import Episodes, Rollout
from raceway.algos.spaces import flatten
from raceway.errors import SettingError
from raceway.training.central import CentralSampler
from raceway.training.process_sampler import ProcessSampler
from raceway.training.programs import build, training_sampler
from tests.envs.python.watching import children
from tests.training.probes import Choices, Everything, Imports, MaskedWalk, Probe, Seen, Staircase, Unsteady, Walk
from tests.training.small_runs import SMALL, chain, collected, random_delays, set_up

pytestmark = pytest.mark.usefixtures("compiled_without_optimizing")

ROLLOUT = ("actions", "rewards", "terminated", "truncated", "log_probs", "values", "final_values")


def assert_same(ours: list[tuple[Rollout, Episodes]], theirs: list[tuple[Rollout, Episodes]]) -> None:
    for (rollout, episodes), (other, their_episodes) in zip(ours, theirs, strict=True):
        for name in ROLLOUT:
            np.testing.assert_array_equal(getattr(rollout, name), getattr(other, name), err_msg=name)
        assert (rollout.action_mask is None) == (other.action_mask is None)
        if rollout.action_mask is not None:
            np.testing.assert_array_equal(rollout.action_mask, other.action_mask)
        np.testing.assert_equal(rollout.obs, other.obs)
        np.testing.assert_array_equal(episodes.returns, their_episodes.returns)
        np.testing.assert_array_equal(episodes.lengths, their_episodes.lengths)
        np.testing.assert_array_equal(episodes.envs, their_episodes.envs)
        assert episodes.infos == their_episodes.infos


@pytest.mark.parametrize("env", [Walk, MaskedWalk, Choices, Seen], ids=lambda env: env.__name__)
def test_every_way_to_run_them_gives_the_same_rollout(env: Any) -> None:
    settings: dict[str, Any] = {"n_steps": 20, "num_envs": 4}
    inline = collected(env, lane="inline", **settings)
    assert_same(collected(env, num_workers=3, **settings), inline)
    assert_same(collected(env, collector="central", **settings), inline)
    assert_same(collected(env, collector="central", lane="inline", group_size=4, **settings), inline)
    assert any(len(episodes.lengths) for _, episodes in inline)


@pytest.mark.parametrize("schedule", [pytest.param("serial", marks=pytest.mark.slow), "concurrent"])
def test_workers_and_delays_change_nothing(schedule: str) -> None:
    settings: dict[str, Any] = {"schedule": schedule, "normalize_observations": True, "normalize_rewards": True}
    first = chain(Walk, lane="inline", inline=True, **settings)
    assert len(set(first)) == 4
    for workers in (1, 4):
        assert chain(Walk, num_workers=workers, perturb=random_delays(), **settings) == first
    assert chain(Walk, collector="central", num_workers=2, **settings) == first
    assert chain(Walk, seed=2, num_workers=2, **settings)[0] != first[0]


def test_environments_that_take_their_time_change_nothing() -> None:
    settings: dict[str, Any] = {"rounds": 3, "num_workers": 3}
    undisturbed = chain(Unsteady, **settings, env_args={"most_s": 0.0})
    assert chain(Unsteady, **settings) == undisturbed


def test_two_groups_are_served_in_turns_and_inline_by_one_thread() -> None:
    """JAX acts here, so the sizes of groups must be the same in both."""
    assert chain(Everything, 3, num_workers=2) == chain(Everything, 3, lane="inline")


def test_fewer_workers_than_groups_step_several_together() -> None:
    before = children()
    sampler = opened(Walk, collector="central", num_envs=6, group_size=1, num_workers=2)
    assert len(children() - before) == 2
    sampler.close()


@pytest.mark.parametrize(
    ("env", "settings"),
    [(Everything, {}), (Walk, {"gru": 6}), (MaskedWalk, {"collector": "central"})],
    ids=["dicts", "memory", "masks"],
)
def test_groups_that_are_stepped_together_change_nothing(env: Any, settings: dict[str, Any]) -> None:
    """Nor does what is saved tell which were."""
    settings = {"num_envs": 6, "group_size": 1, "n_steps": 8} | settings
    samplers = [
        opened(env, **settings, **lane) for lane in ({"lane": "inline"}, {"num_workers": 4}, {"num_workers": 1})
    ]
    weights = build(set_up(env, **settings), None).learner.current
    rounds = [[sampler.collect(weights, round_, np.empty) for round_ in range(2)] for sampler in samplers]
    for others in rounds[1:]:
        assert_same(others, rounds[0])
    alone, four, one = samplers
    after = [alone.collect(weights, 2, np.empty)]
    state = four.save()
    assert one.load(state) == []
    assert_same([one.collect(weights, 2, np.empty)], after)
    alone.restart()
    assert alone.load(state) == []
    assert_same([alone.collect(weights, 2, np.empty)], after)
    with pytest.raises(ValueError, match="of 5 groups, here are 6"):
        one.load({"groups": state["groups"][1:]})
    for sampler in samplers:
        sampler.close()


def opened(env: Any, **settings: Any) -> Any:
    setup = set_up(env, **settings)
    sampler = training_sampler(setup, setup.algorithm().native_layout())
    sampler.open()
    return sampler


def test_which_way_is_chosen() -> None:
    for env, settings, kind in (
        (Walk, {}, ProcessSampler),
        (Walk, {"lane": "inline"}, ProcessSampler),
        (Walk, {"collector": "worker"}, ProcessSampler),
        (Walk, {"collector": "central"}, CentralSampler),
        (Everything, {}, CentralSampler),
        ("CartPole-v1", {"lane": "process"}, ProcessSampler),
        (SyncVectorEnv([Walk] * 4), {}, CentralSampler),
    ):
        setup = set_up(env, **settings)
        assert type(training_sampler(setup, setup.algorithm().native_layout())) is kind


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(SettingError, match="network cannot be run there"):
        collected(Everything, collector="worker")
    with pytest.raises(SettingError, match="workers of its own"):
        collected(SyncVectorEnv([Walk] * 4), collector="worker")
    with pytest.raises(SettingError, match="not one of Raceway's own"):
        collected(Walk, lane="native")


def test_workers_do_not_import_jax() -> None:
    ((_, episodes),) = collected(Imports, 1, num_workers=1)
    assert episodes.infos == {"heavy": 0.0, "policy": 1.0}


def test_a_list_of_callables_takes_turns(tmp_path: Path) -> None:
    envs = [partial(Staircase, 5), partial(Staircase, 9)]
    for settings in ({}, {"collector": "central", "group_size": 1}):
        ((rollout, _),) = collected(envs, 1, n_steps=12, num_envs=4, **settings)
        np.testing.assert_array_equal(rollout.truncated[4], [True, False, True, False])
        np.testing.assert_array_equal(rollout.truncated[8], [False, True, False, True])
    small: dict[str, Any] = {name: value for name, value in SMALL.items() if name != "num_envs"}
    run = raceway.train(envs, **small, total_steps=64, log={"directory": str(tmp_path), "quiet": True})
    assert run.config.num_envs == 2
    with pytest.raises(
        SettingError, match=r"The environment of .* cannot be found by name\. .*raceway\.evaluate\(.*, env=\[\.\.\.\]\)"
    ):
        raceway.evaluate(run.directory, 1)
    assert raceway.evaluate(run.directory, 2, env=envs).returns


def test_rounds_lie_in_the_memory_that_workers_write() -> None:
    """They go on to the learner without a copy, and are not written to while somebody has them."""
    setup = set_up(Walk, num_workers=2)
    training = build(setup, None)
    sampler = training_sampler(setup, training.layout)
    sampler.open()
    first, _ = sampler.collect(training.learner.current, 0, np.empty)
    before = [leaf.copy() for leaf in flatten(setup.observation_space, first.obs)]
    second, _ = sampler.collect(training.learner.current, 1, np.empty)
    np.testing.assert_array_equal(first.obs, before[0])
    np.testing.assert_array_equal(first.obs[-1], second.obs[0])
    sampler.close()
    np.testing.assert_array_equal(first.obs, before[0])


def test_a_callback_makes_the_pool_anew(tmp_path: Path) -> None:
    class Longer(raceway.Callback):
        def on_round(self, told: Any, control: Any) -> None:
            if told.round == 1:
                control.env_args = {"length": 3}

    settings: dict[str, Any] = {
        **SMALL,
        "env_args": {"rule": "both"},
        "total_steps": 4 * 8 * 6,
        "log": {"directory": str(tmp_path), "quiet": True},
        "evaluation": {"enabled": False},
        "num_workers": 2,
    }
    run = raceway.train(Probe, **settings, callbacks=[Longer()])
    rows = [json.loads(line) for line in (run.directory / "metrics.jsonl").read_text().splitlines()]
    assert rows[0]["episode/length"] == 1.0
    assert rows[-1]["episode/length"] > 1.0
