"""Makes the nodes of one process from the plan: channels, inlets, outlets, compiled steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from raceway.graph.channels import AfterChannel, Channel, LatestChannel, Line, QueueChannel
from raceway.graph.inlets import Gather, Inlet, LatestInlet, QueueInlet, Single, Unconnected
from raceway.graph.node import Node, Outlet, Step
from raceway.graph.plan import Connection, Plan
from raceway.graph.ports import Input, Inputs, Output
from raceway.graph.reactor import Reaction, Reactor


@dataclass
class Wiring:
    """What one process knows of the graph: its own reactors, and the connections that touch them."""

    nodes: dict[int, Node] = field(default_factory=dict)
    channels: dict[int, Channel] = field(default_factory=dict)
    """By connection."""
    arrivals: dict[int, list[Channel]] = field(default_factory=lambda: defaultdict(list))
    """By outlet in another process: the channels here that its values come to."""


def wire(
    plan: Plan, host: int, reactors: Mapping[int, Reactor], rounds: Sequence[int], values: Mapping[int, list[Any]]
) -> Wiring:
    """`rounds`: where each member begins; `values`: what lies on each connection then (if its reader is elsewhere, only
    how many there are counts).
    """
    wiring = Wiring()
    for member in plan.members:
        if member.host == host:
            reactor = reactors[member.id]
            first = rounds[member.id]
            node = Node(member.id, member.name, reactor, plan.domains[member.id], round=first, first_round=first)
            node.is_expendable = member.is_expendable
            wiring.nodes[member.id] = node
    lines: dict[tuple[int, str], Line] = defaultdict(Line)
    for connection in plan.connections:
        if host in (plan.members[connection.source].host, plan.members[connection.target].host):
            line = lines[connection.target, connection.input]
            reader = wiring.nodes.get(connection.target)
            waiting = values[connection.id]
            channel = _channel(connection, rounds[connection.target], waiting if reader else [], line)
            if reader is None and isinstance(channel, QueueChannel):
                channel.underway = len(waiting)
            channel.writer = wiring.nodes.get(connection.source)
            channel.reader = reader
            wiring.channels[connection.id] = channel
    for connection in plan.connections:
        arriving = wiring.channels.get(connection.id)
        if arriving is not None and arriving.writer is None and connection.kind != "latest":
            wiring.arrivals[plan.outlets[connection.source, connection.output]].append(arriving)
    for node in wiring.nodes.values():
        node.inlets = _inlets(plan, node, wiring, lines)
        if node.id in plan.driven:
            node.gate = [latest for inlet in node.inlets.values() for latest in _latest(inlet)]
        node.outlets = _outlets(plan, node, wiring)
        node.steps = _steps(node)
    return wiring


def _channel(connection: Connection, first_round: int, values: list[Any], line: Line) -> Channel:
    if connection.kind == "after":
        return AfterChannel(connection, first_round, values)
    channel: Channel = QueueChannel(connection, line) if connection.kind == "queue" else LatestChannel(connection)
    for value in values:
        channel.put(value)
    return channel


def _inlets(plan: Plan, node: Node, wiring: Wiring, lines: Mapping[tuple[int, str], Line]) -> dict[str, Inlet]:
    into: dict[str, list[Channel]] = defaultdict(list)
    for connection in plan.by_target.get(node.id, ()):
        into[connection.input].append(wiring.channels[connection.id])
    triggers = {t.name for declared in node.reactor.reactions for t in declared.triggers}
    inlets: dict[str, Inlet] = {}
    for name, port in node.reactor.ports.items():
        channels = into[name]
        if isinstance(port, Inputs):
            inlets[name] = Gather([_inlet(channel) for channel in channels])
        elif isinstance(port, Input) and channels and isinstance(channels[0], QueueChannel):
            queues = [channel for channel in channels if isinstance(channel, QueueChannel)]
            inlets[name] = QueueInlet(queues, lines[node.id, name], name in triggers)
        elif isinstance(port, Input):
            inlets[name] = _inlet(channels[0]) if channels else Unconnected()
    return inlets


def _inlet(channel: Channel) -> Inlet:
    return LatestInlet(channel) if isinstance(channel, LatestChannel) else Single(_ordered(channel))


def _latest(inlet: Inlet) -> list[LatestInlet]:
    inlets = inlet.inlets if isinstance(inlet, Gather) else [inlet]
    return [one for one in inlets if isinstance(one, LatestInlet)]


def _ordered(channel: Channel) -> AfterChannel:
    assert isinstance(channel, AfterChannel)
    return channel


def _outlets(plan: Plan, node: Node, wiring: Wiring) -> dict[str, Outlet]:
    outlets = {}
    for name, port in node.reactor.ports.items():
        if isinstance(port, Output):
            outlet = outlets[name] = Outlet(plan.outlets.get((node.id, name), -1), name)
            for connection in plan.by_output.get((node.id, name), ()):
                channel = wiring.channels[connection.id]
                (outlet.channels if channel.reader is not None else outlet.away).append(channel)
            hosts = [(plan.members[channel.connection.target].host, channel) for channel in outlet.away]
            outlet.hosts = tuple(sorted({host for host, c in hosts if not isinstance(c, LatestChannel)}))
            outlet.hosts_with_order = tuple(sorted({host for host, c in hosts if c.ordered}))
    return outlets


def _steps(node: Node) -> list[Step]:
    declared = [reaction for reaction in node.reactor.reactions if reaction.moment is None]
    steps = [_step(node, reaction) for reaction in declared]
    for outlet in node.outlets.values():
        writers = [step for step in steps if outlet.name in step.outlets]
        (writers or steps)[-1].closes.append(outlet)
    for inlet in node.inlets.values():
        readers = [step for step in steps if inlet in step.waits]
        (readers or steps)[-1].releases.append(inlet)
        if not readers:
            # Nobody reads it, but it must be there before it can be thrown away.
            steps[-1].waits.append(inlet)
    for step in steps:
        step.latest = [latest for inlet in step.waits for latest in _latest(inlet)]
        written = dict.fromkeys((*step.outlets.values(), *step.closes))
        channels = [(outlet, channel) for outlet in written for channel in (*outlet.channels, *outlet.away)]
        step.bounded = [both for both in channels if not isinstance(both[1], LatestChannel)]
    return steps


def _step(node: Node, declared: Reaction) -> Step:
    step = Step(f"{node.name}.{declared.name}", getattr(node.reactor, declared.name))
    step.arguments = [node.inlets[port.name] for port in declared.reads]
    step.waits = list(dict.fromkeys(step.arguments))
    step.triggers = [node.inlets[t.name] for t in declared.triggers if isinstance(t, (Input, Inputs))]
    step.timers = list(declared.timers)
    step.outlets = {port.name: node.outlets[port.name] for port in declared.effects}
    return step
