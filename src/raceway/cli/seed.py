"""`python -m raceway.cli.seed PARENT`: one of the runs of `raceway train --seeds`. Its input says what to train."""

from __future__ import annotations

import pickle
import sys

from raceway._core import die_with_parent
from raceway.cli import answered
from raceway.local_code import adopt_imports


def main() -> int:
    die_with_parent(int(sys.argv[1]))
    adopt_imports(sys.stdin.buffer)
    return answered(_train, tells_interrupts=False)  # the parent says so, once for all


def _train() -> int:
    import raceway

    env, settings = pickle.load(sys.stdin.buffer)
    raceway.train(env, **settings)
    return 0


if __name__ == "__main__":
    sys.exit(main())
