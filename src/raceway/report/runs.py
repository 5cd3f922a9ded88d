"""Runs that have been logged: where they are, what they measured, and which of them are seeds of the same thing."""

from __future__ import annotations

import glob
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from raceway.errors import RunFolderError
from raceway.files import opened_to_read, read_json
from raceway.messages import printable
from raceway.names import LONGEST_ENV
from raceway.report.metrics import read_rows
from raceway.training.folder import RunFolder

RunsLike: TypeAlias = "str | os.PathLike[str] | Any | Iterable[Any] | Mapping[str, Any]"
"""A run folder, a folder of runs, a pattern, what `raceway.train` returned, several of these, or these by label."""

SECONDS = "time/seconds"
_METRICS = "metrics.jsonl"
_CHAIN = "chain.jsonl"
_LAST_LINKS = 4096
"""Bytes at the end of a chain that are compared."""
_MOST_SEARCHED = 100_000
"""Folders that are searched for runs, so that naming / by mistake does not search the whole disk."""


@dataclass(frozen=True)
class Series:
    """One metric of one run: values [n] at rising environment steps [n]."""

    steps: np.ndarray
    values: np.ndarray

    def __len__(self) -> int:
        return len(self.steps)


class LoggedRun:
    """A run folder as far as plots and tables need it."""

    def __init__(self, path: Path, label: str | None = None) -> None:
        self.path = path
        self.label = None if label is None else printable(label)
        """What whoever asks calls it; None: its settings tell."""
        self.settings = _settings_of(path)
        """By path: `schedule`, `algorithm.gamma`, `network.hidden`, ..."""
        self.env = printable(self.settings["env"])
        self.algo = printable(str(self.settings["algo"]))
        seed = self.settings.get("seed")
        self.seed = seed if isinstance(seed, int) else None

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        return read_rows(self.path / _METRICS)

    def series(self, metric: str) -> Series:
        """A metric where it is known. Of two values at one step the later one counts."""
        known = {row["step"]: row[metric] for row in self.rows if row.get(metric) is not None}
        steps = sorted(known)
        return Series(np.array(steps, np.float64), np.array([known[step] for step in steps], np.float64))

    def metrics(self) -> list[str]:
        """The names of all metrics that it has."""
        return sorted({name for row in self.rows for name in row} - {"step", "time"})

    @cached_property
    def _clock(self) -> Series:
        return self.series(SECONDS)

    def seconds_at(self, steps: np.ndarray) -> np.ndarray:
        """Seconds of training until each step was reached."""
        clock = self._clock
        seconds = np.maximum.accumulate(np.append(0.0, clock.values))
        return np.interp(steps, np.append(0.0, clock.steps), seconds)

    @property
    def steps(self) -> int:
        """Environment steps so far."""
        return int(max((row["step"] for row in self.rows), default=0))

    @property
    def seconds(self) -> float:
        """Of training so far."""
        return float(self.seconds_at(np.array([math.inf]))[0])

    def began_like(self, other: LoggedRun) -> bool:
        """Whether two runs are the same to the bit as far as both came, by their hash chains."""
        chains = [run.path / _CHAIN for run in (self, other)]
        if not all(chain.is_file() for chain in chains):
            return True  # nobody can tell
        with opened_to_read(chains[0]) as ours, opened_to_read(chains[1]) as theirs:
            handles = ours.fileno(), theirs.fileno()
            common = min(os.fstat(handle).st_size for handle in handles)
            # Each link depends on all before it: where the last ones are equal, all are.
            last = [os.pread(handle, min(common, _LAST_LINKS), max(0, common - _LAST_LINKS)) for handle in handles]
        return last[0] == last[1]

    def __repr__(self) -> str:
        return f"LoggedRun({str(self.path)!r})"


def find_runs(runs: RunsLike) -> list[LoggedRun]:
    """All runs that are meant, each once, in the order given and by path."""
    found: dict[Path, LoggedRun] = {}
    for label, path in _paths(runs):
        for folder in _folders(path):
            found.setdefault(folder.resolve(), LoggedRun(folder, label))
    return list(found.values())


def _paths(runs: RunsLike, label: str | None = None) -> Iterator[tuple[str | None, str]]:
    if isinstance(runs, Mapping):
        for name, each in runs.items():
            yield from _paths(each, str(name))
    elif isinstance(runs, (str, os.PathLike)):
        path = os.fspath(runs)
        name, equals, rest = path.partition("=")
        if equals and label is None and not os.path.exists(path) and "/" not in name:
            yield name, rest
        else:
            yield label, path
    elif hasattr(runs, "directory"):  # what training returned
        yield label, os.fspath(runs.directory)
    elif isinstance(runs, Iterable):
        for each in runs:
            yield from _paths(each, label)
    else:
        raise RunFolderError(
            f"{runs!r} is no run. Give a run folder, a folder of runs, or what raceway.train returned."
        )


def _folders(path: str) -> list[Path]:
    """The run folders that a path means, by name."""
    if os.path.exists(path):
        places = [path]
    else:
        places = [each for each in sorted(glob.glob(path, recursive=True)) if os.path.isdir(each)]
    found = [folder for place in places for folder in _inside(place)]
    return found or [RunFolder.open(path).path]  # which says why there is none


def _inside(place: str) -> list[Path]:
    found = []
    for searched, (folder, below, files) in enumerate(os.walk(place)):
        if searched == _MOST_SEARCHED:
            raise RunFolderError(
                f"{place} has more than {_MOST_SEARCHED:,} folders in it. Name the one that the runs are in."
            )
        if "config.json" in files:
            found.append(Path(folder))
            below.clear()
        below.sort()
    return found


def _settings_of(path: Path) -> dict[str, Any]:
    """All settings by path. The algorithm's are under `algorithm.`, whichever it is, so that they can be compared."""
    file = path / "config.json"
    values = read_json(file)
    if not isinstance(values, Mapping) or not isinstance(values.get("env"), str):
        raise RunFolderError(f"{file} is damaged: it names no environment.")
    if len(values["env"]) > LONGEST_ENV:
        raise RunFolderError(f"{file} is damaged: its env is longer than any name, {LONGEST_ENV:,} characters at most.")
    algo = values.get("algo", "ppo")
    flat: dict[str, Any] = {"algo": algo}
    for name, value in values.items():
        if isinstance(value, Mapping):
            group = "algorithm" if name == algo else name
            flat |= {f"{group}.{each}": part for each, part in value.items()}
        else:
            flat[name] = value
    return flat


def describe(runs: Sequence[LoggedRun]) -> str:
    """Runs by their paths, for a sentence."""
    names = [str(run.path) for run in runs[:3]]
    more = f" and {len(runs) - 3} more" if len(runs) > 3 else ""
    return ", ".join(names) + more
