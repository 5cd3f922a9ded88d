"""Learning curves: what the runs of a group measured, brought together on one axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from raceway.errors import RunFolderError
from raceway.messages import printable, quoted
from raceway.names import LONGEST_NAME, did_you_mean
from raceway.report.groups import Group, Groups
from raceway.report.runs import SECONDS, LoggedRun
from raceway.report.statistics import interquartile_mean, interval
from raceway.report.words import count, number

Axis = Literal["steps", "seconds"]
_POINTS = 256
_LARGE = 1e250
_SMALLER = 2.0**-200
_MOST_TOLD = 50
"""Names of metrics in a message. A run has about thirty."""
_MOST_COMPARED = 1000
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


@dataclass(frozen=True)
class _Line:
    """A metric of one run."""

    run: LoggedRun
    x: np.ndarray
    y: np.ndarray


def curves_of(groups: Groups, metric: str, axis: Axis) -> tuple[list[Curve], list[str]]:
    """The curve of each group that has one on this axis, and notes about what was left out and why.

    There may be none at all: runs that share no seconds usually share steps.
    """
    check_metric(groups, metric)
    found: list[Curve] = []
    notes: list[str] = []
    for group in groups.groups:
        lines = _lines(group, metric, axis, notes)
        if not lines:
            continue
        if gap := _gap(lines, axis):
            notes.append(f"{group.env}, {group.label} is left out over {axis}: its runs have none in common ({gap}).")
            continue
        _note_short_runs([line.run for line in lines], notes)
        found.append(_brought_together(group, lines))
    return found, notes


def check_metric(groups: Groups, metric: str) -> None:
    """Refuses a metric that no run has a value of, with near names."""
    runs = [run for group in groups.groups for run in group.runs]
    if any(len(run.series(metric)) for run in runs):
        return
    known = sorted({name for run in runs for name in run.metrics()})
    if metric == "episode/return":
        raise RunFolderError("No run has an episode/return yet: no episode has ended, or no return was finite.")
    if metric in known:
        raise RunFolderError(f"No run has a finite value of {metric!r} yet.")
    near = did_you_mean(metric, [name for name in known if len(name) <= LONGEST_NAME][:_MOST_COMPARED])
    more = f" and {len(known) - _MOST_TOLD:,} more" if len(known) > _MOST_TOLD else ""
    names = ", ".join(printable(name) for name in known[:_MOST_TOLD])
    raise RunFolderError(f"No run has a metric {quoted(metric)}.{near} There are: {names}{more}.")


def _lines(group: Group, metric: str, axis: Axis, notes: list[str]) -> list[_Line]:
    """The metric of each run that has it, on an axis that the run has."""
    found = []
    for run in group.runs:
        series = run.series(metric)
        if not len(series):
            notes.append(f"{run.path} is left out: it has no {metric} yet.")
        elif axis == "steps":
            found.append(_Line(run, series.steps, series.values))
        elif run.seconds > 0:
            found.append(_Line(run, run.seconds_at(series.steps), series.values))
        else:
            notes.append(f"{run.path} is left out over seconds: it has logged none ({SECONDS}) yet.")
    return found


def _gap(lines: Sequence[_Line], axis: Axis) -> str:
    """Which run begins only after another has ended; empty: there is a range that all runs have data in."""
    late, early = max(lines, key=lambda line: line.x[0]), min(lines, key=lambda line: line.x[-1])
    if late.x[0] <= early.x[-1]:
        return ""
    said = number if axis == "seconds" else count
    return f"{early.run.path} ends at {said(early.x[-1])}, {late.run.path} begins at {said(late.x[0])}"


def _brought_together(group: Group, lines: Sequence[_Line]) -> Curve:
    """One curve, only where all runs have data: nothing is made up before a run's first or after its last row."""
    if len(lines) == 1:
        x, y = lines[0].x, lines[0].y
        return Curve(group.label, group.env, x, y, y, y, 1)
    first, last = max(line.x[0] for line in lines), min(line.x[-1] for line in lines)
    grid = np.linspace(first, last, _POINTS) if first < last else np.array([first])
    values = np.stack([_interpolated(grid, line.x, line.y) for line in lines])
    low, high = interval(values)
    return Curve(group.label, group.env, grid, interquartile_mean(values), low, high, len(lines))


def _interpolated(grid: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """`y` between its points. Those near the largest float are scaled first, or their differences would overflow."""
    scale = _SMALLER if np.abs(y).max() > _LARGE else 1.0
    return np.clip(np.interp(grid, x, y * scale) / scale, y.min(), y.max())


def _note_short_runs(runs: Sequence[LoggedRun], notes: list[str]) -> None:
    longest = max(run.steps for run in runs)
    short = [run for run in runs if run.steps < _SHORTER * longest]
    notes += [f"{run.path} has {run.steps:,} of {longest:,} steps: the curve of its group ends there." for run in short]
