"""The state of MuJoCo's tasks: taken at any moment it goes on to the bit, and whatever it holds hurts nobody else."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import raceway
from raceway.envs import NativePool
from tests.envs.gymnasium_twin import MODES, MUJOCO, Twins, assert_same, in_turn, random_actions
from tests.envs.mujoco_models import changed_model
from tests.envs.task_strategies import shared_kwargs
from tests.envs.transitions import action_plan, rows_of, same_state, step_all
from tests.examples import examples

NUM_ENVS, LIMIT, SICK = 4, 9, 2
ENDED = 2  # of episode.status
MOMENTS = {"after a reset": 0, "mid-episode": 5, "after an end": LIMIT}
SHOWN = ["env.previous", "env.controls", "env.observation", "env.info", "env.tendon_length", "env.tendon_velocity"]
"""What draws an environment as its last step left it, and what `observe` gives: no step depends on it."""

State = dict[str, Any]


def make(task: str, mode: str = "next_step", **kwargs: Any) -> NativePool:
    given = {"num_envs": NUM_ENVS, "max_episode_steps": LIMIT, **kwargs}
    return raceway.make(task, autoreset=mode, **given)


def go_on(pool: NativePool, task: str, steps: int, seed: int = 0) -> list[Any]:
    """Everything the pool returns in some steps of the same actions each time; ended episodes are reset."""
    rng = np.random.default_rng(seed)
    returned: list[Any] = []
    for _ in range(steps):
        if pool.metadata["autoreset_mode"] == MODES["disabled"]:
            ended = pool.state()["episode.status"] == ENDED
            if ended.any():
                returned.append(pool.reset(options={"reset_mask": ended}))
        returned.append(pool.step(2 * random_actions(task, pool.num_envs, rng)))
    return returned


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(("task", "mode"), in_turn(MUJOCO))
def test_a_pool_of_other_workers_goes_on_to_the_bit(task: str, mode: str, moment: str):
    with (
        closing(make(task, mode, seed=5, num_workers=1)) as pool,
        closing(make(task, mode, seed=9, num_workers=3)) as other,
    ):
        pool.reset()
        go_on(pool, task, MOMENTS[moment], seed=1)
        saved, observed = pool.state(), pool.observe()
        other.reset()
        go_on(other, task, 3, seed=2)
        expected = go_on(pool, task, 2 * LIMIT + 2)
        for restored in (other, pool):
            restored.set_state(saved)
            assert_same(restored.observe(), observed)
            assert_same(go_on(restored, task, 2 * LIMIT + 2), expected)
            assert same_state(restored.state(), pool.state()) or restored is other
        assert same_state(other.state(), pool.state())


@pytest.mark.parametrize("task", MUJOCO)
def test_the_first_step_after_a_restore_equals_gymnasiums(task: str):
    with Twins(task, NUM_ENVS) as twins, closing(raceway.make(task, NUM_ENVS, seed=1)) as other:
        twins.reset(seed=3)
        twins.drive(4, np.random.default_rng(0))
        other.set_state(twins.pool.state())  # never reset before
        actions = random_actions(task, NUM_ENVS, np.random.default_rng(1))
        assert_same(other.step(actions), twins.step(actions))


@pytest.mark.parametrize("task", MUJOCO)
@settings(max_examples=examples(8))
@given(data=st.data())
def test_models_with_other_integrators_and_states_of_actuators_go_on_to_the_bit(task: str, data: st.DataObject):
    kwargs = data.draw(shared_kwargs(task))
    model = changed_model(task, 1.0, data.draw(st.sampled_from(["Euler", "RK4", "implicitfast"])), "Newton", True)
    kwargs["xml_file"] = model
    with closing(make(task, **kwargs)) as pool, closing(make(task, num_workers=2, **kwargs)) as other:
        pool.reset(seed=data.draw(st.integers(0, 1000)))
        go_on(pool, task, data.draw(st.integers(0, 12)))
        other.set_state(pool.state())
        assert_same(other.observe(), pool.observe())
        assert_same(go_on(other, task, 12, seed=1), go_on(pool, task, 12, seed=1))


@pytest.mark.parametrize("task", MUJOCO)
def test_no_part_of_the_state_can_be_left_out_but_what_is_only_shown(task: str):
    with closing(make(task, seed=1)) as pool:
        pool.reset()
        go_on(pool, task, 4)
        saved = pool.state()
        expected = go_on(pool, task, 3, seed=1)
        for name in [name for name in saved if name.startswith("env.") and saved[name].any()]:
            pool.set_state({**saved, name: np.zeros_like(saved[name])})
            found = go_on(pool, task, 3, seed=1)
            alike = [rows_of(each) for each in found] == [rows_of(each) for each in expected]
            assert alike == (name in SHOWN), name


# --- what cannot be


def healthy_rows(pool: NativePool, state: State, plan: np.ndarray) -> list[Any]:
    """What the environments but the sick one go through from `state` under `plan`."""
    pool.set_state(state)
    rows = step_all(pool, plan)
    return [row for env, row in enumerate(rows) if env != SICK]


NUMBERS = st.sampled_from([np.nan, np.inf, -np.inf, 1e300, -1e300, 1e11, 1e9, -1e5, 5e-324, 0.0]) | st.floats()
PARTS = ["carried", "previous", "controls", "observation", "info"]


def spoiled(values: np.ndarray, data: st.DataObject) -> np.ndarray:
    """`values` with one or all of the sick environment's numbers replaced, or some of its bytes flipped."""
    values = values.copy()
    row = values[SICK : SICK + 1].reshape(-1)
    how = data.draw(st.sampled_from(["one", "all", "bytes"]), "how")
    if how == "bytes" or values.dtype != np.float64:
        raw = row.view(np.uint8)
        for _ in range(data.draw(st.integers(1, 8))):
            raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    elif how == "one":
        row[data.draw(st.integers(0, len(row) - 1))] = data.draw(NUMBERS)
    else:
        row[:] = data.draw(NUMBERS)
    values[SICK] = row.reshape(values[SICK].shape)
    return values


@pytest.mark.timeout(120)
@pytest.mark.parametrize("task", MUJOCO)
@settings(max_examples=examples(20))
@given(data=st.data())
def test_whatever_the_state_of_one_environment_holds_the_others_go_on(task: str, data: st.DataObject):
    mode = data.draw(st.sampled_from(["next_step", "same_step"]))
    with closing(make(task, mode, seed=1, num_workers=data.draw(st.integers(1, 3)))) as pool:
        pool.reset()
        go_on(pool, task, data.draw(st.integers(0, LIMIT)))
        saved, plan = pool.state(), action_plan(pool, LIMIT + 2)
        if (saved["episode.status"] == ENDED).any():
            pool.step(plan[0])
            saved = pool.state()
        expected = healthy_rows(pool, saved, plan)
        names = data.draw(st.lists(st.sampled_from(PARTS), min_size=1, unique=True))
        bad = saved | {f"env.{name}": spoiled(saved[f"env.{name}"], data) for name in names}
        pool.set_state(saved)
        try:
            found = healthy_rows(pool, bad, plan)
        except ValueError as refusal:
            assert f"environment {SICK}" in str(refusal)  # noqa: PT017 (taking it would do as well)
            assert same_state(pool.state(), saved)
            return
        assert found == expected
        assert not pool.faults[np.arange(NUM_ENVS) != SICK].any()
        # An episode later it is as sound as any.
        assert np.isfinite(pool.observe()).all()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
@pytest.mark.parametrize("task", MUJOCO)
def test_a_state_that_is_not_finite_is_a_fault_or_is_refused(task: str, value: float):
    with closing(make(task, seed=1)) as pool:
        pool.reset()
        saved = pool.state()
        carried = saved["env.carried"].copy()
        carried[SICK] = value
        try:
            pool.set_state({**saved, "env.carried": carried})
        except ValueError as refusal:
            assert f"environment {SICK}" in str(refusal)  # noqa: PT017 (a fault would do as well)
            return
        _, rewards, terminated, _, infos = pool.step(action_plan(pool, 1)[0])
        assert terminated[SICK]
        assert rewards[SICK] == 0.0
        assert infos["_fault"].tolist() == [env == SICK for env in range(NUM_ENVS)]
        assert "finite" in infos["fault"][SICK]


@pytest.mark.parametrize("task", MUJOCO)
def test_a_state_of_another_build_of_the_task_is_refused(task: str):
    model = changed_model(task, 1.0, "Euler", "Newton", True)
    with closing(make(task, seed=1)) as pool, closing(make(task, seed=1, xml_file=model)) as other:
        pool.reset()
        other.reset()
        before = pool.state()
        with pytest.raises(ValueError, match=r"'env\.carried' is float64 of shape"):
            pool.set_state(other.state())
        assert same_state(pool.state(), before)


@pytest.mark.parametrize(("task", "mode"), in_turn(MUJOCO))
def test_a_fault_after_a_restore_tells_what_it_told_before(task: str, mode: str):
    """The infos of a fault are those of the last sound moment, which the state holds."""
    gently = {"frame_skip": 1}
    with closing(make(task, mode, seed=1, **gently)) as pool, closing(make(task, mode, seed=2, **gently)) as other:
        pool.reset()
        other.reset()
        go_on(pool, task, 4)
        go_on(other, task, 3, seed=8)
        saved = pool.state()
        carried = saved["env.carried"].copy()
        carried[SICK] = np.nan
        actions = action_plan(pool, 1)[0]
        returned = []
        for each in (pool, other):
            each.set_state({**saved, "env.carried": carried})
            returned.append(each.step(actions))
        assert_same(returned[1], returned[0])


DELAYED = """
<mujoco>
  <worldbody><body><joint name="slide" type="slide"/><geom size="0.1"/></body></worldbody>
  <actuator><motor joint="slide" ctrlrange="-1 1" nsample="40" delay="0.02"/></actuator>
  <sensor><jointpos joint="slide" nsample="30" delay="0.01"/></sensor>
</mujoco>
"""


def test_positions_in_buffers_that_cannot_be_are_refused(tmp_path: Path):
    """What a model with delays carries holds positions in memory; MuJoCo does not look at them twice."""
    path = tmp_path / "delayed.xml"
    path.write_text(DELAYED)
    kwargs: dict[str, Any] = {"xml_file": path, "observe": ["qpos", "sensors"], "seed": 1}
    with closing(raceway.make("MujocoTask-v0", 3, **kwargs)) as pool:
        pool.reset()
        step_all(pool, action_plan(pool, 7))
        saved = pool.state()
        positions = [i for i in range(3, saved["env.carried"].shape[1]) if refused(pool, saved, i, -39.0)]
        assert len(positions) == 2  # of the actuator's buffer and of the sensor's
        for i in positions:
            for absurd in (-1.0, 40.0, 1e9, 0.5, np.nan, np.inf, -np.inf):
                assert refused(pool, saved, i, absurd)
        pool.set_state(saved)
        expected = step_all(pool, action_plan(pool, 9))
        with closing(raceway.make("MujocoTask-v0", 3, num_workers=1, **kwargs)) as other:
            other.set_state(saved)
            assert step_all(other, action_plan(pool, 9)) == expected


def refused(pool: NativePool, saved: State, column: int, value: float) -> bool:
    for part in ("env.carried", "env.previous"):
        values = saved[part].copy()
        values[SICK - 1, column] = value
        try:
            pool.set_state({**saved, part: values})
        except ValueError:
            continue
        return False
    return True
