"""What the pages say of a study: its tables, how it was measured, and its picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.learning import records
from benchmarks.learning.study import Study
from benchmarks.learning.tables import NOTHING, final_table, over_run_table, seconds_table, seconds_to
from benchmarks.paired import short_number
from benchmarks.table import markdown_table
from raceway.report.statistics import centre_name, estimate, interval_name
from raceway.report.words import clock, number

IMAGES = Path("docs/images")
_TIMES = ["", "return that SB3 ends with", "SB3's time to it", "Raceway's", "times as fast"]


def picture_of(study: Study) -> Path:
    """Where the study's learning curves are drawn."""
    return IMAGES / f"learning-{study.name}.svg"


def compared(study: Study, folder: Path = records.FOLDER) -> str:
    """Returns at equal steps, with the ratio to the first setting; where speed was measured, at equal seconds too."""
    reference = study.settings[0].name
    steps, seconds = over_run_table(study, reference, folder), seconds_table(study, reference, folder)
    if steps == NOTHING:
        return NOTHING
    parts = [steps]
    if seconds != NOTHING:
        parts = ["At equal steps:", steps, "At equal seconds, those in which the fastest does all its steps:", seconds]
    return "\n\n".join([*parts, _explanation(study, folder), *_picture(study)])


def beside_sb3(study: Study, folder: Path = records.FOLDER) -> str:
    """Returns at equal steps, and the seconds to the return that SB3 ends with."""
    theirs, ours = (setting.name for setting in study.settings)
    over_run = over_run_table(study, theirs, folder)
    if over_run == NOTHING:
        return NOTHING
    parts = ["Return over the run, at equal steps:", over_run]
    final = final_table(study, theirs, folder)
    if final != NOTHING:
        parts += ["The final policy over 100 fresh greedy episodes:", final]
    if rows := _times(study, folder):
        header = [*_TIMES, *(f"{name}, steps/s" for name in (theirs, ours))]
        parts += ["Time to the return of the last 100 episodes that SB3 ends with:", markdown_table(header, rows)]
    return "\n\n".join([*parts, _explanation(study, folder), *_picture(study)])


def learning_in_brief(study: Study, folder: Path = records.FOLDER) -> str:
    """README's part of it: the seconds, and the picture."""
    rows = [row[: len(_TIMES)] for row in _times(study, folder)]
    if not rows:
        return NOTHING
    path = picture_of(study)
    return "\n\n".join([f"![Learning curves of Raceway's PPO and SB3's]({path})", markdown_table(_TIMES, rows)])


def _times(study: Study, folder: Path) -> list[list[str]]:
    """For each task the seconds of the median run of either until it first reaches what SB3 ends with."""
    names = [setting.name for setting in study.settings]
    rates = records.speeds(study, folder)
    rows = []
    for task, by_setting in records.of_study(study, folder).items():
        if not all(by_setting[name] and rates.get(task, {}).get(name) for name in names):
            continue
        goal = estimate([each.last for each in by_setting[names[0]]])
        assert goal is not None
        speed = {name: float(np.median(rates[task][name])) for name in names}
        times = [float(np.median(seconds_to(by_setting[name], goal.value, speed[name]))) for name in names]
        shown = [clock(seconds) if np.isfinite(seconds) else "not reached" for seconds in times]
        gain = f"{times[0] / times[1]:.1f}" if np.isfinite(times).all() else ""
        rows.append([task, number(goal.value), *shown, gain, *(short_number(speed[name]) for name in names)])
    return rows


def _explanation(study: Study, folder: Path) -> str:
    found = records.of_study(study, folder)
    every = [each for by_setting in found.values() for some in by_setting.values() for each in some]
    counts = sorted({len(some) for by_setting in found.values() for some in by_setting.values() if some})
    seeds = f"{counts[0]} seeds" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"
    interval = f" and {name}" if (name := interval_name(counts[-1])) else ""
    machines = sorted({each.machine for each in every if each.machine})
    return (
        f"The return of the last 100 episodes, averaged over the run: {centre_name(counts[-1])} of {seeds}{interval}; "
        f"after × the ratio to {study.settings[0].name} (of negative returns: 1 plus the difference as a share). The "
        "last row is the interquartile mean over all runs of such ratios. "
        f"Measured on {'; '.join(machines)}; [how to repeat it](measuring.md#learning)."
    )


def _picture(study: Study) -> list[str]:
    path = picture_of(study)
    return [f"![Learning curves: {study.question}](images/{path.name})"] if path.is_file() else []
