"""How long videos of MuJoCo tasks take, against drawing them as Gymnasium does."""

from __future__ import annotations

import ctypes.util
import time
from pathlib import Path
from typing import Literal

import pytest

import raceway

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(ctypes.util.find_library("EGL") is None, reason="there is nothing to draw with"),
]


def seconds_for(frames: int, quality: Literal["auto", "full"], folder: Path) -> tuple[float, bool]:
    """How long a video of so many frames takes, and whether it was drawn coarsely."""
    start = time.perf_counter()
    played = raceway.play(
        "HalfCheetah-v5",
        agent="random",
        episodes=1,
        env_args={"max_episode_steps": frames - 1},
        video=folder / f"{quality}.mp4",
        quality=quality,
        quiet=True,
    )
    assert played.lengths == [frames - 1]
    return time.perf_counter() - start, bool(played.notes)


@pytest.mark.parametrize("frames", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_where_the_cpu_draws_a_video_takes_half_the_time(frames: int, tmp_path: Path) -> None:
    """Coarse pictures take a third of the time of full ones. A GPU needs none, and draws either quickly."""
    few = min(frames, 100)
    seconds_for(2, "full", tmp_path)  # what the first picture takes is no matter
    full, _ = seconds_for(few, "full", tmp_path)
    auto, is_coarse = seconds_for(frames, "auto", tmp_path)
    assert auto < (0.6 * full * frames / few if is_coarse else 0.06 * frames)
