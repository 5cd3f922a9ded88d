"""`raceway.train_seeds`: the same training with several seeds, one after the other or side by side."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import cloudpickle
from gymnasium.vector import VectorEnv

from raceway._core import usable_cpus
from raceway.envs.user_native import plain
from raceway.errors import RunFolderError, SeedsError, SettingError
from raceway.files import read_whole
from raceway.messages import quoted
from raceway.report.metrics import parse_row
from raceway.report.words import clock, count, number, percent
from raceway.training.advice import how_to
from raceway.training.callbacks import Callback
from raceway.training.config import ALGORITHMS, TrainConfig
from raceway.training.folder import RunFolder
from raceway.training.outcome import Run, read_outcome
from raceway.training.processes import Ending, run_all
from raceway.training.resolve import resolve
from raceway.training.resuming import check_settings
from raceway.training.run_source import portable
from raceway.training.settings import replaced
from raceway.training.user_network import name_of_network, network_of

_CPUS_PER_RUN = 2
"""Collecting and learning overlap: a run keeps two busy."""
_TAIL = 1 << 16
_USER = 2


def train_seeds(
    env: str | os.PathLike[str] | Callable[..., Any],
    *,
    seeds: int | Sequence[int] = 5,
    jobs: int | None = None,
    config_file: str | os.PathLike[str] | None = None,
    network: Any = None,
    callbacks: Sequence[Callback] = (),
    **settings: Any,
) -> list[Run]:
    """Trains with several seeds, each in a process of its own, and returns what came of each, in their order.

    env: a name, the path of a native environment of your own, or a callable that makes a Gymnasium environment: any
        that can be pickled by value will do, such as a class or a lambda of the script itself.
    seeds: how many, from `seed` (1) on; or the seeds themselves.
    jobs: how many at once. None: one for every two CPUs.
    settings: as for `raceway.train`. With `log={"name": "x"}` the runs are x-seed1, x-seed2, ..., and the same call
        goes on with those that are not finished.

    Each process gets a copy of everything: callbacks hear of its own run only, and what they gather stays there. If a
    run fails the others go on; then SeedsError says what became of it, and has the runs that are finished.
    """
    if isinstance(env, VectorEnv):
        raise SettingError(
            "A vector environment is there once, but each seed needs its own. Give its name or a callable."
        )
    if isinstance(network, Mapping):
        settings["network"], network = network, None
    elif network is not None:
        settings["network.custom"] = name_of_network(network)
    env = plain(env)
    config = resolve(env, config_file, **settings)
    network_of(config.network.custom if network is None else network)  # refused here, not by each process
    series = SeedSeries(config, seeds, jobs)
    series.train(portable(config.env if isinstance(env, str) else env), network=network, callbacks=callbacks)
    return series.finished()


class SeedSeries:
    """The runs of several seeds and where they are."""

    def __init__(self, config: TrainConfig, seeds: int | Sequence[int], jobs: int | None) -> None:
        self.seeds = _seed_list(config.seed, seeds)
        self.jobs = min(_jobs(jobs), len(self.seeds))
        names = _names(config, self.seeds)
        self.folders = [RunFolder(RunFolder.parent_for(config) / name) for name in names]
        self.config = config
        self.has_callbacks = False
        told: dict[str, Any] = {}
        if self.jobs > 1:
            told["log.quiet"] = True
            told["num_workers"] = config.num_workers or max(1, usable_cpus() // self.jobs)
        self.configs = [
            replaced(config, {**told, "seed": seed, "log.name": name})
            for seed, name in zip(self.seeds, names, strict=True)
        ]

    def train(self, env: Any, **others: Any) -> None:
        """Trains those that are not finished. Raises what a signal stands for if one asked for the end."""
        self.has_callbacks = bool(others.get("callbacks"))
        for folder, config in zip(self.folders, self.configs, strict=True):
            if folder.is_begun:
                check_settings(folder, config)
        places = [place for place, folder in enumerate(self.folders) if read_outcome(folder) is None]
        payloads = [_payload(env, {**spelled_out(self.configs[place]), **others}) for place in places]
        progress = Progress(self, places)
        progress.begin()
        stopped = run_all(
            payloads,
            self.jobs,
            on_start=progress.started,
            on_end=progress.ended,
            on_wait=progress.tell,
        )
        if stopped is not None:
            progress.stopped()
            raise KeyboardInterrupt if stopped == signal.SIGINT else SystemExit(128 + stopped)
        if progress.failures:
            raise SeedsError(
                _what_failed(progress.failures, len(self.seeds)),
                self.finished(),
                _USER if all(ending.code == _USER for ending in progress.failures.values()) else 1,
            )

    def finished(self) -> list[Run]:
        """What came of those that are finished."""
        return [run for folder in self.folders if (run := read_outcome(folder)) is not None]


_MOST_SEEDS = 10_000


def _seed_list(first: int, seeds: int | Sequence[int]) -> list[int]:
    if isinstance(seeds, bool) or (isinstance(seeds, int) and not 1 <= seeds <= _MOST_SEEDS):
        raise SettingError(f"seeds={quoted(seeds)}: give how many, from 1 to {_MOST_SEEDS:,}, or a list of seeds.")
    found = [first + place for place in range(seeds)] if isinstance(seeds, int) else list(seeds)
    if not found or not all(isinstance(seed, int) and 0 <= seed < 2**64 for seed in found):
        raise SettingError(f"seeds={seeds!r}: seeds are whole numbers from 0 to 2**64 - 1.")
    if len(set(found)) < len(found):
        raise SettingError(f"seeds={seeds!r}: a seed that is there twice gives the same run twice.")
    return found


def _jobs(jobs: int | None) -> int:
    if jobs is None:
        return max(1, usable_cpus() // _CPUS_PER_RUN)
    if jobs < 1:
        raise SettingError(f"jobs={jobs} is out of range. Use a number from 1 up.")
    return jobs


def _names(config: TrainConfig, seeds: Sequence[int]) -> list[str]:
    """Of the run folders. Without a name of the user's they are new ones."""
    if config.log.name is not None:
        return [f"{config.log.name}-seed{seed}" for seed in seeds]
    parent, stamp = RunFolder.parent_for(config), time.strftime("%Y%m%d-%H%M%S")
    attempt, ending = 1, ""
    while any((parent / f"{config.algo}-{seed}-{stamp}{ending}").exists() for seed in seeds):
        attempt += 1
        ending = f"-{attempt}"
    return [f"{config.algo}-{seed}-{stamp}{ending}" for seed in seeds]


def spelled_out(config: TrainConfig) -> dict[str, Any]:
    """All of a run's settings but its environment, by path, for `raceway.train`."""
    others = {"env", *ALGORITHMS} - {config.algo}
    found: dict[str, Any] = {}
    for name in (each.name for each in dataclasses.fields(config) if each.name not in others):
        value = getattr(config, name)
        if dataclasses.is_dataclass(value):
            found |= {f"{name}.{each.name}": getattr(value, each.name) for each in dataclasses.fields(value)}
        else:
            found[name] = value
    return found


def _payload(env: Any, settings: Mapping[str, Any]) -> bytes:
    try:
        return cloudpickle.dumps((env, settings))
    except Exception as error:  # whatever its parts raise
        raise SettingError(
            f"{env!r} and its settings cannot be sent to a process of their own: {error}. Put what cannot be copied "
            "into a function that makes it, or name the environment: package.module:callable."
        ) from None


def _what_failed(failures: Mapping[int, Ending], total: int) -> str:
    lines = [f"{len(failures)} of {total} seeds failed."]
    for seed, ending in failures.items():
        lines += [f"seed {seed} ({ending.words})", *(f"  {line}" for line in ending.last_words.splitlines())]
    return "\n".join(lines)


class Progress:
    """Says how the runs go, if they do not say it themselves."""

    def __init__(self, series: SeedSeries, places: Sequence[int]) -> None:
        self.failures: dict[int, Ending] = {}
        """By seed."""
        self._series, self._places = series, places
        self._config = series.config
        self._is_quiet = series.config.log.quiet
        self._running: list[int] = []
        self._told_at = time.monotonic()

    def begin(self) -> None:
        series = self._series
        finished = [seed for place, seed in enumerate(series.seeds) if place not in self._places]
        if finished:
            self._say(f"finished already: seed {', '.join(map(str, finished))}")
        if series.jobs > 1 and self._places:
            seeds = ", ".join(str(series.seeds[place]) for place in self._places)
            config = self._config
            self._say(f"{config.env}  {config.algo}  {config.schedule}  seeds {seeds}  {series.jobs} at a time")

    def started(self, index: int) -> None:
        self._running.append(self._places[index])

    def ended(self, index: int, ending: Ending, was_stopped: bool) -> None:
        place = self._places[index]
        self._running.remove(place)
        seed, folder = self._series.seeds[place], self._series.folders[place]
        if ending.is_good and (run := read_outcome(folder)) is not None:
            result = number(last_row(folder.metrics).get("episode/return"))
            self._tell_aside(f"seed {seed}  done in {clock(run.seconds)}, return {result}  {folder.path}")
        elif was_stopped:
            self._tell_aside(f"seed {seed}  stopped: {self._how_far(place).strip()}")
        else:
            self.failures[seed] = ending
            self._tell_failure(seed, ending)

    def _tell_failure(self, seed: int, ending: Ending) -> None:
        others = ", the others go on" if len(self._series.seeds) > 1 else ""
        print(f"seed {seed}  failed ({ending.words}){others}", file=sys.stderr)
        for line in ending.last_words.splitlines():
            print(f"  {line}", file=sys.stderr, flush=True)

    def stopped(self) -> None:
        """How to go on."""
        if self._config.log.name is not None:
            self._say("To go on with them: the same command.")
        elif self._series.jobs > 1:  # else the one that was stopped has said it
            for folder in (self._series.folders[place] for place in self._places):
                if folder.is_begun and read_outcome(folder) is None:
                    again = how_to(
                        "resume", folder.path, folder.read_config(), has_callbacks=self._series.has_callbacks
                    )
                    self._say(f"To go on: {again}")

    def tell(self) -> None:
        """A line for each run that is under way, now and then."""
        if self._series.jobs == 1 or time.monotonic() - self._told_at < self._config.log.interval_s:
            return
        self._told_at = time.monotonic()
        for place in sorted(self._running):
            self._say(f"seed {self._series.seeds[place]}  {self._how_far(place)}")

    def _how_far(self, place: int) -> str:
        row = last_row(self._series.folders[place].metrics)
        if not row:
            return "getting ready"
        steps = row["step"]
        share = min(steps / self._config.total_steps, 1.0)
        return f"{percent(share):>4}  {count(steps)} steps  return {number(row.get('episode/return'))}"

    def _tell_aside(self, text: str) -> None:
        """What a run that has the terminal to itself says on its own."""
        if self._series.jobs > 1:
            self._say(text)

    def _say(self, text: str) -> None:
        if not self._is_quiet:
            try:
                print(text, flush=True)
            except (BrokenPipeError, ValueError):  # nobody reads it any more
                self._is_quiet = True


def last_row(path: Path) -> dict[str, Any]:
    """The last row of training in a metrics.jsonl that is being written; empty if there is none yet."""
    try:
        lines = read_whole(path, _TAIL, last=_TAIL).split(b"\n")
    except RunFolderError:
        return {}
    for line in reversed(lines[:-1]):  # what is after the last newline is not whole yet
        with contextlib.suppress(ValueError):
            if "round" in (row := parse_row(line)):
                return row
    return {}
