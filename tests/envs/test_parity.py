"""Same seed, same actions: what a pool does equals what Gymnasium does, to the bit."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import raceway
from tests.envs.gymnasium_twin import CONTINUOUS, LIGHT, MODES, TASKS, Twins, assert_same, in_turn, random_actions
from tests.envs.task_strategies import SEEDS, free_kwargs, frozen_lake_maps, reset_options, shared_kwargs
from tests.examples import TRIES_ALL, examples

pytestmark = pytest.mark.filterwarnings("ignore:.*out of date")

TAXI_V3 = Path(__file__).parents[1] / "data" / "taxi_v3.npz"


@pytest.mark.parametrize(("task", "mode"), in_turn(LIGHT))
def test_trajectories_equal_gymnasiums_through_terminations_and_truncations(task: str, mode: str):
    limits = [{"max_episode_steps": limit} for limit in (37, 1, 60)]
    own: list[dict[str, Any]] = [{}, {}, {}, {}, {}, *limits]
    with Twins(task, len(own), mode, env_kwargs=own) as twins:
        twins.reset(seed=11)
        terminated, truncated = twins.drive(600, np.random.default_rng(5))
    assert truncated > 0
    assert terminated > 0 or task == "Pendulum-v1"  # a pendulum's episodes are only ever cut off


def drive_anyhow(task: str, data: st.DataObject, steps: int) -> None:
    """Any arguments, any mode, any number of workers; steps, and now and then a reset of all or of some."""
    num_envs = data.draw(st.integers(1, 6), "num_envs")
    mode = data.draw(st.sampled_from(list(MODES)), "mode")
    shared = data.draw(shared_kwargs(task), "shared")
    limit = st.fixed_dictionaries({}, optional={"max_episode_steps": st.sampled_from([-1, 1, 2, 7, 30])})
    per_env = st.builds(lambda free, limit: free | limit, free_kwargs(task), limit)
    own = data.draw(st.none() | st.lists(per_env, min_size=num_envs, max_size=num_envs), "own")
    seed = data.draw(SEEDS | st.lists(SEEDS, min_size=num_envs, max_size=num_envs), "seed")
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32), "choices"))
    workers = data.draw(st.integers(1, 4), "workers")
    again = data.draw(st.none() | st.lists(st.none() | SEEDS, min_size=num_envs, max_size=num_envs), "again")
    options = data.draw(reset_options(task), "options")
    with Twins(task, num_envs, mode, num_workers=workers, env_kwargs=own, **shared) as twins:
        twins.reset(seed=seed)
        for _ in range(3):
            twins.drive(steps // 3, rng)
            mask = rng.random(num_envs) < 0.5
            twins.reset(seed=again, mask=mask if mask.any() else None, **options)
        twins.drive(2, rng)


@pytest.mark.parametrize("task", LIGHT)
@settings(max_examples=examples(20))
@given(data=st.data())
def test_any_arguments_modes_seeds_and_workers_equal_gymnasiums(task: str, data: st.DataObject):
    drive_anyhow(task, data, steps=60)


@pytest.mark.slow
@pytest.mark.parametrize("task", LIGHT)
@settings(max_examples=100, derandomize=False)
@given(data=st.data())
def test_any_arguments_modes_seeds_and_workers_equal_gymnasiums_at_length(task: str, data: st.DataObject):
    drive_anyhow(task, data, steps=600)


@pytest.mark.parametrize("task", LIGHT)
@settings(max_examples=examples(15))
@given(data=st.data())
def test_resets_equal_gymnasiums(task: str, data: st.DataObject):
    options = data.draw(reset_options(task))
    with Twins(task, 4, **data.draw(shared_kwargs(task))) as twins:
        twins.reset(seed=data.draw(st.lists(SEEDS, min_size=4, max_size=4)), **options)
        twins.reset(**options)
        twins.reset(seed=[None, data.draw(SEEDS), None, data.draw(SEEDS)], **options)
        twins.reset(seed=data.draw(SEEDS))


@settings(max_examples=examples(15))
@given(data=st.data())
def test_frozen_lakes_of_one_size_share_a_pool(data: st.DataObject):
    shapes = data.draw(st.lists(st.sampled_from([(4, 4), (2, 8), (1, 16)]), min_size=5, max_size=5))
    own = [{"desc": data.draw(frozen_lake_maps(*shape)), **data.draw(free_kwargs("FrozenLake-v1"))} for shape in shapes]
    with Twins("FrozenLake-v1", 5, env_kwargs=own) as twins:
        twins.reset(seed=data.draw(SEEDS))
        twins.drive(40, np.random.default_rng(0))


def test_frozen_lake_takes_a_map_as_gymnasium_keeps_it():
    lake = np.asarray(["SFS", "HFG"], dtype="c")
    with Twins("FrozenLake-v1", 3, desc=lake) as twins:
        twins.reset(seed=1)
        twins.drive(50, np.random.default_rng(0))


@pytest.mark.parametrize("task", CONTINUOUS)
@settings(max_examples=examples(15))
@given(data=st.data())
def test_actions_outside_the_box_do_what_they_do_in_gymnasium(task: str, data: st.DataObject):
    floats = st.floats(width=32, allow_nan=False) | st.sampled_from([np.inf, -np.inf, -0.0, 1.0000001, -2.0000002])
    actions = npst.arrays(np.float32, (20, 4, 1), elements=floats)
    with Twins(task, 4, "same_step", max_episode_steps=13) as twins:
        twins.reset(seed=data.draw(st.integers(0, 100)))
        for batch in data.draw(actions):
            twins.step(batch)


@pytest.mark.parametrize(
    "task",
    [pytest.param(task, marks=[] if at % 4 == 0 else [pytest.mark.slow]) for at, task in enumerate(LIGHT)],
)
def test_hundreds_of_environments_on_four_workers_equal_gymnasiums(task: str):
    mode = list(MODES)[LIGHT.index(task) % 3]
    with Twins(task, 200, mode, num_workers=4, max_episode_steps=20) as twins:
        twins.reset(seed=2**70)
        twins.drive(25, np.random.default_rng(1))


def play(task: str, num_workers: int, mode: str, **kwargs: Any) -> list[Any]:
    """Everything that 3000 environments return in 25 steps: enough for threads to be worth it."""
    num_envs = 3000
    pool = raceway.make(task, num_envs, num_workers=num_workers, autoreset=mode, max_episode_steps=17, **kwargs)
    actions = np.random.default_rng(3)
    returned: list[Any] = [pool.reset(seed=9)]
    for _ in range(25):
        action = random_actions(task, num_envs, actions) if task in LIGHT else np.zeros(num_envs, dtype=np.int64)
        returned.append(pool.step(action))
        ended = returned[-1][2] | returned[-1][3]
        if mode == "disabled" and ended.any():
            returned.append(pool.reset(options={"reset_mask": ended}))
    assert (pool._pool.threads > 0) == (num_workers > 1)
    pool.close()
    return returned


@pytest.mark.parametrize(("task", "mode"), in_turn(LIGHT))
def test_the_number_of_workers_changes_no_bit(task: str, mode: str):
    alone = play(task, 1, mode)
    some = 2 + (LIGHT.index(task) + list(MODES).index(mode)) % 3
    for workers in (2, 3, 4) if TRIES_ALL else (some,):
        assert_same(play(task, workers, mode), alone, f"{workers} workers")


def test_the_number_of_threads_that_share_long_steps_changes_no_bit():
    costly = {"step_us": 5.0, "rounds_per_us": 100.0}
    assert_same(play("Busy-v0", 4, "next_step", **costly), play("Busy-v0", 1, "next_step", **costly))


def pick(values: Any, row: int) -> Any:
    """One environment's part of what a call returned."""
    if isinstance(values, dict):
        return {key: pick(part, row) for key, part in values.items() if key != "env_id"}
    return tuple(pick(part, row) for part in values) if isinstance(values, tuple) else values[row]


@pytest.mark.parametrize(("task", "mode"), in_turn(TASKS, ["next_step", "same_step"]))
def test_first_ready_batches_hold_what_each_environment_does_by_itself(task: str, mode: str):
    num_envs, steps = 9, 60
    common: dict[str, Any] = {"autoreset": mode, "max_episode_steps": 12, "seed": 4}
    actions = [random_actions(task, num_envs, np.random.default_rng(t)) for t in range(steps)]
    with closing(raceway.make(task, num_envs, **common)) as whole:
        whole.reset()
        expected = [whole.step(action) for action in actions]
    with closing(raceway.make(task, num_envs, batch_size=4, num_workers=3, **common)) as pool:
        taken = np.full(num_envs, -1)  # the reset comes first
        pool.async_reset()
        while taken.max() < steps - 1:
            batch = pool.recv(timeout=30)
            envs = batch[4]["env_id"]
            for row, env in enumerate(envs):
                if taken[env] >= 0:
                    ours, theirs = pick(batch, row), pick(expected[taken[env]], env)
                    assert_same(ours[:4], theirs[:4], f"{task} {env}")
                    assert_same(ours[4].get("prob"), theirs[4].get("prob"), f"{task} {env}")
                    if ours[2] or ours[3]:
                        assert_same(ours[4].get("final_obs"), theirs[4].get("final_obs"), f"{task} {env}")
            taken[envs] += 1
            pool.send(np.stack([actions[taken[env]][env] for env in envs]), envs)


@pytest.mark.parametrize("rain", ["dry", "rainy"])
@pytest.mark.parametrize("passenger", ["constant", "fickle"])
def test_taxi_v3_plays_as_gymnasium_1_2_did(rain: str, passenger: str):
    with np.load(TAXI_V3) as recorded:
        seed = int(recorded["seed"])
        then = {name.split(".")[1]: recorded[name] for name in recorded if name.startswith(f"{rain}_{passenger}.")}
    num_envs = then["actions"].shape[1]
    pool = raceway.make("Taxi-v3", num_envs, is_rainy=rain == "rainy", fickle_passenger=passenger == "fickle")
    obs, infos = pool.reset(seed=seed)
    columns: dict[str, list[Any]] = {name: [] for name in ("rewards", "terminated", "truncated")}
    columns |= {"obs": [obs], "prob": [infos["prob"]], "action_mask": [infos["action_mask"]]}
    for action in then["actions"]:
        obs, rewards, terminated, truncated, infos = pool.step(action)
        row = {"obs": obs, "rewards": rewards, "terminated": terminated, "truncated": truncated, **infos}
        for name, values in columns.items():
            values.append(row[name])
    pool.close()
    for name, values in columns.items():
        np.testing.assert_array_equal(np.array(values), then[name], name)


def test_comparison_within_bounds_refuses_what_is_farther_apart():
    theirs = np.array([0.5, -np.inf, 3.0], dtype=np.float32)
    last_bit = np.nextafter(theirs, np.float32(9), dtype=np.float32)
    last_bit[1] = -np.inf
    assert_same(last_bit, theirs, near=True)
    for wrong in (theirs + np.float32(1e-5), np.array([0.5, np.inf, 3.0], dtype=np.float32), theirs.astype(float)):
        with pytest.raises(AssertionError):
            assert_same(wrong, theirs, near=True)
    with pytest.raises(AssertionError):
        assert_same(np.array([1.0 + 1e-8]), np.array([1.0]), near=True)
