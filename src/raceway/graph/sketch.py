"""A program's drawing: banks once, places as groups, what is special about each connection on its arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from raceway.graph.draw import Arrow, Box, Drawing, Port, Reaction
from raceway.graph.places import Place, Threads
from raceway.graph.plan import Connection, Plan
from raceway.graph.ports import Input, Inputs, Output, Timer
from raceway.graph.reactor import Reaction as Declared
from raceway.graph.reactor import Reactor, Trigger


def sketch(
    title: str, groups: Mapping[str, Sequence[Reactor]], places: Mapping[str, Place | Threads], plan: Plan
) -> Drawing:
    boxes = tuple(_box(name, reactors, places.get(name, Threads())) for name, reactors in groups.items())
    arrows = dict.fromkeys(_arrow(c, plan) for c in plan.connections)
    return Drawing(title, boxes, tuple(arrows))


def _box(name: str, reactors: Sequence[Reactor], place: Place | Threads) -> Box:
    reactor = reactors[0]
    return Box(
        name=name,
        kind=type(reactor).__name__,
        width=len(reactors),
        place="" if isinstance(place, Threads) else place.label,
        inputs=tuple(_port(p.name, p.type) for p in reactor.ports.values() if isinstance(p, (Input, Inputs))),
        outputs=tuple(_port(p.name, p.type) for p in reactor.ports.values() if isinstance(p, Output)),
        reactions=tuple(_reaction(declared) for declared in reactor.reactions),
    )


def _port(name: str, type_: Any) -> Port:
    return Port(name, type_name(type_))


def type_name(type_: Any) -> str:
    """Short: without modules and arguments."""
    if type_ is Any:
        return ""
    if isinstance(type_, str):
        return type_
    name = getattr(type_, "__name__", None)
    if name is not None:
        return str(name)
    return " | ".join(type_name(part) for part in get_args(type_)) or str(type_)


def _reaction(declared: Declared) -> Reaction:
    return Reaction(
        declared.name,
        tuple(_trigger(trigger) for trigger in declared.triggers),
        tuple(port.name for port in declared.uses),
        tuple(port.name for port in declared.effects),
    )


def _trigger(trigger: Trigger) -> str:
    return str(trigger) if isinstance(trigger, Timer) else trigger.name


def _arrow(c: Connection, plan: Plan) -> Arrow:
    source, target = plan.members[c.source].group, plan.members[c.target].group
    return Arrow(source, c.output, target, c.input, _label(c), c.kind)


def _label(c: Connection) -> str:
    if c.kind == "queue":
        return f"queue {c.capacity}"
    if c.kind == "latest":
        return "latest"
    return f"after {c.delay}" if c.delay else ""
