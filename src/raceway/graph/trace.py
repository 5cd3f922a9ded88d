"""What happened when: a Chrome trace, which Perfetto and chrome://tracing show."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from raceway.graph.node import Step


class Events:
    """What one thread did. This one forgets it: tracing is off by default."""

    def ran(self, step: Step, round_: int, start_ns: int, end_ns: int) -> None:
        pass

    def waited(self, start_ns: int, end_ns: int) -> None:
        pass


@dataclass
class Track:
    """The events of one thread, ready to travel: (reaction, or None for a wait; round; start; end)."""

    host: int
    thread: str
    events: list[tuple[str | None, int, int, int]]


class Recorder(Events):
    """Keeps what one thread did: as bare numbers, which the garbage collector does not walk through."""

    def __init__(self) -> None:
        self._numbers = array("q")
        self._names: dict[int, str] = {}

    def ran(self, step: Step, round_: int, start_ns: int, end_ns: int) -> None:
        self._names[id(step)] = step.name
        self._numbers.extend((id(step), round_, start_ns, end_ns))

    def waited(self, start_ns: int, end_ns: int) -> None:
        self._numbers.extend((0, 0, start_ns, end_ns))

    def track(self, host: int, thread: str) -> Track:
        numbers = iter(self._numbers)
        fours = zip(numbers, numbers, numbers, numbers, strict=True)
        events = [(self._names.get(step), round_, start, end) for step, round_, start, end in fours]
        return Track(host, thread, events)


def write_trace(path: Path, name: str, tracks: Sequence[Track]) -> None:
    """Writes the events of all threads, and beneath them which reactor was in which round."""
    begin = min((start for track in tracks for _, _, start, _ in track.events), default=0)
    events: list[dict[str, Any]] = []
    for host in sorted({track.host for track in tracks}):
        mine = [track for track in tracks if track.host == host]
        events.append(_named("process_name", host, 0, name if host == 0 else f"worker process {host}"))
        for thread, track in enumerate(mine):
            events.append(_named("thread_name", host, thread, track.thread))
            events += [_slice(host, thread, begin, *event) for event in track.events]
        events += _rounds(host, len(mine), begin, mine)
    path.write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}))


def _named(kind: str, host: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": host, "tid": thread, "args": {"name": name}}


def _slice(host: int, thread: int, begin: int, what: str | None, round_: int, start: int, end: int) -> dict[str, Any]:
    event = {"ph": "X", "pid": host, "tid": thread, "ts": (start - begin) / 1e3, "dur": (end - start) / 1e3}
    if what is None:
        return event | {"name": "wait", "cat": "wait"}
    return event | {"name": what, "cat": "reaction", "args": {"round": round_}}


def _rounds(host: int, first_thread: int, begin: int, tracks: Sequence[Track]) -> list[dict[str, Any]]:
    """One line per reactor: its rounds, each from the start of its first reaction to the end of its last."""
    spans: dict[str, dict[int, tuple[int, int]]] = {}
    for what, round_, start, end in (event for track in tracks for event in track.events):
        if what is not None:
            rounds = spans.setdefault(what.rpartition(".")[0], {})
            first, last = rounds.get(round_, (start, end))
            rounds[round_] = min(first, start), max(last, end)
    events = []
    for thread, reactor in enumerate(sorted(spans), first_thread):
        events.append(_named("thread_name", host, thread, f"rounds of {reactor}"))
        for round_, (start, end) in sorted(spans[reactor].items()):
            events.append(_slice(host, thread, begin, f"round {round_}", round_, start, end) | {"cat": "round"})
    return events
