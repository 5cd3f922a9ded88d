"""A simulation that diverges ends its episode, says why, is counted, and touches no other environment."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import raceway
from raceway.envs import NativePool
from tests.envs.gymnasium_twin import MODES, MUJOCO, assert_same, in_turn
from tests.envs.mujoco_models import write_model
from tests.envs.processes import run_script
from tests.envs.transitions import action_plan, rows_of, send_and_receive, step_all

NUM_ENVS, SICK = 5, 2
HEALTHY = [env for env in range(NUM_ENVS) if env != SICK]
TASK = "HalfCheetah-v5"

# Nothing limits what drives its first joint, so that a push of 1e12 tears it apart.
UNLIMITED = {"actuator": {"ctrllimited": "false", "gear": "1e6"}}
# Steps of ten seconds: no integrator holds a spring with that.
LEAPING = {"options": {"timestep": "10"}}


def unlimited(task: str = TASK) -> Path:
    return write_model(task, "unlimited", **UNLIMITED)


def make(mode: str = "next_step", task: str = TASK, sick: Path | None = None, **kwargs: Any) -> NativePool:
    """Environments of one task, of which the sick one may have a model of its own."""
    own: list[dict[str, Any]] = [{} for _ in range(NUM_ENVS)]
    if sick is not None:
        own[SICK] = {"xml_file": sick}
    given = {"num_workers": 2, "max_episode_steps": 15, "seed": 4, **kwargs}
    return raceway.make(task, NUM_ENVS, autoreset=mode, env_kwargs=own, **given)


def faults_of(infos: dict[str, Any], mode: str) -> tuple[list[Any], list[bool]]:
    """The reasons and the mask of the faults in what a step returned; where episodes start again, of the last infos."""
    holder = infos.get("final_info", {}) if mode == "same_step" else infos
    assert "fault" not in infos or mode != "same_step"
    if "fault" not in holder:
        return [None] * NUM_ENVS, [False] * NUM_ENVS
    assert holder["fault"].dtype == object
    assert holder["_fault"].dtype == bool
    return holder["fault"].tolist(), holder["_fault"].tolist()


def spoil(pool: NativePool, value: float) -> None:
    """Makes the sick environment's next step impossible."""
    state = pool.state()
    carried = state["env.carried"].copy()
    carried[SICK, 1:] = value
    pool.set_state({**state, "env.carried": carried})


@pytest.mark.parametrize("value", [np.nan, 1e300])
@pytest.mark.parametrize(("task", "mode"), in_turn(MUJOCO))
def test_a_spoiled_simulation_ends_its_episode_with_the_reason(task: str, mode: str, value: float):
    with closing(make(mode, task, frame_skip=1)) as pool, closing(make(mode, task, frame_skip=1)) as sound:
        plan = 0.01 * action_plan(pool, 30)  # so gently that none has fallen when one is spoiled
        for each in (pool, sound):
            each.reset()
        step_all(pool, plan[:3])
        step_all(sound, plan[:3])
        assert pool.faults.dtype == np.int64
        last_sound = pool.observe()[SICK].copy()
        spoil(pool, value)
        obs, rewards, terminated, truncated, infos = pool.step(plan[3])
        expected = sound.step(plan[3])
        reasons, mask = faults_of(infos, mode)
        assert mask == [env == SICK for env in range(NUM_ENVS)]
        assert [reasons[env] for env in HEALTHY] == [None] * len(HEALTHY)
        assert isinstance(reasons[SICK], str)
        assert "finite" in reasons[SICK]
        assert (rewards[SICK], terminated[SICK], truncated[SICK]) == (0.0, True, False)
        final = infos["final_obs"][SICK] if mode == "same_step" else obs[SICK]
        assert final.tobytes() == last_sound.tobytes()
        assert pool.faults.tolist() == [int(env == SICK) for env in range(NUM_ENVS)]
        for ours, theirs in zip((obs, rewards, terminated, truncated), expected[:4], strict=True):
            assert_same(ours[HEALTHY], theirs[HEALTHY])
        if mode == "disabled":
            pool.reset(options={"reset_mask": terminated})
        rest, rest_sound = (healthy_rows(each, plan[4:], mode) for each in (pool, sound))
        assert rest == rest_sound
        assert np.isfinite(pool.observe()).all()
        assert pool.faults.sum() == 1


def healthy_rows(pool: NativePool, plan: np.ndarray, mode: str) -> list[list[Any]]:
    """What all but the sick environment go through."""
    rows: list[list[Any]] = [[] for _ in HEALTHY]
    for actions in plan:
        result = pool.step(actions)
        faults_of(result[4], mode)
        for row, env in zip(rows, HEALTHY, strict=True):
            row.append(rows_of(result)[env][:4])
        ended = result[2] | result[3]
        if mode == "disabled" and ended.any():
            pool.reset(options={"reset_mask": ended})
    return rows


@pytest.mark.parametrize(("task", "mode"), in_turn(MUJOCO))
def test_a_simulation_that_really_diverges_touches_no_other(task: str, mode: str):
    with closing(make(mode, task, write_model(task, "leaping", **LEAPING))) as pool, closing(make(mode, task)) as sound:
        plan = 3 * action_plan(pool, 40)
        pool.reset()
        sound.reset()
        assert healthy_rows(pool, plan, mode) == healthy_rows(sound, plan, mode)
        assert pool.faults[SICK] > 0
        assert pool.faults[HEALTHY].sum() == 0
        assert sound.faults.sum() == 0


@pytest.mark.parametrize("mode", MODES)
def test_a_push_beyond_all_limits_is_a_fault_and_the_next_episode_is_sound(mode: str):
    with closing(make(mode, sick=unlimited())) as pool:
        first, _ = pool.reset()
        actions = np.zeros((NUM_ENVS, 6), np.float32)
        pool.step(actions)
        actions[SICK, 0] = 1e12
        for count in range(1, 4):
            reason = None
            for _ in range(8):  # it takes some steps to fly apart
                obs, rewards, terminated, truncated, infos = pool.step(actions)
                reason = faults_of(infos, mode)[0][SICK]
                if reason:
                    break
            assert reason is not None
            assert "control" in reason or "acceleration" in reason or "velocity" in reason or "position" in reason
            assert terminated[SICK]
            assert not truncated[SICK]
            assert rewards[SICK] == 0.0
            assert np.isfinite(obs).all()
            assert pool.faults[SICK] == count
            if mode == "disabled":
                obs, _ = pool.reset(options={"reset_mask": terminated})
            elif mode == "next_step":
                obs, rewards, terminated, _, infos = pool.step(actions)
                assert not terminated[SICK]
                assert faults_of(infos, mode)[0][SICK] is None
            assert np.abs(obs[SICK] - first[SICK]).max() < 2  # where an episode begins, but for the noise


def test_a_fault_on_the_last_step_before_the_limit_terminates():
    with closing(make(max_episode_steps=3)) as pool:
        pool.reset()
        step_all(pool, action_plan(pool, 2))
        spoil(pool, np.nan)
        _, _, terminated, truncated, _ = pool.step(action_plan(pool, 1)[0])
        assert terminated[SICK]
        assert truncated[HEALTHY].all()


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_recorded_episodes_end_with_a_fault(mode: str):
    with closing(make(mode, record_episodes=True)) as pool:
        pool.reset()
        rewards = [pool.step(actions)[1][SICK] for actions in action_plan(pool, 4)]
        spoil(pool, np.nan)
        infos = pool.step(action_plan(pool, 1)[0])[4]
        assert infos["_episode"].tolist() == [env == SICK for env in range(NUM_ENVS)]
        assert infos["episode"]["l"][SICK] == 5
        assert infos["episode"]["r"][SICK] == sum(rewards)


@pytest.mark.parametrize("batch_size", [1, 2, NUM_ENVS])
@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_faults_in_flight_come_with_their_environment_and_touch_no_other(mode: str, batch_size: int):
    leaping = write_model(TASK, "leaping", **LEAPING)
    with (
        closing(make(mode, sick=leaping, batch_size=batch_size)) as pool,
        closing(make(mode, batch_size=batch_size)) as sound,
        closing(make(mode, sick=leaping)) as stepped,
    ):
        plan = 3 * action_plan(pool, 40)
        pool.async_reset()
        sound.async_reset()
        rows, sound_rows = send_and_receive(pool, plan), send_and_receive(sound, plan)
        assert [[row[:4] for row in rows[env]] for env in HEALTHY] == [
            [row[:4] for row in sound_rows[env]] for env in HEALTHY
        ]
        stepped.reset()
        by_step = step_all(stepped, plan)[SICK]
        assert [row[:4] for row in rows[SICK][1:]] == [row[:4] for row in by_step]
        told = [any("fault" in entry for entry in row[4]) for row in rows[SICK]]
        assert any(told)
        if mode == "next_step":
            assert told[1:] == [any(entry.startswith("fault") for entry in row[4]) for row in by_step]
        pool.reset()  # drops what is in flight; the counts stay
        assert pool.faults[SICK] >= stepped.faults[SICK] > 0  # those through with their plan go on for a while
        assert pool.faults[HEALTHY].sum() == 0


def test_the_count_of_faults_is_the_callers_to_keep_and_belongs_to_the_state():
    with closing(make()) as pool, closing(make()) as other:
        pool.reset()
        before = pool.faults
        spoil(pool, np.nan)
        pool.step(action_plan(pool, 1)[0])
        assert before.sum() == 0
        other.set_state(pool.state())
        assert other.faults.tolist() == pool.faults.tolist() == [int(env == SICK) for env in range(NUM_ENVS)]


def test_tasks_without_physics_have_no_faults():
    pool = raceway.make("CartPole-v1", 3, seed=0)
    pool.reset()
    assert pool.faults.tolist() == [0, 0, 0]


def test_nothing_is_printed_and_no_log_is_written(tmp_path: Path):
    leaping = {task: str(write_model(task, "leaping", **LEAPING)) for task in MUJOCO}
    ended = run_script(
        f"""
        import os
        os.chdir({str(tmp_path)!r})
        import numpy as np, raceway
        for task, model in {leaping!r}.items():
            for mode in ("next_step", "same_step"):
                own = [{{}}, {{"xml_file": model}}, {{}}]
                pool = raceway.make(task, 3, num_workers=2, seed=0, autoreset=mode, env_kwargs=own)
                pool.reset()
                for _ in range(20):
                    pool.step(np.full(pool.action_space.shape, 1e9, np.float32))
                state = pool.state()
                state["env.carried"][2] = np.nan
                pool.set_state(state)
                pool.step(np.zeros(pool.action_space.shape, np.float32))
                assert pool.faults[1] > 0 and pool.faults[0] == 0 and pool.faults[2] == 1, (task, pool.faults)
                pool.close()
        """,
    )
    assert (ended.code, ended.output, ended.errors) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def test_a_reset_of_some_tells_nothing_of_the_others():
    for copy in (True, False):
        with closing(make("disabled", copy=copy)) as pool:
            pool.reset()
            state = pool.state()
            carried = np.full_like(state["env.carried"], np.nan)
            for mask in (np.arange(NUM_ENVS) < 2, np.arange(NUM_ENVS) >= 2):
                pool.set_state({**state, "env.carried": carried})
                infos = pool.step(np.zeros((NUM_ENVS, 6), np.float32))[4]
                assert infos["_fault"].all()
                del infos
                _, infos = pool.reset(options={"reset_mask": mask.copy()})
                assert "fault" not in infos
                pool.reset()


def test_a_model_that_cannot_be_varied_so_far_hurts_no_other_environment():
    ranges = {"mass": (1e-300, 1.0)}
    with closing(raceway.make(TASK, 2, randomize=ranges, num_workers=1, seed=1)) as pool:
        pool.reset()
        state = pool.state()
        factors = np.ones_like(state["env.factors"])
        factors[1] = 1e-300
        pool.set_state({**state, "env.factors": factors})
        pool.step(np.zeros((2, 6), np.float32))
        assert pool.faults[0] == 0


def test_faults_can_be_read_while_environments_are_in_flight():
    with closing(raceway.make(TASK, 4, batch_size=2, num_workers=2, seed=1)) as pool:
        pool.async_reset()
        for _ in range(10):
            infos = pool.recv()[4]
            assert (pool.faults == 0).all()
            pool.send(np.zeros((2, 6), np.float32), infos["env_id"])
