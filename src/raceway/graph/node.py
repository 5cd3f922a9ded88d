"""Reactors at work: where each stands, and what its next reaction needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from raceway.graph.channels import Channel
from raceway.graph.errors import GraphError
from raceway.graph.inlets import Inlet, LatestInlet
from raceway.graph.ports import Effect, Timer
from raceway.graph.reactor import Reactor

ENDLESS = 1 << 62
# Longer than one waits for the interpreter's lock: once, and when others wait for it too.
_LONG_AT_FIRST_NS = 1_000_000
_LONG_NS = 20_000_000


class Outlet:
    """One output of one reactor, with all that read it."""

    def __init__(self, id_: int, name: str) -> None:
        self.id = id_
        self.name = name
        self.channels: list[Channel] = []
        """Those whose reader lives in this process."""
        self.away: list[Channel] = []
        """The writer's halves of those whose reader lives in another."""
        self.hosts: tuple[int, ...] = ()
        """The processes of these, but for `latest` connections."""
        self.hosts_with_order: tuple[int, ...] = ()
        """Those that have to be told of absence."""
        self.written = -1
        """The last round in which it was written."""
        self.moved_values = 0
        self.moved_bytes = 0


class Step:
    """One reaction of one reactor, compiled: what to wait for, what to call, what to do afterwards."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self.function = function
        self.arguments: list[Inlet] = []
        self.waits: list[Inlet] = []
        """The same, each once."""
        self.latest: list[LatestInlet] = []
        """Those among them that take the newest value when it runs."""
        self.triggers: list[Inlet] = []
        self.timers: list[Timer] = []
        self.outlets: dict[str, Outlet] = {}
        self.bounded: list[tuple[Outlet, Channel]] = []
        """Connections of its effects that can be full."""
        self.closes: list[Outlet] = []
        """Outputs that nobody can write any more in this round when it is done."""
        self.releases: list[Inlet] = []
        """Inputs that nobody reads any more in this round when it is done."""
        self.calls = 0
        self.busy_ns = 0
        self.cost_ns = 0.0
        """About how long it takes."""
        self.tail_ns = 0.0
        """About how long it goes on after it has written."""

    def is_triggered(self, round_: int) -> bool:
        for inlet in self.triggers:
            if inlet.is_present():
                return True
        return any(timer.fires(round_) for timer in self.timers)

    def record(self, took_ns: int, alone: bool) -> None:
        """Learns what it costs. Beside others it may have waited for the interpreter's lock, as more of them would."""
        is_telling = took_ns > (_LONG_NS if self.calls else _LONG_AT_FIRST_NS)
        if alone or took_ns < self.cost_ns or is_telling:
            self.cost_ns += (took_ns - self.cost_ns) / (8 if self.calls else 1)
        self.calls += 1
        self.busy_ns += took_ns

    def outlet(self, effect: object, round_: int) -> tuple[Outlet, Any]:
        """Where an effect goes, and its value; checks that it may."""
        if not isinstance(effect, Effect):
            raise GraphError(
                f"{self.name} gave a {type(effect).__name__} instead of an effect. "
                "Yield or return what calling an output gives: `yield self.output(value)`."
            )
        outlet = self.outlets.get(effect.output)
        if outlet is None:
            raise GraphError(f"{self.name} writes {effect.output}, which is not among its effects. Declare it there.")
        if outlet.written == round_:
            raise GraphError(f"{self.name} writes {effect.output}, which was already written in round {round_}.")
        if effect.value is None:
            raise GraphError(f"{self.name} writes None to {effect.output}: None is how absence is read. Write nothing.")
        return outlet, effect.value


@dataclass(eq=False)
class Node:
    """One reactor and where it stands: the next reaction that it runs, and how much that still waits for."""

    id: int
    name: str
    reactor: Reactor
    domain: int
    round: int = 0
    last_round: int = ENDLESS - 1
    at: int = 0
    """The next step within the round."""
    missing: int = 0
    """What the next step still waits for: values not known, connections that are full."""
    steps: list[Step] = field(default_factory=list)
    inlets: dict[str, Inlet] = field(default_factory=dict)
    outlets: dict[str, Outlet] = field(default_factory=dict)
    gate: Sequence[LatestInlet] = ()
    """If not empty, a round begins when one of these has news."""
    at_gate: bool = False
    is_unsettled: bool = False
    """What its next step waits for has to be found out (again)."""
    is_running: bool = False
    """A thread is in one of its reactions."""
    is_begun: bool = False
    """Its startup reactions have begun, so its shutdown reactions have to run."""
    has_ended: bool = False
    is_expendable: bool = False
    has_told: bool = False
    """It is expendable and has written for another process, which its state has to be kept for."""
    first_round: int = 0
    stops_at: int | None = None
    """The last round of the run, if one of its reactions has asked for an end."""
    cuts: list[int] = field(default_factory=list)
    """Snapshots that it has to give its part for before it goes on."""
    cuts_taken: set[int] = field(default_factory=set)
    last_regular_cut: int = -1
    open_parts: int = 0
    """Parts of snapshots that it has given but that still lack values."""
    waits_since_ns: int = 0
    waited: dict[str, int] = field(default_factory=dict)
    """Nanoseconds of waiting, by what came last."""

    @property
    def step(self) -> Step:
        return self.steps[self.at]

    @property
    def has_begun_round(self) -> bool:
        """Not if it waits at the beginning of its round or may have to, gives its part of a snapshot, or has ended."""
        if self.at > 0:
            return True
        return not (self.at_gate or self.missing or self.is_unsettled or self.cuts or self.has_ended)

    def lacks(self) -> str:
        """What its next step waits for, in words."""
        if self.at_gate:
            return "something new"
        values = [name for name, inlet in self.inlets.items() if inlet in self.step.waits and inlet.lacks(self.round)]
        bounded = [channel for outlet, channel in self.step.bounded if outlet.written != self.round]
        rooms = [channel.for_room for channel in bounded if channel.is_full(self.round)]
        return " and ".join(values + rooms)

    def moments(self, name: str) -> Iterator[tuple[str, Callable[[], Any]]]:
        """Its reactions to startup or shutdown."""
        for declared in self.reactor.reactions:
            if declared.moment is not None and declared.moment.name == name:
                yield declared.name, getattr(self.reactor, declared.name)
