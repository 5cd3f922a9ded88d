"""How many examples hypothesis tries: all of them with `make test-all`, a third of them with `make test`."""

from __future__ import annotations

import os

TRIES_ALL = os.environ.get("RACEWAY_TEST_ALL") == "1"


def examples(count: int) -> int:
    """So many, or a third of them."""
    return count if TRIES_ALL else max(3, count // 3)
