"""Ctrl-C and SIGTERM, as a run hears them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


def interruption(number: signal.Signals) -> BaseException:
    """What a run raises that a signal has ended: as Python does for Ctrl-C, as a shell expects it for SIGTERM."""
    return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)


@contextmanager
def heard(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Ctrl-C and SIGTERM go to the handler, where they can: Python lets only the main thread choose.

    A SIGTERM that somebody else listens to, or that is ignored, is left to them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [signal.SIGINT]
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        numbers.append(signal.SIGTERM)
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
