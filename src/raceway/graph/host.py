"""The threads of one process, and the reactions that they run: everything that must not hold the lock."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from time import perf_counter_ns
from typing import Any, Protocol

import numpy as np

from raceway._core import Exchange, Patience, usable_cpus
from raceway.graph import messages
from raceway.graph.messages import Post
from raceway.graph.node import Node, Step
from raceway.graph.plan import Plan
from raceway.graph.ports import Effect
from raceway.graph.reactor import Reactor
from raceway.graph.scheduler import Scheduler, Sending
from raceway.graph.settings import Reporter, Settings
from raceway.graph.trace import Events
from raceway.graph.transport import Bell, Transport
from raceway.graph.values import copy_plain, seal
from raceway.graph.wiring import Wiring
from raceway.loans import lend

# Another thread is woken for what takes much longer than waking it and passing it the interpreter's lock.
_WORTH_NS = 500_000
# A reaction that should be short is late.
_LATE_NS = 1_000_000
_MOST_WAIT_S = 0.1
# Another process answers a message within some tens of microseconds, if it answers at once. Threads of one process wait
# for each other's lock anyway.
_SPIN_US = 200.0


class Caller(Protocol):
    """The thread that called `run`, when it runs reactions itself."""

    @property
    def bell(self) -> Bell:
        """Rings when there is something for it."""

    def attend(self) -> None:
        """Sees to that: between reactions, and outside the lock."""


class Host:
    """Runs the reactors of this process."""

    def __init__(self, plan: Plan, wiring: Wiring, settings: Settings, reporter: Reporter, post: Post | None) -> None:
        self.lock = threading.Lock()
        self.scheduler = Scheduler(plan, wiring, settings, reporter, post)
        """Touched under the lock only."""
        self._post = post
        self._arena: Transport | None = post.exchange if post else None
        self._settings = settings
        self._idle = 0
        self._has_spinner = False
        self._short = 0
        """Threads that run reactions that usually are short."""
        self._short_since_ns = 0

    def stop(self, reactor: Reactor) -> None:
        """A reaction wants to end the run: at a round that every run of this graph would end at."""
        scheduler = self.scheduler
        node = next(node for node in scheduler.nodes.values() if node.reactor is reactor)
        last_round = node.round + scheduler.plan.lead(node.id)
        with self.lock:
            scheduler.stop(node, last_round)

    def lease(self, size: int) -> np.ndarray:
        """Memory for a value to be sent: see `OutputEnd.empty`."""
        with self.lock:
            if self._arena is None:
                self._arena = _private_exchange()
        return lend(self._arena.lease(size))

    def close(self) -> None:
        with self.lock:
            self.scheduler.close()
            self._post = self._arena = None

    def look_after(self) -> None:
        """Hears messages when all threads are busy, and wakes one if there is more to do than it seemed."""
        with self.lock:
            self.scheduler.catch_up()
            self.scheduler.send_news()
            if self.scheduler.ready and self._idle:
                self.scheduler.bell.ring()

    def work(self, events: Events, caller: Caller | None = None) -> None:
        """What every thread does until the run is over. If it is the one that called `run`, it does both its jobs."""
        try:
            self._work(events, caller)
        except BaseException as error:
            # Not in a reaction: a value that cannot be read where it arrives, or a callback that failed.
            with self.lock:
                self.scheduler.fail("", None, error)

    def _work(self, events: Events, caller: Caller | None) -> None:
        scheduler = self.scheduler
        bell = scheduler.bell
        patience, none = self._patience(), Patience(0.0)
        node: Node | None = None
        sendings: list[Sending] = []
        heard = -1
        spins = was_idle = is_short = False
        while True:
            if caller is not None and caller.bell.now() != heard:
                heard = caller.bell.now()
                if node is not None:
                    with self.lock:
                        self._done(node, sendings, is_short)
                    node = None
                caller.attend()
            with self.lock:
                if was_idle:
                    was_idle = False
                    self._idle -= 1
                    self._has_spinner &= not spins
                elif node is not None:
                    self._done(node, sendings, is_short)
                sendings = []
                # Read before looking, so that nothing that comes later is missed.
                seen = bell.now()
                node = self._take()
                is_short = node is not None and self._is_short(node)
                self._short += is_short
                if node is None:
                    # One that spins is enough.
                    spins, self._has_spinner = not self._has_spinner, True
                    self._idle += 1
            if node is not None:
                sendings = self._run(node, events)
            elif scheduler.is_over:
                return
            else:
                if scheduler.is_settled:
                    self._wait(seen, patience if spins else none, events)
                was_idle = True

    def _patience(self) -> Patience:
        if self._post is None:
            return Patience(0.0)
        # Two processes that politely offer each other one CPU would not be moved apart.
        return Patience(_SPIN_US, polite=self._post.exchange.hosts > usable_cpus())

    def _take(self) -> Node | None:
        """A reactor to run, if there is one; wakes another thread if there are more. Under the lock."""
        scheduler = self.scheduler
        scheduler.catch_up()
        node = None if self._is_left_to_others() else scheduler.take()
        if node is not None and self._is_short(node):
            self._short_since_ns = perf_counter_ns()
        if self._post is not None:
            scheduler.send_news(node.step.cost_ns if node and not node.cuts else None)
        if node is None:
            scheduler.check_stuck()
        elif scheduler.ready and self._idle and not self._is_short(node):
            scheduler.bell.ring()
        return node

    def _done(self, node: Node, sendings: list[Sending], was_short: bool) -> None:
        self._short -= was_short
        self.scheduler.done(node, sendings)

    def _is_short(self, node: Node) -> bool:
        return not node.cuts and node.step.cost_ns < _WORTH_NS

    def _is_left_to_others(self) -> bool:
        """Short reactions are run by one thread: several would only pass the interpreter's lock to and fro."""
        ready = self.scheduler.ready
        if not (self._short and ready and self._is_short(ready[0])):
            return False
        return perf_counter_ns() - self._short_since_ns < _LATE_NS

    def _wait(self, seen: int, patience: Patience, events: Events) -> None:
        start = perf_counter_ns()
        self.scheduler.bell.wait(seen, patience, _MOST_WAIT_S)
        events.waited(start, perf_counter_ns())

    def _run(self, node: Node, events: Events) -> list[Sending]:
        """Runs the next reaction of a reactor, or takes its part of a snapshot. Returns what is still to be sent."""
        step = node.step
        alone = self.scheduler.running == 1
        start = perf_counter_ns()
        try:
            if node.cuts:
                self._save(node)
                return []
            self._settings.at("before")
            sendings = self._react(node, step)
            self._settings.at("after")
        except BaseException as error:
            with self.lock:
                self.scheduler.fail(f"{node.name}.save" if node.cuts else step.name, node.round, error)
            return []
        end = perf_counter_ns()
        step.record(end - start, alone and self.scheduler.running == 1)
        events.ran(step, node.round, start, end)
        return sendings

    def _react(self, node: Node, step: Step) -> list[Sending]:
        node.reactor.round = node.round
        result = step.function(*[inlet.look() for inlet in step.arguments])
        if result is None:
            return []
        if type(result) is Effect or not isinstance(result, Iterator):
            return [self._prepare(node, step, result)]
        written_ns = 0
        for effect in _effects(result):
            sending = self._prepare(node, step, effect)
            with self.lock:
                self.scheduler.publish(sending)
                if self._post is not None:
                    self.scheduler.send_news(step.tail_ns)
            if self.scheduler.ready and self._idle and step.tail_ns > _WORTH_NS:
                self.scheduler.bell.ring()
            written_ns = perf_counter_ns()
        if written_ns:
            step.tail_ns += (perf_counter_ns() - written_ns - step.tail_ns) / 8
        return []

    def _prepare(self, node: Node, step: Step, effect: object) -> Sending:
        """Makes a value fit to be read by others, where they can read it: outside the lock, since it may be large."""
        outlet, value = step.outlet(effect, node.round)
        outlet.written = node.round
        node.has_told |= node.is_expendable and bool(outlet.away)
        value = seal(value)
        letter = None
        if outlet.hosts and self._post is not None:
            letter = self._post.write((messages.VALUE, outlet.id, value), len(outlet.hosts))
        return Sending(outlet, value, letter)

    def _save(self, node: Node) -> None:
        """Copies the state outside the lock: only this reactor stands still meanwhile."""
        state = copy_plain(node.reactor.save(), f"{node.name}.save()")
        with self.lock:
            self.scheduler.cut(node, state)


def _effects(reaction: Any) -> Iterator[object]:
    """All that it yields, and what it returns at its end."""
    returned = yield from reaction
    if returned is not None:
        yield returned


def _private_exchange() -> Exchange:
    fd = Exchange.create(1)
    try:
        return Exchange(fd, 0)
    finally:
        os.close(fd)
