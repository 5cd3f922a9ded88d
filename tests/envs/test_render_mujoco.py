"""Pictures of MuJoCo tasks are Gymnasium's to the pixel."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec

import raceway
from tests.envs.gymnasium_twin import MUJOCO, Twins, random_actions
from tests.envs.pictures import (
    ASSETS,
    SMALL,
    assert_same_picture,
    assert_same_pictures,
    drive,
    rendered,
)
from tests.envs.processes import run_script

pytestmark = pytest.mark.usefixtures("gymnasium_draws_without_a_screen")


# --- Gymnasium's picture

SOME = ("Ant-v5", "HalfCheetah-v5", "InvertedPendulum-v5", "Pusher-v5", "Swimmer-v5")
"""Each has something to draw that the others have not; with all of them it takes long."""


@pytest.mark.parametrize(
    ("task", "render_mode"),
    [
        *(pytest.param(task, "rgbd_tuple", marks=[] if task in SOME else [pytest.mark.slow]) for task in MUJOCO),
        ("Hopper-v5", "rgb_array"),
        ("Hopper-v5", "depth_array"),
    ],
)
def test_pictures_equal_gymnasiums(task: str, render_mode: str):
    with Twins(task, 1, render_mode=render_mode, **SMALL) as twins:
        twins.reset(seed=1)
        first = assert_same_pictures(twins)
        rng = np.random.default_rng(0)
        for _ in range(10):
            twins.step(random_actions(task, 1, rng))
        last = assert_same_pictures(twins)
    moved = [
        np.ravel(before[0]).tobytes() != np.ravel(after[0]).tobytes() for before, after in zip(first, last, strict=True)
    ]
    assert render_mode != "rgbd_tuple" or all(moved)


def test_pictures_of_the_default_size_equal_gymnasiums():
    with Twins("Reacher-v5", 1, render_mode="rgb_array") as twins:
        twins.reset(seed=1)
        assert assert_same_pictures(twins)[0].shape == (480, 480, 3)


@pytest.mark.parametrize(
    ("task", "mode"),
    [("Swimmer-v5", "next_step"), ("InvertedPendulum-v5", "same_step"), ("Reacher-v5", "disabled")],
)
def test_pictures_equal_gymnasiums_through_ends_of_episodes(task: str, mode: str):
    with Twins(task, 2, mode, render_mode="rgb_array", max_episode_steps=3, **SMALL) as twins:
        twins.reset(seed=2)
        drive(twins, 5)


@pytest.mark.parametrize("drawn_first", [0, 4])
def test_a_free_camera_stays_where_it_was_when_it_first_drew(drawn_first: int):
    with Twins("HalfCheetah-v5", 1, render_mode="rgb_array", **SMALL) as twins:
        twins.reset(seed=3)
        rng = np.random.default_rng(0)
        for step in range(8):
            if step >= drawn_first and step % 3 == 1:
                assert_same_pictures(twins)
            twins.step(random_actions("HalfCheetah-v5", 1, rng))


@pytest.mark.parametrize(
    ("task", "camera"),
    [
        ("Ant-v5", {"camera_name": "track"}),
        pytest.param("Ant-v5", {"camera_id": 0}, marks=pytest.mark.slow),
        ("Ant-v5", {"camera_id": -1}),
        pytest.param("Humanoid-v5", {"camera_name": "track"}, marks=pytest.mark.slow),
    ],
)
def test_a_chosen_camera_draws(task: str, camera: dict[str, Any]):
    with Twins(task, 1, render_mode="rgb_array", width=90, height=30, **camera) as twins:
        twins.reset(seed=4)
        assert assert_same_pictures(twins)[0].shape == (30, 90, 3)
        drive(twins, 1)


@pytest.mark.parametrize(
    "options",
    [
        {"default_camera_config": {"distance": 9.0, "azimuth": 30, "lookat": np.array([1.0, 0.0, 0.5])}},
        pytest.param({"default_camera_config": {"elevation": -80.0}}, marks=pytest.mark.slow),
        {"default_camera_config": None},
        {"max_geom": 3},
        {"visual_options": {mujoco.mjtVisFlag.mjVIS_CONTACTFORCE: True, 0: True}},
        {"width": 700, "height": 500},
    ],
)
def test_what_is_shown_can_be_chosen(options: dict[str, Any]):
    with Twins("Ant-v5", 1, render_mode="rgb_array", **(SMALL | options)) as twins:
        twins.reset(seed=5)
        drive(twins, 1)


def test_each_environment_is_drawn_with_its_own_arguments():
    own: list[dict[str, Any]] = [
        {"width": 50},
        {"height": 30, "camera_name": "track"},
        {"default_camera_config": {"distance": 8.0}},
        {"frame_skip": 2, "width": 90},
        {"reset_noise_scale": 0.5},
    ]
    with Twins("Ant-v5", 5, render_mode="rgb_array", env_kwargs=own, **SMALL) as twins:
        assert len(twins.pool._arguments.distinct) == 3, "what is only drawn differently is the same natively"
        twins.reset(seed=6)
        twins.step(random_actions("Ant-v5", 5, np.random.default_rng(0)))
        shapes = [picture.shape for picture in assert_same_pictures(twins)]
    assert shapes == [(48, 50, 3), (30, 64, 3), (48, 64, 3), (48, 90, 3), (48, 64, 3)]


# --- the state decides


@pytest.mark.parametrize("task", [pytest.param("Hopper-v5", marks=pytest.mark.slow), "Reacher-v5"])
def test_a_restored_pool_draws_what_the_first_one_drew(task: str):
    fixed: dict[str, Any] = {"default_camera_config": {"lookat": (0.0, 0.0, 0.5), "distance": 3.0}}
    with (
        closing(raceway.make(task, 2, render_mode="rgb_array", **SMALL, **fixed)) as pool,
        closing(raceway.make(task, 2, render_mode="rgb_array", **SMALL, **fixed)) as other,
    ):
        pool.reset(seed=7)
        drawn = [rendered(pool)]
        states = [pool.state()]
        for step in range(3):
            pool.step(random_actions(task, 2, np.random.default_rng(step)))
            drawn.append(rendered(pool))
            states.append(pool.state())
        for picture, state in zip(drawn, states, strict=True):
            other.set_state(state)
            np.testing.assert_array_equal(rendered(other), picture)


def test_drawing_changes_nothing_in_the_environments():
    with (
        closing(raceway.make("Hopper-v5", 2, render_mode="rgb_array", **SMALL)) as drawn,
        closing(raceway.make("Hopper-v5", 2)) as plain,
    ):
        drawn.reset(seed=0)
        plain.reset(seed=0)
        for step in range(10):
            if step % 4 == 0:
                drawn.render()
            actions = random_actions("Hopper-v5", 2, np.random.default_rng(step))
            np.testing.assert_array_equal(drawn.step(actions)[0], plain.step(actions)[0])


def test_pictures_are_the_callers_to_keep():
    with closing(raceway.make("Ant-v5", 1, render_mode="rgb_array", **SMALL)) as pool:
        pool.reset(seed=0)
        first = pool.render()
        assert first is not None
        assert first[0].flags.c_contiguous
        kept = first[0].copy()
        for _ in range(3):
            pool.step(np.ones((1, 8), np.float32))
            pool.render()
        np.testing.assert_array_equal(first[0], kept)


@pytest.mark.parametrize(
    "varied",
    [{"mass": 0.5, "mass:torso": 3.0}, {"gravity": 0.5, "friction": 0.1, "gain": 2.0, "damping": 4.0}],
)
def test_a_varied_model_is_drawn_where_it_is(varied: dict[str, float]):
    # Its last substep is made again with the model as it was: what the difference moves is less than can be seen.
    kwargs = SMALL | {"render_mode": "rgb_array"}
    with (
        closing(raceway.make("Ant-v5", 1, randomize=varied, **kwargs)) as pool,
        closing(gymnasium.make("Ant-v5", **kwargs)) as env,
    ):
        twin: Any = env.unwrapped
        model = twin.model
        for i in range(1, model.nbody):
            factor = varied.get(f"mass:{model.body(i).name}", varied.get("mass", 1.0))
            model.body_mass[i] *= factor
            model.body_inertia[i] *= factor
        model.opt.gravity *= varied.get("gravity", 1.0)
        model.geom_friction *= varied.get("friction", 1.0)
        model.actuator_gainprm[:, :3] *= varied.get("gain", 1.0)
        model.dof_damping *= varied.get("damping", 1.0)
        if "mass" in varied:
            extent = model.stat.extent
            mujoco.mj_setConst(model, twin.data)
            model.stat.extent = extent
        pool.reset(seed=8)
        env.reset(seed=8)
        start = rendered(pool)[0].astype(int)
        env.render()
        for step in range(15):
            actions = random_actions("Ant-v5", 1, np.random.default_rng(step))
            pool.step(actions)
            env.step(actions[0])
        drawn, expected = rendered(pool)[0].astype(int), np.asarray(env.render()).astype(int)
    assert np.abs(drawn - expected).mean() < 0.5
    assert np.abs(drawn - start).mean() > 2.0, "nothing has moved"


@pytest.mark.parametrize(
    "kwargs",
    [
        {"randomize": {"friction:1": 2.0, "gain:0": (0.5, 1.5)}, "keyframe": 0},
        {"keyframe": "0"},
        pytest.param({"keyframe": "lifted"}, marks=pytest.mark.slow),
    ],
)
def test_what_is_called_by_its_number_is_drawn_too(kwargs: dict[str, Any], tmp_path: Path):
    path = tmp_path / "robot.xml"
    qpos = "0 0 2 1 0 0 0 " + "0 " * 8
    key = f'<keyframe><key name="lifted" qpos="{qpos}"/></keyframe>'
    path.write_text((ASSETS / "ant.xml").read_text().replace("</mujoco>", f"{key}</mujoco>"))
    with closing(raceway.make("MujocoTask-v0", 1, xml_file=path, render_mode="rgb_array", **SMALL, **kwargs)) as pool:
        pool.reset(seed=0)
        pool.step(np.ones((1, 8), np.float32))
        assert rendered(pool)[0].std() > 5


def test_a_picture_asked_for_at_the_very_end_is_refused_and_nothing_hangs():
    ended = run_script("""
        import atexit
        import raceway
        pool = raceway.make("Reacher-v5", 1, render_mode="rgb_array", width=32, height=32)
        atexit.register(lambda: pool.render())
        pool.reset(seed=0)
        pool.render()
    """)
    assert "the interpreter is ending" in ended.errors


# --- Gymnasium's doors


@pytest.mark.parametrize("task", MUJOCO)
def test_the_rate_and_the_modes_are_gymnasiums(task: str):
    with closing(raceway.make(task, 1)) as pool, closing(gymnasium.make(task)) as env:
        theirs = env.unwrapped.metadata
        assert pool.metadata["render_fps"] == theirs["render_fps"]
        assert ["human", *pool.metadata["render_modes"]] == theirs["render_modes"]


def test_the_rate_follows_frame_skip():
    with closing(raceway.make("Ant-v5", 1, frame_skip=1)) as pool:
        assert pool.metadata["render_fps"] == 100


def test_make_vec_and_specs_take_picture_arguments():
    with closing(
        gymnasium.make_vec(
            "raceway/Ant-v5", num_envs=2, render_mode="rgb_array", width=200, height=48, visual_options={14: True}
        )
    ) as envs:
        assert envs.spec is not None
        stored = EnvSpec.from_json(envs.spec.to_json())
        envs.reset(seed=0)
        frames = rendered(envs)
    assert frames.shape == (2, 48, 200, 3)
    with closing(gymnasium.make_vec(stored, render_mode="rgb_array")) as again:
        again.reset(seed=0)
        np.testing.assert_array_equal(rendered(again), frames)


def test_a_task_without_a_counterpart_in_gymnasium_is_drawn_by_its_model(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("raceway.envs.render_mujoco.gymnasium_spec", lambda task_id: None)
    with (
        closing(raceway.make("Ant-v5", 1, render_mode="rgb_array", **SMALL)) as pool,
        closing(gymnasium.make("Ant-v5", render_mode="rgb_array", default_camera_config=None, **SMALL)) as env,
    ):
        pool.reset(seed=0)
        env.reset(seed=0)
        assert_same_picture(rendered(pool)[0], env.render())
