"""The `raceway` command: verbs, each of which calls one public function."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import raceway


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line and returns its exit code."""
    parser = argparse.ArgumentParser(prog="raceway", description=raceway.__doc__)
    parser.add_argument("--version", action="version", version=f"raceway {raceway.__version__}")
    verbs = parser.add_subparsers(dest="verb", required=True)
    lister = verbs.add_parser("list", help="list what there is")
    lister.add_argument("what", choices=["envs"])
    lister.set_defaults(run=lambda _: print("\n".join(raceway.list_envs())))
    parsed = parser.parse_args(argv)
    try:
        parsed.run(parsed)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read our output, such as head, has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
