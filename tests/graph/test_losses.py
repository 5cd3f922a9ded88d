"""Processes with `restarts`: a run goes on when they die, fail or hang, and gives the same values."""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from raceway.graph import (
    Effect,
    GraphError,
    Input,
    Loss,
    Output,
    PlaceLostError,
    Processes,
    Program,
    ReactionError,
    Reactor,
    Snapshot,
    Timer,
    reaction,
    shutdown,
    startup,
)
from raceway.graph.places import Worker
from tests.graph.parts import Counter, Sink


class Judge(Reactor):
    """Counts what it judges, in its state; what becomes of it is decided by files with names of moments."""

    weights = Input[int]()
    verdicts = Output[list[int]]()

    def __init__(self, orders: Path) -> None:
        self.orders = orders
        self.judged: list[int] = []

    @reaction(startup)
    def open(self) -> None:
        self.obey("startup")

    @reaction(weights, effects=verdicts)
    def judge(self, weights: int) -> Iterator[Effect[list[int]]]:
        if self.judged and weights <= self.judged[-1]:
            return  # the last value may come again after a restart
        self.obey("reaction")
        if len(self.judged) == 2:
            self.obey("later")
        self.judged.append(weights)
        yield self.verdicts(list(self.judged))
        self.obey("written")

    @reaction(shutdown)
    def close(self) -> None:
        self.obey("shutdown")

    def obey(self, moment: str) -> None:
        (self.orders / f"{moment}.seen").write_text(str(os.getpid()))
        order = self.orders / moment
        if not order.exists():
            return
        left = int(order.read_text())
        if left > 0:
            order.write_text(str(left - 1))
            how = next((how for how in ("raise", "stop") if (self.orders / how).exists()), "kill")
            if how == "raise":
                raise ZeroDivisionError("a fault of the test")
            os.kill(os.getpid(), signal.SIGSTOP if how == "stop" else signal.SIGKILL)

    def save(self) -> dict[str, Any]:
        return {"judged": list(self.judged)}

    def load(self, state: dict[str, Any]) -> None:
        self.judged = list(state["judged"])


class Author(Reactor):
    """Writes the number of its round until it may end."""

    tick = Timer()
    out = Output[int]()
    heard = Input[list[int]]()

    def __init__(self, until: Callable[[Author], bool]) -> None:
        self.until = until
        self.rounds: list[int] = []
        self.verdicts: list[int] = []
        self.losses: list[Loss] = []

    @property
    def is_alone(self) -> bool:
        return any(loss.is_final for loss in self.losses)

    @reaction(tick, uses=heard, effects=out)
    def write(self, heard: list[int] | None) -> Effect[int]:
        self.rounds.append(self.round)
        if heard:
            # What was written last may be written again, by a process that is younger than its state.
            assert heard[: len(self.verdicts) - 1] == self.verdicts[:-1], "what others have read is not lost"
            self.verdicts = heard
        if self.until(self):
            self.stop()
        time.sleep(0.002)
        return self.out(self.round)

    def save(self) -> dict[str, Any]:
        return {"rounds": self.rounds}

    def load(self, state: dict[str, Any]) -> None:
        self.rounds = list(state["rounds"])


def has(verdicts: int) -> Callable[[Author], bool]:
    return lambda author: len(author.verdicts) >= verdicts


def build(
    orders: Path,
    until: Callable[[Author], bool] = lambda author: author.is_alone,
    restarts: int | None = 3,
    place: type[Processes] = Processes,
) -> tuple[Program, Author]:
    program = Program("losses")
    writer, judge = program.add(Author(until)), program.add(Judge(orders))
    program.place(judge, place(1, restarts=restarts))
    program.connect(writer.out, judge.weights, latest=True)
    program.connect(judge.verdicts, writer.heard, latest=True)
    return program, writer


def order(orders: Path, moment: str, times: int = 1, how: str = "kill") -> None:
    (orders / moment).write_text(str(times))
    (orders / how).touch()


@pytest.mark.parametrize("moment", ["startup", "reaction", "later", "written"])
@pytest.mark.parametrize("times", [1, 2])
def test_a_process_that_is_killed_is_started_again_with_its_state(tmp_path: Path, moment: str, times: int) -> None:
    order(tmp_path, moment, times)
    program, writer = build(tmp_path, lambda author: len(author.losses) == times and len(author.verdicts) >= 4)
    program.run(on_loss=writer.losses.append)
    assert [(loss.reactors, loss.is_final) for loss in writer.losses] == [(("judge",), False)] * times
    assert all("killed by SIGKILL" in loss.why for loss in writer.losses)
    assert writer.verdicts == sorted(set(writer.verdicts))
    assert writer.rounds == list(range(len(writer.rounds)))


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["startup", "reaction"])
def test_a_process_that_keeps_dying_is_left_out(tmp_path: Path, moment: str) -> None:
    order(tmp_path, moment, 99)
    program, writer = build(tmp_path, restarts=2)
    outcome = program.run(snapshot_at_end=True, on_loss=writer.losses.append)
    assert [loss.is_final for loss in writer.losses] == [False, False, True]
    assert writer.rounds == list(range(len(writer.rounds)))
    assert outcome.snapshot is not None
    assert outcome.snapshot.reactors["judge"] == {"judged": []}
    (tmp_path / moment).unlink()
    again, writer = build(tmp_path, has(2))
    again.restore(outcome.snapshot)
    again.run()


def test_a_failed_reaction_leaves_it_out_at_once(tmp_path: Path) -> None:
    order(tmp_path, "reaction", 1, "raise")
    program, writer = build(tmp_path)
    program.run(on_loss=writer.losses.append)
    assert len(writer.losses) == 1
    assert "judge.judge failed in round 0: ZeroDivisionError: a fault of the test" in writer.losses[0].why


def test_a_startup_that_fails_still_ends_the_run(tmp_path: Path) -> None:
    order(tmp_path, "startup", 1, "raise")
    program, _ = build(tmp_path)
    with pytest.raises(ReactionError, match=r"judge\.open failed at startup"):
        program.run(3)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["reaction", "shutdown"])
def test_one_that_hangs_holds_up_neither_snapshots_nor_the_end(tmp_path: Path, moment: str) -> None:
    order(tmp_path, moment, 1, "stop")
    has_come = (tmp_path / "reaction.seen").exists
    program, writer = build(tmp_path, lambda author: has_come() and author.round > 50)
    snapshots: list[Snapshot] = []
    outcome = program.run(
        snapshot_every=20, on_snapshot=snapshots.append, snapshot_at_end=True, on_loss=writer.losses.append
    )
    assert outcome.snapshot is not None
    assert len(snapshots) > 2
    assert [loss.why for loss in writer.losses] == ["it did not end within 30 s of the run, and was killed"]
    assert writer.rounds == list(range(len(writer.rounds)))


def test_one_that_does_not_come_up_holds_up_the_beginning_only_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raceway.graph.run._COMES_UP_S", 0.5)
    monkeypatch.setattr("raceway.graph.run._LINGER_S", 0.5)
    order(tmp_path, "startup", 1, "stop")
    program, writer = build(tmp_path, lambda author: author.round == 20)
    program.run(on_loss=writer.losses.append)
    assert writer.rounds == list(range(21))
    assert writer.verdicts == []


@pytest.mark.parametrize("end", ["a fault", "two interrupts"])
def test_a_run_that_fails_or_is_interrupted_twice_gives_up_one_that_hangs_sooner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setattr("raceway.graph.run.GRACE_S", 0.5)
    order(tmp_path, "reaction", 1, "stop")
    ends = (tmp_path / "reaction.seen").exists
    interrupts = iter([signal.SIGINT])

    def until(author: Author) -> bool:
        if ends() and end == "a fault":
            raise ZeroDivisionError
        for number in interrupts if ends() else ():
            os.kill(os.getpid(), number)
        return False

    def interrupt_again() -> bool:
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("it ends at once")

    program, writer = build(tmp_path, until)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(ReactionError if end == "a fault" else KeyboardInterrupt):
            program.run(on_loss=writer.losses.append, is_stuck=interrupt_again)
    finally:
        signal.signal(signal.SIGINT, before)
    assert [loss.why for loss in writer.losses] == ["it did not end within 0.5 s of the run, and was killed"]


class Scarce(Processes):
    """So many can be started, and no more."""

    left = 0

    def start(self, host: int, exchange: int, payload: bytes) -> Worker:
        if not Scarce.left:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        Scarce.left -= 1
        return super().start(host, exchange, payload)


def test_one_that_cannot_be_started_again_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scarce, "left", 1)
    order(tmp_path, "reaction")
    program, writer = build(tmp_path, place=Scarce)
    program.run(on_loss=writer.losses.append)
    assert [loss.is_final for loss in writer.losses] == [False, True]
    assert writer.losses[1].why == f"it could not be started again: {os.strerror(errno.EAGAIN)}"
    assert writer.rounds == list(range(len(writer.rounds)))


@pytest.mark.parametrize("how", ["kill", "raise"])
def test_one_that_is_lost_at_shutdown_does_not_fail_the_run(tmp_path: Path, how: str) -> None:
    order(tmp_path, "shutdown", 1, how)
    program, writer = build(tmp_path, has(1))
    program.run(on_loss=writer.losses.append)
    assert len(writer.losses) == (how == "raise")
    assert all("judge.close failed at shutdown" in loss.why and "a fault" in loss.why for loss in writer.losses)


def test_a_snapshot_has_what_others_have_read(tmp_path: Path) -> None:
    program, writer = build(tmp_path, has(30))
    outcome = program.run(snapshot_at_end=True)
    assert outcome.snapshot is not None
    kept = outcome.snapshot.reactors["judge"]["judged"]
    assert len(kept) >= len(writer.verdicts) - 1
    assert kept[: len(writer.verdicts)] == writer.verdicts[: len(kept)]
    assert outcome.snapshot.values["author.out -> judge.weights"], "what it has not seen yet is not lost"
    writer.until = has(32)
    program.restore(outcome.snapshot)
    program.run()
    assert writer.verdicts[: len(kept)] == kept


def test_rounds_of_a_resumed_run_are_counted_by_those_that_lead(tmp_path: Path) -> None:
    program, writer = build(tmp_path, has(3))
    outcome = program.run(snapshot_at_end=True)
    assert outcome.snapshot is not None
    writer.until = lambda author: False
    program.restore(outcome.snapshot)
    assert program.run(5).rounds_run == 5


def test_snapshots_are_complete_while_it_is_dead(tmp_path: Path) -> None:
    order(tmp_path, "reaction", 99)
    program, _ = build(tmp_path, lambda author: False, restarts=0)
    lost = threading.Event()
    taken: list[Snapshot] = []

    def look() -> None:
        assert lost.wait(60)
        taken.append(program.snapshot())
        program.stop()

    thread = threading.Thread(target=look)
    thread.start()
    program.run(on_loss=lambda loss: lost.set())
    thread.join()
    assert taken[0].reactors["judge"] == {"judged": []}


def test_without_restarts_a_killed_process_ends_the_run(tmp_path: Path) -> None:
    order(tmp_path, "reaction")
    program, _ = build(tmp_path, restarts=None)
    with pytest.raises(PlaceLostError, match=r"killed by SIGKILL.*judge"):
        program.run()


def test_what_others_wait_for_takes_no_restarts(tmp_path: Path) -> None:
    program = Program("waits")
    counter, sink = program.add(Counter()), program.add(Sink())
    program.connect(counter.out, sink.inp)
    program.place(sink, Processes(1, restarts=1))
    with pytest.raises(GraphError, match=r"sink is placed in a process with `restarts`, but"):
        program.check()
    program, _ = build(tmp_path)
    program.place(counter := program.add(Counter()), Processes(1))
    program.connect(counter.out, program.add(Sink()).inp)
    program.check()
    with pytest.raises(GraphError, match="restarts=-1"):
        Processes(restarts=-1)


@pytest.mark.parametrize(
    ("connection", "where"),
    [({"after": 1, "initial": [None]}, "is of the kind `after`"), ({"latest": True}, "goes to another worker process")],
)
def test_one_with_restarts_has_connections_that_nobody_waits_for(
    tmp_path: Path, connection: dict[str, Any], where: str
) -> None:
    program = Program("losses")
    writer, judge, sink = program.add(Author(has(1))), program.add(Judge(tmp_path)), program.add(Reading())
    program.place(judge, Processes(1, restarts=1))
    if "latest" in connection:
        program.place(sink, Processes(1))
    program.connect(writer.out, judge.weights, latest=True)
    program.connect(judge.verdicts, sink.read, **connection)
    with pytest.raises(GraphError, match=rf"its connections must be `latest`, .*judge\.verdicts .*{where}"):
        program.check()


class Reading(Reactor):
    tick = Timer()
    read = Input[list[int]]()

    @reaction(tick, uses=read)
    def look(self, read: list[int] | None) -> None: ...


class MuteError(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


class Failing(Judge):
    """Raises what is hard to pass on."""

    def __init__(self, orders: Path, how: str) -> None:
        super().__init__(orders)
        self.how = how

    def obey(self, moment: str) -> None:
        if moment == "reaction":
            raise MuteError if self.how == "mute" else RuntimeError("x" * 50_000_000)


@pytest.mark.parametrize(
    ("how", "why"), [("mute", "MuteError: (its message cannot be read"), ("long", "(50,000,000 ch")]
)
@pytest.mark.parametrize("restarts", [None, 1])
def test_an_exception_that_cannot_be_read_or_is_huge_is_told_in_short(
    tmp_path: Path, how: str, why: str, restarts: int | None
) -> None:
    program = Program("losses")
    writer, judge = program.add(Author(lambda author: author.is_alone)), program.add(Failing(tmp_path, how))
    program.place(judge, Processes(1, restarts=restarts))
    program.connect(writer.out, judge.weights, latest=True)
    program.connect(judge.verdicts, writer.heard, latest=True)
    if restarts is None:
        with pytest.raises(ReactionError) as raised:
            program.run()
        told = str(raised.value)
    else:
        program.run(on_loss=writer.losses.append)
        (loss,) = writer.losses
        told = loss.why
    assert "failing.judge failed in round 0" in told
    assert why in told
    assert len(told) < 30_000
