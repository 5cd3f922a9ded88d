"""Tables of a study: interquartile means over seeds with bootstrap intervals, and ratios to a reference setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.learning import records
from benchmarks.learning.records import Record
from benchmarks.learning.study import Study
from benchmarks.paired import short_number
from benchmarks.table import markdown_table
from raceway.report.statistics import estimate, interquartile_mean
from raceway.report.words import count, number

_DRAWS = 10_000
NOTHING = "Nothing is measured yet."


@dataclass(frozen=True)
class Ratio:
    """How a setting's interquartile mean compares with the reference's: their quotient, or where returns are not all
    positive 1 plus their difference as a share of the reference's size."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def ratio(values: Sequence[float], reference: Sequence[float]) -> Ratio:
    """With a bootstrap interval over the seeds of both."""
    ours, theirs = np.asarray(values, float), np.asarray(reference, float)
    rng = np.random.default_rng(0)

    def compared(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        a, b = interquartile_mean(one), interquartile_mean(other)
        return 1 + (a - b) / np.maximum(np.abs(b), 1e-9)

    value = float(compared(ours, theirs))
    drawn = [each[rng.integers(len(each), size=(_DRAWS, len(each)))].T for each in (ours, theirs)]
    low, high = np.quantile(compared(*drawn), [0.025, 0.975])
    return Ratio(value, float(low), float(high))


def returns_table(
    study: Study, measure: str = "over_run", reference: str | None = None, folder: Path = records.FOLDER
) -> str:
    """A row per task: over_run, last or final of each setting, and beside it the ratio to the reference."""
    names = [setting.name for setting in study.settings]
    rows = []
    for task, by_setting in records.of_study(study, folder).items():
        values = {name: _values(by_setting[name], measure) for name in names}
        if not any(values.values()):
            continue
        cells = [_cell(values[name], None if name == reference else values.get(reference or "")) for name in names]
        rows.append([f"{task}, {count(_steps(by_setting))} steps", *cells])
    return markdown_table(["", *names], rows) if rows else NOTHING


def seconds_table(study: Study, reference: str, folder: Path = records.FOLDER) -> str:
    """Speeds, and the return over the run at equal seconds: those in which the fastest setting does all its steps."""
    names = [setting.name for setting in study.settings]
    rates = records.speeds(study.name, folder)
    rows = []
    for task, by_setting in records.of_study(study, folder).items():
        if task not in rates or not all(by_setting[name] and rates[task].get(name) for name in names):
            continue
        speed = {name: float(np.median(rates[task][name])) for name in names}
        budget = _steps(by_setting) / max(speed.values())
        values = {name: [each.by(budget * speed[name]) for each in by_setting[name]] for name in names}
        cells = [
            _cell(values[name], None if name == reference else values[reference])
            + f", {short_number(speed[name])} steps/s"
            for name in names
        ]
        rows.append([f"{task}, {budget:.0f} s", *cells])
    return markdown_table(["", *names], rows) if rows else NOTHING


def verdicts(study: Study, setting: str, reference: str, folder: Path = records.FOLDER) -> dict[str, Ratio]:
    """The ratio of the return over the run, task by task, where both are measured."""
    found = records.of_study(study, folder)
    pairs = {
        task: tuple(_values(by_setting[name], "over_run") for name in (setting, reference))
        for task, by_setting in found.items()
    }
    return {task: ratio(*pair) for task, pair in pairs.items() if all(pair)}


def seconds_to(found: Sequence[Record], goal: float, speed: float) -> list[float]:
    """Seconds until the mean return of the last 100 episodes reaches `goal`; infinite if it never does."""
    reached = [next((steps for steps, value in each.curve if value >= goal), np.inf) for each in found]
    return [float(steps / speed) for steps in reached]


def _values(found: Sequence[Record], measure: str) -> list[float]:
    values = [getattr(each, measure) for each in found]
    return [float(value) for value in values if value is not None]


def _cell(values: Sequence[float], reference: Sequence[float] | None) -> str:
    found = estimate(values)
    if found is None:
        return ""
    text = f"**{number(found.value)}** ({number(found.low)} to {number(found.high)})"
    return f"{text}, {ratio(values, reference)}" if reference else text


def _steps(by_setting: Mapping[str, Sequence[Record]]) -> int:
    return max(each.steps for found in by_setting.values() for each in found)
