"""The rules of scheduling: who may run, what has arrived, who waits for whom. It has no threads and runs no reaction.

There is no level and no barrier. Each reactor has one next reaction, and that counts what it still waits for: values
that are not known, connections that are full. Whatever changes takes one off the count of who waits for it; at zero the
reactor is ready, and any thread runs it. All of this happens under the lock of the host.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

import numpy as np

from raceway import _core
from raceway.graph import messages
from raceway.graph.channels import Channel, LatestChannel, QueueChannel
from raceway.graph.cuts import Part
from raceway.graph.errors import StuckError
from raceway.graph.horizon import Horizon
from raceway.graph.messages import Post
from raceway.graph.node import Node, Outlet, Step
from raceway.graph.plan import Plan
from raceway.graph.settings import Reporter, Settings
from raceway.graph.transport import Bell
from raceway.graph.values import Plain, seal, size_of
from raceway.graph.wiring import Wiring

_NEWS_KEPT_NS = 200_000
# Rounds in which nothing happens are passed over under the lock, so not too many at once.
_MOST_SILENT = 200


@dataclass(slots=True)
class Sending:
    """A value that is ready to go out."""

    outlet: Outlet
    value: Any
    letter: Any
    """The same, for other processes."""


class Scheduler:
    """The reactors of one process. Other processes are only a `Post` away."""

    def __init__(self, plan: Plan, wiring: Wiring, settings: Settings, reporter: Reporter, post: Post | None) -> None:
        self.plan = plan
        self.nodes = wiring.nodes
        self.channels = wiring.channels
        self.host = post.exchange.host if post else 0
        self.bell: Bell = post.exchange if post else _core.Bell()
        self.ready: deque[Node] = deque()
        self.is_over = False
        """Nothing more is run."""
        self._arrivals = wiring.arrivals
        self._reporter = reporter
        self._post = post
        if post is not None:
            post.perturb = settings.perturb
        self._unsettled: deque[Node] = deque()
        self.running = 0
        self.has_begun = False
        self._now_ns = perf_counter_ns()
        self._news_since_ns = 0
        self._absent: dict[int, list[int]] = defaultdict(list)
        self._consumed: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        self.horizon = Horizon(plan, self.nodes, settings.snapshot_every)
        self._handlers: dict[int, Callable[..., None]] = {
            messages.VALUE: self._on_value,
            messages.NEWS: self._on_news,
            messages.LATEST: self._on_latest,
            messages.CLOSE: self._on_close,
            messages.STOP: self.end_at,
            messages.MARK: self._mark,
            messages.WIND_UP: self._wind_up,
            messages.CHOOSE_CUT: self._choose_cut,
            messages.REPORT: lambda name, arguments: getattr(reporter, name)(*arguments),
            messages.BEGIN: self._begin,
            messages.FINISH: self._finish,
            messages.ABORT: self._finish,
        }

    def tell(self, host: int, kind: int, *arguments: Any) -> None:
        """Has `host` do something, which may be this one."""
        if host == self.host:
            self._handlers[kind](*arguments)
        else:
            assert self._post is not None
            self._post.tell(host, (kind, *arguments))

    def stop(self, node: Node, last_round: int) -> None:
        node.stops_at = last_round if node.stops_at is None else min(node.stops_at, last_round)
        self.end_at(node.domain, last_round)
        self._reporter.stopped(node.domain)

    def fail(self, where: str, round_: int | None, error: BaseException) -> None:
        self.is_over = True
        self._reporter.failed(where, round_, error)
        self.bell.ring_all()

    def close(self) -> None:
        """Lets go of all values and of the shared memory at once, rather than when cycles are next collected."""
        for node in self.nodes.values():
            for part in (node.inlets, node.outlets, node.steps):
                part.clear()
        self.is_over = True
        for mapping in (self.nodes, self.channels, self._arrivals, self._handlers):
            mapping.clear()
        self._post = None
        self.bell = _core.Bell()

    def _begin(self) -> None:
        self.has_begun = True
        for node in self.nodes.values():
            self._unsettle(node)

    def _finish(self) -> None:
        self.is_over = True
        self.bell.ring_all()

    # Going on.

    def catch_up(self) -> None:
        """Hears what has come from others, and finds out who can run now."""
        self._now_ns = perf_counter_ns()
        if self._post is not None:
            self._receive(self._post)
        self._settle()

    def take(self) -> Node | None:
        """A reactor to run, if there is one."""
        if self.is_over or not self.ready:
            return None
        node = self.ready.popleft()
        node.is_running = True
        self.running += 1
        return node

    def done(self, node: Node, sendings: list[Sending]) -> None:
        """A reaction has run, or a part of a snapshot was taken."""
        self._now_ns = perf_counter_ns()
        node.is_running = False
        self.running -= 1
        if self.is_over:
            return
        for sending in sendings:
            self._publish(sending)
        if node.cuts:
            node.cuts = []
        else:
            self._complete(node, node.step)
        self._unsettle(node)

    def publish(self, sending: Sending) -> None:
        """Sends what a reaction has written while it still runs."""
        self._publish(sending)
        self._settle()

    @property
    def is_settled(self) -> bool:
        """Not if many silent rounds were passed over and there are more to pass."""
        return not self._unsettled

    def _settle(self) -> None:
        left = _MOST_SILENT
        while self._unsettled and left:
            left -= 1
            node = self._unsettled.popleft()
            node.is_unsettled = False
            self._go_on(node)

    def _unsettle(self, node: Node) -> None:
        """Has it looked at again: there may be news for it. Once is enough, or it would run twice."""
        if not node.is_unsettled:
            node.is_unsettled = True
            self._unsettled.append(node)

    def _go_on(self, node: Node) -> None:
        """Goes past reactions that nothing triggers, until one can run or has to wait."""
        first_round = node.round
        while True:
            if node.round - first_round > _MOST_SILENT:
                self._unsettle(node)
                return
            if node.at == 0 and not self._may_begin(node):
                return
            step = node.steps[node.at]
            round_ = node.round
            missing = 0
            for inlet in step.waits:
                missing += inlet.lacks(round_)
            for outlet, channel in step.bounded:
                if channel.is_full(round_) and outlet.written != round_:
                    channel.writer_waits = True
                    missing += 1
            node.missing = missing
            if missing:
                node.waits_since_ns = self._now_ns
                return
            for latest in step.latest:
                latest.open()
            if step.is_triggered(round_):
                self.ready.append(node)
                return
            self._complete(node, step)

    def _may_begin(self, node: Node) -> bool:
        if node.cuts:
            return False  # it is about to give its part of a snapshot, and is asked again after that
        if self.horizon.has_cuts:
            node.cuts = self.horizon.due_cuts(node)
            if node.cuts:
                self.ready.append(node)
                return False
        if node.round > node.last_round:
            if not node.has_ended:
                self._end(node)
            return False
        if node.gate and not self.horizon.is_ending(node.domain) and not any(inlet.has_news() for inlet in node.gate):
            node.at_gate = True
            return False
        return True

    def _complete(self, node: Node, step: Step) -> None:
        """A reaction has run, or was passed over: nobody writes or reads any more what it was the last to."""
        for outlet in step.closes:
            if outlet.written != node.round:
                self._publish_absence(outlet)
        for inlet in step.releases:
            for channel in inlet.release():
                self._acknowledge(channel)
        node.at += 1
        if node.at == len(node.steps):
            node.at = 0
            node.round += 1

    def _end(self, node: Node) -> None:
        node.has_ended = True
        loose = [c for c in self.channels.values() if not c.ordered and (c.writer is node or c.reader is node)]
        self._on_close([channel.connection.id for channel in loose])
        for channel in loose:
            for end in (channel.connection.source, channel.connection.target):
                if self.plan.members[end].host != self.host:
                    self.tell(self.plan.members[end].host, messages.CLOSE, [channel.connection.id])
        if not node.open_parts:
            self._reporter.ended(node.id)

    def check_stuck(self) -> None:
        """When nobody is at work and somebody waits, nothing can ever happen again. Others may be at work elsewhere."""
        waiting = [node for node in self.nodes.values() if not node.has_ended]
        if self._post is None and self.has_begun and self.is_settled and waiting and not self.running:
            reasons = ", ".join(f"{node.name} (round {node.round}) for {node.lacks()}" for node in waiting)
            self.fail("", None, StuckError(f"Nothing can go on. These wait: {reasons}."))

    def _wake(self, node: Node, by: str) -> None:
        node.missing -= 1
        if node.missing == 0:
            node.waited[by] = node.waited.get(by, 0) + max(0, self._now_ns - node.waits_since_ns)
            self._unsettle(node)

    # Values.

    def _publish(self, sending: Sending) -> None:
        outlet, value = sending.outlet, sending.value
        outlet.moved_values += 1
        outlet.moved_bytes += size_of(value)
        for channel in outlet.channels:
            self._deliver(channel, value)
        for channel in outlet.away:
            if isinstance(channel, LatestChannel):
                self.send_latest(channel, value)
            elif isinstance(channel, QueueChannel):
                channel.underway += 1
        if sending.letter is not None and self._post is not None:
            for host in outlet.hosts:
                if host in self._absent:
                    # An earlier round's absence comes before this value.
                    self._send_news_to(host)
                self._post.send(host, sending.letter)

    def _publish_absence(self, outlet: Outlet) -> None:
        for channel in outlet.channels:
            if channel.ordered:
                self._deliver(channel, None)
        for host in outlet.hosts_with_order:
            self._absent[host].append(outlet.id)

    def _deliver(self, channel: Channel, value: Any) -> None:
        reader = channel.reader
        assert reader is not None
        if channel.put(value):
            self._wake(reader, channel.for_value)
        elif reader.at_gate:
            reader.at_gate = False
            self._unsettle(reader)

    def _acknowledge(self, channel: Channel) -> None:
        if channel.writer is None:
            source = self.plan.members[channel.connection.source].host
            self._consumed[source][channel.connection.id] += 1
        elif channel.acknowledge(1):
            self._wake(channel.writer, channel.for_room)

    def send_news(self, busy_ns: float | None = None) -> None:
        """Tells others what was not written and what was read. For the sake of few messages it is done before a wait,
        or when it would otherwise come too late because of a reaction that takes `busy_ns`.
        """
        if not (self._absent or self._consumed):
            self._news_since_ns = self._now_ns
        elif busy_ns is None or self._now_ns - self._news_since_ns + busy_ns > _NEWS_KEPT_NS:
            for host in {*self._absent, *self._consumed}:
                self._send_news_to(host)

    def _send_news_to(self, host: int) -> None:
        assert self._post is not None
        self._post.tell(host, (messages.NEWS, self._absent.pop(host, []), dict(self._consumed.pop(host, {}))))

    def send_latest(self, channel: LatestChannel, value: Any) -> None:
        """One at a time, so that values for a reader that is busy do not pile up: the newest is kept until then."""
        reader = self.plan.members[channel.connection.target]
        if reader.is_expendable:
            channel.value = value  # for its next process, and for snapshots
        if channel.sending:
            channel.pending = value
            return
        channel.sending = True
        self.tell(reader.host, messages.LATEST, channel.connection.id, value)

    # Messages of other processes.

    def _receive(self, post: Post) -> None:
        if post.is_behind:
            post.catch_up()
        for kind, *arguments in post.receive():
            self._handlers[kind](*arguments)

    def _on_value(self, outlet: int, value: Any) -> None:
        if type(value) is not np.ndarray:
            value = seal(value)  # of a lone array the memory is read-only anyway
        for channel in self._arrivals[outlet]:
            self._deliver(channel, value)

    def _on_news(self, absent: list[int], consumed: dict[int, int]) -> None:
        for outlet in absent:
            for channel in self._arrivals[outlet]:
                if channel.ordered:
                    self._deliver(channel, None)
        for connection, count in consumed.items():
            channel = self.channels[connection]
            if channel.acknowledge(count) and channel.writer is not None:
                self._wake(channel.writer, channel.for_room)
            if isinstance(channel, LatestChannel) and channel.pending is not None:
                value, channel.pending = channel.pending, None
                self.send_latest(channel, value)

    def _on_latest(self, connection: int, value: Any) -> None:
        channel = self.channels[connection]
        self._deliver(channel, seal(value))
        self._consumed[self.plan.members[channel.connection.source].host][connection] += 1

    def _on_close(self, connections: list[int]) -> None:
        for connection in connections:
            channel = self.channels[connection]
            reader_waited, writer_waited = channel.close()
            if reader_waited and channel.reader is not None:
                self._wake(channel.reader, channel.for_value)
            if writer_waited and channel.writer is not None:
                self._wake(channel.writer, channel.for_room)

    # Ends and snapshots: each is told to all others before anything else, and passed on by each, so that no reactor can
    # have come further by values that were sent later.

    def end_at(self, domain: int, last_round: int) -> None:
        if self.horizon.end_at(domain, last_round):
            if self._post is not None:
                self._post.tell_others((messages.STOP, domain, last_round))
            self._look_again(domain)

    def _wind_up(self, domain: int) -> None:
        self.end_at(domain, self.horizon.round_ahead(domain))

    def _choose_cut(self, domain: int, cut: int) -> None:
        self._mark(domain, self.horizon.round_ahead(domain), cut)

    def _mark(self, domain: int, round_: int, cut: int) -> None:
        if self.horizon.mark(domain, round_, cut):
            if self._post is not None:
                self._post.tell_others((messages.MARK, domain, round_, cut))
            self._look_again(domain)

    def _look_again(self, domain: int) -> None:
        """Those who wait before a round, or have none left, may have something else to do first."""
        for node in self.horizon.of(domain):
            if not node.has_begun_round:
                node.at_gate = False
                self._unsettle(node)

    def cut(self, node: Node, state: Plain) -> None:
        """Takes its part of the snapshots that are due: its state, and what is on its way to it."""
        pending = node.stops_at if node.stops_at is not None and node.stops_at >= node.round else None
        for cut in node.cuts:
            self.horizon.take(node, cut)
            node.open_parts += 1
            part = Part(cut, node.id, node.round - 1, state, stops_at=pending, when_complete=self._part_is_complete)
            for inlet in node.inlets.values():
                for channel in inlet.channels:
                    channel.cut(part)
            part.report()

    def _part_is_complete(self, part: Part) -> None:
        node = self.nodes[part.member]
        node.open_parts -= 1
        self._reporter.cut(part)
        if node.has_ended and not node.open_parts:
            self._reporter.ended(node.id)
