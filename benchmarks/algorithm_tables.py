"""What benchmarks/algorithms.py measured, as the pages show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.paired import short_number
from benchmarks.presets import interval
from benchmarks.table import machine_line, markdown_table
from raceway.report.words import count, number

AS_FAST = 0.95
"""The least ratio of speeds that counts as equal."""
BETTER, WORSE = "concurrent", "async"
_PICTURE = """\
![Learning curves of A2C: the delayed gradient, the ratio, no correction, and none under the serial schedule]\
(images/a2c-corrections.svg)"""


def schedules_tables(record: Mapping[str, Any]) -> str:
    """The concurrent schedule against the asynchronous one: the differences, then what they are differences of."""
    entries = record["entries"]
    names = list(entries[0]["at_equal_steps"])
    header = ["", f"steps/s, {BETTER} / {WORSE}", f"return - {WORSE}'s, equal steps", "the same, equal seconds"]
    differences = [[entry["env"], *_differences(entry)] for entry in entries]
    rows = [row for entry in entries for row in _rows(entry, names)]
    seeds = f"{len(record['seeds'])} seeds"
    return "\n\n".join(
        [
            markdown_table(header, differences),
            markdown_table([seeds, *names], rows),
            machine_line(record["machine"]),
        ]
    )


def _differences(entry: Mapping[str, Any]) -> list[str]:
    rates, steps, seconds = (entry[name] for name in ("steps_per_second", "at_equal_steps", "at_equal_seconds"))
    ratios = [one / other for one, other in zip(rates[BETTER], rates[WORSE], strict=True)]
    low, high = interval(ratios)
    mark = "✓" if np.mean(ratios) >= AS_FAST else "✗"
    return [
        f"**{np.mean(ratios):.2f}** ({low:.2f} to {high:.2f}), ≥ {AS_FAST} {mark}",
        *(_difference(found[BETTER], found[WORSE]) for found in (steps, seconds)),
    ]


def _difference(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """Seed by seed. Not below means that the interval is not."""
    found = [one - other for one, other in zip(ours, theirs, strict=True)]
    low, high = interval(found)
    return f"**{np.mean(found):+.1f}** ({low:+.1f} to {high:+.1f}) {'✓' if high >= 0 else '✗'}".replace("-", "−")


def _rows(entry: Mapping[str, Any], names: Sequence[str]) -> list[list[str]]:
    env = entry["env"]
    moment = f"{np.mean(entry['moments_s']):.1f} s"
    return [
        [f"{env}: return, {count(entry['total_steps'])} steps", *(spread(entry["at_equal_steps"][n]) for n in names)],
        [f"{env}: return, {moment}", *(spread(entry["at_equal_seconds"][n]) for n in names)],
        [f"{env}: steps/s", *(short_number(float(np.mean(entry["steps_per_second"][n]))) for n in names)],
        [f"{env}: lag (most)", *(f"{np.mean(entry['lag_mean'][n]):.2f} ({max(entry['lag_max'][n])})" for n in names)],
    ]


def corrections_tables(record: Mapping[str, Any]) -> str:
    """A2C by correction: what was reached in the end, and the mean over the whole run."""
    entries = record["entries"]
    names = list(entries[0]["returns"])
    rows = []
    for entry in entries:
        steps = count(entry["total_steps"])
        rows.append([f"{entry['env']}, after {steps} steps", *(spread(entry["returns"][name]) for name in names)])
        rows.append([f"{entry['env']}, mean over the run", *(spread(entry["mean_returns"][name]) for name in names)])
    seeds = f"{len(record['seeds'])} seeds"
    return "\n\n".join([_PICTURE, markdown_table([seeds, *names], rows), machine_line(record["machine"])])


def spread(values: Sequence[float]) -> str:
    """The mean, and from the lowest to the highest."""
    return f"**{number(float(np.mean(values)))}** ({number(min(values))} to {number(max(values))})"
