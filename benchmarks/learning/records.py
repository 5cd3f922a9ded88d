"""The data files of a study: one per task, one line per run, at most a hundred numbers of its learning curve."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.learning.digest import digest_of
from benchmarks.learning.study import Job, Setting, Study, Task
from benchmarks.results import RESULTS, machine_facts

FOLDER = RESULTS / "learning"
POINTS = 50
_DIGITS = 4
_SPEED_FILE = "speed.json"


@dataclass(frozen=True)
class Record:
    """What one run gave."""

    setting: str
    seed: int
    digest: str
    """Of the resolved settings: a record made under others is out of date."""
    steps: int
    seconds: float
    """Training time. Only meaningful if no other run shared the machine."""
    curve: Sequence[Sequence[float]]
    """Steps and the mean return of the last 100 episodes by then, at POINTS moments."""
    final: float | None = None
    """The mean return of the final policy over fresh greedy episodes."""
    final_std: float | None = None
    machine: str = ""
    commit: str | None = None
    date: str = ""

    @property
    def last(self) -> float:
        """The mean return of the last 100 episodes of training."""
        return float(self.curve[-1][1])

    @property
    def first_steps(self) -> float:
        """When the first episode had ended."""
        return float(self.curve[0][0])

    def mean_over(self, first: float, last: float) -> float:
        """The mean of that return from one number of steps to another: how early it rises, whether it stays up."""
        x, y = np.array(self.curve, float).T
        return float(np.interp(np.linspace(first, max(first, last), 200), x, y).mean())


def thinned(steps: Sequence[float], returns: Sequence[float]) -> list[list[float]]:
    """At most POINTS points of a curve, its ends among them, numbers shortened."""
    if not len(steps):
        raise ValueError("no episode has ended: train for more steps")
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
    """Adds a record to its task's file in place of the one that it replaces. Several processes may do so at once."""
    path = path_of(job.study, job.task.name, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.parent):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.is_file() else []
        others = [line for line in lines if _key(json.loads(line)) != (record.setting, record.seed)]
        lines = sorted([*others, json.dumps(asdict(record)) + "\n"], key=lambda line: _key(json.loads(line)))
        _replace(path, "".join(lines))


def _replace(path: Path, text: str) -> None:
    aside = path.with_suffix(".new")
    aside.write_text(text, encoding="utf-8")
    os.replace(aside, path)  # atomic: readers never see a partial file


@contextmanager
def locked(folder: Path, *, shared: bool = False) -> Iterator[None]:
    """Holds a lock that belongs to a folder, alone or with others."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _key(line: Mapping[str, Any]) -> tuple[str, int]:
    return line["setting"], line["seed"]


def speeds(study: Study, folder: Path = FOLDER) -> dict[str, dict[str, list[float]]]:
    """Steps per second by task and setting, one number for each turn. Those of other settings are left out."""
    there = _speed_entries(study.name, folder)
    found: dict[str, dict[str, list[float]]] = {}
    for task in study.tasks:
        for setting in study.settings:
            entry = there.get(task.name, {}).get(setting.name)
            if entry is not None and entry["digest"] == _digest_of_speed(study, task, setting):
                found.setdefault(task.name, {})[setting.name] = entry["rates"]
    return found


def keep_speeds(study: Study, task: Task, rates: Mapping[str, Sequence[float]], folder: Path = FOLDER) -> None:
    """Keeps how fast a task was under each setting in place of what was measured before."""
    entries = {
        setting.name: {
            "digest": _digest_of_speed(study, task, setting),
            "rates": list(rates[setting.name]),
            "machine": machine_facts(),
        }
        for setting in study.settings
        if setting.name in rates
    }
    path = folder / study.name / _SPEED_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.parent):
        there = _speed_entries(study.name, folder)
        there[task.name] = {**there.get(task.name, {}), **entries}
        _replace(path, json.dumps(there, indent=1) + "\n")


def _speed_entries(study: str, folder: Path) -> dict[str, dict[str, Any]]:
    path = folder / study / _SPEED_FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _digest_of_speed(study: Study, task: Task, setting: Setting) -> str:
    return digest_of(Job(study.name, task, setting, study.seeds_of(task)[0]), study.episodes)


def of_study(study: Study, folder: Path = FOLDER) -> dict[str, dict[str, list[Record]]]:
    """Records by task and setting, in the study's order; those made under other settings than the study's left out."""
    found: dict[str, dict[str, list[Record]]] = {task.name: {} for task in study.tasks}
    for task in study.tasks:
        wanted = {
            (job.setting.name, job.seed): digest_of(job, study.episodes) for job in study.jobs() if job.task == task
        }
        there = [
            each for each in read(study.name, task.name, folder) if wanted.get((each.setting, each.seed)) == each.digest
        ]
        for setting in study.settings:
            found[task.name][setting.name] = [each for each in there if each.setting == setting.name]
    return found
