"""A pool of Python environments gives what Gymnasium's SyncVectorEnv gives, to the bit, in every lane."""

from __future__ import annotations

import functools
from itertools import cycle
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.envs.gymnasium_twin import MODES, assert_same
from tests.envs.python.scripted import ACTIONS, OBSERVATIONS, Scripted, maker
from tests.envs.python.sync_twin import LANES, Pair
from tests.examples import examples

PROCESSES = {name: LANES[name] for name in LANES if name != "inline"}


def in_lanes(lanes: dict[str, dict[str, Any]] = LANES) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("lane", lanes.values(), ids=lanes)


# --- modes, workers, spaces


MODES_AND_LANES = [(mode, lane) for mode in MODES for lane in LANES]
# Every mode inline and in processes, every number of workers; the rest is for those who have more time.
SOME_MODES_AND_LANES = {*((mode, "inline") for mode in MODES), *zip(MODES, PROCESSES, strict=True)}


@pytest.mark.parametrize(
    ("mode", "lane"),
    [pytest.param(*each, marks=[] if each in SOME_MODES_AND_LANES else [pytest.mark.slow]) for each in MODES_AND_LANES],
)
def test_every_mode_and_number_of_workers(mode: str, lane: str) -> None:
    makers = [maker(observation=OBSERVATIONS["nested"], action=ACTIONS["nested"])] * 5
    with Pair(makers, mode, **LANES[lane]) as pair:
        assert pair.ours.metadata == pair.theirs.metadata
        pair.drive(60)
        pair.drive(20, seed=7)


@pytest.mark.parametrize(("observation", "action"), list(zip(OBSERVATIONS, cycle(ACTIONS), strict=False)))
def test_every_observation_and_action_space(observation: str, action: str) -> None:
    mode = list(MODES)[list(OBSERVATIONS).index(observation) % 3]
    makers = [maker(observation=OBSERVATIONS[observation], action=ACTIONS[action])] * 3
    for lane in ("inline", "2-workers"):
        with Pair(makers, mode, **LANES[lane]) as pair:
            assert pair.ours.observation_space == pair.theirs.observation_space
            assert pair.ours.single_observation_space == OBSERVATIONS[observation]
            assert pair.ours.action_space == pair.theirs.action_space
            assert pair.ours.single_action_space == ACTIONS[action]
            pair.drive(25)


@pytest.mark.slow
@in_lanes()
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_every_observation_space_in_every_mode(observation: str, mode: str, lane: dict[str, Any]) -> None:
    with Pair([maker(observation=OBSERVATIONS[observation])] * 4, mode, **lane) as pair:
        pair.drive(40)


def random_case() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "observation": st.sampled_from(sorted(OBSERVATIONS)),
            "action": st.sampled_from(sorted(ACTIONS)),
            "mode": st.sampled_from(sorted(MODES)),
            "num_envs": st.integers(1, 7),
            "longest": st.integers(1, 8),
            "tells": st.booleans(),
            "seed": st.integers(0, 2**32 - 1),
        }
    )


def check(case: dict[str, Any], **lane: Any) -> None:
    make = maker(
        observation=OBSERVATIONS[case["observation"]],
        action=ACTIONS[case["action"]],
        longest=case["longest"],
        tells=case["tells"],
    )
    with Pair([make] * case["num_envs"], case["mode"], **lane) as pair:
        pair.drive(case["longest"] + 6, seed=case["seed"])


@given(case=random_case())
@settings(max_examples=examples(40))
def test_anything_inline(case: dict[str, Any]) -> None:
    check(case, lane="inline")


@pytest.mark.slow
@pytest.mark.timeout(900)
@given(case=random_case(), num_workers=st.integers(1, 4))
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_anything_in_processes(case: dict[str, Any], num_workers: int) -> None:
    check(case, lane="process", num_workers=num_workers)


@in_lanes()
def test_one_environment(lane: dict[str, Any]) -> None:
    with Pair([maker()], **lane) as pair:
        pair.drive(20)


def test_other_types_than_the_spaces_are_converted() -> None:
    with Pair([maker(action=ACTIONS["box"])] * 3, **LANES["2-workers"]) as pair:
        pair.reset(seed=0)
        wanted = np.array([[0.5, -0.5], [1, 0], [0, 0]], np.float32)
        expected = pair.theirs.step(wanted)
        assert_same(pair.ours.step(wanted.astype(np.float64).tolist()), expected)


# --- resets


@in_lanes()
def test_seeds_options_and_masks_of_a_reset(lane: dict[str, Any]) -> None:
    with Pair([maker()] * 4, **lane) as pair:
        pair.reset(seed=3)
        pair.reset(seed=[5, None, 7, 5])
        pair.reset()
        pair.reset(seed=2**31 + 5, options={"level": 3, "names": ["a", "b"]})
        for bits in range(1, 16):
            mask = np.array([bool(bits >> env & 1) for env in range(4)])
            pair.step()
            pair.reset(options={"reset_mask": mask})
            pair.reset(seed=bits, options={"reset_mask": mask, "level": bits})
            pair.reset(seed=[bits, None, 3, None], options={"reset_mask": mask})
        pair.step()


@pytest.mark.parametrize("lane", ["inline", "process"])
def test_the_seed_given_to_make_is_that_of_the_first_reset(lane: str) -> None:
    with Pair([maker()] * 3, lane=lane, num_workers=2, seed=11) as pair:
        assert_same(pair.ours.reset(), pair.theirs.reset(seed=11))
        pair.reset()  # and the generators go on
        pair.step()


@pytest.mark.parametrize("lane", ["inline", "process"])
def test_bad_resets_are_refused_and_change_nothing(lane: str) -> None:
    refused: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"seed": [1, 2]}, ValueError, "seed has 2 entries for num_envs=3"),
        ({"seed": -1}, ValueError, "negative"),
        ({"seed": "a"}, TypeError, "seed='a'"),
        ({"options": {"reset_mask": [True, False, False]}}, TypeError, "NumPy array of bool"),
        ({"options": {"reset_mask": np.ones(2, bool)}}, ValueError, r"shape \(2,\)"),
        ({"options": {"reset_mask": np.zeros(3, bool)}}, ValueError, "marks no environment"),
    ]
    with Pair([maker()] * 3, lane=lane, num_workers=2) as pair:
        pair.reset(seed=0)
        for given_, error, message in refused:
            with pytest.raises(error, match=message):
                pair.ours.reset(**given_)
            pair.step()


# --- Gymnasium's own environments and ids


@pytest.mark.parametrize(("mode", "lane"), [*((mode, "inline") for mode in MODES), ("next_step", "2-workers")])
def test_cart_pole_by_its_id(mode: str, lane: str) -> None:
    makers = [functools.partial(gymnasium.make, "CartPole-v1")] * 4
    with Pair(makers, mode, target="CartPole-v1", **LANES[lane]) as pair:
        assert pair.ours.lane == LANES[lane]["lane"]
        pair.drive(120)


@pytest.mark.parametrize("task", ["FrozenLake-v1", "Blackjack-v1", "Pendulum-v1"])
def test_other_tasks_of_gymnasium(task: str) -> None:
    makers = [functools.partial(gymnasium.make, task, max_episode_steps=12)] * 3
    with Pair(makers, "same_step", target=task, max_episode_steps=12, **LANES["2-workers"]) as pair:
        pair.drive(40)


@pytest.fixture
def registered() -> Any:
    name = "OnlyHere-v3"
    gymnasium.register(
        name, entry_point=lambda **kwargs: Scripted(**kwargs), max_episode_steps=4, kwargs={"longest": 9}
    )
    yield name
    del gymnasium.registry[name]


@in_lanes({name: LANES[name] for name in ("inline", "2-workers")})
def test_an_id_that_is_registered_in_this_process_only(registered: str, lane: dict[str, Any]) -> None:
    makers = [functools.partial(gymnasium.make, registered)] * 3
    with Pair(makers, target=registered, **lane) as pair:
        pair.drive(40)


@pytest.mark.parametrize("lane", ["inline", "process"])
def test_keyword_arguments_for_all_and_for_each(lane: str) -> None:
    own: list[dict[str, Any]] = [{"longest": 2}, {}, {"longest": 7, "tells": False}]
    makers = [functools.partial(Scripted, **({"longest": 3} | each)) for each in own]
    with Pair(makers, target=Scripted, env_kwargs=own, longest=3, lane=lane, num_workers=2) as pair:
        pair.drive(40)


@pytest.mark.parametrize("lane", ["inline", "process"])
def test_a_limit_of_steps_for_all_and_for_each(lane: str) -> None:
    limits: list[dict[str, Any]] = [{"max_episode_steps": 2}, {}, {"max_episode_steps": 9}]
    makers = [
        functools.partial(_limited, functools.partial(Scripted, longest=20), each.get("max_episode_steps", 4))
        for each in limits
    ]
    settings_: dict[str, Any] = {
        "env_kwargs": limits,
        "longest": 20,
        "max_episode_steps": 4,
        "lane": lane,
        "num_workers": 2,
    }
    with Pair(makers, "same_step", target=Scripted, **settings_) as pair:
        pair.drive(40)


def _limited(make: Any, limit: int) -> gymnasium.Env:
    return gymnasium.wrappers.TimeLimit(make(), limit)


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
@pytest.mark.parametrize("lane", ["inline", "process"])
def test_recorded_episodes(lane: str, mode: str) -> None:
    settings_: dict[str, Any] = {"record_episodes": True, "lane": lane, "num_workers": 2}
    with Pair([maker(tells=False)] * 4, mode, wrap=RecordEpisodeStatistics, **settings_) as pair:
        pair.drive(60)


def test_pictures_and_attributes_of_the_pool() -> None:
    makers = [functools.partial(Scripted, render_mode="rgb_array")] * 3
    for lane in ("inline", "process"):
        with Pair(makers, target=Scripted, render_mode="rgb_array", lane=lane, num_workers=2) as pair:
            pair.reset(seed=0)
            pair.step()
            assert_same(pair.ours.render(), pair.theirs.render())
            assert pair.ours.render_mode == "rgb_array"
            assert pair.ours.lane == lane
            assert pair.ours.faults.tolist() == [0, 0, 0]
