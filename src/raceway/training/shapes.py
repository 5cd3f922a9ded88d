"""Shapes that a file tells, of which nothing is believed."""

from __future__ import annotations

from typing import Any

from raceway.messages import quoted

_MOST_AXES = 64
"""As many as NumPy has."""
MOST_NUMBERS = 1 << 48
"""Of an array: more than any memory holds."""


def size_of(shape: Any, most: int = MOST_NUMBERS) -> int:
    """How many numbers an array of this shape has, `most` at most. It is not multiplied any further."""
    if not isinstance(shape, (list, tuple)) or len(shape) > _MOST_AXES:
        raise ValueError(f"{quoted(shape)} is no shape: it has to be a list of {_MOST_AXES} lengths at most")
    for length in shape:
        if type(length) is not int or not 0 <= length < MOST_NUMBERS:
            raise ValueError(f"{quoted(length)} is no length of an axis")
    size = 0 if 0 in shape else 1
    for length in shape:
        size *= length
        if size > most:
            raise ValueError(f"the shape {quoted(shape)} has more than {most:,} numbers")
    return size
