"""One run of a program, from the first process that is started to the last that is gone."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Literal

import cloudpickle

from raceway._core import Exchange, Patience
from raceway.graph.assignment import Assignment, Start
from raceway.graph.coordinator import Coordinator, as_error
from raceway.graph.cuts import AT_END
from raceway.graph.errors import GraphError, PlaceLostError, ReactionError
from raceway.graph.host import Host
from raceway.graph.losses import Expendables, Loss, kept_at_first
from raceway.graph.messages import Post, shared_memory
from raceway.graph.places import Place, Worker
from raceway.graph.plan import Plan
from raceway.graph.reactor import Reactor
from raceway.graph.settings import Settings
from raceway.graph.signals import heard, interruption
from raceway.graph.snapshot import Snapshot
from raceway.graph.summary import HostReport, Moved, ReactionTime, Wait
from raceway.graph.team import GRACE_S, StartupError, Team
from raceway.graph.trace import Track
from raceway.graph.wiring import wire

Reason = Literal["rounds", "stopped", "interrupted", "terminated"]
"""What ended a run. Interrupted: by Ctrl-C; terminated: by SIGTERM."""
_TICK_S = 0.05
_COMES_UP_S, _LINGER_S = 60.0, 30.0
"""How long the beginning and the end of a run wait for processes that it can do without: less long if it failed."""


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
        on_loss: Callable[[Loss], None] | None = None,
        is_stuck: Callable[[], bool] | None = None,
    ) -> None:
        self._plan = plan
        self._reactors = reactors
        self._places = places
        """By host, but for host 0, which is this process."""
        self._start = start
        self._settings = settings
        self._limit = limit
        self._on_snapshot = on_snapshot
        self._on_loss = on_loss
        self._is_stuck = is_stuck
        self._workers: dict[int, Worker] = {}
        self._interrupts = 0
        self._grace_s = GRACE_S
        """How long the end waits for reactions that are under way."""
        self._signal = signal.SIGINT
        """The last one that was heard."""
        self._is_interrupted = False
        self._is_closing = False
        self._has_begun = False
        self._is_over = False
        self._deadline = math.inf
        self._trouble: BaseException | None = None
        """What ended the run, if it was not a reactor: a second Ctrl-C, for example."""
        self._notes: list[str] = []
        """What is added to an error, or is one."""
        self._answered = threading.Condition()
        self._answers: dict[int, Snapshot] = {}
        self._fd = shared_memory(len(places) + 1) if places else None
        post = None if self._fd is None else Post(Exchange(self._fd, 0))
        self._expendables = Expendables(plan, places, post)
        for part in kept_at_first(plan, reactors, start):
            self._expendables.keep(part)
        self._coordinator = Coordinator(plan, settings, self._expendables)
        self.bell = self._coordinator.bell
        """For the thread that called `run`."""
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
        seconds = 0.0
        with heard(self._hear_interrupt):
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
                self._trouble = error
            reports = self._close()
        return self._conclude(seconds, reports)

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
        for host in self._places:
            self._start_worker(host, self._start)
        self._team.open(self._start.states)
        waits_until = time.monotonic() + _COMES_UP_S
        # However long a startup reaction takes: a worker that dies is noticed, and signals are heard.
        while not self._is_ready(waits_until) and not self._coordinator.failure:
            self._tick()
            if self._is_interrupted:
                raise interruption(self._signal)

    def _is_ready(self, waits_until: float) -> bool:
        """Whether all are up. What the run can do without may come up later."""
        missing = self._places.keys() - self._coordinator.ready
        if time.monotonic() > waits_until:
            return missing <= self._expendables.hosts
        return all(self._expendables.is_left_out(host) for host in missing)

    def _start_worker(self, host: int, start: Start, is_again: bool = False) -> None:
        assert self._fd is not None
        place = self._places[host]
        self._workers[host] = place.start(host, self._fd, self._assignment(host, place, start, is_again))

    def _assignment(self, host: int, place: Place, start: Start, is_again: bool) -> bytes:
        members = [member for member in self._plan.members if member.host == host]
        ids = {member.id for member in members}
        assignment = Assignment(
            plan=self._plan,
            reactors={id_: self._reactors[id_] for id_ in ids},
            rounds=start.rounds,
            values={
                c.id: values if c.target in ids else [None] * len(values)
                for c, values in ((c, start.values[c.id]) for c in self._plan.connections)
            },
            states={id_: state for id_, state in start.states.items() if id_ in ids},
            settings=self._settings,
            threads=place.threads,
            limit=self._limit,
            stops=start.stops,
            is_again=is_again,
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
        if self._is_interrupted and self._is_stuck is not None and self._is_stuck():
            self._grace_s = 0.0  # it has had its time
            raise interruption(self._signal)
        if self.bell.now() == seen:
            self.bell.wait(seen, self._patience, _TICK_S)

    def _look_for_the_dead(self) -> None:
        """Hears messages, and then misses those workers that have ended without saying goodbye."""
        ended = {host: worker.how_it_ended() for host, worker in self._workers.items()}
        self._host.look_after()
        for host, how in ended.items():
            if how is not None and host not in self._coordinator.reports and not self._expendables.is_left_out(host):
                self._lose(host, how)

    def attend(self) -> None:
        """Hands over snapshots and losses, and hears signals: all in the thread that called `run`."""
        while self._coordinator.snapshots:
            cut, snapshot = self._coordinator.snapshots.popleft()
            if cut >= AT_END and self._on_snapshot is not None:
                self._on_snapshot(snapshot)
            if cut <= AT_END:
                with self._answered:
                    self._answers[cut] = snapshot
                    self._answered.notify_all()
        self._tell_losses()
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

    def _tell_losses(self) -> None:
        while self._expendables.losses:
            loss = self._expendables.losses.popleft()
            if self._on_loss is not None:
                self._on_loss(loss)

    def _lose(self, host: int, how: str) -> None:
        if host in self._expendables.hosts:
            if not self._is_closing:  # else nobody misses it
                self._replace(host, how)
            return
        lived = ", ".join(member.name for member in self._plan.members if member.host == host)
        text = f"A worker is gone: {how}. In it lived {lived}. If it said why, that is on standard error."
        self._fail("", PlaceLostError(text))

    def _replace(self, host: int, how: str) -> None:
        with self._host.lock:
            self._coordinator.ready.discard(host)
            if not self._expendables.lose(host, how):
                return
            start = self._expendables.start_again(self._start, host)
        try:
            self._start_worker(host, start, is_again=True)
        except OSError as error:  # no memory for it, or too many processes
            with self._host.lock:
                self._expendables.leave_out(host, f"it could not be started again: {error.strerror or error}")

    def _fail(self, where: str, error: BaseException) -> None:
        with self._host.lock:
            self._coordinator.failed(where, None, error)

    def _close(self) -> dict[int, HostReport]:
        """However the run ended: no reaction starts any more, shutdown reactions run, processes go."""
        self._is_closing = True
        try:
            with self._host.lock:
                self._coordinator.abort()
            self._deadline = time.monotonic() + self._grace_s if self._grace_s else 0.0
            while not self._team.join(_TICK_S) and time.monotonic() < self._deadline:
                pass
            report = self._team.close()
            self._wait_for_workers()
            self._look_for_the_dead()
            self._expendables.hear(self._coordinator.reports)
            self._tell_losses()
        finally:
            for worker in self._living().values():
                worker.kill()
            self._host.close()
            self._expendables.close()
            if self._fd is not None:
                os.close(self._fd)
            with self._answered:
                self._is_over = True
                self._answered.notify_all()
        return {0: report} | self._coordinator.reports

    def _wait_for_workers(self) -> None:
        """Shutdown reactions may take their time; a reaction that does not end is given up at the deadline."""
        if self._trouble is not None or self._coordinator.failure:
            patience, closes_at = GRACE_S, self._deadline
        else:
            patience, closes_at = _LINGER_S, time.monotonic() + _LINGER_S
        while living := self._living():
            self._host.look_after()
            if self._give_up_expendables(living, closes_at, patience):
                continue
            busy = living.keys() - self._coordinator.closed - self._expendables.hosts
            if time.monotonic() > self._deadline and (busy or not self._deadline):
                names = ", ".join(member.name for member in self._plan.members if member.host in living)
                self._notes.append(f"Worker processes did not end and were killed, without shutdown: {names}.")
                break
            time.sleep(0.001)

    def _give_up_expendables(self, living: Mapping[int, Worker], closes_at: float, patience: float) -> bool:
        """Kills those that do not end in time, and those that were only just started again."""
        given_up = living.keys() & self._expendables.hosts
        if time.monotonic() < closes_at and self._deadline:
            given_up -= self._coordinator.ready
        late = f"did not end within {patience:g} s of the run" if self._deadline else "had not ended at the last Ctrl-C"
        for host in given_up:
            living[host].kill()
            if host in self._coordinator.ready and not self._expendables.is_left_out(host):
                self._expendables.leave_out(host, f"it {late}, and was killed")
        return bool(given_up)

    def _living(self) -> dict[int, Worker]:
        return {host: worker for host, worker in self._workers.items() if worker.how_it_ended() is None}

    def _conclude(self, seconds: float, reports: dict[int, HostReport]) -> Outcome:
        ordered = [reports[host] for host in sorted(reports)]
        self.tracks = [track for report in ordered for track in report.tracks]
        needed = [reports[host] for host in sorted(reports.keys() - self._expendables.hosts)]
        troubles = self._notes + [text for report in needed for text in report.troubles]
        error = self._trouble
        if error is None and self._coordinator.failure:
            error = as_error(self._coordinator.failure)
            if self._interrupts and isinstance(self._coordinator.failure.error, SystemExit):
                error = self._coordinator.failure.error  # SIGTERM's, which the reaction has nothing to do with
        if error is None and troubles:
            error = ReactionError(troubles.pop(0))
        if error is not None:
            for text in troubles:
                error.add_note(text)
            raise error
        rounds = {name: count for report in ordered for name, count in report.rounds.items()}
        leading = [rounds[self._plan.members[id_].name] for id_ in self._plan.leading]
        begun = [self._start.rounds[id_] for id_ in self._plan.leading] or self._start.rounds
        done = min(leading, default=max(rounds.values()))
        return Outcome(
            rounds=done,
            rounds_run=done - min(begun),
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


def _check_can_travel(name: str, reactor: Reactor) -> None:
    for attribute, value in reactor.__getstate__().items():
        try:
            cloudpickle.dumps(value)
        except Exception as error:
            raise GraphError(
                f"{name} cannot be placed in another process: its attribute {attribute} (a {type(value).__name__}) "
                f"cannot be pickled ({error}). Make it in a startup reaction, which runs where the reactor lives."
            ) from error
