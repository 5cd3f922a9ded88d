"""MuJoCo's tasks, with the library that Gymnasium uses: the same seed and actions give the same bits."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box
from gymnasium.vector import SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import raceway
from raceway.envs.catalog import tasks
from tests.envs.gymnasium_twin import MODES, MUJOCO, Twins, assert_same, in_turn, random_actions, single_action_space
from tests.envs.mujoco_models import ASSETS, own_model, write_model
from tests.envs.task_strategies import SEEDS, free_kwargs, shared_kwargs
from tests.envs.transitions import action_plan, send_and_receive, step_all
from tests.examples import examples
from tests.same_numpy import VARIABLE

TERMINATING = ["Ant-v5", "Hopper-v5", "Humanoid-v5", "InvertedDoublePendulum-v5", "InvertedPendulum-v5", "Walker2d-v5"]
WORKERS = (1, 2, 3, 4)

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, where actions are infinite


class DivergedError(Exception):
    """MuJoCo warned, as both saw: there the pool ends the episode and Gymnasium goes on from a reset state."""


class PhysicalTwins(Twins):
    """Equal to the bit as long as MuJoCo does not warn, and a fault of the pool's exactly where it does."""

    def compare(self, ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> None:
        assert isinstance(self.theirs, SyncVectorEnv)
        simulations: list[Any] = [env.unwrapped for env in self.theirs.envs]
        warned = np.array([bool(each.data.warning.number.any()) for each in simulations])
        infos = ours[4].get("final_info", ours[4]) if self.mode == "same_step" else ours[4]
        faulty = infos.get("_fault", np.zeros(self.num_envs, dtype=bool))
        np.testing.assert_array_equal(faulty, warned)
        if faulty.any():
            raise DivergedError(list(infos["fault"][faulty]))
        super().compare(ours, theirs)


def wide_actions(twins: Twins, rng: np.random.Generator) -> np.ndarray:
    """Within the box, at its bounds, or far outside of it."""
    space = twins.pool.single_action_space
    assert isinstance(space, Box)
    shape = (twins.num_envs, *space.shape)
    spread = rng.choice([1.0, 1.0, 3.0, 1e6], size=(twins.num_envs, 1))
    actions = spread * rng.uniform(space.low, space.high, shape)
    kind = rng.integers(0, 12, shape)
    return np.select([kind == 0, kind == 1], [space.low, space.high], actions).astype(np.float32)


def drive(twins: Twins, steps: int, rng: np.random.Generator) -> tuple[int, int]:
    """How many episodes terminated and were truncated meanwhile."""
    ends = np.zeros(2, dtype=int)
    for _ in range(steps):
        _, _, terminated, truncated, _ = twins.step(wide_actions(twins, rng))
        ends += terminated.sum(), truncated.sum()
    return int(ends[0]), int(ends[1])


@pytest.mark.parametrize(("task", "mode"), in_turn(MUJOCO))
def test_trajectories_equal_gymnasiums_through_terminations_and_truncations(task: str, mode: str):
    own: list[dict[str, Any]] = [{}, {}, {"max_episode_steps": 3}]
    with PhysicalTwins(task, len(own), mode, env_kwargs=own, num_workers=2) as twins:
        twins.reset(seed=11)
        terminated, truncated = drive(twins, 70, np.random.default_rng(5))
    assert truncated > 0
    assert (terminated > 0) == (task in TERMINATING)


_WITH_THE_NUMPY_OF_THIS_CPU = """
from contextlib import closing
import gymnasium
import numpy as np
import raceway
from tests.envs.gymnasium_twin import assert_same

for task in ("Ant-v5", "Humanoid-v5", "InvertedDoublePendulum-v5", "Pusher-v5", "Reacher-v5", "Swimmer-v5"):
    with closing(raceway.make(task, 3)) as ours, closing(gymnasium.make_vec(task, 3, "sync")) as theirs:
        assert_same(ours.reset(seed=1), theirs.reset(seed=1), task, near=True)
        rng = np.random.default_rng(2)
        for _ in range(50):
            actions = rng.uniform(-0.3, 0.3, ours.action_space.shape).astype(np.float32)
            assert_same(ours.step(actions), theirs.step(actions), task, near=True)
"""


def test_with_the_kernels_that_numpy_chooses_for_this_cpu_all_is_near():
    kept = {name: value for name, value in os.environ.items() if name != VARIABLE}
    subprocess.run([sys.executable, "-c", _WITH_THE_NUMPY_OF_THIS_CPU], env=kept, check=True, timeout=100)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("task", MUJOCO)
def test_a_thousand_steps_equal_gymnasiums(task: str, mode: str):
    own: list[dict[str, Any]] = [{}, {}, {}, {"max_episode_steps": 103}]
    number = 3 * MUJOCO.index(task) + list(MODES).index(mode)
    with PhysicalTwins(task, len(own), mode, env_kwargs=own, num_workers=WORKERS[number % 4]) as twins:
        twins.reset(seed=1000 * number)
        terminated, truncated = drive(twins, 1010, np.random.default_rng(number))
    assert truncated > 0 or task in TERMINATING
    assert (terminated > 0) == (task in TERMINATING)


@pytest.mark.slow
@pytest.mark.parametrize("task", MUJOCO)
def test_whole_episodes_of_gentle_actions_equal_gymnasiums(task: str):
    with PhysicalTwins(task, 3, "same_step", num_workers=3) as twins:
        twins.reset(seed=5)
        rng = np.random.default_rng(0)
        for step in range(1010):
            twins.step(0.2 * random_actions(task, 3, rng) * np.float32(np.sin(step / 7)))


def drive_anyhow(task: str, data: st.DataObject, steps: int) -> None:
    """Any arguments, any mode, any number of workers; steps, and in between a reset of all or of some."""
    num_envs = data.draw(st.integers(1, 3), "num_envs")
    mode = data.draw(st.sampled_from(list(MODES)), "mode")
    shared = data.draw(shared_kwargs(task), "shared")
    limit = st.fixed_dictionaries({}, optional={"max_episode_steps": st.sampled_from([-1, 1, 2, 7, 30])})
    per_env = st.builds(lambda free, limit: free | limit, free_kwargs(task), limit)
    own = data.draw(st.none() | st.lists(per_env, min_size=num_envs, max_size=num_envs), "own")
    seed = data.draw(SEEDS | st.lists(SEEDS, min_size=num_envs, max_size=num_envs), "seed")
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32), "actions"))
    workers = data.draw(st.sampled_from(WORKERS), "workers")
    with PhysicalTwins(task, num_envs, mode, num_workers=workers, env_kwargs=own, **shared) as twins:
        assert twins.pool.single_observation_space == twins.theirs.single_observation_space
        assert twins.pool.single_action_space == twins.theirs.single_action_space
        twins.reset(seed=seed)
        with contextlib.suppress(DivergedError):
            for _ in range(2):
                drive(twins, steps // 2, rng)
                mask = rng.random(num_envs) < 0.5
                twins.reset(seed=None, mask=mask if mask.any() else None)
            drive(twins, 2, rng)


@pytest.mark.parametrize("task", MUJOCO)
@settings(max_examples=examples(15))
@given(data=st.data())
def test_any_arguments_modes_seeds_and_workers_equal_gymnasiums(task: str, data: st.DataObject):
    drive_anyhow(task, data, steps=20)


@pytest.mark.slow
@pytest.mark.parametrize("task", MUJOCO)
@settings(max_examples=120, derandomize=False)
@given(data=st.data())
def test_any_arguments_modes_seeds_and_workers_equal_gymnasiums_at_length(task: str, data: st.DataObject):
    drive_anyhow(task, data, steps=200)


@pytest.mark.parametrize("task", MUJOCO)
def test_the_strategies_leave_no_keyword_argument_out(task: str):
    drawn: set[str] = set()

    @settings(max_examples=60, database=None)
    @given(kwargs=shared_kwargs(task))
    def collect(kwargs: dict[str, Any]) -> None:
        drawn.update(kwargs)

    collect()
    assert drawn == set(tasks()[task].kinds) - {"randomize"}  # which Gymnasium's have not


@pytest.mark.parametrize("task", MUJOCO)
@settings(max_examples=examples(8))
@given(data=st.data())
def test_extreme_actions_do_what_they_do_in_gymnasium(task: str, data: st.DataObject):
    (size,) = single_action_space(task).shape or ()
    special = [np.inf, -np.inf, -0.0, 1e-45, -1e-40, 3.4e38, np.nextafter(np.float32(1), np.float32(2)), 0.4, -3.0]
    floats = st.floats(width=32, allow_nan=False) | st.sampled_from([float(np.float32(each)) for each in special])
    mode = data.draw(st.sampled_from(list(MODES)))
    with Twins(task, 2, mode, max_episode_steps=7) as twins:
        twins.reset(seed=data.draw(st.integers(0, 100)))
        for batch in data.draw(npst.arrays(np.float32, (12, 2, size), elements=floats)):
            twins.step(batch)


@pytest.mark.parametrize("task", MUJOCO)
@settings(max_examples=examples(6))
@given(data=st.data())
def test_resets_equal_gymnasiums(task: str, data: st.DataObject):
    with Twins(task, 3, **data.draw(shared_kwargs(task))) as twins:
        twins.reset(seed=data.draw(st.lists(SEEDS, min_size=3, max_size=3)))
        for _ in range(5):
            twins.reset()
        twins.reset(seed=[None, data.draw(SEEDS), None])
        for seed in data.draw(st.lists(SEEDS, min_size=5, max_size=5)):
            twins.reset(seed=seed)


@pytest.mark.parametrize("task", MUJOCO)
def test_dozens_of_environments_on_four_workers_equal_gymnasiums(task: str):
    mode = list(MODES)[MUJOCO.index(task) % 3]
    with PhysicalTwins(task, 30, mode, num_workers=4, max_episode_steps=6) as twins:
        twins.reset(seed=2**70)
        drive(twins, 10, np.random.default_rng(1))


def play(task: str, num_workers: int, mode: str) -> list[Any]:
    """Everything that some environments return, of two arguments so that two models are in use."""
    num_envs = 24
    own = [{"frame_skip": 1 + env % 2} for env in range(num_envs)]
    rng = np.random.default_rng(3)
    with closing(
        raceway.make(task, num_envs, num_workers=num_workers, autoreset=mode, max_episode_steps=11, env_kwargs=own)
    ) as pool:
        returned: list[Any] = [pool.reset(seed=9)]
        for _ in range(30):
            returned.append(pool.step(random_actions(task, num_envs, rng)))
            ended = returned[-1][2] | returned[-1][3]
            if mode == "disabled" and ended.any():
                returned.append(pool.reset(options={"reset_mask": ended}))
        assert (pool._pool.threads > 0) == (num_workers > 1)
    return returned


@pytest.mark.parametrize(("task", "mode"), in_turn(MUJOCO))
def test_the_number_of_workers_changes_no_bit(task: str, mode: str):
    alone = play(task, 1, mode)
    for workers in (2, 3, 4):
        assert_same(play(task, workers, mode), alone, f"{workers} workers")


def test_a_negative_reward_for_being_upright_ends_as_a_negative_zero():
    with PhysicalTwins("InvertedDoublePendulum-v5", 1, healthy_reward=-2.0) as twins:
        twins.reset(seed=0)
        drive(twins, 20, np.random.default_rng(0))


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
@pytest.mark.parametrize("task", MUJOCO)
def test_first_ready_batches_hold_what_each_environment_does_by_itself(task: str, mode: str):
    common: dict[str, Any] = {"autoreset": mode, "max_episode_steps": 8, "seed": 4}
    with (
        closing(raceway.make(task, 7, **common)) as whole,
        closing(raceway.make(task, 7, batch_size=3, num_workers=3, **common)) as pool,
    ):
        plan = action_plan(pool, 20)
        whole.reset()
        pool.async_reset()
        assert [rows[1:] for rows in send_and_receive(pool, plan)] == step_all(whole, plan)


# --- models


@pytest.mark.parametrize("main_body", [0, 1, 5, 13, np.int64(2), "torso", "front_left_leg", "aux_4"])
def test_the_main_body_of_an_ant_may_be_given_by_name_and_by_number(main_body: int | str):
    with PhysicalTwins("Ant-v5", 2, main_body=main_body) as twins:
        twins.reset(seed=0)
        drive(twins, 15, np.random.default_rng(0))


def test_a_model_may_be_given_in_every_way_that_gymnasium_knows_and_as_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "walker.xml").write_bytes((ASSETS / "walker2d.xml").read_bytes())
    for given_as in ("walker2d.xml", "./walker.xml", "~/walker.xml", tmp_path / "walker.xml", ASSETS / "walker2d.xml"):
        with PhysicalTwins("Walker2d-v5", 2, xml_file=given_as) as twins:
            twins.reset(seed=0)
            drive(twins, 8, np.random.default_rng(0))
    own = raceway.make("Walker2d-v5", 1).reset(seed=0)[0]
    assert not np.array_equal(raceway.make("Walker2d-v5", 1, xml_file="./walker.xml").reset(seed=0)[0][:, 8:], own)
    with closing(raceway.make("Walker2d-v5", 1, xml_file=Path("walker.xml"))) as pool:  # relative: here or Gymnasium's
        assert_same(pool.reset(seed=0), raceway.make("Walker2d-v5", 1, xml_file="./walker.xml").reset(seed=0))


def test_models_with_other_settings_share_a_pool():
    fast = write_model("HalfCheetah-v5", "fast", options={"timestep": "0.02"})
    light = write_model("HalfCheetah-v5", "light", options={"gravity": "0 0 -1.6"})
    own: list[dict[str, Any]] = [{}, {"xml_file": fast}, {"xml_file": light}, {"xml_file": os.fspath(fast)}]
    with PhysicalTwins("HalfCheetah-v5", 4, env_kwargs=own, num_workers=2) as twins:
        twins.reset(seed=0)
        drive(twins, 60, np.random.default_rng(0))


UNUSUAL: dict[str, dict[str, dict[str, str]]] = {
    "elliptic cones": {"options": {"cone": "elliptic", "impratio": "10"}},
    "no warm start": {"flags": {"warmstart": "disable"}},
    "no islands": {"flags": {"island": "disable"}},
    "energy": {"flags": {"energy": "enable"}},
    "fluid": {"options": {"density": "100", "viscosity": "1", "wind": "1 0 0.2"}},
    "no clamping": {"flags": {"clampctrl": "disable"}},
    "integrated actuator": {"actuator": {"dyntype": "integrator"}},
    "exactly filtered actuator": {"actuator": {"dyntype": "filterexact", "dynprm": "0.1", "actearly": "true"}},
    "delayed actuator": {"actuator": {"delay": "0.03", "nsample": "8"}},
}


@pytest.mark.parametrize("task", ["Ant-v5", "Hopper-v5", "Humanoid-v5", "Pusher-v5"])
@pytest.mark.parametrize("name", UNUSUAL)
def test_models_with_unusual_settings_equal_gymnasiums(task: str, name: str):
    model = write_model(task, name, **UNUSUAL[name])
    with PhysicalTwins(task, 2, num_workers=1, xml_file=model) as twins:
        twins.reset(seed=3)
        for step in range(25):
            twins.step(random_actions(task, 2, np.random.default_rng(step)))


def test_a_model_is_read_when_a_pool_is_made(tmp_path: Path):
    path = tmp_path / "hopper.xml"
    path.write_bytes(own_model("Hopper-v5").read_bytes())
    with closing(raceway.make("Hopper-v5", 1, xml_file=path)) as pool, closing(raceway.make("Hopper-v5", 1)) as other:
        path.unlink()
        assert_same(pool.reset(seed=0), other.reset(seed=0))
        for _ in range(5):
            assert_same(pool.step(np.ones((1, 3), np.float32)), other.step(np.ones((1, 3), np.float32)))
