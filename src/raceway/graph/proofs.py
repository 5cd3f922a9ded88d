"""What is proved of the whole graph before it runs: everything can be triggered, and nothing waits for itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from raceway.graph.errors import GraphError
from raceway.graph.plan import Connection, Plan
from raceway.graph.ports import Input, Inputs
from raceway.graph.reactor import Reaction, Reactor
from raceway.graph.snapshot import Snapshot


def check_plan(plan: Plan, reactors: Sequence[Reactor]) -> None:
    _check_expendable(plan)
    _check_reachable(plan, reactors)
    _check_causality(plan, reactors)


def _check_expendable(plan: Plan) -> None:
    for member in plan.members:
        if not member.is_expendable:
            continue
        if member.id not in plan.driven:
            raise GraphError(
                f"{member.name} is placed in a process with `restarts`, but it has a trigger that is no `latest` "
                "connection, so others may wait for it. Leave out `restarts`, or connect its triggers with latest=True."
            )
        for c in plan.connections:
            ends = {plan.members[c.source], plan.members[c.target]}
            others = {end.host for end in ends} - {0, member.host}
            if member in ends and (c.kind != "latest" or others):
                where = f"goes to another worker process ({min(others)})" if others else f"is of the kind `{c.kind}`"
                raise GraphError(
                    f"{member.name} is placed in a process with `restarts`, so its connections must be `latest`, with "
                    f"reactors of the main process or of its own: {c.key(plan.members)} {where}."
                )


def check_snapshot(snapshot: Snapshot, plan: Plan) -> None:
    """That it is of a program that was built in the same way."""
    for what, ours, theirs in (
        ("reactors", {member.name for member in plan.members}, set(snapshot.reactors)),
        ("connections", {c.key(plan.members) for c in plan.connections}, set(snapshot.values)),
    ):
        if ours != theirs:
            only = f"Only in the snapshot: {_listed(theirs - ours)}. Only in the program: {_listed(ours - theirs)}."
            raise GraphError(f"The snapshot is of another program: its {what} differ. {only}")
    for c in plan.connections:
        saved = len(snapshot.values[c.key(plan.members)])
        if c.kind == "after" and saved != c.delay:
            raise GraphError(
                f"The snapshot is of another program: {c.key(plan.members)} has after={c.delay} here, {saved} there."
            )


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _regular(reactor: Reactor) -> list[Reaction]:
    return [reaction for reaction in reactor.reactions if reaction.moment is None]


def _check_reachable(plan: Plan, reactors: Sequence[Reactor]) -> None:
    """Every trigger: from timers and initial values on, along reactions that can run."""
    written: set[tuple[int, str]] = set()

    def brings(c: Connection) -> bool:
        return (c.source, c.output) in written or any(value is not None for value in c.initial)

    def reachable() -> set[tuple[int, str]]:
        return {(c.target, c.input) for c in plan.connections if brings(c)}

    while True:
        inputs = reachable()
        runnable = [
            (member, reaction)
            for member, reactor in enumerate(reactors)
            for reaction in _regular(reactor)
            if reaction.timers or any((member, t.name) in inputs for t in reaction.triggers)
        ]
        now = {(member, effect.name) for member, reaction in runnable for effect in reaction.effects}
        if now == written:
            break
        written = now
    for member, reactor in enumerate(reactors):
        for reaction in _regular(reactor):
            for trigger in reaction.triggers:
                if isinstance(trigger, (Input, Inputs)) and (member, trigger.name) not in inputs:
                    _refuse_trigger(plan, member, reaction, trigger)


def _refuse_trigger(plan: Plan, member: int, reaction: Reaction, trigger: Input[object] | Inputs[object]) -> None:
    port = f"{plan.members[member].name}.{trigger.name}"
    what = f"{port} triggers {reaction.name}, but nothing can ever arrive there: "
    writers = [c for c in plan.by_target.get(member, ()) if c.input == trigger.name]
    if not writers:
        raise GraphError(f"{what}it is not connected. Connect it, or list it under `uses` if it is optional.")
    sources = ", ".join(sorted({f"{plan.members[c.source].name}.{c.output}" for c in writers}))
    raise GraphError(
        f"{what}{sources} is never written, for want of a trigger that comes of itself. Give some reaction on the way "
        "a Timer(), or a connection with `after` initial values."
    )


@dataclass(frozen=True)
class _Hop:
    """One reaction has to run before another in the same round: because of a connection, or of their order."""

    to: tuple[int, int]
    connection: Connection | None


def _hops(plan: Plan, reactors: Sequence[Reactor]) -> dict[tuple[int, int], list[_Hop]]:
    hops: dict[tuple[int, int], list[_Hop]] = defaultdict(list)
    for member, reactor in enumerate(reactors):
        for i in range(len(_regular(reactor)) - 1):
            hops[member, i].append(_Hop((member, i + 1), None))
    for c in plan.connections:
        if c.kind == "after" and c.delay == 0:
            for i in _writers(reactors[c.source], c.output):
                hops[c.source, i] += [_Hop((c.target, j), c) for j in _readers(reactors[c.target], c.input)]
    return hops


def _writers(reactor: Reactor, name: str) -> list[int]:
    reactions = _regular(reactor)
    writers = [i for i, reaction in enumerate(reactions) if any(port.name == name for port in reaction.effects)]
    # What nobody writes is known to be absent after the last reaction.
    return writers or [len(reactions) - 1]


def _readers(reactor: Reactor, name: str) -> list[int]:
    reactions = _regular(reactor)
    readers = [i for i, reaction in enumerate(reactions) if any(port.name == name for port in reaction.reads)]
    # What nobody reads is thrown away by the last reaction.
    return readers or [len(reactions) - 1]


def _check_causality(plan: Plan, reactors: Sequence[Reactor]) -> None:
    hops = _hops(plan, reactors)
    loop = _find_loop(hops)
    if loop is None:
        return
    connections = [hop.connection for hop in loop if hop.connection is not None]
    lines = [f"  {c.key(plan.members)}" for c in connections]
    first = connections[-1]
    source = f"{plan.members[first.source].group}.{first.output}"
    target = f"{plan.members[first.target].group}.{first.input}"
    raise GraphError(
        "Within a round these connections wait for each other:\n"
        + "\n".join(lines)
        + f"\nA delay on any of them breaks the loop, for example connect({source}, {target}, after=1, initial=[...])."
    )


def _find_loop(hops: dict[tuple[int, int], list[_Hop]]) -> list[_Hop] | None:
    """The hops of some loop, found by walking depth first without recursion: graphs may be deep."""
    done: set[tuple[int, int]] = set()
    for root in list(hops):
        if root in done:
            continue
        path: list[_Hop] = [_Hop(root, None)]
        on_path = {root: 0}
        walks: list[Iterator[_Hop]] = [iter(hops[root])]
        while walks:
            hop = next(walks[-1], None)
            if hop is None:
                walks.pop()
                left = path.pop().to
                del on_path[left]
                done.add(left)
            elif hop.to in on_path:
                return [*path[on_path[hop.to] + 1 :], hop]
            elif hop.to not in done:
                on_path[hop.to] = len(path)
                path.append(hop)
                walks.append(iter(hops.get(hop.to, ())))
    return None
