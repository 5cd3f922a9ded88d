"""Random programs: a number gives a graph, its reactor classes, and the record that its reactions must leave.

The classes are made from their names (`Kind_<seed>_<at>`), so that worker processes can import them from here.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from raceway.graph import Effect, Input, Inputs, Output, Processes, Program, Reactor, Timer, reaction
from tests.graph import reference
from tests.graph.behaviour import FreshMind, Writes, behave, spoil, value
from tests.graph.recording import Entry, Member
from tests.graph.reference import Edge, Graph, Kind, Node, Reaction


@dataclass(frozen=True, eq=False)
class Sample(Graph):
    """A random graph: the number it came from, how long it runs, and who may stop it from which round on."""

    seed: int
    rounds: int
    stops_from: Mapping[str, int]

    @property
    def is_in_one_piece(self) -> bool:
        """Whether all reactors are connected, so that their rounds depend on each other."""
        links = [
            {(edge.source[0], writer), (edge.target[0], member)}
            for edge in self.edges
            for member in self.node(edge.target[0]).members
            for writer in self.writers(edge, member)
        ]
        reached = {(self.nodes[0].name, 0)}
        while more := set().union(*(link for link in links if link & reached)) - reached:
            reached |= more
        return len(reached) == sum(len(node.members) for node in self.nodes)


@functools.lru_cache(maxsize=4096)
def random_graph(seed: int) -> Sample:
    """The graph of this number: the first that is not refused because something can never be triggered."""
    choice = random.Random(f"graph {seed}")
    return next(sample for sample in iter(lambda: random_draft(choice, seed), None) if all_can_be_triggered(sample))


def random_draft(choice: random.Random, seed: int) -> Sample:
    kinds = [random_kind(choice, f"Kind_{seed}_{at}") for at in range(choice.randint(1, 4))]
    widths = (None, None, 1, 2, 3, 4)
    nodes = tuple(
        Node(f"node_{at}", kinds[at] if at < len(kinds) else choice.choice(kinds), choice.choice(widths))
        for at in range(choice.randint(len(kinds), 6))
    )
    edges = tuple(random_edges(choice, nodes, random_order(choice, nodes)))
    rounds = choice.randint(5, 16)
    stops = {choice.choice(nodes).name: choice.randint(0, rounds)} if choice.random() < 0.25 else {}
    return Sample(nodes, edges, seed, rounds, stops)


def all_can_be_triggered(sample: Sample) -> bool:
    """Whether something can come to every trigger: from timers and initial values on."""
    written: set[tuple[str, str]] = set()
    while True:
        arriving = {edge.target for edge in sample.edges if edge.source in written or any_present(edge)}
        reactions = [(node, each) for node in sample.nodes for each in node.kind.reactions]
        now = {
            (node.name, effect)
            for node, each in reactions
            if any(trigger in node.kind.timers or (node.name, trigger) in arriving for trigger in each.triggers)
            for effect in each.effects
        }
        if now == written:
            triggers = {(node.name, port) for node, each in reactions for port in each.triggers} - {
                (node.name, timer) for node in sample.nodes for timer in node.kind.timers
            }
            return triggers <= arriving
        written = now


def any_present(edge: Edge) -> bool:
    return any(each is not None for each in edge.initial or ())


def random_kind(choice: random.Random, name: str) -> Kind:
    inputs = tuple(f"in_{at}" for at in range(choice.randint(0, 3)))
    gathers = tuple(f"all_{at}" for at in range(choice.randint(0, 2)))
    outputs = tuple(f"out_{at}" for at in range(choice.randint(1, 3)))
    timers = {f"timer_{at}": (choice.randint(1, 4), choice.randint(0, 3)) for at in range(choice.randint(0, 2))}
    if not inputs + gathers or choice.random() < 0.3:
        timers["always"] = (1, 0)
    reactions = random_reactions(choice, inputs + gathers, tuple(timers), outputs)
    return Kind(name, reactions, inputs, gathers, outputs, timers)


def random_reactions(
    choice: random.Random, ports: tuple[str, ...], timers: tuple[str, ...], outputs: tuple[str, ...]
) -> tuple[Reaction, ...]:
    """Reactions that, together, read nearly every port and may write every output."""
    count = choice.randint(1, 4)
    triggers: list[list[str]] = [[choice.choice(ports + timers)] for _ in range(count)]
    uses: list[list[str]] = [[] for _ in range(count)]
    effects = [choice.sample(outputs, min(len(outputs), choice.choice((0, 1, 1, 2)))) for _ in range(count)]
    for each in timers:
        choice.choice(triggers).append(each)
    for port in (*ports, *choice.choices(ports, k=len(ports))) if ports else ():
        if choice.random() < 0.9:
            choice.choice(choice.choice((triggers, uses))).append(port)
    for output in outputs:
        choice.choice(effects).append(output)
    return tuple(
        Reaction(f"react_{at}", unique(triggers[at]), unique(uses[at], triggers[at]), unique(effects[at]))
        for at in range(count)
    )


def unique(names: list[str], but: list[str] | None = None) -> tuple[str, ...]:
    return tuple(name for name in dict.fromkeys(names) if name not in (but or ()))


Order = Mapping[tuple[str, int], int]
"""When, within a round, each reaction of each node can run if all do so one after the other."""


def random_order(choice: random.Random, nodes: tuple[Node, ...]) -> Order:
    """Node after node, or mingled: then values go out of a reactor and back into a later reaction in one round."""
    turns = [node.name for node in choice.sample(nodes, len(nodes)) for _ in node.kind.reactions]
    if choice.random() < 0.4:
        choice.shuffle(turns)
    return {(name, turns[:at].count(name)): at for at, name in enumerate(turns)}


def random_edges(choice: random.Random, nodes: tuple[Node, ...], order: Order) -> Iterator[Edge]:
    for node in nodes:
        for port in node.kind.inputs:
            # One of a bank of one is heard by all, like one that is alone.
            fitting = [source for source in nodes if source.width in (None, 1, node.width)]
            if fitting and (is_trigger(node.kind, port) or choice.random() < 0.9):
                yield random_edge(choice, choice.choice(fitting), node, port, order)
        for port in node.kind.gathers:
            for _ in range(choice.choice((1, 1, 2, 3) if is_trigger(node.kind, port) else (0, 1, 2))):
                yield random_edge(choice, choice.choice(nodes), node, port, order)


def is_trigger(kind: Kind, port: str) -> bool:
    return any(port in each.triggers for each in kind.reactions)


def random_edge(choice: random.Random, source: Node, target: Node, port: str, order: Order) -> Edge:
    output = choice.choice(source.kind.outputs)
    writers, readers = source.kind.reactions, target.kind.reactions
    written = [order[source.name, at] for at, each in enumerate(writers) if output in each.effects]
    read = [order[target.name, at] for at, each in enumerate(readers) if port in each.triggers + each.uses]
    # What nobody reads is there all the same, until the round ends.
    is_early = max(written) < min(read, default=order[target.name, len(readers) - 1])
    after = choice.choice((0, 0, 0, 0, 1, 2, 3) if is_early else (1, 1, 2, 3))
    initial = tuple(choice.choice((None, value(choice), value(choice))) for _ in range(after))
    capacity = choice.choice((None, choice.randint(max(1, after), after + 4)))
    given = choice.choice((None, initial)) if after else None
    return Edge((source.name, output), (target.name, port), after, given, capacity)


class RandomReactor(Reactor):
    """A reactor that remembers all that it saw."""

    kind: ClassVar[Kind]

    def __init__(self, called: str, stops_from: int | None) -> None:
        self.called = called
        self.stops_from = stops_from
        self.memory = 0
        self.kept: list[np.ndarray] = []
        self.written: dict[str, int] = {}
        self.log: list[Entry] = []

    def act(self, declared: Reaction, seen: tuple[Any, ...]) -> Iterator[Effect]:
        who = (self.called, self.index, self.width)
        deeds = behave(self, who, declared, self.round, seen, self.stops_from)
        if deeds.stops:
            self.stop()
        for port, sent in deeds.writes:
            yield getattr(self, port)(sent)
        spoil(seen)


def by_yield(declared: Reaction) -> Callable[..., Iterator[Effect]]:
    def react(self: RandomReactor, *seen: Any) -> Iterator[Effect]:
        yield from self.act(declared, seen)

    return react


def by_return(declared: Reaction) -> Callable[..., Effect | None]:
    def react(self: RandomReactor, *seen: Any) -> Effect | None:
        # If there is an effect, `act` stays where it is: what it returns must not be spoilt before it is sent.
        return next(self.act(declared, seen), None)

    return react


def __getattr__(name: str) -> type[RandomReactor]:
    """The class of a kind, by its name."""
    if not name.startswith("Kind_"):
        raise AttributeError(name)
    kinds = {node.kind.name: node.kind for node in random_graph(int(name.split("_")[1])).nodes}
    made = reactor_class(kinds[name])
    globals()[name] = made
    return made


def reactor_class(kind: Kind) -> type[RandomReactor]:
    """The class that declares what the kind says."""
    ports: dict[str, Any] = {name: Input[Any]() for name in kind.inputs}
    ports |= {name: Inputs[Any]() for name in kind.gathers}
    ports |= {name: Output[Any]() for name in kind.outputs}
    ports |= {name: Timer(every=every, first=first) for name, (every, first) in kind.timers.items()}
    methods: dict[str, Any] = {}
    for at, each in enumerate(kind.reactions):
        react = by_return(each) if len(each.effects) < 2 and at % 2 else by_yield(each)
        react.__name__ = each.name
        declared = (tuple(ports[name] for name in names) for names in (each.triggers, each.uses, each.effects))
        methods[each.name] = reaction(*declared)(react)
    return type(kind.name, (RandomReactor,), {"kind": kind, "__module__": __name__, **ports, **methods})


def build(sample: Sample, places: Mapping[str, Processes] | None = None) -> Program:
    """The program of a graph, with some of its nodes in worker processes."""
    program = Program(f"sample_{sample.seed}")
    handles = {}
    for node in sample.nodes:
        made = [globals_class(node.kind)(node.name, sample.stops_from.get(node.name)) for _ in node.members]
        handles[node.name] = (
            program.add(made[0], name=node.name) if node.width is None else program.bank(made, name=node.name)
        )
    for edge in sample.edges:
        (source, output), (target, port) = edge.source, edge.target
        ends = getattr(handles[source], output), getattr(handles[target], port)
        program.connect(*ends, after=edge.after, initial=edge.initial, capacity=edge.capacity)
    for name, place in (places or {}).items():
        program.place(handles[name], place)
    return program


def globals_class(kind: Kind) -> type[RandomReactor]:
    return globals().get(kind.name) or __getattr__(kind.name)


@dataclass(frozen=True)
class Expected:
    """What the reference says: every member's record, and the rounds in which somebody asked to stop."""

    record: Mapping[Member, list[Entry]]
    stops: list[int]


@functools.lru_cache(maxsize=512)
def expected(sample: Sample, rounds: int) -> Expected:
    """What so many rounds of the graph mean."""
    minds = {(node.name, index): FreshMind() for node in sample.nodes for index in node.members}
    stops = []

    def act(node: Node, index: int, declared: Reaction, round_: int, seen: tuple[Any, ...]) -> Writes:
        who = (node.name, index, len(node.members))
        deeds = behave(minds[node.name, index], who, declared, round_, seen, sample.stops_from.get(node.name))
        if deeds.stops:
            stops.append(round_)
        return deeds.writes

    reference.interpret(sample, act, rounds)
    return Expected({member: mind.log for member, mind in minds.items()}, stops)
