"""A worker process: `python -m raceway.graph.worker EXCHANGE HOST PARENT`. It gets its reactors over its input."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
from typing import Any

from raceway._core import Exchange, die_with_parent
from raceway.graph import messages
from raceway.graph.assignment import Assignment
from raceway.graph.cuts import Part
from raceway.graph.host import Host
from raceway.graph.messages import Post
from raceway.graph.summary import HostReport
from raceway.graph.team import GRACE_S, StartupError, Team
from raceway.graph.wiring import wire
from raceway.local_code import adopt_imports
from raceway.messages import portable, traceback_of


class RemoteReporter:
    """Passes everything on to the coordinator."""

    def __init__(self, post: Post) -> None:
        self._post = post

    def _report(self, name: str, *arguments: Any) -> None:
        self._post.tell(0, (messages.REPORT, name, arguments))

    def ready_to_begin(self) -> None:
        self._report("ready_to_begin", self._post.exchange.host)

    def ended(self, member: int) -> None:
        self._report("ended", member)

    def stopped(self, domain: int) -> None:
        self._report("stopped", domain)

    def cut(self, part: Part) -> None:
        self._report("cut", part)

    def closing(self) -> None:
        self._report("closing", self._post.exchange.host)

    def finished(self, report: HostReport) -> None:
        self._report("finished", self._post.exchange.host, report)

    def failed(self, where: str, round_: int | None, error: BaseException) -> None:
        self._report("failed", where, round_, portable(error), traceback_of(error), self._post.exchange.host)


def main() -> None:
    fd, host, parent = (int(argument) for argument in sys.argv[1:4])
    die_with_parent(parent)
    # A service manager tells every process to end; the process that runs the program decides when, and saves first.
    signal.signal(signal.SIGTERM, lambda number, frame: None)  # unlike SIG_IGN, not inherited by what it starts
    post = Post(Exchange(fd, host))
    os.close(fd)
    reporter = RemoteReporter(post)
    try:
        adopt_imports(sys.stdin.buffer)
        assignment: Assignment = pickle.load(sys.stdin.buffer)
    except BaseException as error:
        reporter.failed(f"worker process {host}", None, error)
    else:
        reporter.finished(_run(assignment, post, reporter))
    _send_the_rest(post)


def _run(assignment: Assignment, post: Post, reporter: RemoteReporter) -> HostReport:
    plan = assignment.plan
    if assignment.is_again:  # these were for the one that was lost
        post.exchange.receive()
    wiring = wire(plan, post.exchange.host, assignment.reactors, assignment.rounds, assignment.values)
    host = Host(plan, wiring, assignment.settings, reporter, post)
    host.scheduler.horizon.limit(assignment.limit, assignment.stops)
    team = Team(host, assignment.settings.tracing)
    try:
        team.open(assignment.states)
        reporter.ready_to_begin()
        team.start(assignment.threads - 1)
        team.work(f"worker {assignment.threads - 1}")
    except StartupError as error:
        reporter.failed(error.where, None, error.reason)
    team.join(GRACE_S)
    reporter.closing()
    return team.close()


def _send_the_rest(post: Post) -> None:
    deadline = time.monotonic() + GRACE_S
    while post.is_behind and time.monotonic() < deadline:
        post.catch_up()
        time.sleep(0.001)


if __name__ == "__main__":
    main()
