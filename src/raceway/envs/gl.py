"""OpenGL without a screen, in one thread that all pools of a process share.

A GL context belongs to the thread in which it is current, and Gymnasium leaves its own current in the caller's. So
ours is current in a thread of its own: pools can be drawn from any thread, and Gymnasium's pictures are not disturbed.
"""

from __future__ import annotations

import atexit
import importlib
import os
import queue
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from gymnasium.error import DependencyNotInstalled

T = TypeVar("T")

_OFF = ("disable", "disabled", "off", "false", "0")
_ANY = ("", "enable", "enabled", "on", "true", "1")
_NAMED = {"egl": "egl", "osmesa": "osmesa", "glfw": "glfw", "glx": "glfw"}
_LIBRARIES = {
    "egl": "apt install libegl1 libgl1",
    "osmesa": "apt install libosmesa6",
    "glfw": "it needs a screen: set DISPLAY, or unset MUJOCO_GL",
}
_SOFTWARE = ("llvmpipe", "softpipe", "swrast", "swiftshader", "software rasterizer", "osmesa", "offscreen")
_PACKAGES = "pip install 'raceway[render]'"


def run(work: Callable[[], T]) -> T:
    """What `work` returns, done in the thread for OpenGL."""
    return _thread().submit(work).result()


def post(work: Callable[[], None]) -> None:
    """Has `work` done after what was asked for before, and does not wait for it. In a child of fork nothing is done."""
    if _current is not None and _current.has_drawn:
        _current.submit(work)


def unavailable(problem: str, failures: dict[str, Exception]) -> DependencyNotInstalled:
    """An error that says what failed and what to install; what was raised is its cause."""
    remedies: list[str] = []
    for backend, failure in failures.items():
        remedy = _PACKAGES if isinstance(failure, ModuleNotFoundError) else _LIBRARIES.get(backend, _PACKAGES)
        if remedy not in remedies:
            remedies.append(remedy)
    said = "; ".join(f"{backend or type(each).__name__}: {each}" for backend, each in failures.items())
    error = DependencyNotInstalled(f"{problem} ({said}). To mend it: {', or '.join(remedies)}.")
    causes = list(failures.values())
    error.__cause__ = causes[0] if len(causes) == 1 else ExceptionGroup("no GL backend works", causes)
    return error


def asked_for() -> str:
    """The backend that MUJOCO_GL names; empty if it leaves the choice."""
    return _NAMED.get(os.environ.get("MUJOCO_GL", "").lower().strip(), "")


class _GLThread:
    """Does one piece of work after the other, and remembers the contexts that are left."""

    def __init__(self) -> None:
        self.contexts: set[Any] = set()
        self.has_drawn = False
        self._stopped = False
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], Future] | None] = queue.SimpleQueue()
        # A daemon, for it has to outlive what other threads do at the interpreter's end; stop() ends it there.
        self._thread = threading.Thread(target=self._serve, name="raceway.gl", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        if self._stopped:  # nobody would ever do it
            future.set_exception(RuntimeError("no picture can be drawn any more: the interpreter is ending."))
        elif threading.current_thread() is self._thread:  # the garbage collector closes a pool wherever it runs
            _do(work, future)
        else:
            self._jobs.put((work, future))
        return future

    def add(self, context: Any) -> None:
        self.contexts.add(context)
        if not self.has_drawn:
            self.has_drawn = True
            # After the first context, whose library has then asked to be ended too: what is registered last is called
            # first.
            atexit.register(self.stop)

    def stop(self) -> None:
        """Frees the contexts that are left and ends the thread."""
        self._stopped = True
        self._jobs.put(None)
        self._thread.join(timeout=2.0)

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            _do(*job)
            del job  # and with it what was drawn
        for context in self.contexts:
            context.free()
        self.contexts.clear()


def _do(work: Callable[[], T], future: Future[T]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:
        future.set_exception(error)


_current: _GLThread | None = None
_starting = threading.Lock()
_forked_from_gl = False


def _thread() -> _GLThread:
    global _current
    if _forked_from_gl:
        raise RuntimeError(
            "this process was forked from one that had drawn with OpenGL, which does not survive a fork. Start it with "
            "multiprocessing's 'spawn' or 'forkserver', or draw for the first time after the fork."
        )
    with _starting:
        if _current is None:
            _current = _GLThread()
        return _current


def _forget_in_child() -> None:
    global _current, _forked_from_gl, _starting
    if _current is not None and _current.has_drawn:
        _forked_from_gl = True
        atexit.unregister(_current.stop)
    _current, _starting = None, threading.Lock()


os.register_at_fork(after_in_child=_forget_in_child)


def make_context() -> Any:
    """A new GL context, current in this thread, which is that for OpenGL; of the first backend that works.

    MuJoCo leaves lights and the like switched on in a context: one model's pictures need one of their own.
    """
    failures: dict[str, Exception] = {}
    for backend in _backends():
        loaded, platform = set(sys.modules), os.environ.get("PYOPENGL_PLATFORM")
        try:
            context = _context_of(backend)
        except Exception as failure:
            failures[backend] = failure
            _forget_attempt(loaded, platform)
        else:
            _thread().add(context)
            return context
    asked = f" with MUJOCO_GL={os.environ['MUJOCO_GL']}" if os.environ.get("MUJOCO_GL") else ""
    raise unavailable(f"no picture can be drawn: OpenGL cannot be used{asked}", failures)


def software() -> str:
    """What the CPU draws with in the current context, as OpenGL names it; empty if a GPU draws, or it does not tell."""
    try:
        opengl = importlib.import_module("OpenGL.GL")
        name = str((opengl.glGetString(opengl.GL_RENDERER) or b"").decode(errors="replace"))
    except Exception:  # whatever a driver or PyOpenGL has against it: pictures are drawn all the same
        return ""
    return name if any(each in name.lower() for each in _SOFTWARE) else ""


def free_context(context: Any) -> None:
    """Frees what make_context made."""
    _thread().contexts.discard(context)
    context.free()


def _backends() -> list[str]:
    """What MUJOCO_GL says; else those that need no screen first."""
    wanted = os.environ.get("MUJOCO_GL", "").lower().strip()
    if wanted in _NAMED:
        return [_NAMED[wanted]]
    if wanted in _OFF:
        raise RuntimeError(f"MUJOCO_GL={wanted} switches pictures off. Unset it to draw.")
    if wanted not in _ANY:
        raise ValueError(f"MUJOCO_GL={wanted} is not known. Unset it, or use egl, osmesa or glfw.")
    screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return ["egl", "glfw", "osmesa"] if screen else ["egl", "osmesa"]


def _context_of(backend: str) -> Any:
    if backend == "glfw" and not importlib.import_module("glfw").init():
        raise RuntimeError("GLFW found no screen")
    context = importlib.import_module(f"mujoco.{backend}").GLContext(1, 1)
    context.make_current()
    return context


def _forget_attempt(loaded: set[str], platform: str | None) -> None:
    # PyOpenGL settles on a backend when it is imported: the next attempt must be able to import it anew.
    for name in set(sys.modules) - loaded:
        if name.split(".")[0] == "OpenGL" or name.startswith(("mujoco.egl", "mujoco.osmesa")):
            del sys.modules[name]
    os.environ.pop("PYOPENGL_PLATFORM", None)
    if platform is not None:
        os.environ["PYOPENGL_PLATFORM"] = platform
