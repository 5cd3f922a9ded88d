"""Whether it can be drawn, for videos. Training needs none of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from raceway.envs.checking.notebook import Facts, Notebook
from raceway.envs.checking.subject import EnvBrokeError, Subject
from raceway.envs.checking.values import kind_of

_PICTURE = "return an array (height, width, 3) of uint8"


def drawn(subject: Subject, notes: Notebook, facts: Facts, make: Callable[..., Any], takes_mode: bool = True) -> None:
    """One picture. `takes_mode`: whether it has the argument render_mode."""
    env = subject.make()
    metadata = env.metadata if isinstance(env.metadata, dict) else {}
    modes = list(metadata.get("render_modes") or [])
    if env.render_mode is not None and env.render_mode not in modes:
        notes.note(
            "render-mode",
            f"Its render_mode is {env.render_mode!r}, which metadata['render_modes'] ({modes}) does not have.",
            "list it there",
        )
    if "rgb_array" not in modes:
        notes.ok("rendering", "it draws no pictures (no rgb_array among its render modes): no videos")
        return
    if not takes_mode and env.render_mode != "rgb_array":
        notes.note(
            "render-argument", "It takes no render_mode, so there are no videos.", "add the argument render_mode=None"
        )
        return
    try:
        env = subject.call("make", make, **({"render_mode": "rgb_array"} if takes_mode else {}))
        subject.reset(env, 0)
        picture = subject.call("render", env.render)
        subject.close(env)
    except EnvBrokeError as error:
        notes.note("render-raises", f"With render_mode='rgb_array', {error.text}", "", error.details)
        return
    if not isinstance(picture, np.ndarray) or picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3:
        notes.note("render-returns", f"render returns {kind_of(picture)}.", _PICTURE)
    elif not metadata.get("render_fps"):
        notes.note("render-fps", "metadata has no 'render_fps': videos run at a guess.", "metadata['render_fps'] = 30")
    else:
        notes.ok("rendering", f"pictures of {picture.shape[1]} x {picture.shape[0]}, {metadata['render_fps']} a second")
