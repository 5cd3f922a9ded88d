"""The reporter: turns what the others tell into metrics on disk, the hash chain's file, and the console."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import IO, Any

import numpy as np
from gymnasium.utils.env_checker import data_equivalence

from raceway.algos.rollout import Faults
from raceway.errors import RunFolderError
from raceway.files import open_to_append
from raceway.graph import Input, Reactor, reaction, shutdown, startup
from raceway.report.console import Console, Status
from raceway.report.metrics import MetricsLog
from raceway.report.verdict import verdict, wait_share
from raceway.training.callbacks import Director
from raceway.training.checkpoints import fitting
from raceway.training.evaluation import Evaluation, evaluation_row
from raceway.training.learner import Progress
from raceway.training.recent import RecentEpisodes

_ROWS = 1000
"""Rows that a run's metrics have, at most about: so many fit on a plot."""
_SMOOTHING_S = 5.0
_TOLD_FAULTS = 3


@dataclass(frozen=True)
class Reporting:
    """What the reporter needs to know of a run."""

    chain: Path
    """Where the hash chain is written."""
    schedule: str
    rounds: int
    steps_per_round: int
    num_workers: int | None
    """Threads or processes that step environments. None: they are stepped one after the other."""
    num_envs: int
    epochs: bool
    """Whether the algorithm goes through a round in epochs, or takes one gradient of it."""
    central: bool = False
    """Whether the policy is computed by batched inference, and not by the workers."""
    counts_faults: bool = False
    """Whether environments may be made anew after errors."""
    has_to_stop: Callable[[], bool] = lambda: False
    """Whether the run's folder is gone, so that it is no use to go on."""
    again: str = "raceway resume RUN"
    """What to call to go on with the run."""


class Pace:
    """How fast it goes and what the time is spent on, over the last seconds."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int, float, float]] = deque()
        self._steps = 0
        self._collect_s = self._learn_s = 0.0

    def add(self, now: float, steps: int, collect_s: float, learn_s: float) -> None:
        self._steps += steps
        self._collect_s += collect_s
        self._learn_s += learn_s
        self._marks.append((now, self._steps, self._collect_s, self._learn_s))
        while len(self._marks) > 2 and now - self._marks[1][0] > _SMOOTHING_S:
            self._marks.popleft()

    @property
    def steps_per_second(self) -> float:
        return self._per_second(1)

    @property
    def collect(self) -> float:
        """The share of the time in which environments were stepped."""
        return min(self._per_second(2), 1.0)

    @property
    def learn(self) -> float:
        """The share in which the learner was at work."""
        return min(self._per_second(3), 1.0)

    def _per_second(self, column: int) -> float:
        first, last = self._marks[0], self._marks[-1]
        return (last[column] - first[column]) / max(last[0] - first[0], 1e-9)


class Reporter(Reactor):
    """Writes a row of metrics every so many rounds and keeps the console up to date."""

    progress = Input[Progress]()
    evaluations = Input[list[Evaluation]]()

    def __init__(self, reporting: Reporting, log: MetricsLog, console: Console, director: Director) -> None:
        self._reporting = reporting
        self._log = log
        self._console = console
        self._director = director
        # By rounds and not by the clock, so that two runs have the same rows.
        self._rounds_per_row = max(1, reporting.rounds // _ROWS)
        self.earlier_s = 0.0
        """Seconds of training before it was resumed."""
        self.env_faults = self.worker_faults = 0
        """Environments made anew and workers started again, those before it was resumed included."""
        self._recent = RecentEpisodes()
        self._rows: list[dict[str, float]] = []
        self._evaluated = 0
        """The version of the last policy whose evaluation was told."""
        self._best: float | None = None
        self._last: float | None = None
        self._evaluated_in: dict[str, Any] = {}
        """The `env_args` of the last evaluation: returns of other environments are no measure of the best."""

    @reaction(startup)
    def open(self) -> None:
        self._chain: IO[bytes] = open_to_append(self._reporting.chain)
        self._pace = Pace()
        self._begin: float | None = None

    @reaction(progress, uses=evaluations)
    def report(self, progress: Progress, evaluations: list[Evaluation] | None) -> None:
        found = [each for each in evaluations or [] if each.version > self._evaluated]
        with self._writing():
            self._report(progress, found)
        if evaluations:
            self._director.on_evaluations(evaluations)
        if self._reporting.has_to_stop():
            self.stop()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RunFolderError(
                f"{error.filename or self._reporting.chain.parent} cannot be written: {error.strerror}. Once it can, "
                f"the run goes on from its last checkpoint: {self._reporting.again}."
            ) from error

    def _report(self, progress: Progress, evaluations: list[Evaluation]) -> None:
        told, episodes = self._reporting, progress.episodes
        if self._begin is None:  # other parts may take longer to start than this one
            self._begin = perf_counter() - episodes.seconds - progress.seconds
            self._pace.add(self._begin, 0, 0.0, 0.0)
        self._recent.add(episodes, progress.env_args)
        self._count_faults(episodes.faults)
        line = f'{{"round": {progress.round}, "lag": {progress.lag}, "sha256": "{progress.digest}"}}\n'
        self._chain.write(line.encode())
        self._pace.add(perf_counter(), told.steps_per_round, episodes.seconds, progress.seconds)
        self._rows.append({"lag": progress.lag, **progress.values, **_prefixed("info", episodes.infos)})
        if told.counts_faults:
            self._rows[-1]["faults/round"] = episodes.faults.envs
        steps = (progress.round + 1) * told.steps_per_round
        self._tell_evaluations(evaluations)
        status = self._status(steps)
        if (progress.round + 1) % self._rounds_per_row == 0 or progress.round + 1 == told.rounds:
            self._write_row(steps, progress.round, status)
        self._console.update(status)

    def _count_faults(self, faults: Faults) -> None:
        """The first few are told: a run that goes on nevertheless must not hide why it does so badly."""
        if faults.first and self.env_faults < _TOLD_FAULTS:
            self._console.trouble(f"made anew, {faults.first}")
        if faults.workers and self.worker_faults < _TOLD_FAULTS:
            self._console.trouble("a worker process was lost and started again")
        self.env_faults += faults.envs
        self.worker_faults += faults.workers

    def _status(self, steps: int) -> Status:
        told = self._reporting
        pace = self._pace
        return Status(
            steps=steps,
            total_steps=told.rounds * told.steps_per_round,
            seconds=self.seconds,
            steps_per_second=pace.steps_per_second,
            return_mean=self._recent.return_mean,
            length_mean=self._recent.length_mean,
            episodes=self._recent.count,
            evaluation=self._last,
            best=self._best,
            collect=pace.collect,
            learn=pace.learn,
            wait=wait_share(pace.collect, pace.learn, told.schedule),
            verdict=verdict(
                pace.collect,
                pace.learn,
                schedule=told.schedule,
                num_workers=told.num_workers,
                num_envs=told.num_envs,
                epochs=told.epochs,
                central=told.central,
            ),
        )

    def _write_row(self, steps: int, round_: int, status: Status) -> None:
        names = dict.fromkeys(name for each in self._rows for name in each)
        row = {name: float(np.mean([each[name] for each in self._rows if name in each])) for name in names}
        self._rows.clear()
        values: dict[str, float] = {
            "round": round_,
            "time/seconds": status.seconds,
            "time/steps_per_second": status.steps_per_second,
            "time/collect": self._pace.collect,
            "time/learn": self._pace.learn,
            "time/wait": wait_share(self._pace.collect, self._pace.learn, self._reporting.schedule),
            "episode/count": self._recent.count,
            **{name if "/" in name or name == "lag" else f"train/{name}": value for name, value in row.items()},
        }
        if self._reporting.counts_faults:
            values |= {"faults/total": self.env_faults, "faults/workers": self.worker_faults}
        if status.return_mean is not None and status.length_mean is not None:
            values |= {"episode/return": status.return_mean, "episode/length": status.length_mean}
        self._log.write(steps, values)
        self._chain.flush()

    def _tell_evaluations(self, evaluations: list[Evaluation]) -> None:
        for found in evaluations:
            # By version and not by their number: a resumed evaluator may have passed over one that was told before.
            self._evaluated = found.version
            self._last = found.mean
            if not data_equivalence(found.env_args or {}, self._evaluated_in):
                self._best = None
            self._best = found.mean if self._best is None else float(np.fmax(self._best, found.mean))
            self._evaluated_in = found.env_args or {}
            self._log.write(found.steps, evaluation_row(found))

    @property
    def seconds(self) -> float:
        """Of training, those before it was resumed included."""
        return self.earlier_s + (perf_counter() - self._begin if self._begin is not None else 0.0)

    def save(self) -> dict[str, Any]:
        """What it has counted, and how much of its files belongs to that."""
        with self._writing():
            self._chain.flush()
        return {
            "recent": self._recent.save(),
            "rows": self._rows,
            "evaluated": self._evaluated,
            "best": self._best,
            "last": self._last,
            "evaluated_in": self._evaluated_in,
            "faults": [self.env_faults, self.worker_faults],
            "seconds": self.seconds,
            "chain_bytes": self._chain.tell(),
            "metrics_bytes": self._log.num_bytes,
        }

    def load(self, state: dict[str, Any]) -> None:
        with fitting("report"):
            self._recent.load(state["recent"])
            self._rows = [{str(name): float(value) for name, value in row.items()} for row in state["rows"]]
            self._evaluated = int(state["evaluated"])
            self._best = None if state["best"] is None else float(state["best"])
            self._last = None if state["last"] is None else float(state["last"])
            self._evaluated_in = dict(state["evaluated_in"])
            self.env_faults, self.worker_faults = map(int, state["faults"])
            self.earlier_s = float(state["seconds"])

    @reaction(shutdown)
    def close(self) -> None:
        with self._writing():
            self._chain.close()


def _prefixed(prefix: str, values: dict[str, float]) -> dict[str, float]:
    return {f"{prefix}/{name}": value for name, value in values.items()}
