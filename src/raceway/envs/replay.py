"""Puts MuJoCo's data where an environment of a pool is, everything that can be drawn included."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from raceway.envs import gl

_LIMITED = threading.Lock()


def import_mujoco() -> Any:
    """MuJoCo's Python package, which looks for OpenGL when it is imported."""
    try:
        import mujoco
    except Exception as failure:
        raise gl.unavailable("MuJoCo's Python package cannot be imported", {gl.asked_for(): failure}) from failure
    return mujoco


@contextlib.contextmanager
def unheard_warnings() -> Iterator[None]:
    """Keeps MuJoCo from writing MUJOCO_LOG.TXT: what there is to say, the pool said when it was made or stepped."""
    mujoco = import_mujoco()
    with _LIMITED:
        before = mujoco.get_mju_user_warning()
        mujoco.set_mju_user_warning(lambda message: None)
        try:
            yield
        finally:
            mujoco.set_mju_user_warning(before)


class Replay:
    """One model and its data, for every environment that has the model."""

    def __init__(self, path: str) -> None:
        self._mujoco = import_mujoco()
        with unheard_warnings():
            self.model = self._mujoco.MjModel.from_xml_path(path)
        self.data = self._mujoco.MjData(self.model)
        spec = self._mujoco.mjtState
        self._carried = int(spec.mjSTATE_FULLPHYSICS) | int(spec.mjSTATE_WARMSTART)

    def show(self, row: Mapping[str, Any], kwargs: Mapping[str, Any]) -> None:
        """Leaves `data` as the environment's last reset or step left it.

        After a step, poses are those that its last substep began with (or, by Runge and Kutta, ended with): MuJoCo
        computes them first and integrates last. So that substep is made again. The masses, friction, ... that an
        environment has drawn are not: they move nothing within a substep that could be seen.
        """
        mujoco, model, data = self._mujoco, self.model, self.data
        keyframe = _keyframe(model, kwargs.get("keyframe", -1))
        with unheard_warnings():
            if keyframe >= 0:
                mujoco.mj_resetDataKeyframe(model, data, keyframe)
            else:
                mujoco.mj_resetData(model, data)
            mujoco.mj_setState(model, data, row["env.previous"], self._carried)
            data.ctrl[:] = row["env.controls"]
            if row["episode.steps"]:
                mujoco.mj_step(model, data)
                mujoco.mj_rnePostConstraint(model, data)
            else:
                mujoco.mj_forward(model, data)


def _keyframe(model: Any, given: str | int) -> int:
    """A keyframe by its name or its number."""
    names = [model.key(i).name for i in range(model.nkey)]
    return names.index(given) if given in names else int(given)
