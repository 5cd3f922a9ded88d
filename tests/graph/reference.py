"""What a program means: round after round, one reaction at a time, with nothing in flight and nothing to wait for.

Written from the definition alone. It knows a graph by its description here and shares no code with the runtime.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Reaction:
    """What a reaction declares."""

    name: str
    triggers: tuple[str, ...]
    uses: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kind:
    """What a reactor class declares. A timer is (every, first)."""

    name: str
    reactions: tuple[Reaction, ...]
    inputs: tuple[str, ...] = ()
    gathers: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    timers: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Node:
    """A reactor, or a bank of so many."""

    name: str
    kind: Kind
    width: int | None = None

    @property
    def members(self) -> range:
        return range(1 if self.width is None else self.width)


@dataclass(frozen=True)
class Edge:
    """A connection from (node, output) to (node, input)."""

    source: tuple[str, str]
    target: tuple[str, str]
    after: int = 0
    initial: tuple[Any, ...] | None = None
    capacity: int | None = None


@dataclass(frozen=True, eq=False)
class Graph:
    """A whole program."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    def node(self, name: str) -> Node:
        return next(node for node in self.nodes if node.name == name)

    def writers(self, edge: Edge, member: int) -> Sequence[int]:
        """Which members of its source a member of its target hears: all in a gather, else the one, or its own index."""
        source, target = self.node(edge.source[0]), self.node(edge.target[0])
        if edge.target[1] in target.kind.gathers:
            return source.members
        return [0 if len(source.members) == 1 else member]


Act = Callable[[Node, int, Reaction, int, tuple[Any, ...]], Iterable[tuple[str, Any]]]
"""What the reaction of a node's member does in a round, given what it sees: the outputs it writes."""


def interpret(graph: Graph, act: Act, rounds: int) -> None:
    """Runs so many rounds of the graph."""
    written: dict[tuple[str, int, str, int], Any] = {}
    for round_ in range(rounds):
        _Round(graph, act, round_, written).run()


class _Round:
    """One round. A reaction runs when it is asked for; it first asks for all that it depends on."""

    def __init__(self, graph: Graph, act: Act, round_: int, written: dict[tuple[str, int, str, int], Any]) -> None:
        self.graph, self.act, self.round, self.written = graph, act, round_, written
        self.done: Counter[tuple[str, int]] = Counter()

    def run(self) -> None:
        for node in self.graph.nodes:
            for member in node.members:
                self.advance(node, member, len(node.kind.reactions))

    def advance(self, node: Node, member: int, count: int) -> None:
        """Runs the member's reactions in the order of their declaration, until so many are done."""
        while self.done[node.name, member] < count:
            reaction = node.kind.reactions[self.done[node.name, member]]
            seen = {port: self.read(node, member, port) for port in reaction.triggers + reaction.uses}
            if any(self.present(node, port, seen[port]) for port in reaction.triggers):
                values = tuple(value for port, value in seen.items() if port not in node.kind.timers)
                for port, value in self.act(node, member, reaction, self.round, values):
                    self.write(node, member, reaction, port, value)
            self.done[node.name, member] += 1

    def present(self, node: Node, port: str, value: Any) -> bool:
        if port in node.kind.gathers:
            return any(entry is not None for entry in value)
        return value is not None

    def read(self, node: Node, member: int, port: str) -> Any:
        """What a trigger or a use is in this round: a timer's is True or None, a gather's a tuple."""
        if port in node.kind.timers:
            every, first = node.kind.timers[port]
            return True if self.round >= first and (self.round - first) % every == 0 else None
        edges = [edge for edge in self.graph.edges if edge.target == (node.name, port)]
        entries = tuple(self.arrival(edge, writer) for edge in edges for writer in self.graph.writers(edge, member))
        if port in node.kind.gathers:
            return entries
        return entries[0] if entries else None

    def arrival(self, edge: Edge, writer: int) -> Any:
        """What the edge brings from one writer in this round."""
        source, port = self.graph.node(edge.source[0]), edge.source[1]
        if self.round < edge.after:
            return edge.initial[self.round] if edge.initial else None
        if edge.after == 0:
            writing = [at for at, reaction in enumerate(source.kind.reactions, 1) if port in reaction.effects]
            self.advance(source, writer, max(writing, default=0))
        return self.written.get((source.name, writer, port, self.round - edge.after))

    def write(self, node: Node, member: int, reaction: Reaction, port: str, value: Any) -> None:
        key = (node.name, member, port, self.round)
        if port not in reaction.effects or key in self.written or value is None:
            raise ValueError(f"{node.name}[{member}].{reaction.name} must not write {value!r} to {port}")
        self.written[key] = value
