"""Pictures of MuJoCo tasks, ours and Gymnasium's side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from tests.envs.gymnasium_twin import Twins, random_actions

SMALL: dict[str, Any] = {"width": 64, "height": 48}
ASSETS = Path(gymnasium.__file__).parent / "envs/mujoco/assets"


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
