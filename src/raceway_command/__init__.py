"""The `raceway` command. Not in the package itself: importing that takes a second, in which Ctrl-C may be pressed."""

from __future__ import annotations

import sys

_INTERRUPTED = 130


def main() -> int:
    """Runs the command line and returns its exit code."""
    try:
        from raceway.cli import main as run

        return run()
    except KeyboardInterrupt:
        print("raceway: interrupted.", file=sys.stderr)
        return _INTERRUPTED
