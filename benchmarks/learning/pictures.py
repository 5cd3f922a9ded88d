"""Pictures of a study: learning curves over steps and over seconds, drawn from its data files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.learning import records
from benchmarks.learning.records import Record
from benchmarks.learning.study import Study
from raceway.report.curves import Axis, Curve
from raceway.report.plots import draw_to_files
from raceway.report.statistics import interquartile_mean, interval


def draw_study(study: Study, path: Path, *, seconds: bool = False, folder: Path = records.FOLDER) -> None:
    """A panel for each task, a curve for each setting; `seconds`: another panel over the time it takes."""
    rates = records.speeds(study, folder) if seconds else {}
    by_axis: dict[Axis, list[Curve]] = {"steps": []}
    if rates:
        by_axis["seconds"] = []
    for task, by_setting in records.of_study(study, folder).items():
        for setting, found in by_setting.items():
            if not found:
                continue
            by_axis["steps"].append(_curve(task, setting, found, 1.0))
            if rates.get(task, {}).get(setting):
                by_axis["seconds"].append(_curve(task, setting, found, float(np.median(rates[task][setting]))))
    draw_to_files({axis: curves for axis, curves in by_axis.items() if curves}, files=[path])


def _curve(task: str, label: str, found: Sequence[Record], per_x: float) -> Curve:
    """Of several seeds, only where all have data."""
    curves = [np.array(each.curve, float).T for each in found]
    first, last = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
    grid = np.linspace(first, last, records.POINTS)
    values = np.stack([np.interp(grid, x, y) for x, y in curves])
    low, high = interval(values)
    return Curve(label, task, grid / per_x, interquartile_mean(values), low, high, len(found))
