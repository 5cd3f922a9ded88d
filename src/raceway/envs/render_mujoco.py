"""Pictures of environments with a MuJoCo model, equal to the pixel to those that Gymnasium draws."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from raceway.envs import gl
from raceway.envs.arguments import EnvArguments
from raceway.envs.catalog import Task, gymnasium_spec
from raceway.envs.picture import Camera, Picture, camera_from
from raceway.envs.render import Renderer, class_of, rows_of
from raceway.envs.replay import Replay, import_mujoco
from raceway.names import did_you_mean

_COARSE_SHADOWS = 2048
"""Width of the shadow map of a draft. MuJoCo's own is 4096, which takes most of the time where the CPU draws."""
_TRACKING = "track"
"""What Gymnasium's models call the camera that follows the robot."""
MODES = ("rgb_array", "depth_array", "rgbd_tuple")


class MujocoRenderer(Renderer):
    """Draws by the model alone: a task needs no counterpart in Gymnasium. Canvases are made when first needed."""

    def __init__(self, task: Task, render_mode: str | None, arguments: EnvArguments, step_s: float) -> None:
        super().__init__(task.id, render_mode, MODES, int(np.round(1.0 / step_s)))
        self._task = task
        self._arguments = arguments
        self._replays: dict[str, Replay] = {}
        self._canvases: dict[tuple[str, Picture], Canvas] = {}
        self._lookats: dict[int, np.ndarray] = {}
        self._camera = tasks_own_camera(task.id) if render_mode else None
        for path, picture in set(zip(self._paths(), arguments.pictures, strict=True)):
            # Now rather than when it is drawn: the file is what it was when the pool was made.
            if render_mode or picture.names_parts:
                check_flags(task.id, picture)
                camera_number(task.id, self._replay(path).model, picture)

    def draw(self, state: Mapping[str, Any]) -> tuple[Any, ...]:
        """One picture per environment."""
        rows = rows_of(state)
        return gl.run(lambda: tuple(self._draw_one(i, row) for i, row in enumerate(rows)))

    def close(self) -> None:
        """Gives back what drawing needs."""
        for canvas in self._canvases.values():
            gl.post(canvas.free)
        self._canvases, self._replays = {}, {}

    def _draw_one(self, i: int, row: Mapping[str, Any]) -> Any:
        kwargs = self._arguments.distinct[self._arguments.which[i]]
        path, picture = kwargs[self._model_argument], self._arguments.pictures[i]
        replay = self._replay(path)
        replay.show(row, kwargs)
        if i not in self._lookats:
            # Gymnasium's free camera looks to where the middle of things was when it first drew, and stays so.
            self._lookats[i] = np.median(replay.data.geom_xpos, axis=0)
        return self._canvas(path, picture).draw(replay.data, self._lookats[i], self._mode)

    def _canvas(self, path: str, picture: Picture) -> Canvas:
        if (path, picture) not in self._canvases:
            model = self._replay(path).model
            number = camera_number(self._task.id, model, self._following(model, picture))
            camera = self._camera if picture.tasks_own_camera else picture.camera
            canvas = Canvas(model, picture, number, camera or (), self.is_draft)
            self._canvases[path, picture] = canvas
            self.coarse_by = canvas.coarse_by
        return self._canvases[path, picture]

    def _following(self, model: Any, picture: Picture) -> Picture:
        is_chosen = picture.names_camera or not picture.tasks_own_camera
        if not self.follows or is_chosen or _TRACKING not in camera_names(model):
            return picture
        return replace(picture, camera_name=_TRACKING)

    def _replay(self, path: str) -> Replay:
        if path not in self._replays:
            self._replays[path] = Replay(path)
        return self._replays[path]

    def _paths(self) -> list[str]:
        return [self._arguments.distinct[which][self._model_argument] for which in self._arguments.which]

    @property
    def _model_argument(self) -> str:
        assert self._task.model_argument is not None
        return self._task.model_argument


class Canvas:
    """Draws one model in one way. Made, used and freed in the thread for OpenGL."""

    def __init__(self, model: Any, picture: Picture, camera_id: int, camera: Camera, is_draft: bool = False) -> None:
        """`is_draft`: coarser where the CPU draws, which takes a third of the time."""
        self._mujoco = mujoco = import_mujoco()
        self._model = model
        self._picture = picture
        self._scene = mujoco.MjvScene(model, picture.max_geom)
        self._options = mujoco.MjvOption()
        for number, on in picture.flags:
            self._options.flags[number] = on
        self._camera = self._placed_camera(camera_id, camera)
        self._looks_anywhere = "lookat" not in dict(camera)
        self._viewport = mujoco.MjrRect(0, 0, picture.width, picture.height)
        self._gl = gl.make_context()
        self.coarse_by = gl.software() if is_draft else ""
        """What draws, if it is drawn coarsely."""
        try:
            self._context = self._sized_context()
        except Exception:
            gl.free_context(self._gl)
            raise

    def _placed_camera(self, camera_id: int, camera: Camera) -> Any:
        placed = self._mujoco.MjvCamera()
        placed.distance = self._model.stat.extent
        for field, value in camera:
            setattr(placed, field, value)
        kinds = self._mujoco.mjtCamera
        placed.type = kinds.mjCAMERA_FREE if camera_id == -1 else kinds.mjCAMERA_FIXED
        placed.fixedcamid = camera_id
        return placed

    def _sized_context(self) -> Any:
        mujoco, picture = self._mujoco, self._picture
        size, quality = self._model.vis.global_, self._model.vis.quality
        own, fine = (size.offwidth, size.offheight), (quality.shadowsize, quality.offsamples)
        size.offwidth, size.offheight = max(own[0], picture.width), max(own[1], picture.height)
        if self.coarse_by:
            quality.shadowsize, quality.offsamples = min(fine[0], _COARSE_SHADOWS), 0
        try:
            context = mujoco.MjrContext(self._model, mujoco.mjtFontScale.mjFONTSCALE_150)
        except mujoco.FatalError as error:
            raise RuntimeError(
                f"OpenGL cannot draw a picture of width={picture.width} and height={picture.height}: {error}"
            ) from error
        finally:
            size.offwidth, size.offheight = own
            quality.shadowsize, quality.offsamples = fine
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, context)
        return context

    def draw(self, data: Any, lookat: np.ndarray, mode: str | None) -> Any:
        """The scene in `data`: [height, width, 3] colours, [height, width] depths, or both."""
        mujoco, size = self._mujoco, (self._picture.height, self._picture.width)
        if self._looks_anywhere:
            self._camera.lookat = lookat
        mujoco.mjv_updateScene(
            self._model,
            data,
            self._options,
            mujoco.MjvPerturb(),
            self._camera,
            mujoco.mjtCatBit.mjCAT_ALL,
            self._scene,
        )
        self._gl.make_current()
        mujoco.mjr_render(self._viewport, self._scene, self._context)
        colours = np.empty((*size, 3), np.uint8) if mode != "depth_array" else None
        depths = np.empty(size, np.float32) if mode != "rgb_array" else None
        mujoco.mjr_readPixels(colours, depths, self._viewport, self._context)
        # OpenGL's first row is the lowest.
        frames = tuple(np.ascontiguousarray(each[::-1]) for each in (colours, depths) if each is not None)
        return frames if mode == "rgbd_tuple" else frames[0]

    def free(self) -> None:
        """Frees its GL context and what is in it."""
        self._gl.make_current()
        self._context.free()
        gl.free_context(self._gl)


def tasks_own_camera(task_id: str) -> Camera | None:
    """How Gymnasium places the camera of one of its tasks; None for tasks that are only ours."""
    if (spec := gymnasium_spec(task_id)) is None:
        return None
    import_mujoco()
    try:
        parameters = inspect.signature(class_of(spec).__init__).parameters
    except ImportError as failure:  # Gymnasium's MuJoCo tasks import all that their windows need
        raise gl.unavailable(f"Gymnasium's {task_id} cannot be imported", {"": failure}) from failure
    own = parameters["default_camera_config"].default
    return None if own in (None, inspect.Parameter.empty) else camera_from(task_id, own)


def check_flags(task_id: str, picture: Picture) -> None:
    """Refuses visual options that MuJoCo does not have."""
    count = int(import_mujoco().mjtVisFlag.mjNVISFLAG)
    for number, _ in picture.flags:
        if number >= count:
            raise ValueError(f"{task_id}: visual_options has a flag {number}. MuJoCo's mjtVisFlag ends at {count - 1}.")


def camera_names(model: Any) -> list[str]:
    """The names of a model's cameras, by number."""
    return [model.camera(i).name for i in range(model.ncam)]


def camera_number(task_id: str, model: Any, picture: Picture) -> int:
    """Which of the model's cameras draws; -1 for the free one."""
    names = camera_names(model)
    known = f"The model has: {', '.join(f'{name!r} ({i})' for i, name in enumerate(names)) or 'none'}"
    known = f"{known}. Without a camera, or with camera_id=-1, the free camera draws."
    if picture.camera_name is not None:
        if picture.camera_name not in names:
            hint = did_you_mean(picture.camera_name, names)
            raise ValueError(f"{task_id}: no camera_name {picture.camera_name!r}.{hint} {known}")
        return names.index(picture.camera_name)
    number = -1 if picture.camera_id is None else picture.camera_id
    if not -1 <= number < model.ncam:
        raise ValueError(f"{task_id}: no camera_id {number}. {known}")
    return number
