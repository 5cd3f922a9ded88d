"""Draws README's picture from the results: `python -m benchmarks.picture`, or `--check` to see whether it is there."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from benchmarks.paired import short_number
from benchmarks.results import RESULTS

PICTURE = Path("docs/images/cartpole.svg")
WIDTH, LEFT, RIGHT = 760, 150, 90
BAR, GAP, GROUP = 22, 6, 34
TOP = 44
COLOURS = {"raceway": "#d9480f", "bare loop": "#adb5bd"}
OTHERS = "#4c6e91"


def draw(section: dict[str, Any]) -> str:
    """Steps per second of every contestant as bars on a logarithmic scale, a group per experiment."""
    rates = [
        contestant["rate"] for experiment in section["experiments"] for contestant in experiment["contestants"].values()
    ]
    low, high = 10 ** math.floor(math.log10(min(rates))), max(rates)

    def length(rate: float) -> float:
        return (WIDTH - LEFT - RIGHT) * math.log10(rate / low) / math.log10(high / low)

    body, y = [], float(TOP)
    for experiment in section["experiments"]:
        body.append(_text(LEFT, y + 12, experiment["setting"], weight="600"))
        y += 20
        for name, contestant in sorted(experiment["contestants"].items(), key=lambda each: -each[1]["rate"]):
            body.extend(_bar(y, name, contestant["rate"], length(contestant["rate"])))
            y += BAR + GAP
        y += GROUP - GAP
    title = _text(LEFT, 22, "Environment steps per second, logarithmic scale", size=15, weight="600")
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y:.0f}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{y:.0f}" fill="#ffffff"/>',
        title,
        *body,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _bar(y: float, name: str, rate: float, length: float) -> Iterator[str]:
    colour = COLOURS.get(name, OTHERS)
    yield _text(LEFT - 10, y + 16, name, anchor="end")
    yield f'<rect x="{LEFT}" y="{y:.0f}" width="{max(length, 2):.1f}" height="{BAR}" rx="3" fill="{colour}"/>'
    yield _text(LEFT + length + 8, y + 16, short_number(rate))


def _text(x: float, y: float, words: str, *, size: int = 13, weight: str = "400", anchor: str = "start") -> str:
    style = f'font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" fill="#212529"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(words)}</text>'


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the picture, or with --check says whether it is up to date."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.picture", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the picture is out of date")
    parser.add_argument("--picture", type=Path, default=PICTURE)
    parser.add_argument("--results", type=Path, default=RESULTS / "environments-cartpole.json")
    options = parser.parse_args(argv)
    try:
        wanted = draw(json.loads(options.results.read_text(encoding="utf-8")))
    except OSError as error:
        print(f"{error}. `make bench` makes the results.", file=sys.stderr)
        return 2
    if options.picture.exists() and options.picture.read_text(encoding="utf-8") == wanted:
        return 0
    if options.check:
        print(f"{options.picture} is out of date. `python -m benchmarks.picture` renews it.", file=sys.stderr)
        return 1
    options.picture.parent.mkdir(parents=True, exist_ok=True)
    options.picture.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
