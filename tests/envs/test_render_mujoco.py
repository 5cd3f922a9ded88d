"""Pictures of MuJoCo tasks are Gymnasium's to the pixel, drawn without a screen and from any thread."""

from __future__ import annotations

import gc
import itertools
import os
import textwrap
import threading
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec

import raceway
from raceway.envs.catalog import tasks
from tests.envs.gymnasium_twin import MUJOCO, Twins, random_actions
from tests.envs.processes import open_files, output_of, resident_kib, run_script

SMALL: dict[str, Any] = {"width": 64, "height": 48}
ASSETS = Path(gymnasium.__file__).parent / "envs/mujoco/assets"


@pytest.fixture(autouse=True)
def _gymnasium_draws_without_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    # Left alone, Gymnasium takes GLFW, which needs a screen. A pool needs no such help: see the scripts below.
    monkeypatch.setenv("MUJOCO_GL", "egl")
    # When it is collected, a viewer of Gymnasium deletes its textures in whichever context is current in this thread.
    gc.collect()


def pictures_of_gymnasium(envs: Any) -> list[Any]:
    """What each environment draws, in its own GL context: Gymnasium draws in whichever was made last."""
    drawn = []
    for env in envs.envs:
        viewer = env.unwrapped.mujoco_renderer.viewer
        if viewer is not None:
            viewer.make_context_current()
        drawn.append(env.render())
    return drawn


def assert_same_picture(ours: Any, theirs: Any, where: str = "") -> None:
    assert type(ours) is type(theirs)
    if isinstance(theirs, tuple):
        assert len(ours) == len(theirs)
        for our, their in zip(ours, theirs, strict=True):
            assert_same_picture(our, their, where)
    else:
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        assert np.array_equal(ours, theirs), f"{where}: {np.sum(ours != theirs)} numbers differ"


def assert_same_pictures(twins: Twins) -> tuple[Any, ...]:
    """Both sides draw the same; what the pool drew."""
    ours, theirs = twins.pool.render(), pictures_of_gymnasium(twins.theirs.unwrapped)
    assert ours is not None
    assert len(ours) == len(theirs)
    for i, (our, their) in enumerate(zip(ours, theirs, strict=True)):
        assert_same_picture(our, their, f"{twins.task}, environment {i}")
    return ours


def rendered(pool: Any) -> np.ndarray:
    frames = pool.render()
    assert frames is not None
    return np.stack(frames)


def drive(twins: Twins, steps: int) -> None:
    rng = np.random.default_rng(0)
    for _ in range(steps):
        twins.step(random_actions(twins.task, twins.num_envs, rng))
        assert_same_pictures(twins)


# --- Gymnasium's picture


@pytest.mark.parametrize(
    ("task", "render_mode"),
    [*itertools.product(MUJOCO, ["rgbd_tuple"]), ("Hopper-v5", "rgb_array"), ("Hopper-v5", "depth_array")],
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
        ("Ant-v5", {"camera_id": 0}),
        ("Ant-v5", {"camera_id": -1}),
        ("Humanoid-v5", {"camera_name": "track"}),
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
        {"default_camera_config": {"elevation": -80.0}},
        {"default_camera_config": None},
        {"max_geom": 3},
        {"visual_options": {mujoco.mjtVisFlag.mjVIS_CONTACTFORCE: True, 0: True}},
        {"width": 700, "height": 500},
    ],
)
def test_what_is_shown_can_be_chosen(options: dict[str, Any]):
    with Twins("Ant-v5", 1, render_mode="rgb_array", **(SMALL | options)) as twins:
        twins.reset(seed=5)
        assert_same_pictures(twins)
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
        shapes = [picture.shape for picture in assert_same_pictures(twins)]
        drive(twins, 1)
    assert shapes == [(48, 50, 3), (30, 64, 3), (48, 64, 3), (48, 90, 3), (48, 64, 3)]


# --- the state decides


@pytest.mark.parametrize("task", ["Hopper-v5", "Reacher-v5"])
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
    [{"mass": 1.5}, {"mass": 0.5, "mass:torso": 3.0}, {"gravity": 0.5, "friction": 0.1, "gain": 2.0}, {"damping": 4.0}],
)
def test_a_varied_model_is_drawn_where_it_is(varied: dict[str, float]):
    # Its camera follows the centre of mass, and where its parts are depends on what they weigh.
    kwargs = SMALL | {"camera_name": "track", "render_mode": "rgb_array"}
    with (
        closing(raceway.make("Ant-v5", 1, randomize=varied, **kwargs)) as pool,
        closing(gymnasium.make("Ant-v5", **kwargs)) as env,
    ):
        twin: Any = env.unwrapped
        model = twin.model
        extent = model.stat.extent
        for i in range(1, model.nbody):
            factor = varied.get(f"mass:{model.body(i).name}", varied.get("mass", 1.0))
            model.body_mass[i] *= factor
            model.body_inertia[i] *= factor
        model.opt.gravity *= varied.get("gravity", 1.0)
        model.geom_friction *= varied.get("friction", 1.0)
        model.actuator_gainprm[:, :3] *= varied.get("gain", 1.0)
        model.dof_damping *= varied.get("damping", 1.0)
        if "mass" in varied:
            mujoco.mj_setConst(model, twin.data)
            model.stat.extent = extent
        pool.reset(seed=8)
        env.reset(seed=8)
        for step in range(15):
            actions = random_actions("Ant-v5", 1, np.random.default_rng(step))
            pool.step(actions)
            env.step(actions[0])
        assert_same_picture(rendered(pool)[0], env.render())


def test_factors_drawn_at_reset_are_replayed_to_the_bit():
    ranges = {
        "mass": (0.5, 2.0),
        "armature": (0.5, 2.0),
        "gain": (0.5, 2.0),
        "gravity": (0.5, 1.0),
        "friction": (0.2, 1),
    }
    with closing(raceway.make("Humanoid-v5", 2, randomize=ranges, render_mode="rgb_array", **SMALL)) as pool:
        pool.reset(seed=9)
        for step in range(3):
            pool.step(random_actions("Humanoid-v5", 2, np.random.default_rng(step)))
        pool.render()
        (replay,) = pool._renderer._replays.values()  # type: ignore[attr-defined]
        np.testing.assert_array_equal(replay._state(replay.model), pool.state()["env.carried"][-1])
        poses = mujoco.MjData(replay.model)
        poses.qpos[:] = replay.data.qpos
        mujoco.mj_kinematics(replay.model, poses)
        assert not np.array_equal(poses.xpos, replay.data.xpos), "drawn after the last substep, not before it"


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


# --- errors

WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    (
        {"widht": 3},
        TypeError,
        "no keyword argument 'widht'. Did you mean 'width'.*for pictures width, height, camera_id",
    ),
    ({"width": 0}, ValueError, "Ant-v5: width=0 is out of range"),
    ({"height": -3}, ValueError, "Ant-v5: height=-3 is out of range"),
    ({"height": 4.5}, TypeError, "Ant-v5: height=4.5 is not a whole number"),
    ({"max_geom": 0}, ValueError, "max_geom=0 is out of range"),
    (
        {"camera_name": "trak"},
        ValueError,
        r"no camera_name 'trak'. Did you mean 'track'\? The model has: 'track' \(0\)",
    ),
    ({"camera_name": 3}, TypeError, "camera_name=3 is not a string"),
    ({"camera_id": 1}, ValueError, r"no camera_id 1. The model has: 'track' \(0\)"),
    ({"camera_id": -2}, ValueError, "no camera_id -2"),
    ({"camera_id": "track"}, TypeError, "camera_id='track' is not a whole number"),
    ({"camera_id": 0, "camera_name": "track"}, ValueError, "both camera_id=0 and camera_name='track'"),
    ({"default_camera_config": {"distanc": 3}}, ValueError, "no 'distanc'. Did you mean 'distance'.* It has: type"),
    ({"default_camera_config": {"lookat": [1, 2]}}, ValueError, r"\['lookat'\]=\[1, 2\] is not a point"),
    ({"default_camera_config": {"distance": "far"}}, TypeError, r"\['distance'\]='far' is not a number"),
    ({"default_camera_config": 3}, TypeError, "default_camera_config=3 is not a dict"),
    ({"visual_options": {99: True}}, ValueError, "flag 99. MuJoCo's mjtVisFlag ends at"),
    ({"visual_options": {"contact": True}}, TypeError, "'contact' is not a whole number"),
    ({"visual_options": {1: "yes"}}, TypeError, "'yes' is not a flag"),
    ({"render_mode": "human"}, ValueError, "There are: rgb_array, depth_array, rgbd_tuple.*HumanRendering"),
]


@pytest.mark.parametrize(("kwargs", "error", "message"), WRONG)
def test_wrong_picture_arguments_are_refused_by_name(kwargs: Mapping[str, Any], error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        raceway.make("Ant-v5", 2, **kwargs)
    if "render_mode" not in kwargs:
        with pytest.raises(error, match=message):
            raceway.make("Ant-v5", 2, env_kwargs=[{}, kwargs])


def test_tasks_without_a_model_take_no_picture_arguments():
    with pytest.raises(TypeError, match="takes no keyword argument 'width'"):
        raceway.make("CartPole-v1", 1, width=3)
    assert all(bool(task.picture_arguments) == ("xml_file" in task.kinds) for task in tasks().values())


def test_a_picture_too_large_for_opengl_is_refused_and_others_go_on():
    with (
        closing(raceway.make("Ant-v5", 1, render_mode="rgb_array", width=100_000)) as large,
        closing(raceway.make("Ant-v5", 1, render_mode="rgb_array", **SMALL)) as small,
    ):
        large.reset(seed=0)
        small.reset(seed=0)
        with pytest.raises(RuntimeError, match="cannot draw a picture of width=100000 and height=480"):
            large.render()
        assert rendered(small).std() > 10


def test_a_fault_is_drawn_where_the_simulation_was_last_sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    model = tmp_path / "unlimited.xml"
    model.write_text((ASSETS / "hopper.xml").read_text().replace('ctrllimited="true"', 'ctrllimited="false"'))
    with closing(
        raceway.make("Hopper-v5", 1, xml_file=model, autoreset="disabled", render_mode="rgb_array", **SMALL)
    ) as pool:
        pool.reset(seed=0)
        for _ in range(3):
            pool.step(np.zeros((1, 3), np.float32))
        before = rendered(pool).astype(int)
        pool.step(np.full((1, 3), 1e20, np.float32))
        assert pool.faults[0] == 1
        after = rendered(pool)
    assert np.abs(after - before).mean() < 1
    assert os.listdir(tmp_path) == ["unlimited.xml"], "MuJoCo has written a log"


# --- many pools, threads, processes


def test_pools_draw_in_turn_and_a_closed_one_does_not_disturb_the_others():
    first = raceway.make("Ant-v5", 1, render_mode="rgb_array", **SMALL)
    second = raceway.make("Walker2d-v5", 1, render_mode="rgb_array", width=70, height=50)
    first.reset(seed=0)
    second.reset(seed=0)
    ours, theirs = rendered(first), rendered(second)
    np.testing.assert_array_equal(rendered(first), ours)
    first.close()
    np.testing.assert_array_equal(rendered(second), theirs)
    with pytest.raises(Exception, match="closed"):
        first.render()
    first.close()
    second.close()


def test_gymnasium_in_the_same_thread_is_not_disturbed():
    with (
        closing(gymnasium.make("Ant-v5", render_mode="rgb_array", **SMALL)) as env,
    ):
        pool = raceway.make("Pusher-v5", 1, render_mode="rgb_array", width=50, height=40)
        env.reset(seed=0)
        pool.reset(seed=0)
        theirs = env.render()
        ours = rendered(pool)
        np.testing.assert_array_equal(env.render(), theirs)
        np.testing.assert_array_equal(rendered(pool), ours)
        pool.close()
        del pool
        gc.collect()
        np.testing.assert_array_equal(env.render(), theirs)


def test_pictures_are_drawn_from_any_thread_and_from_many_at_once():
    with closing(raceway.make("Ant-v5", 1, render_mode="rgb_array", **SMALL)) as pool:
        pool.reset(seed=0)
        expected = rendered(pool)
        drawn: list[np.ndarray] = []
        threads = [threading.Thread(target=lambda: drawn.extend(rendered(pool) for _ in range(2))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(drawn) == 8
    for picture in drawn:
        np.testing.assert_array_equal(picture, expected)


# A cart with a pole that takes little to draw.
QUICK = """
<mujoco>
  <visual>
    <global offwidth="64" offheight="48"/>
    <quality shadowsize="0" offsamples="0"/>
  </visual>
  <worldbody>
    <body>
      <joint name="slider" type="slide" axis="1 0 0"/>
      <geom size="0.1"/>
      <body>
        <joint name="hinge" type="hinge" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 0.6" size="0.05"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="slider" ctrllimited="true" ctrlrange="-3 3"/>
  </actuator>
</mujoco>
"""


def test_a_hundred_pools_that_draw_leave_nothing_behind(tmp_path: Path):
    quick = tmp_path / "quick.xml"
    quick.write_text(QUICK)

    def draw_and_close() -> None:
        pool = raceway.make("InvertedPendulum-v5", 1, xml_file=quick, render_mode="rgb_array", **SMALL)
        pool.reset(seed=0)
        pool.render()
        pool.close()

    for _ in range(5):
        draw_and_close()
    gc.collect()
    files, threads, memory = open_files(), threading.active_count(), resident_kib()
    for _ in range(100):
        draw_and_close()
    gc.collect()
    assert (open_files(), threading.active_count()) == (files, threads)
    assert resident_kib() - memory < 16 * 1024


def test_nothing_is_written_where_the_program_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with closing(raceway.make("HalfCheetah-v5", 1, render_mode="rgb_array", **SMALL)) as pool:  # it warns when it loads
        pool.reset(seed=0)
        pool.render()
    assert os.listdir(tmp_path) == []


WITHOUT_A_CHOICE = """
    import os
    for name in ("MUJOCO_GL", "PYOPENGL_PLATFORM", "DISPLAY", "WAYLAND_DISPLAY"):
        os.environ.pop(name, None)
"""
DRAW = """
    import raceway
    try:
        pool = raceway.make("Ant-v5", 1, render_mode="rgb_array", width=64, height=48)
        pool.reset(seed=0)
        print("drawn", pool.render()[0].std() > 10)
    except Exception as error:
        print(type(error).__name__, "|", error, "|", type(error.__cause__).__name__)
"""


def test_no_variable_need_be_set_and_the_interpreter_ends_cleanly_without_close():
    assert output_of(WITHOUT_A_CHOICE + DRAW) == "drawn True"


def test_use_without_pictures_imports_nothing_for_them():
    output = output_of("""
        import sys, raceway
        raceway.make("Ant-v5", 2).reset()
        print([name for name in ("mujoco", "glfw", "imageio", "OpenGL") if name in sys.modules])
    """)
    assert output == "[]"


BLOCK = """
    import importlib.abc, sys
    class Block(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path=None, target=None):
            if name.split(".")[0] == blocked:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    blocked = sys.argv[1]
    sys.meta_path.insert(0, Block())
"""
HIDE = """
    import ctypes, ctypes.util
    find, load = ctypes.util.find_library, ctypes.CDLL.__init__
    hidden = ("EGL", "libEGL", "OSMesa", "libOSMesa")
    ctypes.util.find_library = lambda name: None if name in hidden else find(name)
    def refuse(self, name, *rest, **named):
        if name and str(name).startswith(hidden):
            raise OSError(f"{name}: cannot open shared object file")
        load(self, name, *rest, **named)
    ctypes.CDLL.__init__ = refuse
"""
OSMESA = """
    import os
    os.environ["MUJOCO_GL"] = "osmesa"
    os.environ.pop("PYOPENGL_PLATFORM", None)
"""
GLFW = "import os; os.environ['MUJOCO_GL'] = 'glfw'; os.environ.pop('DISPLAY', None)"
OFF = "import os; os.environ['MUJOCO_GL'] = 'off'"
MISSING = [
    ("OpenGL", WITHOUT_A_CHOICE + BLOCK, ["pip install 'raceway[render]'", "No module named 'OpenGL"]),
    ("imageio", WITHOUT_A_CHOICE + BLOCK, ["pip install 'raceway[render]'", "No module named 'imageio'"]),
    ("glfw", WITHOUT_A_CHOICE + BLOCK, ["pip install 'raceway[render]'", "No module named 'glfw'"]),
    ("", WITHOUT_A_CHOICE + HIDE, ["apt install libegl1 libgl1", "apt install libosmesa6", "ExceptionGroup"]),
    ("", OSMESA + HIDE, ["osmesa", "apt install libosmesa6"]),
    ("", GLFW, ["needs a screen", "DISPLAY"]),
    ("", OFF, ["MUJOCO_GL=off switches pictures off"]),
]


@pytest.mark.parametrize(("argument", "setting", "named"), MISSING)
def test_where_opengl_is_missing_the_error_names_what_to_install(argument: str, setting: str, named: list[str]):
    ended = run_script(textwrap.dedent(setting) + textwrap.dedent(DRAW), argument)
    assert (ended.code, ended.output.count("drawn True")) == (0, 0), ended
    assert ended.output.startswith(("DependencyNotInstalled | ", "RuntimeError | MUJOCO_GL=off")), ended
    for each in named:
        assert each in ended.output


def test_a_child_of_fork_is_told_and_the_parent_draws_on():
    output = output_of("""
        import gc, os, sys
        import raceway
        def make():
            pool = raceway.make("Ant-v5", 1, render_mode="rgb_array", width=64, height=48)
            pool.reset(seed=0)
            return pool
        pool = make()
        pool.render()
        child = os.fork()
        if child == 0:
            pool.close()
            del pool
            gc.collect()
            try:
                make().render()
            except RuntimeError as error:
                print(error, flush=True)
            sys.exit(0)
        print(os.waitpid(child, 0)[1], pool.render()[0].std() > 10)
    """)
    told, last = output.splitlines()
    assert "does not survive a fork. Start it with multiprocessing's 'spawn'" in told
    assert last == "0 True"
