"""Ctrl-C and SIGTERM as exceptions that are not lost, and moments in which they wait."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class _Terminated(KeyboardInterrupt):
    """SIGTERM was sent."""


@contextmanager
def ending_on_sigterm() -> Iterator[None]:
    """SIGTERM ends the block with SystemExit(143), so that what was begun is cleaned up.

    Within the block it is a KeyboardInterrupt: a SystemExit could be an environment's own, and would be taken for that.
    A SIGTERM that somebody else listens to, or that is ignored, is left to them; so is one in another thread than the
    main one, since Python lets only that choose.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        raise _Terminated

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    except _Terminated:
        raise SystemExit(128 + signal.SIGTERM) from None
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


_DROPPING = ("__del__", "_xla_gc_callback")
"""Functions in which Python, or JAX when garbage is collected, prints what is raised and goes on."""


class _Recorder:
    """A handler that remembers that it was called."""

    def __init__(self, handler: Callable[[int, FrameType | None], object]) -> None:
        self.handler = handler
        self.is_heard = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.is_heard = True
        if frame is None or frame.f_code.co_name not in _DROPPING:
            self.handler(number, frame)


@contextmanager
def keeping_ctrl_c() -> Iterator[None]:
    """Ctrl-C ends the block even where its KeyboardInterrupt is lost or becomes another error.

    Python drops what is raised in a destructor or while garbage is collected, and an import that is interrupted may
    raise an ImportError. `raise_lost_ctrl_c` asks within the block. What a handler of somebody else's means is theirs.
    """
    before = signal.getsignal(signal.SIGINT)
    is_usual = before is signal.default_int_handler or isinstance(before, _Recorder)
    if threading.current_thread() is not threading.main_thread() or not is_usual:
        yield
        return
    assert callable(before)
    recorder = _Recorder(before)
    signal.signal(signal.SIGINT, recorder)
    try:
        yield
        raise_lost_ctrl_c()
    except Exception:
        raise_lost_ctrl_c()
        raise
    finally:
        signal.signal(signal.SIGINT, before)


def raise_lost_ctrl_c() -> None:
    """Raises KeyboardInterrupt if Ctrl-C was heard in `keeping_ctrl_c` and was lost. Call it before long work."""
    handler = signal.getsignal(signal.SIGINT)
    if isinstance(handler, _Recorder) and handler.is_heard:
        raise KeyboardInterrupt


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Holds Ctrl-C, and a SIGTERM that is listened to, back until the end of the block. For what takes moments."""
    if threading.current_thread() is not threading.main_thread():  # where no handler is ever called
        yield
        return
    heard: list[tuple[int, Callable[[int, FrameType | None], object]]] = []
    try:
        with _held(signal.SIGINT, heard), _held(signal.SIGTERM, heard):
            yield
    finally:
        if heard:
            number, handler = heard[0]
            handler(number, None)


@contextmanager
def _held(number: int, heard: list[Any]) -> Iterator[None]:
    """One signal at a time: the handler of another may raise while this one is put back."""
    before = signal.getsignal(number)
    if not callable(before):
        yield
        return
    try:
        signal.signal(number, lambda number, frame: heard.append((number, before)))
        yield
    finally:
        signal.signal(number, before)
