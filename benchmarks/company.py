"""Contestants that take long to start: each is kept for all the questions that it takes part in."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from benchmarks.paired import Measurement, Pair, Plan, compare, take_turns
from benchmarks.results import Experiment
from benchmarks.turns import Contestant, ContestantError, ContestantProcess
from benchmarks.workloads import Job

RACEWAY = "raceway"
LIMIT = "bare loop"
RAY = "benchmarks.ray_side"


@dataclass(frozen=True)
class Player:
    """Who takes part: a module that serves jobs, and in which style it does them."""

    module: str
    style: str = ""


BARE = Player("benchmarks.bare_side")


@dataclass(frozen=True)
class Question:
    """Who does which job, and how many times as fast as others Raceway is to be at it."""

    words: str
    job: Job
    places: Mapping[str, Player]
    """Raceway, by where its reactors live, in words. The goals are for the first."""
    others: Mapping[str, Player] = field(default_factory=dict)
    goals: Mapping[str, float] = field(default_factory=dict)
    """The least ratio wanted over some of the others, or over the limit."""
    plan: Plan | None = None
    """How much is measured, where it is not as much as of everything."""

    def players(self) -> dict[str, Player]:
        """All who take part, by name."""
        limit = {LIMIT: BARE} if self.job.has_limit else {}
        return {_name(place): player for place, player in self.places.items()} | {**self.others, **limit}

    def experiments(self, measurement: Measurement) -> Iterator[Experiment]:
        """An answer for each of the places, in which it is called `raceway`."""
        names = [*self.others, LIMIT] if self.job.has_limit else [*self.others]
        limit = LIMIT if self.job.has_limit else None
        for number, place in enumerate(self.places):
            own = _only(measurement, {_name(place): RACEWAY} | {name: name for name in names})
            goals = self.goals if number == 0 else {}
            pairs = [Pair(RACEWAY, name, goals.get(name)) for name in names]
            comparisons = [compare(own.rates, pair, limit=limit) for pair in pairs]
            words = f"{self.words}, {place}" if place else self.words
            task = self.job.task or self.job.experiment
            yield Experiment(words, RACEWAY, limit, own, comparisons, task, self.job.workers, self.plan)


def _name(place: str) -> str:
    return f"{RACEWAY} {place}".rstrip()


def _only(measurement: Measurement, names: Mapping[str, str]) -> Measurement:
    """What some of the contestants did, under other names."""
    return Measurement(
        {new: measurement.rates[name] for name, new in names.items()},
        {new: measurement.steps_per_turn[name] for name, new in names.items()},
        {new: measurement.facts[name] for name, new in names.items()},
    )


class Company:
    """The players that were needed so far, each in a process that is stopped while it is not its turn.

    That is for Ray, whose processes are never quite at rest, and so that nobody has a reason to complain it is for all.
    """

    def __init__(self, plan: Plan, ray: str) -> None:
        self._plan = plan
        self._ray = ray
        self._running = ExitStack()
        self._processes: dict[Player, ContestantProcess] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._running.close()

    def answer(self, question: Question) -> list[Experiment]:
        """Measures one question."""
        processes = [self._ready(name, player, question.job) for name, player in question.players().items()]
        check_same_work({process.name: process.facts for process in processes})
        return list(question.experiments(take_turns(processes, question.plan or self._plan)))

    def _ready(self, name: str, player: Player, job: Job) -> ContestantProcess:
        if player not in self._processes:
            interpreter = self._ray if player.module == RAY else sys.executable
            argv = ("-m", player.module, *([player.style] if player.style else []))
            contestant = Contestant(name, interpreter, argv, restless=True)
            started = ContestantProcess(contestant, turn_timeout_s=self._plan.turn_timeout_s)
            self._processes[player] = self._running.enter_context(started)
        process = self._processes[player]
        process.name = name
        process.set_up(asdict(job))
        return process


def check_same_work(facts: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuses to compare contestants that have computed different things."""
    digests = {name: found["digest"] for name, found in facts.items() if "digest" in found}
    if len(set(digests.values())) > 1:
        raise ContestantError(f"Not everybody does the same work, by the digests of their first rounds: {digests}.")
