"""What a run spent its time on: per reaction, per wait, per connection; and in one line, what held it up."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from raceway.graph.trace import Track

if TYPE_CHECKING:
    from raceway.graph.run import Outcome
    from raceway.graph.scheduler import Scheduler

Item = TypeVar("Item")
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class ReactionTime:
    """How often a reaction ran, and for how long."""

    reactor: str
    reaction: str
    calls: int
    seconds: float


@dataclass(frozen=True)
class Wait:
    """How long a reactor waited for something: an input, or room for an output."""

    reactor: str
    reason: str
    seconds: float


@dataclass(frozen=True)
class Moved:
    """What went over a connection."""

    connection: str
    values: int
    bytes: int
    between_processes: bool


@dataclass
class HostReport:
    """What one process did, as it tells the coordinator at the end."""

    rounds: dict[str, int] = field(default_factory=dict)
    """Rounds that each reactor has done."""
    reactions: list[ReactionTime] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    moved: list[Moved] = field(default_factory=list)
    tracks: list[Track] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    """What shutdown reactions raised."""


def report_of(scheduler: Scheduler) -> HostReport:
    report = HostReport()
    for node in scheduler.nodes.values():
        report.rounds[node.name] = node.round
        for step in node.steps:
            reaction = step.name.rpartition(".")[2]
            report.reactions.append(ReactionTime(node.name, reaction, step.calls, step.busy_ns / 1e9))
        report.waits += [Wait(node.name, reason, ns / 1e9) for reason, ns in node.waited.items()]
        for outlet in node.outlets.values():
            for channel in (*outlet.channels, *outlet.away):
                key = channel.connection.key(scheduler.plan.members)
                report.moved.append(Moved(key, outlet.moved_values, outlet.moved_bytes, channel.reader is None))
    return report


def summary_of(outcome: Outcome) -> str:
    lines = [_headline(outcome), "", *_reaction_lines(outcome), "", *_wait_lines(outcome), "", *_moved_lines(outcome)]
    return "\n".join([*lines, "", bottleneck(outcome)])


def bottleneck(outcome: Outcome) -> str:
    """In one line: what held the run up."""
    busy = _busy_shares(outcome)
    name = max(busy, key=lambda reactor: busy[reactor])
    together = sum(busy.values())
    # Reactors that overlap are together at work for more than the whole time.
    take_turns = busy[name] < 0.75 and 0.7 <= together <= 1.1
    if busy[name] >= 0.5 and not take_turns:
        return f"Bottleneck: {name} is at work {busy[name]:.0%} of the time{_who_waits(outcome, name)}."
    if take_turns:
        return (
            f"Bottleneck: the reactors take turns; none is at work more than {busy[name]:.0%} of the time, together "
            f"they are {together:.0%}. A delay (`after`) on a connection would let them overlap."
        )
    return f"Bottleneck: handing over. No reactor is at work more than {busy[name]:.0%} of the time; rounds are short."


def _busy_shares(outcome: Outcome) -> dict[str, float]:
    """By reactor or bank: the share of the time that (the busiest of) it is at work."""
    busy: dict[str, float] = defaultdict(float)
    for reaction in outcome.reactions:
        busy[reaction.reactor] += reaction.seconds
    shares: dict[str, float] = defaultdict(float)
    for reactor, seconds in busy.items():
        group = _group(reactor)
        shares[group] = max(shares[group], seconds / max(outcome.seconds, 1e-9))
    return shares


def _who_waits(outcome: Outcome, name: str) -> str:
    others = [wait for wait in outcome.waits if _group(wait.reactor) != name]
    if not others:
        return ""
    longest = max(others, key=lambda wait: wait.seconds)
    share = longest.seconds / max(outcome.seconds, 1e-9)
    return f"; {_group(longest.reactor)} waits {share:.0%} of it for {longest.reason}" if share >= 0.1 else ""


def _group(reactor: str) -> str:
    return reactor.partition("[")[0]


def _headline(outcome: Outcome) -> str:
    rate = outcome.rounds_run / max(outcome.seconds, 1e-9)
    why = {"rounds": "as asked", "stopped": "stopped", "interrupted": "interrupted"}[outcome.reason]
    return f"{outcome.rounds_run:,} rounds in {_time(outcome.seconds)} ({rate:,.0f} a second), {why}"


def _reaction_lines(outcome: Outcome) -> list[str]:
    rows = [("reaction", "calls", "total", "each", "share")]
    for name, found in _grouped(outcome.reactions, lambda r: f"{_group(r.reactor)}.{r.reaction}").items():
        calls, seconds = sum(r.calls for r in found), sum(r.seconds for r in found)
        width = f" ×{len(found)}" if len(found) > 1 else ""
        share = seconds / len(found) / max(outcome.seconds, 1e-9)
        rows.append((name + width, f"{calls:,}", _time(seconds), _time(seconds / max(calls, 1)), f"{share:.0%}"))
    return _table(rows)


def _wait_lines(outcome: Outcome) -> list[str]:
    rows = [("waits", "for", "total", "share")]
    for (name, reason), found in _grouped(outcome.waits, lambda w: (_group(w.reactor), w.reason)).items():
        seconds = sum(wait.seconds for wait in found) / len(found)
        rows.append((name, reason, _time(seconds), f"{seconds / max(outcome.seconds, 1e-9):.0%}"))
    return _table(rows)


def _moved_lines(outcome: Outcome) -> list[str]:
    rows = [("connection", "values", "data", "")]
    for name, found in _grouped(outcome.moved, lambda m: _without_indices(m.connection)).items():
        size = _bytes(sum(moved.bytes for moved in found))
        where = "between processes" if any(moved.between_processes for moved in found) else ""
        rows.append((name, f"{sum(moved.values for moved in found):,}", size, where))
    return _table(rows)


def _without_indices(connection: str) -> str:
    return re.sub(r"\[\d+\]", "", connection)


def _grouped(items: Sequence[Item], key: Callable[[Item], K]) -> dict[K, list[Item]]:
    groups: dict[K, list[Item]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    aligned = (
        [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))] for row in rows
    )
    return ["  ".join(cells).rstrip() for cells in aligned]


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.0f} ns"


def _bytes(count: int) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count} bytes"
