"""Puts MuJoCo's data where an environment of a pool is, everything that can be drawn included."""

from __future__ import annotations

import contextlib
import copy
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from raceway.envs import gl

_FREE, _BALL = 0, 1  # of mjtJoint: the joints with more than one degree of freedom
_LIMITED = threading.Lock()

# What `randomize` varies, in the native side's order: whose parts have names, and the arrays that are scaled, each
# with how many of the numbers in a row are.
_FIELDS: Mapping[str, tuple[str, Mapping[str, int | None]]] = {
    "mass": ("body", {"body_mass": None, "body_inertia": None}),
    "friction": ("geom", {"geom_friction": None}),
    "gain": ("actuator", {"actuator_gainprm": 3, "actuator_biasprm": 3}),
    "damping": ("joint", {"dof_damping": None}),
    "stiffness": ("joint", {"jnt_stiffness": None}),
    "armature": ("joint", {"dof_armature": None}),
    "frictionloss": ("joint", {"dof_frictionloss": None}),
    "gravity": ("", {}),
}


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

    def show(self, row: Mapping[str, Any], kwargs: Mapping[str, Any], frame_skip: int) -> None:
        """Leaves `data` as the environment's last reset or step left it.

        After a step, poses are those before its last substep: MuJoCo computes them first and integrates last. So the
        step is made again, from the state before it.
        """
        mujoco, data = self._mujoco, self.data
        model = self._varied(row["env.factors"], kwargs)
        with unheard_warnings():
            self._start(model, row["env.previous"], kwargs)
            data.ctrl[:] = row["env.controls"]
            if row["env.stepped"]:
                mujoco.mj_step(model, data, nstep=frame_skip)
                mujoco.mj_rnePostConstraint(model, data)
            else:
                mujoco.mj_forward(model, data)
            if not np.array_equal(self._state(model), row["env.carried"]):
                # The last step was not carried out: it could not be computed.
                self._start(model, row["env.carried"], kwargs)
                mujoco.mj_forward(model, data)

    def _start(self, model: Any, state: np.ndarray, kwargs: Mapping[str, Any]) -> None:
        keyframe = kwargs.get("keyframe", -1)
        if isinstance(keyframe, str):
            keyframe = model.key(keyframe).id
        if keyframe >= 0:
            self._mujoco.mj_resetDataKeyframe(model, self.data, keyframe)
        else:
            self._mujoco.mj_resetData(model, self.data)
        self._mujoco.mj_setState(model, self.data, state, self._carried)

    def _state(self, model: Any) -> np.ndarray:
        state = np.empty(self._mujoco.mj_stateSize(model, self._carried))
        self._mujoco.mj_getState(model, self.data, state, self._carried)
        return state

    def _varied(self, factors: np.ndarray, kwargs: Mapping[str, Any]) -> Any:
        """The model with its masses, friction, ... multiplied as the environment has them."""
        if not len(factors):
            return self.model
        model = copy.copy(self.model)
        parts = parts_of(model, kwargs["randomize"])
        for (field, index), factor in zip(parts, factors, strict=True):
            _scale(model, field, index, factor)
        if any(field in ("mass", "armature") for field, _ in parts):
            self._mujoco.mj_setConst(model, self.data)
        return model


def parts_of(model: Any, ranges: Mapping[str, Any]) -> list[tuple[str, int]]:
    """What each of an environment's factors multiplies: a field and the number of a body, geom, ..."""
    parts = set()
    for key in ranges:
        field, _, name = key.partition(":")
        kind = _FIELDS[field][0]
        if name:
            parts.add((field, getattr(model, kind)(name).id))
        else:
            first = 1 if field == "mass" else 0  # the world has no mass
            parts |= {(field, i) for i in range(first, _count(model, kind))}
    order = list(_FIELDS)
    return sorted(parts, key=lambda part: (order.index(part[0]), part[1]))


def _count(model: Any, kind: str) -> int:
    counts = {"body": model.nbody, "geom": model.ngeom, "actuator": model.nactuator, "joint": model.njnt}
    return counts.get(kind, 1)


def _scale(model: Any, field: str, index: int, factor: float) -> None:
    if field == "gravity":
        model.opt.gravity *= factor
    for name, columns in _FIELDS[field][1].items():
        rows = _dofs(model, index) if name.startswith("dof_") else slice(index, index + 1)
        array = getattr(model, name)[rows]
        array[..., :columns] *= factor


def _dofs(model: Any, joint: int) -> slice:
    first = model.jnt_dofadr[joint]
    return slice(first, first + {_FREE: 6, _BALL: 3}.get(int(model.jnt_type[joint]), 1))
