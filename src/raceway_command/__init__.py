"""The `raceway` command. Not in the package itself: importing that takes a second, in which Ctrl-C may be pressed."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from types import FrameType

_INTERRUPTED = 130


def main() -> int:
    """Runs the command line and returns its exit code."""
    try:
        return _imported()()
    except KeyboardInterrupt:
        print("raceway: interrupted.", file=sys.stderr)
        return _INTERRUPTED


def _imported() -> Callable[[], int]:
    """The command line. Ctrl-C is a KeyboardInterrupt even where an interrupted import loses it or raises another."""
    heard = []

    def hear(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        raise KeyboardInterrupt

    is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_usual:
        signal.signal(signal.SIGINT, hear)
    try:
        from raceway.cli import main as run
    except Exception:
        if heard:
            raise KeyboardInterrupt from None
        raise
    finally:
        if is_usual:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    if heard:
        raise KeyboardInterrupt
    return run
