"""The few shapes that a picture is made of, as SVG text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.sax.saxutils import escape

CORNER = 9.0
ARROWHEAD = 9.0

Point = tuple[float, float]


def clean(words: str) -> str:
    """Words as XML text; characters that XML cannot hold at all become �."""
    return escape(re.sub("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", words))


def text(x: float, y: float, words: str, size: float, style: str, *, bold: bool = False, anchor: str = "start") -> str:
    """One line of words."""
    weight = ' font-weight="600"' if bold else ""
    where = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" font-size="{size:g}"{weight}{where}>{clean(words)}</text>'


def rectangle(x: float, y: float, width: float, height: float, radius: float, style: str) -> str:
    """A rectangle with round corners."""
    return f'<rect class="{style}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius:g}"/>'


def path(shape: str, style: str) -> str:
    """Any shape."""
    return f'<path class="{style}" d="{shape}"/>'


def rounded(corners: Sequence[Point]) -> str:
    """A way along the corners that takes each of them in a curve."""
    shape = [f"M{_at(corners[0])}"]
    for before, corner, after in zip(corners, corners[1:], corners[2:], strict=False):
        radius = min(CORNER, _distance(before, corner) / 2, _distance(corner, after) / 2)
        shape.append(f"L{_at(_towards(corner, before, radius))}Q{_at(corner)} {_at(_towards(corner, after, radius))}")
    return "".join([*shape, f"L{_at(corners[-1])}"])


def arrowhead(tip: Point) -> str:
    """A head that points to the right."""
    return f"M{_at(tip)}l{-ARROWHEAD:g} -4.5l2 4.5l-2 4.5z"


def _at(point: Point) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"


def _distance(one: Point, other: Point) -> float:
    return abs(one[0] - other[0]) + abs(one[1] - other[1])


def _towards(start: Point, end: Point, distance: float) -> Point:
    whole = _distance(start, end)
    share = distance / whole if whole else 0.0
    return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share
