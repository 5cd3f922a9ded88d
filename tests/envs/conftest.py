"""What several tests of environments need."""

from __future__ import annotations

import ctypes.util
import gc

import pytest


@pytest.fixture
def gymnasium_draws_without_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    if ctypes.util.find_library("EGL") is None:
        pytest.skip("there is nothing to draw with: apt install libegl1 libgl1")
    # Left alone, Gymnasium takes GLFW, which needs a screen. A pool needs no such help: test_render_mujoco_gl.py.
    monkeypatch.setenv("MUJOCO_GL", "egl")
    # When it is collected, a viewer of Gymnasium deletes its textures in whichever context is current in this thread.
    gc.collect()
