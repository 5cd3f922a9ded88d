"""`raceway.compare`: what groups of runs reached, how fast, and how sure that is, as a table."""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raceway.errors import SettingError
from raceway.names import did_you_mean
from raceway.report.groups import Group, group_runs
from raceway.report.metrics import EVALUATION, RETURN
from raceway.report.runs import LoggedRun, RunsLike
from raceway.report.statistics import Estimate, centre_name, estimate, interval_name
from raceway.report.words import count, number

_WIDTH = 100
_LEAST_LABEL = 12


@dataclass(frozen=True)
class Row:
    """A group of runs. Estimates are over its seeds; None: no run has measured it."""

    env: str
    label: str
    seeds: int
    steps: tuple[int, int]
    """Environment steps of the shortest and the longest run."""
    final_return: Estimate | None
    """Mean return of the last 100 training episodes."""
    best_evaluation: Estimate | None
    """The best that each run's evaluations found."""
    steps_per_second: Estimate | None
    seconds: Estimate | None
    """Of training."""
    reached: int | None = None
    """Runs whose training return came to the wanted one; None: none was asked for."""
    steps_to: Estimate | None = None
    """Until it did, infinite for those that never did."""
    seconds_to: Estimate | None = None


@dataclass(frozen=True)
class Comparison:
    """Groups of runs side by side. Printed it is a table."""

    rows: tuple[Row, ...]
    at: float | None
    """The return that was asked for."""
    notes: tuple[str, ...]
    """What was left out, and why."""

    def __str__(self) -> str:
        tables = [_table(self, env, columns) for env in self.envs for columns in self._columns()]
        return "\n\n".join([*tables, _legend(self)])

    def markdown(self) -> str:
        """The tables for a page."""
        tables = [_markdown_table(self, columns) for columns in self._columns()]
        return "\n\n".join([*tables, _legend(self)])

    @property
    def envs(self) -> list[str]:
        return list(dict.fromkeys(row.env for row in self.rows))

    def _columns(self) -> list[Mapping[str, Callable[[Row], str]]]:
        return [_REACHED] if self.at is None else [_REACHED, _goal_columns(self.at)]

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON: what is infinite is None there."""
        return {"at": self.at, "rows": [_plain(dataclasses.asdict(row)) for row in self.rows], "notes": [*self.notes]}


def compare(runs: RunsLike, *, at: float | None = None, sort: str = "return") -> Comparison:
    """Groups runs that differ by seed only and compares the groups.

    runs: a run folder, a folder of runs, a pattern, what `raceway.train` returned, or several of these; a dict gives
        them labels.
    at: a return; then the comparison also has the steps and seconds until training first reached it.
    sort: a column, or a field of a row, to sort the rows of each environment by, the best first; or "given": the order
        of `runs`. Environments are in alphabetical order.
    """
    order = _order(sort, at)
    groups = group_runs(runs)
    rows = [_row(group, at) for group in groups.groups]
    if order is not None:
        rows.sort(key=lambda row: (row.env, *order(row), row.label))
    return Comparison(tuple(rows), at, groups.notes)


def _order(sort: str, at: float | None) -> Callable[[Row], tuple[Any, ...]] | None:
    """What to sort the rows of an environment by; None: not at all."""
    if sort == "given":
        return None
    column, known = _FIELDS.get(sort, sort), [*_SORTS, "given"]
    if column not in _SORTS:
        raise SettingError(
            f"sort={sort!r}: there is no such column.{did_you_mean(sort, known)} There are: {', '.join(known)}."
        )
    if at is None and column in _GOAL_SORTS:
        raise SettingError(f"sort={sort!r} needs a return to reach: at=RETURN (--at RETURN).")
    return _SORTS[column]


def _highest(value: Callable[[Row], Estimate | None]) -> Callable[[Row], tuple[Any, ...]]:
    """The highest first, rows that have not measured it last."""
    return lambda row: (1, 0.0) if (found := value(row)) is None else (0, -found.value)


def _lowest(value: Callable[[Row], Estimate | None]) -> Callable[[Row], tuple[Any, ...]]:
    """The lowest first, rows that have not measured it last."""
    return lambda row: (1, 0.0) if (found := value(row)) is None else (0, found.value)


_FIELDS = {
    "final_return": "return",
    "best_evaluation": "evaluation",
    "steps_per_second": "steps/s",
    "steps_to": "after-steps",
    "seconds_to": "after-seconds",
}
"""Fields of a row whose column has another name."""
_GOAL_SORTS = ("reached", "after-steps", "after-seconds")
_SORTS: Mapping[str, Callable[[Row], tuple[Any, ...]]] = {
    "return": _highest(lambda row: row.final_return),
    "evaluation": _highest(lambda row: row.best_evaluation),
    "steps/s": _highest(lambda row: row.steps_per_second),
    "seconds": _lowest(lambda row: row.seconds),
    "steps": lambda row: (-row.steps[1], -row.steps[0]),
    "seeds": lambda row: (-row.seeds,),
    "label": lambda row: (),
    "reached": lambda row: (-(row.reached or 0) / row.seeds,),
    "after-steps": _lowest(lambda row: row.steps_to),
    "after-seconds": _lowest(lambda row: row.seconds_to),
}
"""Columns that rows can be sorted by."""


def _row(group: Group, at: float | None) -> Row:
    runs = group.runs
    returns = [run.series(RETURN).values for run in runs]
    evaluations = [run.series(EVALUATION).values for run in runs]
    lengths = [run.steps for run in runs]
    timed = [run for run in runs if run.seconds > 0]
    row = Row(
        env=group.env,
        label=group.label,
        seeds=len(runs),
        steps=(min(lengths), max(lengths)),
        final_return=estimate([values[-1] for values in returns if len(values)]),
        best_evaluation=estimate([values.max() for values in evaluations if len(values)]),
        steps_per_second=estimate([run.steps / run.seconds for run in timed]),
        seconds=estimate([run.seconds for run in timed]),
    )
    if at is None:
        return row
    steps, seconds = zip(*(first_reached(run, at) for run in runs), strict=True)
    return dataclasses.replace(
        row, reached=sum(map(math.isfinite, steps)), steps_to=estimate(steps), seconds_to=estimate(seconds)
    )


def first_reached(run: LoggedRun, at: float) -> tuple[float, float]:
    """Steps and seconds until the training return first came to `at`; infinite if it never did."""
    series = run.series(RETURN)
    there = np.flatnonzero(series.values >= at)
    if not len(there):
        return math.inf, math.inf
    steps = series.steps[there[:1]]
    return float(steps[0]), float(run.seconds_at(steps)[0])


def _table(comparison: Comparison, env: str, columns: Mapping[str, Callable[[Row], str]]) -> str:
    """One environment's rows in at most 100 columns. All environments' tables have the same widths."""
    cells = {row: [row.label, *(cell(row) for cell in columns.values())] for row in comparison.rows}
    header = [env, *columns]
    widths = [max(map(len, column)) for column in zip(["", *columns], *cells.values(), strict=True)]
    widths[0] = max(widths[0], *map(len, comparison.envs))
    widths[0] = min(widths[0], max(_WIDTH - sum(widths[1:]) - 2 * len(columns), _LEAST_LABEL))
    shown = [header, *(line for row, line in cells.items() if row.env == env)]
    return "\n".join(text for line in shown for text in _lines(line, widths))


def _lines(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Text to the left, numbers to the right. A label that is too long goes on below."""
    label, *below = textwrap.wrap(cells[0], widths[0], subsequent_indent="  ") or [""]
    first = [label.ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
    return ["  ".join(first).rstrip(), *below]


def _markdown_table(comparison: Comparison, columns: Mapping[str, Callable[[Row], str]]) -> str:
    lines = [["environment", "group", *columns], ["---", "---", *["---:"] * len(columns)]]
    lines += [[row.env, row.label, *(cell(row) for cell in columns.values())] for row in comparison.rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _legend(comparison: Comparison) -> str:
    """What the numbers are."""
    counts = {row.seeds for row in comparison.rows}
    most = max(counts)
    said = "return: mean of the last 100 training episodes; evaluation: the best of each run"
    if most > 1:
        said += f". Over seeds: {centre_name(most)} ({interval_name(most)})"
        fewer = [seeds for seeds in sorted(counts) if seeds > 1 and centre_name(seeds) != centre_name(most)]
        if fewer:
            said += f", of {' and '.join(map(str, fewer))} the mean"
    return "\n".join(textwrap.wrap(said + ".", _WIDTH))


def _span(steps: tuple[int, int]) -> str:
    low, high = steps
    return count(low) if low == high else f"{_thousands(low)} to {_thousands(high)}"


def _centre(found: Estimate | None, words: Callable[[float], str] = number) -> str:
    return "-" if found is None or math.isinf(found.value) else words(found.value)


def _with_interval(found: Estimate | None, words: Callable[[float], str] = number) -> str:
    centre = _centre(found, words)
    if found is None or found.count < 2 or math.isinf(found.low):
        return centre
    high = "∞" if math.isinf(found.high) else words(found.high)
    return f"{centre} ({words(found.low)} to {high})"


def _thousands(value: float) -> str:
    """`812`, `12.3k`, `1.25M`: short enough for a column with an interval."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if size <= abs(value) < 1e15:
            return f"{value / size:.3g}{letter}"
    return number(value) if abs(value) >= 1e15 else f"{value:.0f}"


_REACHED: Mapping[str, Callable[[Row], str]] = {
    "seeds": lambda row: str(row.seeds),
    "steps": lambda row: _span(row.steps),
    "return": lambda row: _with_interval(row.final_return),
    "evaluation": lambda row: _centre(row.best_evaluation),
    "steps/s": lambda row: _centre(row.steps_per_second, count),
    "seconds": lambda row: _centre(row.seconds),
}


def _goal_columns(at: float) -> Mapping[str, Callable[[Row], str]]:
    return {
        f"reached {number(at)}": lambda row: f"{row.reached} of {row.seeds}",
        "after steps": lambda row: _with_interval(row.steps_to, _thousands),
        "after seconds": lambda row: _with_interval(row.seconds_to),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
