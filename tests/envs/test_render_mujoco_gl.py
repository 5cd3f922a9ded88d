"""Drawing MuJoCo tasks without a screen: what is refused, from which thread, what is left behind."""

from __future__ import annotations

import gc
import os
import sys
import textwrap
import threading
import types
from collections.abc import Mapping
from contextlib import ExitStack, closing, nullcontext
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import raceway
from raceway.envs import gl
from raceway.envs.catalog import tasks
from raceway.envs.native import NativePool
from tests.envs.pictures import (
    ASSETS,
    SMALL,
    rendered,
)
from tests.envs.processes import open_files, output_of, resident_kib, run_script

pytestmark = pytest.mark.usefixtures("gymnasium_draws_without_a_screen")


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


# --- the camera that follows


@pytest.mark.parametrize("chosen", [{}, {"camera_id": -1}, {"default_camera_config": {"distance": 9.0}}])
def test_a_pool_that_follows_draws_with_the_camera_that_tracks_unless_another_was_chosen(chosen: Mapping[str, Any]):
    with (
        closing(raceway.make("HalfCheetah-v5", 1, render_mode="rgb_array", **SMALL, **chosen)) as pool,
        closing(
            raceway.make("HalfCheetah-v5", 1, render_mode="rgb_array", **SMALL, **(chosen or {"camera_name": "track"}))
        ) as expected,
    ):
        pool.follow()
        for each in (pool, expected):
            each.reset(seed=1)
            for _ in range(5):
                each.step(np.ones((1, 6), np.float32))
        np.testing.assert_array_equal(pool.render()[0], expected.render()[0])


def test_a_pool_whose_model_has_no_camera_that_tracks_draws_as_ever():
    for task in ("Reacher-v5", "CartPole-v1"):
        with closing(raceway.make(task, 1, render_mode="rgb_array")) as pool:
            pool.reset(seed=1)
            before = pool.render()[0]
            pool.follow()
            np.testing.assert_array_equal(pool.render()[0], before)


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


@pytest.mark.parametrize("shared", [True, False], ids=["one pool, in turn", "a pool each, at once"])
def test_pictures_are_drawn_from_any_thread(shared: bool):
    drawn: list[np.ndarray] = []
    with ExitStack() as closes:
        pools = [raceway.make("Ant-v5", 1, render_mode="rgb_array", **SMALL) for _ in range(1 if shared else 4)]
        for pool in pools:
            closes.callback(pool.close)
            pool.reset(seed=0)
        expected = rendered(pools[0])
        turn = threading.Lock() if shared else nullcontext()  # a pool takes one call at a time

        def draw(pool: NativePool) -> None:
            for _ in range(2):
                with turn:
                    drawn.append(rendered(pool))

        threads = [threading.Thread(target=draw, args=(pools[i % len(pools)],)) for i in range(4)]
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
    assert open_files() <= files
    assert threading.active_count() <= threads
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


# --- drafts


def test_drafts_look_the_same_and_are_coarse_only_where_the_cpu_draws():
    pools = [raceway.make("Ant-v5", 1, render_mode="rgb_array", width=240, height=240) for _ in range(3)]
    pools[1].prefer_drafts()
    for pool in pools:
        pool.reset(seed=0)
    full, draft, again = (rendered(pool)[0].astype(int) for pool in pools)
    assert [pool.coarse_by for pool in pools] == ["", gl.run(gl.software), ""]
    assert np.array_equal(full, again)  # the model is as it was
    assert np.array_equal(full, draft) == (not pools[1].coarse_by)
    assert np.abs(full - draft).mean() < 12  # edges alone differ
    for pool in pools:
        pool.close()


@pytest.mark.parametrize(
    ("name", "is_software"),
    [
        (b"llvmpipe (LLVM 15.0.6, 256 bits)", True),
        (b"NVIDIA A100/PCIe/SSE2", False),
        (b"AMD Radeon", False),
        (None, False),
    ],
)
def test_software_is_told_from_a_gpu_by_its_name(
    name: bytes | None, is_software: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = types.SimpleNamespace(GL_RENDERER=7937, glGetString=lambda number: name)
    monkeypatch.setitem(sys.modules, "OpenGL.GL", fake)
    assert bool(gl.software()) == is_software
    monkeypatch.setitem(sys.modules, "OpenGL.GL", None)
    assert gl.software() == ""
