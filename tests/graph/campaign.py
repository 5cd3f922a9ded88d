"""Runs random programs in every way there is, and holds what their reactions saw against the reference."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from raceway.graph import Outcome, Processes, Snapshot
from tests.graph.random_graphs import Sample, build, expected
from tests.graph.recording import Entry, Member, first_difference


class Jitter:
    """Sleeps now and then, so that everything happens in another order. Importable by worker processes."""

    def __init__(self, longest_s: float = 0.001, share: float = 0.15) -> None:
        self.longest_s = longest_s
        self.share = share

    def __call__(self, place: str) -> None:
        # Unseeded on purpose: no result may depend on it.
        if random.random() < self.share:
            time.sleep(random.random() * self.longest_s)


@dataclass(frozen=True)
class Mode:
    """How a program is run. `processes` has the sizes of the groups of workers that its nodes are dealt out to."""

    inline: bool = False
    threads: int | None = None
    processes: tuple[int, ...] = ()
    jitter: bool = False
    deal: int = 0

    def __str__(self) -> str:
        where = "inline" if self.inline else f"threads={self.threads}"
        return f"{where}, processes={self.processes}, deal={self.deal}, jitter={self.jitter}"

    def places(self, sample: Sample) -> dict[str, Processes]:
        choice = random.Random(f"places {sample.seed} {self.deal}")
        groups = [Processes(count) for count in self.processes]
        dealt = {node.name: choice.choice([None, *groups]) for node in sample.nodes}
        if groups and not any(dealt.values()):
            dealt[choice.choice(sample.nodes).name] = groups[0]
        return {name: place for name, place in dealt.items() if place is not None}

    def settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = {"inline": True} if self.inline else {"threads": self.threads}
        return settings | ({"perturb": Jitter()} if self.jitter else {})


@dataclass(frozen=True)
class Ran:
    """A run: its outcome, what its reactions saw, the last round of each reactor, and the snapshots on the way."""

    outcome: Outcome
    record: Mapping[Member, list[Entry]]
    last_rounds: Mapping[Member, int]
    snapshots: list[Snapshot]


def run(sample: Sample, mode: Mode, snapshot_every: int | None = None, resume: Snapshot | None = None) -> Ran:
    """Runs the graph to its end, from its beginning or from a snapshot."""
    program = build(sample, mode.places(sample))
    done = 0
    if resume is not None:
        program.restore(resume)
        done = 1 + max(resume.rounds.values())
    snapshots: list[Snapshot] = []
    outcome = program.run(
        rounds=sample.rounds - done,
        snapshot_every=snapshot_every,
        on_snapshot=snapshots.append,
        snapshot_at_end=True,
        **mode.settings(),
    )
    assert outcome.snapshot is not None
    return Ran(outcome, record(sample, outcome.snapshot), last_rounds(sample, outcome.snapshot), snapshots)


def record(sample: Sample, snapshot: Snapshot) -> dict[Member, list[Entry]]:
    """What every reactor had seen when the snapshot was made."""
    return {member: snapshot.reactors[name]["log"] for member, name in names(sample).items()}


def last_rounds(sample: Sample, snapshot: Snapshot) -> dict[Member, int]:
    """How far every reactor had come when the snapshot was made."""
    return {member: snapshot.rounds[name] for member, name in names(sample).items()}


def names(sample: Sample) -> dict[Member, str]:
    return {
        (node.name, index): node.name if node.width is None else f"{node.name}[{index}]"
        for node in sample.nodes
        for index in node.members
    }


def check(sample: Sample, mode: Mode, ran: Ran, how: str = "") -> None:
    """Every value that any reaction saw is the one that the definition says, up to the round that it came to."""
    where = f"seed {sample.seed}, {mode}{how}, ended after {ran.outcome.rounds} of {sample.rounds} rounds"
    truth = expected(sample, 1 + max(ran.last_rounds.values()))
    due = {
        member: [entry for entry in entries if entry[0] <= ran.last_rounds[member]]
        for member, entries in truth.record.items()
    }
    difference = first_difference(due, ran.record)
    if difference:
        raise AssertionError(f"{where}: {difference}")
    if not truth.stops and set(ran.last_rounds.values()) != {sample.rounds - 1}:
        raise AssertionError(f"{where}: it came to {ran.last_rounds}, but nobody asked it to stop")


def continued(sample: Sample, ran: Ran, modes: Sequence[Mode]) -> Iterator[tuple[Snapshot, Mode, Ran]]:
    """Goes on from every snapshot of a run that is not of its end, in one mode after the other."""
    ends = max(ran.last_rounds.values())
    for at, snapshot in enumerate(ran.snapshots):
        if max(snapshot.rounds.values()) < ends:
            mode = modes[at % len(modes)]
            yield snapshot, mode, run(sample, mode, resume=snapshot)
