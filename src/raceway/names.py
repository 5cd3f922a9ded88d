"""Names of environments and settings, and those that are nearly right."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

LONGEST_NAME = 200
"""Characters. Comparing takes time that grows with their square, and nothing of ours is as long."""
LONGEST_ENV = 4096
"""Characters of an environment's name, which may be a path."""
NOT_IN_RESULTS = ("log", "checkpoint", "num_workers", "on_error", "worker_timeout")
"""Settings, and groups of settings, that do not show in the results of a run."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """` Did you mean 'x'?` for the nearest known name; empty if none is near."""
    if len(name) > LONGEST_NAME:
        return ""
    by_lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return f" Did you mean {by_lower[near[0]]!r}?" if near else ""


def did_you_mean_id(name: str, ids: Iterable[str]) -> str:
    """The same for ids of environments. Equal versions alone make none near: Pong-v5 is not Ant-v5."""
    if len(name) > LONGEST_NAME:
        return ""
    own = difflib.SequenceMatcher(b=_without_version(name))
    near = []
    for each in ids:
        own.set_seq1(_without_version(each))
        if own.ratio() >= 0.6:
            near.append(each)
    return did_you_mean(name, near)


def _without_version(id_: str) -> str:
    return re.sub(r"-v\d+$", "", id_.lower())
