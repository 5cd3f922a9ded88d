"""The one who keeps the run together: who has ended, what failed, which snapshots are complete. It lives in host 0."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from raceway._core import Bell
from raceway.graph import messages
from raceway.graph.cuts import AT_END, KEPT, Part
from raceway.graph.errors import ReactionError, RemoteTracebackError
from raceway.graph.losses import Expendables
from raceway.graph.node import ENDLESS
from raceway.graph.plan import Plan
from raceway.graph.scheduler import Scheduler
from raceway.graph.settings import Settings
from raceway.graph.snapshot import Snapshot, assemble
from raceway.graph.summary import HostReport
from raceway.messages import MOST_TRACEBACK, words_of


@dataclass(frozen=True)
class Failure:
    """What went wrong first, and where."""

    where: str
    round: int | None
    error: BaseException


def as_error(failure: Failure) -> BaseException:
    """What a run raises that has failed like this."""
    if not failure.where or isinstance(failure.error, KeyboardInterrupt):
        return failure.error
    when = "at startup" if failure.round is None else f"in round {failure.round}"
    error = ReactionError(f"{failure.where} failed {when}: {words_of(failure.error, MOST_TRACEBACK)}")
    error.__cause__ = failure.error
    return error


class Coordinator:
    """Hears from all hosts, under the lock of host 0, and tells the main thread what there is to do for it."""

    def __init__(self, plan: Plan, settings: Settings, expendables: Expendables) -> None:
        self.bell = Bell()
        """For the main thread."""
        self.failure: Failure | None = None
        self.snapshots: deque[tuple[int, Snapshot]] = deque()
        """Complete ones, with the number of their cut, that nobody has looked at yet."""
        self.ready: set[int] = set()
        self.closed: set[int] = set()
        """Hosts that have left their last reaction and are shutting down."""
        self.reports: dict[int, HostReport] = {}
        self.is_stopping = False
        self.is_finished = False
        self._plan = plan
        self._settings = settings
        self._expendables = expendables
        self._scheduler: Scheduler | None = None
        self._leading = set(plan.leading)
        self._ended: set[int] = set()
        self._parts: dict[int, dict[int, Part]] = defaultdict(dict)
        self._cuts = AT_END

    @property
    def scheduler(self) -> Scheduler:
        assert self._scheduler is not None
        return self._scheduler

    def attach(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    # What the main thread wants. It holds the lock.

    def begin(self, stops: Collection[int]) -> None:
        """`stops`: members that had asked for an end before the snapshot that is gone on from was made."""
        self._tell_all(messages.BEGIN)
        for member in stops:
            self.stopped(self._plan.domains[member])
        if self._settings.snapshot_at_end:
            for domain in self._plan.needed_domains:
                self._tell_owner(domain, messages.MARK, domain, ENDLESS, AT_END)
            self._parts[AT_END] = {}

    def stop(self) -> None:
        """Ends the run as soon as all can end at the same round."""
        self._wind_up(self._plan.needed_domains)

    def abort(self) -> None:
        """Lets nothing begin any more, if the run is not finished."""
        if not self.is_finished:
            self._tell_all(messages.ABORT)

    def request_cut(self) -> int:
        self._cuts -= 1
        for domain in self._plan.needed_domains:
            self._tell_owner(domain, messages.CHOOSE_CUT, domain, self._cuts)
        self._parts[self._cuts] = {}
        return self._cuts

    # What hosts report.

    def ready_to_begin(self, host: int) -> None:
        self.ready.add(host)
        self._expendables.welcome(host, self.scheduler)
        self.bell.ring()

    def ended(self, member: int) -> None:
        self._ended.add(member)
        if self._leading and self._leading <= self._ended:
            self._wind_up(self._plan.needed_domains - self._plan.leaders)
        self._finish_if_done()

    def stopped(self, domain: int) -> None:
        self.is_stopping = True
        self._wind_up(self._plan.needed_domains - {domain})

    def failed(self, where: str, round_: int | None, error: BaseException, traceback: str = "", host: int = 0) -> None:
        if host in self._expendables.hosts and self.scheduler.has_begun:
            self._expendables.leave_out(host, str(as_error(Failure(where, round_, error))))
        elif self.failure is None:
            if traceback:
                error.__cause__ = RemoteTracebackError(traceback)
            self.failure = Failure(where, round_, error)
            self._tell_all(messages.ABORT)
        self.bell.ring()

    def cut(self, part: Part) -> None:
        if part.cut == KEPT:
            self._expendables.keep(part)
            return
        if part.cut >= 0 and not self._parts[part.cut]:
            # Taken every so many rounds: the others are not told by a count of rounds of their own.
            for domain in self._plan.needed_domains - {self._plan.domains[part.member]}:
                self._tell_owner(domain, messages.CHOOSE_CUT, domain, part.cut)
        parts = self._parts[part.cut]
        parts[part.member] = part
        if len(parts) == len(self._plan.needed):
            del self._parts[part.cut]
            whole = parts | self._expendables.parts(self.scheduler)
            self.snapshots.append((part.cut, assemble(self._plan, whole)))
            self.bell.ring()
            self._finish_if_done()

    def closing(self, host: int) -> None:
        self.closed.add(host)

    def finished(self, host: int, report: HostReport) -> None:
        self.reports[host] = report
        self.bell.ring()

    def _finish_if_done(self) -> None:
        if self._ended >= self._plan.needed and not self._parts and not self.is_finished:
            self.is_finished = True
            self._tell_all(messages.FINISH)
            self.bell.ring()

    def _wind_up(self, domains: Collection[int]) -> None:
        for domain in sorted(domains):
            self._tell_owner(domain, messages.WIND_UP, domain)

    def _tell_owner(self, domain: int, kind: int, *arguments: Any) -> None:
        """A domain is numbered by its first member."""
        self.scheduler.tell(self._plan.members[domain].host, kind, *arguments)

    def _tell_all(self, kind: int) -> None:
        for host in sorted({member.host for member in self._plan.members} | {0}, reverse=True):
            self.scheduler.tell(host, kind)
