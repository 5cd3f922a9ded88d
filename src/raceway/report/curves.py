"""Learning curves: what the runs of a group measured, brought together on one axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from raceway.errors import RunFolderError
from raceway.names import did_you_mean
from raceway.report.groups import Group, Groups
from raceway.report.runs import LoggedRun
from raceway.report.statistics import interquartile_mean, interval

Axis = Literal["steps", "seconds"]
_POINTS = 256
_SHORTER = 0.95
"""A run that ends before this share of the longest is named: it cuts its group's curve short."""


@dataclass(frozen=True)
class Curve:
    """A metric over steps or seconds: of one run as it is, of several by interquartile mean and interval."""

    label: str
    env: str
    x: np.ndarray
    centre: np.ndarray
    low: np.ndarray
    high: np.ndarray
    count: int
    """Runs."""


def curves_of(groups: Groups, metric: str, axis: Axis) -> tuple[list[Curve], list[str]]:
    """The curve of each group that has the metric, and what there is to say about those that have not."""
    found, notes = [], []
    for group in groups.groups:
        lines = [(run, *_line(run, metric, axis)) for run in group.runs]
        for run, x, _ in lines:
            if not len(x):
                notes.append(f"{run.path} is left out: it has no {metric} yet.")
        lines = [line for line in lines if len(line[1])]
        if not lines:
            continue
        _note_short_runs([run for run, _, _ in lines], notes)
        curve = _brought_together(group, [(x, y) for _, x, y in lines])
        if curve is None:
            notes.append(f"{group.env}, {group.label} is left out: its runs have no {axis} in common.")
        else:
            found.append(curve)
    if not found:
        raise RunFolderError(_nothing_to_show(groups, metric))
    return found, notes


def _line(run: LoggedRun, metric: str, axis: Axis) -> tuple[np.ndarray, np.ndarray]:
    series = run.series(metric)
    return (series.steps if axis == "steps" else run.seconds_at(series.steps)), series.values


def _brought_together(group: Group, lines: Sequence[tuple[np.ndarray, np.ndarray]]) -> Curve | None:
    """One curve, only where all runs have data: nothing is made up before a run's first or after its last row."""
    if len(lines) == 1:
        x, y = lines[0]
        return Curve(group.label, group.env, x, y, y, y, 1)
    first, last = max(x[0] for x, _ in lines), min(x[-1] for x, _ in lines)
    if first > last:
        return None
    grid = np.linspace(first, last, _POINTS) if first < last else np.array([first])
    values = np.stack([np.interp(grid, x, y) for x, y in lines])
    low, high = interval(values)
    return Curve(group.label, group.env, grid, interquartile_mean(values), low, high, len(lines))


def _note_short_runs(runs: Sequence[LoggedRun], notes: list[str]) -> None:
    longest = max(run.steps for run in runs)
    short = [run for run in runs if run.steps < _SHORTER * longest]
    notes += [f"{run.path} has {run.steps:,} of {longest:,} steps: the curve of its group ends there." for run in short]


def _nothing_to_show(groups: Groups, metric: str) -> str:
    known = sorted({name for group in groups.groups for run in group.runs for name in run.metrics()})
    if metric == "episode/return":
        return "No run has an episode/return yet: no episode has ended."
    return f"No run has a metric {metric!r}.{did_you_mean(metric, known)} There are: {', '.join(known)}."
