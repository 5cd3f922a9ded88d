"""Tables of a study: interquartile means over seeds with bootstrap intervals, and ratios to a reference setting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
_LEAST_FOR_INTERVAL = 3
NOTHING = "Nothing is measured yet."


@dataclass(frozen=True)
class Ratio:
    """How a setting's interquartile mean compares with the reference's.

    Where returns are negative it is 1 plus the difference as a share of the reference's size, so that more is better.
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def ratio(values: Sequence[float], reference: Sequence[float]) -> Ratio | None:
    """With a bootstrap interval over the seeds of both. None for too few seeds, and for returns on both sides of 0."""
    ours, theirs = np.asarray(values, float), np.asarray(reference, float)
    if min(len(ours), len(theirs)) < _LEAST_FOR_INTERVAL or theirs.min() <= 0 <= theirs.max():
        return None
    rng = np.random.default_rng(0)

    def compared(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        a, b = interquartile_mean(one), interquartile_mean(other)
        return 1 + (a - b) / np.abs(b)

    drawn = [each[rng.integers(len(each), size=(_DRAWS, len(each)))].T for each in (ours, theirs)]
    low, high = np.quantile(compared(*drawn), [0.025, 0.975])
    return Ratio(float(compared(ours, theirs)), float(low), float(high))


def overall(pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> Ratio | None:
    """The interquartile mean over all tasks and seeds of returns as shares of the reference's, (ours, theirs) by task.

    A share is the return over the interquartile mean of the reference's seeds. The bootstrap draws seeds within tasks.
    """
    usable = [(np.asarray(a, float), np.asarray(b, float)) for a, b in pairs if ratio(a, b) is not None]
    if not usable:
        return None
    rng = np.random.default_rng(0)

    def shares(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        centre = interquartile_mean(other)
        return 1 + (one - centre) / np.abs(centre)

    drawn = []
    for ours, theirs in usable:
        one, other = (each[rng.integers(len(each), size=(_DRAWS, len(each)))].T for each in (ours, theirs))
        drawn.append(shares(one, other))
    low, high = np.quantile(interquartile_mean(np.concatenate(drawn)), [0.025, 0.975])
    value = interquartile_mean(np.concatenate([shares(*pair) for pair in usable]))
    return Ratio(float(value), float(low), float(high))


def over_run_table(study: Study, reference: str, folder: Path = records.FOLDER) -> str:
    """A row per task: the mean return over the run, from when all have one, with the ratio to the reference."""

    def values(by_setting: Mapping[str, Sequence[Record]]) -> dict[str, list[float]]:
        every = [each for found in by_setting.values() for each in found]
        first = max(each.first_steps for each in every)
        return {name: [each.mean_over(first, each.steps) for each in found] for name, found in by_setting.items()}

    return _table(study, values, reference, folder)


def final_table(study: Study, reference: str, folder: Path = records.FOLDER) -> str:
    """A row per task: the final policy's return over fresh greedy episodes."""

    def values(by_setting: Mapping[str, Sequence[Record]]) -> dict[str, list[float]]:
        return {name: [each.final for each in found if each.final is not None] for name, found in by_setting.items()}

    return _table(study, values, reference, folder)


def _table(
    study: Study,
    values: Callable[[Mapping[str, Sequence[Record]]], Mapping[str, list[float]]],
    reference: str,
    folder: Path,
) -> str:
    names = [setting.name for setting in study.settings]
    rows, pairs = [], []
    for task, by_setting in records.of_study(study, folder).items():
        if not any(by_setting.values()):
            continue
        found = values(by_setting)
        pairs.append(found)
        if not any(found.values()):
            continue
        cells = [_cell(found[name], None if name == reference else found[reference]) for name in names]
        rows.append([f"{task}, {count(_steps(by_setting))} steps", *cells])
    whole = [
        None if name == reference else overall([(each[name], each[reference]) for each in pairs]) for name in names
    ]
    if len(rows) > 1 and any(whole):
        counted = sum(any(ratio(each[name], each[reference]) for name in names if name != reference) for each in pairs)
        label = "all tasks" if counted == len(pairs) else f"{counted} of {len(pairs)} tasks"
        rows.append([label, *("" if each is None else f"×{each}" for each in whole)])
    return markdown_table(["", *names], rows) if rows else NOTHING


def seconds_table(study: Study, reference: str, folder: Path = records.FOLDER) -> str:
    """Speeds, and the return over the run at equal seconds: those in which the fastest setting does all its steps."""
    names = [setting.name for setting in study.settings]
    rates = records.speeds(study, folder)
    rows = []
    for task, by_setting in records.of_study(study, folder).items():
        if task not in rates or not all(by_setting[name] and rates[task].get(name) for name in names):
            continue
        speed = {name: float(np.median(rates[task][name])) for name in names}
        budget = _steps(by_setting) / max(speed.values())
        # Seconds after which all have a return.
        first = max(each.first_steps / speed[name] for name in names for each in by_setting[name])
        values = {
            name: [each.mean_over(first * speed[name], budget * speed[name]) for each in by_setting[name]]
            for name in names
        }
        cells = [
            _cell(values[name], None if name == reference else values[reference])
            + f", {short_number(speed[name])} steps/s"
            for name in names
        ]
        rows.append([f"{task}, {budget:.0f} s", *cells])
    return markdown_table(["", *names], rows) if rows else NOTHING


def seconds_to(found: Sequence[Record], goal: float, speed: float) -> list[float]:
    """Seconds until the mean return of the last 100 episodes reaches `goal`; infinite if it never does."""
    reached = [next((steps for steps, value in each.curve if value >= goal), np.inf) for each in found]
    return [float(steps / speed) for steps in reached]


def _cell(values: Sequence[float], reference: Sequence[float] | None) -> str:
    found = estimate(values)
    if found is None:
        return ""
    text = f"**{number(found.value)}**"
    if found.count > 1:
        text += f" ({number(found.low)} to {number(found.high)})"
    compared = ratio(values, reference) if reference else None
    return text if compared is None else f"{text}, ×{compared}"


def _steps(by_setting: Mapping[str, Sequence[Record]]) -> int:
    return max(each.steps for found in by_setting.values() for each in found)
