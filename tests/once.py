"""Something that is to happen once, whichever of several processes comes first."""

from __future__ import annotations

from pathlib import Path


def is_first(mark: Path) -> bool:
    """Whether nobody was here before: the mark is made and looked for in one step."""
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
