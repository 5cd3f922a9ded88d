"""The `raceway` command. Not in the package itself: importing that takes a second, in which Ctrl-C may be pressed."""

from __future__ import annotations

import signal
import sys
from types import FrameType

_INTERRUPTED = 130


def main() -> int:
    """Runs the command line and returns its exit code."""
    heard = []

    def hear(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        raise KeyboardInterrupt

    # An import that is interrupted may well raise something else, such as an ImportError of a half-made module.
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, hear)
    try:
        from raceway.cli import main as run

        signal.signal(signal.SIGINT, before)
        return run()
    except (Exception, KeyboardInterrupt) as error:
        if not heard and not isinstance(error, KeyboardInterrupt):
            raise
        print("raceway: interrupted.", file=sys.stderr)
        return _INTERRUPTED
