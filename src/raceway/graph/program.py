"""Programs: reactors, how they are connected, where they live; and running all that."""

from __future__ import annotations

import itertools
import os
import re
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar, cast, overload

from raceway.graph.assignment import Start
from raceway.graph.checks import (
    check_ends,
    check_kind,
    check_reactors,
    check_run,
    check_single_writer,
    pairs,
)
from raceway.graph.draw import Drawing
from raceway.graph.errors import GraphError
from raceway.graph.losses import Loss
from raceway.graph.places import Place, Threads, spread
from raceway.graph.plan import Connection, Kind, Member, Plan, make_plan
from raceway.graph.ports import InputEnd, Inputs, InputsEnd, OutputEnd
from raceway.graph.proofs import check_plan, check_snapshot
from raceway.graph.reactor import Reactor
from raceway.graph.run import Outcome, Run
from raceway.graph.settings import Settings
from raceway.graph.signals import interruption
from raceway.graph.sketch import sketch
from raceway.graph.snapshot import Snapshot, fitted
from raceway.graph.summary import summary_of
from raceway.graph.trace import write_trace
from raceway.graph.values import seal

R = TypeVar("R", bound=Reactor)
T = TypeVar("T")


class Bank(Generic[R]):
    """Several reactors of one class, side by side. Its ports are those of all of them."""

    def __init__(self, name: str, reactors: Sequence[R]) -> None:
        self.name = name
        self.reactors = tuple(reactors)

    def __getattr__(self, name: str) -> Any:
        port = self.reactors[0].ports.get(name) if "reactors" in vars(self) else None
        if port is None:
            raise AttributeError(f"{self!r} has no port {name!r}.")
        return port.end(self, port)

    def __getitem__(self, index: int) -> R:
        return self.reactors[index]

    def __len__(self) -> int:
        return len(self.reactors)

    def __repr__(self) -> str:
        return f"Bank({self.name} × {len(self.reactors)})"


class Program:
    """A graph of reactors. Build it, check it, look at it, run it."""

    def __init__(self, name: str = "program") -> None:
        self.name = name
        self._groups: dict[str, Sequence[Reactor]] = {}
        self._places: dict[str, Place | Threads] = {}
        self._connections: list[Connection] = []
        self._members: dict[int, tuple[int, Reactor]] = {}
        """By the reactor's identity: its number."""
        self._start: Snapshot | None = None
        self._is_spent = False
        self._run: Run | None = None
        self.outcome: Outcome | None = None
        """Of the last run that came to an end, by a signal too."""

    # Building.

    def add(self, reactor: R, name: str | None = None) -> R:
        """Adds a reactor. Its name is by default that of its class, in snake case."""
        self._admit(name, [reactor], is_bank=False)
        return reactor

    def bank(self, reactors: Iterable[R], name: str | None = None) -> R:
        """Adds several reactors of one class as a bank.

        The result has the ports of one of them: connected, they broadcast, gather, or go from each to each.
        """
        members = list(reactors)
        if not members:
            raise GraphError("A bank needs at least one reactor.")
        kinds = {type(reactor).__name__ for reactor in members}
        if len(kinds) > 1:
            raise GraphError(f"A bank has reactors of one class, not of {', '.join(sorted(kinds))}.")
        # Statically a bank is one of its reactors: that is what its ports look like.
        return cast(R, Bank(self._admit(name, members, is_bank=True), members))

    def _admit(self, name: str | None, reactors: Sequence[Reactor], is_bank: bool) -> str:
        check_reactors(reactors, self._members)
        wanted = name or _snake_case(type(reactors[0]).__name__)
        if name is not None and name in self._groups:
            raise GraphError(
                f"There is already a reactor named {name!r} in program {self.name!r}. Choose another name."
            )
        unique = next(n for n in _numbered(wanted) if n not in self._groups)
        self._groups[unique] = reactors
        for index, reactor in enumerate(reactors):
            reactor.name = f"{unique}[{index}]" if is_bank else unique
            reactor.index, reactor.width = index, len(reactors)
            self._members[id(reactor)] = len(self._members), reactor
        return unique

    @overload
    def connect(
        self, source: OutputEnd[T], target: InputEnd[T], *, after: int = 0, initial: Sequence[T | None] | None = None,
        capacity: int | None = None, queue: int | None = None, latest: bool = False,
    ) -> None: ...  # fmt: skip
    @overload
    def connect(
        self, source: OutputEnd[T], target: InputsEnd[T], *, after: int = 0, initial: Sequence[T | None] | None = None,
        capacity: int | None = None, queue: int | None = None, latest: bool = False,
    ) -> None: ...  # fmt: skip
    def connect(
        self,
        source: OutputEnd[T],
        target: InputEnd[T] | InputsEnd[T],
        *,
        after: int = 0,
        initial: Sequence[T | None] | None = None,
        capacity: int | None = None,
        queue: int | None = None,
        latest: bool = False,
    ) -> None:
        """Lets what `source` writes arrive at `target`, in the same round.

        after: so many rounds later; `initial` are the values for the rounds before that (default: absent).
        capacity: how many values, the one being read included, may lie on the connection when its writer begins another
            (default: the delay plus one).
        queue: values wait their turn, at most so many (of each writer), in the order in which they arrive.
        latest: only the newest value counts, and nobody waits; `initial` is one value, the newest at first.
        """
        check_ends(source, target, self._members)
        check_kind(source, target, after, initial, capacity, queue, latest)
        kind: Kind = "queue" if queue is not None else "latest" if latest else "after"
        values = tuple(seal(value) for value in initial) if initial is not None else (None,) * after
        room = queue if queue is not None else capacity if capacity is not None else after + 1
        for writer, reader in pairs(source, target):
            number = self._number(reader)
            others = [c for c in self._connections if (c.target, c.input) == (number, target.port.name)]
            connection = Connection(
                id=len(self._connections),
                source=self._number(writer),
                output=source.port.name,
                target=number,
                input=target.port.name,
                kind=kind,
                delay=after,
                capacity=room,
                initial=values,
                slot=len(others) if isinstance(target.port, Inputs) else None,
            )
            check_single_writer(connection, others, [reactor.name for _, reactor in self._members.values()])
            self._connections.append(connection)

    def place(self, what: Reactor, where: Place | Threads) -> None:
        """Chooses where a reactor lives, or those of a bank: it changes no value, only who computes it."""
        if what.name not in self._groups:
            raise GraphError(f"{what!r} is not in program {self.name!r}, or is one of a bank: place the whole bank.")
        self._places[what.name] = where

    # Looking.

    def check(self) -> None:
        """Finds what would keep the program from running. `run` does this first."""
        self._checked_plan(inline=False)

    def draw(self) -> Drawing:
        """A picture: `.mermaid`, `.svg`, or `.save(path)`."""
        return sketch(self.name, self._groups, self._places, self._plan()[0])

    def summary(self) -> str:
        """Where the time of the last run went, and in its last line what held it up."""
        if self.outcome is None:
            raise GraphError(f"Program {self.name!r} has no run to its end yet that could be summed up.")
        return summary_of(self.outcome)

    # Running.

    def run(
        self,
        rounds: int | None = None,
        *,
        threads: int | None = None,
        inline: bool = False,
        snapshot_every: int | None = None,
        snapshot_at_end: bool = False,
        on_snapshot: Callable[[Snapshot], None] | None = None,
        on_loss: Callable[[Loss], None] | None = None,
        trace: str | os.PathLike[str] | None = None,
        perturb: Callable[[str], None] | None = None,
        is_stuck: Callable[[], bool] | None = None,
    ) -> Outcome:
        """Runs so many rounds, or until stopped.

        threads: of this process (default: one per reactor that lives here).
        inline: everything in the calling thread, wherever it is placed otherwise: for breakpoints.
        snapshot_every, on_snapshot: after each so many rounds, without stopping the others, a snapshot is taken and
            handed to the function, in the calling thread.
        snapshot_at_end: the outcome has a snapshot of the end.
        on_loss: called, in the calling thread, when a process with `restarts` is lost: see `Processes`.
        trace: where to write a Chrome trace.
        perturb: called around every reaction and transport: sleeping there shows that timing changes no value.
        is_stuck: asked again and again after the first Ctrl-C, in the calling thread: whether the round under way will
            never end. Then the run ends as by the second.
        """
        check_run(rounds, threads, snapshot_every)
        plan, places = self._checked_plan(inline)
        if rounds is not None and not plan.leaders:
            raise GraphError(
                "All reactors are fed by `latest` connections or feed queues, so none counts the rounds. Leave out "
                "`rounds` and stop the program from a reaction, or let something depend on the rounds."
            )
        if snapshot_every is not None and not plan.leaders:
            raise GraphError(
                "snapshot_every needs reactors that count the rounds: see `rounds`. Use program.snapshot()."
            )
        if self._run is not None:
            raise GraphError(f"Program {self.name!r} is running.")
        if self._is_spent:
            raise GraphError(
                f"Program {self.name!r} has been run. To go on from its end, run it with snapshot_at_end=True and "
                "restore the outcome's snapshot; to begin again, build it anew."
            )
        start = self._starting_point(plan)
        limit = None if rounds is None else max((start.rounds[i] for i in plan.leading), default=0) + rounds
        settings = Settings(snapshot_every, snapshot_at_end, trace is not None, perturb)
        reactors = dict(self._members.values())
        if trace is not None:
            Path(trace).write_text("")  # a wrong path is told before the run and not after it
        self._is_spent = True
        self._run = Run(plan, reactors, places, start, settings, limit, on_snapshot, on_loss, is_stuck)
        here = sum(member.host == 0 for member in plan.members)
        try:
            self.outcome = self._run.go(0 if inline else threads or max(1, min(here, _MOST_THREADS)))
        finally:
            tracks, self._run = self._run.tracks, None
            if trace is not None:
                write_trace(Path(trace), self.name, tracks)
        if self.outcome.reason in _SIGNALS:
            raise interruption(_SIGNALS[self.outcome.reason])
        return self.outcome

    def stop(self) -> None:
        """Ends the run, from any thread, as soon as all reactors can end at the same round."""
        self._running().stop()

    def snapshot(self) -> Snapshot:
        """A snapshot of the running program, from another thread than the one that runs it."""
        return self._running().snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """Lets the next run go on from a snapshot: of this program, or of one that was built in the same way."""
        check_snapshot(snapshot, self._plan()[0])
        self._start = snapshot
        self._is_spent = False

    def _running(self) -> Run:
        if self._run is None:
            raise GraphError(f"Program {self.name!r} is not running.")
        return self._run

    def _starting_point(self, plan: Plan) -> Start:
        snapshot, self._start = self._start, None
        if snapshot is None:
            values = {c.id: list(c.initial) for c in plan.connections}
            return Start([0] * len(plan.members), values, {}, {})
        return Start(
            rounds=[snapshot.rounds[member.name] + 1 for member in plan.members],
            values={c.id: self._saved_values(snapshot, c, plan) for c in plan.connections},
            states={member.id: snapshot.reactors[member.name] for member in plan.members},
            stops={member.id: snapshot.ends[member.name] for member in plan.members if member.name in snapshot.ends},
        )

    def _saved_values(self, snapshot: Snapshot, c: Connection, plan: Plan) -> list[Any]:
        type_ = next(reactor for number, reactor in self._members.values() if number == c.target).ports[c.input].type
        values = snapshot.values[c.key(plan.members)]
        return [None if value is None else seal(fitted(value, type_)) for value in values]

    def _number(self, reactor: Reactor) -> int:
        return self._members[id(reactor)][0]

    def _plan(self, inline: bool = False) -> tuple[Plan, dict[int, Place]]:
        widths = {group: len(reactors) for group, reactors in self._groups.items()}
        hosts, places = spread(widths, {} if inline else self._places)
        reactors = [reactor for _, reactor in self._members.values()]
        groups = [group for group, width in widths.items() for _ in range(width)]
        expendable = {host for host, place in places.items() if place.restarts is not None}
        members = [
            Member(i, reactors[i].name, groups[i], hosts[i], hosts[i] in expendable) for i in range(len(reactors))
        ]
        return make_plan(members, self._connections, reactors), places

    def _checked_plan(self, inline: bool) -> tuple[Plan, dict[int, Place]]:
        if not self._groups:
            raise GraphError(f"Program {self.name!r} has no reactors. Add some: program.add(Learner()).")
        plan, places = self._plan(inline)
        check_plan(plan, [reactor for _, reactor in self._members.values()])
        return plan, places


_MOST_THREADS = 64
_SIGNALS = {"interrupted": signal.SIGINT, "terminated": signal.SIGTERM}


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}_{i}" for i in itertools.count(2))
