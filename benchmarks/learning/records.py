"""The data files of a study: one per task, one line per run, at most a hundred numbers of its learning curve."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.learning.study import Job, Study
from benchmarks.results import RESULTS

FOLDER = RESULTS / "learning"
POINTS = 50
_DIGITS = 4


@dataclass(frozen=True)
class Record:
    """What one run gave."""

    setting: str
    seed: int
    digest: str
    """Of the resolved settings: a record made under others is out of date."""
    steps: int
    seconds: float
    """Of training. They say little if other runs shared the machine."""
    curve: Sequence[Sequence[float]]
    """Steps and the mean return of the last 100 episodes by then, at POINTS moments."""
    over_run: float
    """The mean of that return over all rounds: how early it rises, and whether it stays up."""
    final: float | None = None
    """The mean return of the final policy over fresh greedy episodes."""
    final_std: float | None = None
    commit: str | None = None
    date: str = ""

    @property
    def last(self) -> float:
        """The mean return of the last 100 episodes of training."""
        return float(self.curve[-1][1])

    def by(self, steps: float) -> float:
        """The mean return over the run up to so many steps."""
        grid = np.linspace(self.curve[0][0], max(self.curve[0][0], min(steps, self.curve[-1][0])), 200)
        x, y = np.array(self.curve).T
        return float(np.interp(grid, x, y).mean())


def thinned(steps: Sequence[float], returns: Sequence[float]) -> list[list[float]]:
    """At most POINTS points of a curve, its ends among them, numbers shortened."""
    x, y = np.asarray(steps, float), np.asarray(returns, float)
    grid = x if len(x) <= POINTS else np.linspace(x[0], x[-1], POINTS)
    return [[round(float(a)), shortened(b)] for a, b in zip(grid, np.interp(grid, x, y), strict=True)]


def shortened(value: float) -> float:
    """Rounded to as many digits as a study can tell apart."""
    return float(f"{value:.{_DIGITS}g}")


def path_of(study: str, task: str, folder: Path = FOLDER) -> Path:
    return folder / study / f"{task}.jsonl"


def read(study: str, task: str, folder: Path = FOLDER) -> list[Record]:
    """The records of one task, the newest of each setting and seed, in order."""
    path = path_of(study, task, folder)
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    found = {(each.setting, each.seed): each for each in (Record(**json.loads(line)) for line in lines)}
    return [found[key] for key in sorted(found)]


def append(job: Job, record: Record, folder: Path = FOLDER) -> None:
    """Adds a record to its task's file, and drops the one that it replaces. Several processes may do so at once."""
    path = path_of(job.study, job.task.name, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        others = [line for line in file if _key(json.loads(line)) != (record.setting, record.seed)]
        lines = sorted([*others, json.dumps(asdict(record)) + "\n"], key=lambda line: _key(json.loads(line)))
        file.truncate(0)
        file.writelines(lines)


def _key(line: Mapping[str, Any]) -> tuple[str, int]:
    return line["setting"], line["seed"]


def speeds(study: str, folder: Path = FOLDER) -> dict[str, dict[str, list[float]]]:
    """Steps per second by task and setting, one number for each turn; empty if not measured."""
    path = folder / study / "speed.json"
    return json.loads(path.read_text(encoding="utf-8"))["rates"] if path.is_file() else {}


def is_done(job: Job, digest: str, folder: Path = FOLDER) -> bool:
    """Whether there is a record of this run under these settings."""
    records = read(job.study, job.task.name, folder)
    return any((each.setting, each.seed, each.digest) == (job.setting.name, job.seed, digest) for each in records)


def of_study(study: Study, folder: Path = FOLDER) -> dict[str, dict[str, list[Record]]]:
    """All records by task and setting, in the study's order; those of settings that it no longer has are left out."""
    found: dict[str, dict[str, list[Record]]] = {}
    for task in study.tasks:
        records = read(study.name, task.name, folder)
        found[task.name] = {
            setting.name: [each for each in records if each.setting == setting.name] for setting in study.settings
        }
    return found
