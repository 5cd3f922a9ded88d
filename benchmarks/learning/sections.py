"""What the pages say of a study: its tables, how it was measured, and its picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.learning import records
from benchmarks.learning.study import Study
from benchmarks.learning.tables import NOTHING, returns_table, seconds_table, seconds_to
from benchmarks.paired import short_number
from benchmarks.table import markdown_table
from raceway.report.statistics import estimate
from raceway.report.words import clock, number

IMAGES = Path("docs/images")


def picture_of(study: Study) -> Path:
    """Where the study's learning curves are drawn."""
    return IMAGES / f"learning-{study.name}.svg"


def compared(study: Study, folder: Path = records.FOLDER) -> str:
    """Returns at equal steps, with the ratio to the first setting."""
    reference = study.settings[0].name
    table = returns_table(study, "over_run", reference, folder)
    if table == NOTHING:
        return NOTHING
    return "\n\n".join([table, _explanation(study, reference), *_picture(study)])


def over_seconds(study: Study, folder: Path = records.FOLDER) -> str:
    """The same, and returns at equal seconds."""
    reference = study.settings[0].name
    steps, seconds = returns_table(study, "over_run", reference, folder), seconds_table(study, reference, folder)
    if steps == NOTHING:
        return NOTHING
    parts = ["At equal steps:", steps]
    if seconds != NOTHING:
        parts += ["At equal seconds (those in which the fastest does all its steps):", seconds]
    return "\n\n".join([*parts, _explanation(study, reference), *_picture(study)])


def beside_sb3(study: Study, folder: Path = records.FOLDER) -> str:
    """Returns at equal steps, and the seconds to the return that SB3 ends with."""
    theirs, ours = (setting.name for setting in study.settings)
    rates = records.speeds(study.name, folder)
    rows = []
    for task, by_setting in records.of_study(study, folder).items():
        peers, own = by_setting[theirs], by_setting[ours]
        if not peers or not own or task not in rates:
            continue
        goal = estimate([each.last for each in peers])
        assert goal is not None
        speed = {name: float(np.median(rates[task][name])) for name in (theirs, ours)}
        needed = sorted(seconds_to(own, goal.value, speed[ours]))[len(own) // 2]
        whole = peers[0].steps / speed[theirs]
        reached = clock(needed) if np.isfinite(needed) else "not reached"
        rows.append(
            [
                task,
                number(goal.value),
                clock(whole),
                reached,
                f"{whole / needed:.0f}" if np.isfinite(needed) else "",
                *(f"{short_number(speed[name])}" for name in (theirs, ours)),
            ]
        )
    header = ["", f"return that {theirs} ends with", f"{theirs}'s time", f"{ours}'s time to it", "times as fast"]
    header += [f"{name}, steps/s" for name in (theirs, ours)]
    table = returns_table(study, "over_run", theirs, folder)
    if table == NOTHING:
        return NOTHING
    parts = ["Return over the run, at equal steps:", table]
    final = returns_table(study, "final", theirs, folder)
    parts += ["The final policy over 100 fresh greedy episodes:", final]
    if rows:
        parts += ["Time to the return of the last 100 episodes that SB3 ends with:", markdown_table(header, rows)]
    return "\n\n".join([*parts, *_picture(study)])


def _explanation(study: Study, reference: str) -> str:
    seeds = len(study.seeds)
    return (
        f"The mean over the run of the return of the last 100 episodes; interquartile mean of {seeds} seeds with its "
        f"95% bootstrap interval, and its ratio to {reference} (where returns are negative, 1 plus the difference as a "
        f"share of that). `python -m benchmarks.learning run {study.name}` measures it."
    )


def _picture(study: Study) -> list[str]:
    path = picture_of(study)
    return [f"![Learning curves: {study.question}](images/{path.name})"] if path.is_file() else []
