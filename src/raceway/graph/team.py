"""The threads that run a host, and the life of its reactors: startup, rounds, shutdown."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from raceway.graph.host import Caller, Host
from raceway.graph.node import Node
from raceway.graph.summary import HostReport, report_of
from raceway.graph.trace import Events, Recorder
from raceway.graph.values import Plain, copy_plain
from raceway.messages import traceback_of

GRACE_S = 5.0
"""How long a failed run waits for reactions that are still at work."""


class StartupError(Exception):
    """A reactor did not come up."""

    def __init__(self, where: str, reason: BaseException) -> None:
        super().__init__(where)
        self.where = where
        self.reason = reason


class Team:
    """Opens the reactors of a host, runs them on some threads, and closes them however that ended."""

    def __init__(self, host: Host, tracing: bool) -> None:
        self._host = host
        self._tracing = tracing
        self._threads: list[threading.Thread] = []
        self._recorders: list[tuple[str, Recorder]] = []

    def open(self, states: Mapping[int, Plain]) -> None:
        for node in self._host.scheduler.nodes.values():
            node.is_begun = True
            self._attach(node, self._host)
            try:
                for name, reaction in node.moments("startup"):
                    where = f"{node.name}.{name}"
                    reaction()
                where = f"{node.name}.load"
                if node.id in states:
                    # A copy: a snapshot can be gone on from more than once.
                    node.reactor.load(copy_plain(states[node.id], node.name))
            except BaseException as error:
                raise StartupError(where, error) from error

    def _attach(self, node: Node, host: Host | None) -> None:
        """Gives the reactor what only a running one has; takes it away again."""
        node.reactor._stop = host.stop if host else None
        for name in node.outlets:
            getattr(node.reactor, name)._lease = host.lease if host else None

    def start(self, threads: int) -> None:
        for i in range(threads):
            name = f"worker {i}"
            thread = threading.Thread(target=self.work, args=(name,), name=f"raceway {name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def work(self, name: str, caller: Caller | None = None) -> None:
        """Runs reactions in the calling thread until the run is over."""
        events = Events()
        if self._tracing:
            events = recorder = Recorder()
            self._recorders.append((name, recorder))
        self._host.work(events, caller)

    def has_thread(self, ident: int) -> bool:
        return any(thread.ident == ident for thread in self._threads)

    def join(self, timeout_s: float) -> bool:
        """Waits for the threads, each of which may be in a long reaction; false if time ran out."""
        deadline = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def close(self) -> HostReport:
        """Runs the shutdown reactions, of reactors that are not in the middle of another one."""
        troubles = []
        for node in self._host.scheduler.nodes.values():
            if node.is_begun:
                troubles += self._shut_down(node)
                self._attach(node, None)
        report = report_of(self._host.scheduler)
        report.tracks = [recorder.track(self._host.scheduler.host, name) for name, recorder in self._recorders]
        report.troubles = troubles
        return report

    def _shut_down(self, node: Node) -> list[str]:
        if node.is_running:
            return [f"{node.step.name} still runs, so {node.name} was not shut down."]
        troubles = []
        for name, reaction in node.moments("shutdown"):
            try:
                reaction()
            except BaseException as error:
                troubles.append(f"{node.name}.{name} failed at shutdown:\n{traceback_of(error)}")
        return troubles
