"""The graph as plain tables: who there is, what is connected, and how far one reactor can be ahead of another."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeVar

from raceway.graph.ports import Input, Inputs
from raceway.graph.reactor import Reactor

K = TypeVar("K", bound=Hashable)
Kind = Literal["after", "queue", "latest"]


@dataclass(frozen=True)
class Member:
    """One reactor."""

    id: int
    name: str
    group: str
    """Its bank's name; its own if it is in none."""
    host: int = 0
    """The process it lives in; 0 is the one that the program was built in."""
    is_expendable: bool = False
    """Whether a run goes on without it when its process is lost."""


@dataclass(frozen=True)
class Connection:
    """From one output of one reactor to one input of another."""

    id: int
    source: int
    """A member."""
    output: str
    target: int
    input: str
    kind: Kind
    delay: int = 0
    capacity: int = 1
    """after: values that may lie on it, the one being read included; queue: values that may wait in it."""
    initial: tuple[Any, ...] = ()
    slot: int | None = None
    """Its place among those of an input that gathers."""

    @property
    def slack(self) -> int:
        """By how many rounds the writer may be ahead of the reader, beyond the delay."""
        return self.capacity - self.delay

    def key(self, members: list[Member]) -> str:
        """Its name: the same in every program that is wired the same way."""
        slot = "" if self.slot is None else f"[{self.slot}]"
        return f"{members[self.source].name}.{self.output} -> {members[self.target].name}.{self.input}{slot}"


@dataclass(frozen=True)
class Plan:
    """Everything that does not change during a run."""

    members: list[Member]
    connections: list[Connection]
    domains: list[int] = field(default_factory=list)
    """By member: reactors that `after` connections join share their rounds, and so their domain."""
    leaders: frozenset[int] = frozenset()
    """The domains that a number of rounds is meant for; the others run until these are done."""
    driven: frozenset[int] = frozenset()
    """Members whose rounds begin when a `latest` connection brings something new."""

    @property
    def pace_maker(self) -> int | None:
        """The domain whose rounds decide when snapshots are taken; the others follow it."""
        return min(self.leaders, default=None)

    @property
    def leading(self) -> list[int]:
        """The members of leading domains."""
        return [member.id for member in self.members if self.domains[member.id] in self.leaders]

    @cached_property
    def needed(self) -> frozenset[int]:
        """The members that a run cannot do without."""
        return frozenset(member.id for member in self.members if not member.is_expendable)

    @cached_property
    def needed_domains(self) -> frozenset[int]:
        return frozenset(self.domains[member] for member in self.needed)

    @cached_property
    def by_target(self) -> dict[int, list[Connection]]:
        return _grouped(self.connections, lambda connection: connection.target)

    @cached_property
    def by_output(self) -> dict[tuple[int, str], list[Connection]]:
        return _grouped(self.connections, lambda connection: (connection.source, connection.output))

    @cached_property
    def outlets(self) -> dict[tuple[int, str], int]:
        """A number for every connected output."""
        return {output: i for i, output in enumerate(sorted(self.by_output))}

    def lead(self, member: int) -> int:
        """The most rounds by which any reactor of its domain can be ahead of `member`, by delays and capacities.

        Who is in round r has done all of round r - 1. A reader that has done it got its value, so its writer is in
        round r - 1 - delay or later; a writer that has done it had room, so its reader is in r - 2 - slack or later.
        Each says "at most so far ahead", so the shortest path gives the bound.
        """
        steps: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for c in self.connections:
            if c.kind == "after":
                steps[c.source].append((c.target, c.delay + 1))
                steps[c.target].append((c.source, c.slack + 2))
        distances = {member: 0}
        queue = [(0, member)]
        while queue:
            distance, here = heapq.heappop(queue)
            if distance > distances[here]:
                continue
            for there, step in steps[here]:
                if distance + step < distances.get(there, distance + step + 1):
                    distances[there] = distance + step
                    heapq.heappush(queue, (distance + step, there))
        return max(distances.values())


def _grouped(connections: list[Connection], key: Callable[[Connection], K]) -> dict[K, list[Connection]]:
    groups: dict[K, list[Connection]] = defaultdict(list)
    for connection in connections:
        groups[key(connection)].append(connection)
    return groups


def make_plan(members: list[Member], connections: list[Connection], reactors: Sequence[Reactor]) -> Plan:
    domains = _domains(members, connections)
    driven = frozenset(member.id for member in members if _is_driven(reactors[member.id], member.id, connections))
    feeding = {domains[c.source] for c in connections if c.kind == "queue" and domains[c.source] != domains[c.target]}
    leaders = frozenset(domains) - feeding - {domains[member] for member in driven}
    return Plan(members, connections, domains, leaders, driven)


def _domains(members: list[Member], connections: list[Connection]) -> list[int]:
    parents = list(range(len(members)))

    def root(member: int) -> int:
        while parents[member] != member:
            parents[member] = parents[parents[member]]
            member = parents[member]
        return member

    for c in connections:
        if c.kind == "after":
            first, second = sorted((root(c.source), root(c.target)))
            parents[second] = first
    return [root(member.id) for member in members]


def _is_driven(reactor: Reactor, member: int, connections: list[Connection]) -> bool:
    kinds = {(c.input, c.kind) for c in connections if c.target == member}
    triggers = [trigger for reaction in reactor.reactions if not reaction.moment for trigger in reaction.triggers]
    latest = [isinstance(t, (Input, Inputs)) and (t.name, "latest") in kinds for t in triggers]
    return bool(latest) and all(latest) and not any(kind == "after" for _, kind in kinds)
