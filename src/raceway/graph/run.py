"""One run of a program, from the first process that is started to the last that is gone."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Literal

import cloudpickle

from raceway._core import Exchange, Patience
from raceway.graph.assignment import Assignment
from raceway.graph.coordinator import Coordinator, Failure
from raceway.graph.cuts import AT_END
from raceway.graph.errors import GraphError, PlaceLostError, ReactionError
from raceway.graph.host import Host
from raceway.graph.messages import Post
from raceway.graph.places import Place, Worker
from raceway.graph.plan import Plan
from raceway.graph.reactor import Reactor
from raceway.graph.settings import Settings
from raceway.graph.snapshot import Snapshot
from raceway.graph.summary import HostReport, Moved, ReactionTime, Wait
from raceway.graph.team import GRACE_S, StartupError, Team
from raceway.graph.trace import Track
from raceway.graph.values import Plain
from raceway.graph.wiring import wire

Reason = Literal["rounds", "stopped", "interrupted", "terminated"]
"""What ended a run. Interrupted: by Ctrl-C; terminated: by SIGTERM."""
_TICK_S = 0.05


@dataclass(frozen=True)
class Outcome:
    """What happened in a run."""

    rounds: int
    """Rounds that the (leading) reactors have done, those before a restored snapshot included."""
    rounds_run: int
    """Rounds of this run alone."""
    reason: Reason
    seconds: float
    """From the first round to the last; processes starting and startup reactions are not in it."""
    snapshot: Snapshot | None = None
    """At the end, if asked for."""
    reactions: list[ReactionTime] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    moved: list[Moved] = field(default_factory=list)


@dataclass(frozen=True)
class Start:
    """Where a run begins: at the beginning, or after a snapshot."""

    rounds: list[int]
    values: dict[int, list[Any]]
    states: dict[int, Plain]
    stops: dict[int, int]
    """By member: the last round of the run, if it has said so before."""


class Run:
    """Used once. `go` is called by the thread that wants the outcome; `stop` and `snapshot` by any other."""

    def __init__(
        self,
        plan: Plan,
        reactors: Mapping[int, Reactor],
        places: Mapping[int, Place],
        start: Start,
        settings: Settings,
        limit: int | None,
        on_snapshot: Callable[[Snapshot], None] | None,
    ) -> None:
        self._plan = plan
        self._reactors = reactors
        self._places = places
        """By host, but for host 0, which is this process."""
        self._start = start
        self._settings = settings
        self._limit = limit
        self._on_snapshot = on_snapshot
        self._workers: dict[int, Worker] = {}
        self._interrupts = 0
        self._signal = signal.SIGINT
        """The last one that was heard."""
        self._is_interrupted = False
        self._is_closing = False
        self._has_begun = False
        self._is_over = False
        self._deadline = math.inf
        self._notes: list[str] = []
        """What is added to an error, or is one."""
        self._answered = threading.Condition()
        self._answers: dict[int, Snapshot] = {}
        self._coordinator = Coordinator(plan, settings)
        self.bell = self._coordinator.bell
        """For the thread that called `run`."""
        self._fd = Exchange.create(len(places) + 1) if places else None
        post = None if self._fd is None else Post(Exchange(self._fd, 0))
        wiring = wire(plan, 0, reactors, start.rounds, start.values)
        self._host = Host(plan, wiring, settings, self._coordinator, post)
        self._coordinator.attach(self._host.scheduler)
        self._host.scheduler.horizon.limit(limit, start.stops)
        self._team = Team(self._host, settings.tracing)
        self._patience = Patience(0.0)
        self._caller = threading.get_ident()
        self.tracks: list[Track] = []

    def go(self, threads: int) -> Outcome:
        """Runs to the end; with no thread, in the calling one."""
        trouble: BaseException | None = None
        seconds = 0.0
        with _heard(self._hear_interrupt):
            try:
                self._open()
                began = time.perf_counter()
                with self._host.lock:
                    self._coordinator.begin(self._start.stops)
                with self._answered:
                    self._has_begun = True
                    self._answered.notify_all()
                self._work(threads)
                seconds = time.perf_counter() - began
            except StartupError as error:
                self._fail(error.where, error.reason)
            except BaseException as error:
                trouble = error
            reports = self._close()
        return self._conclude(trouble, seconds, reports)

    def stop(self) -> None:
        with self._host.lock:
            if self._is_closing:
                return
            self._coordinator.is_stopping = True
            self._coordinator.stop()
        self._host.scheduler.bell.ring()

    def snapshot(self) -> Snapshot:
        if threading.get_ident() == self._caller or self._team.has_thread(threading.get_ident()):
            raise GraphError("snapshot() waits for the reactors, so it cannot be called by one, or in on_snapshot.")
        with self._answered:  # cuts are numbered in the order in which they are asked for, and that of the end is first
            self._answered.wait_for(lambda: self._has_begun or self._is_over)
        with self._host.lock:
            if self._is_closing or self._coordinator.is_finished or self._coordinator.failure:
                raise GraphError("The run is over. Ask for its last state with run(snapshot_at_end=True).")
            cut = self._coordinator.request_cut()
        self._host.scheduler.bell.ring()
        with self._answered:
            self._answered.wait_for(lambda: cut in self._answers or self._is_over)
            if cut not in self._answers:
                raise GraphError("The run ended before the snapshot was complete.")
            return self._answers.pop(cut)

    def _open(self) -> None:
        for host, place in self._places.items():
            assert self._fd is not None
            self._workers[host] = place.start(host, self._fd, self._assignment(host, place))
        self._team.open(self._start.states)
        # However long a startup reaction takes: a worker that dies is noticed, and signals are heard.
        while len(self._coordinator.ready) < len(self._places) and not self._coordinator.failure:
            self._tick()
            if self._is_interrupted:
                raise interruption(self._signal)

    def _assignment(self, host: int, place: Place) -> bytes:
        members = [member for member in self._plan.members if member.host == host]
        ids = {member.id for member in members}
        assignment = Assignment(
            plan=self._plan,
            reactors={id_: self._reactors[id_] for id_ in ids},
            rounds=self._start.rounds,
            values={
                c.id: values if c.target in ids else [None] * len(values)
                for c, values in ((c, self._start.values[c.id]) for c in self._plan.connections)
            },
            states={id_: state for id_, state in self._start.states.items() if id_ in ids},
            settings=self._settings,
            threads=place.threads,
            limit=self._limit,
            stops=self._start.stops,
        )
        try:
            return cloudpickle.dumps(assignment)
        except Exception:
            for member in members:
                _check_can_travel(member.name, self._reactors[member.id])
            raise

    def _work(self, threads: int) -> None:
        if not threads:
            self._team.work("main", self)
            return
        self._team.start(threads)
        while not (self._coordinator.is_finished or self._coordinator.failure):
            self._tick()
        self.attend()

    def _tick(self) -> None:
        """What the main thread does while others work."""
        seen = self.bell.now()
        self._look_for_the_dead()
        self.attend()
        if self.bell.now() == seen:
            self.bell.wait(seen, self._patience, _TICK_S)

    def _look_for_the_dead(self) -> None:
        """Hears messages, and then misses those workers that have ended without saying goodbye."""
        ended = {host: worker.how_it_ended() for host, worker in self._workers.items()}
        self._host.look_after()
        for host, how in ended.items():
            if how is not None and host not in self._coordinator.reports:
                self._lose(host, how)

    def attend(self) -> None:
        """Hands over snapshots, and hears signals: both in the thread that called `run`."""
        while self._coordinator.snapshots:
            cut, snapshot = self._coordinator.snapshots.popleft()
            if cut >= AT_END and self._on_snapshot is not None:
                self._on_snapshot(snapshot)
            if cut <= AT_END:
                with self._answered:
                    self._answers[cut] = snapshot
                    self._answered.notify_all()
        if self._interrupts and not self._is_interrupted:
            self._is_interrupted = True
            self.stop()

    def _hear_interrupt(self, number: int, frame: FrameType | None) -> None:
        """The first signal ends the run after a round, the second at once, a third gives up what does not end."""
        self._interrupts += 1
        self._signal = signal.Signals(number)
        self.bell.ring()
        self._host.scheduler.bell.ring()
        if self._is_closing:
            self._deadline = 0.0
        elif self._interrupts > 1:
            raise interruption(self._signal)

    def _lose(self, host: int, how: str) -> None:
        lived = ", ".join(member.name for member in self._plan.members if member.host == host)
        text = f"A worker is gone: {how}. In it lived {lived}. If it said why, that is on standard error."
        self._fail("", PlaceLostError(text))

    def _fail(self, where: str, error: BaseException) -> None:
        with self._host.lock:
            self._coordinator.failed(where, None, error)

    def _close(self) -> dict[int, HostReport]:
        """However the run ended: no reaction starts any more, shutdown reactions run, processes go."""
        self._is_closing = True
        try:
            with self._host.lock:
                self._coordinator.abort()
            self._deadline = time.monotonic() + GRACE_S
            while not self._team.join(_TICK_S) and time.monotonic() < self._deadline:
                pass
            report = self._team.close()
            self._wait_for_workers()
            self._look_for_the_dead()
        finally:
            for worker in self._living().values():
                worker.kill()
            self._host.close()
            if self._fd is not None:
                os.close(self._fd)
            with self._answered:
                self._is_over = True
                self._answered.notify_all()
        return {0: report} | self._coordinator.reports

    def _wait_for_workers(self) -> None:
        """Shutdown reactions may take their time; a reaction that does not end is given up at the deadline."""
        while living := self._living():
            self._host.look_after()
            busy = living.keys() - self._coordinator.closed
            if time.monotonic() > self._deadline and (busy or not self._deadline):
                names = ", ".join(member.name for member in self._plan.members if member.host in living)
                self._notes.append(f"Worker processes did not end and were killed, without shutdown: {names}.")
                break
            time.sleep(0.001)

    def _living(self) -> dict[int, Worker]:
        return {host: worker for host, worker in self._workers.items() if worker.how_it_ended() is None}

    def _conclude(self, trouble: BaseException | None, seconds: float, reports: dict[int, HostReport]) -> Outcome:
        ordered = [reports[host] for host in sorted(reports)]
        self.tracks = [track for report in ordered for track in report.tracks]
        troubles = self._notes + [text for report in ordered for text in report.troubles]
        error = trouble
        if error is None and self._coordinator.failure:
            error = _as_error(self._coordinator.failure)
        if error is None and troubles:
            error = ReactionError(troubles.pop(0))
        if error is not None:
            for text in troubles:
                error.add_note(text)
            raise error
        rounds = {name: count for report in ordered for name, count in report.rounds.items()}
        leading = [rounds[self._plan.members[id_].name] for id_ in self._plan.leading]
        done = min(leading, default=max(rounds.values()))
        return Outcome(
            rounds=done,
            rounds_run=done - min(self._start.rounds),
            reason=self._reason(),
            seconds=seconds,
            snapshot=self._answers.get(AT_END),
            reactions=[reaction for report in ordered for reaction in report.reactions],
            waits=[wait for report in ordered for wait in report.waits],
            moved=[moved for report in ordered for moved in report.moved],
        )

    def _reason(self) -> Reason:
        if self._interrupts:
            return "interrupted" if self._signal == signal.SIGINT else "terminated"
        return "stopped" if self._coordinator.is_stopping else "rounds"


def interruption(number: signal.Signals) -> BaseException:
    """What a run raises that a signal has ended: as Python does for Ctrl-C, as a shell expects it for SIGTERM."""
    return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)


@contextmanager
def _heard(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Ctrl-C and SIGTERM go to the handler, where they can: Python lets only the main thread choose.

    A SIGTERM that somebody else listens to, or that is ignored, is left to them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [signal.SIGINT]
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        numbers.append(signal.SIGTERM)
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def _as_error(failure: Failure) -> BaseException:
    if not failure.where or isinstance(failure.error, KeyboardInterrupt):
        return failure.error
    when = "at startup" if failure.round is None else f"in round {failure.round}"
    what = f"{type(failure.error).__name__}: {failure.error}"
    error = ReactionError(f"{failure.where} failed {when}: {what}")
    error.__cause__ = failure.error
    return error


def _check_can_travel(name: str, reactor: Reactor) -> None:
    for attribute, value in reactor.__getstate__().items():
        try:
            cloudpickle.dumps(value)
        except Exception as error:
            raise GraphError(
                f"{name} cannot be placed in another process: its attribute {attribute} (a {type(value).__name__}) "
                f"cannot be pickled ({error}). Make it in a startup reaction, which runs where the reactor lives."
            ) from error
