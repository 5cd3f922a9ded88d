"""Corners of a run: silence without end, odd moments of ending, values of the main script."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from raceway.graph import (
    Effect,
    GraphError,
    Input,
    Inputs,
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
)
from tests.graph.parts import Adder, Counter, Sink, Source


class Echo(Reactor):
    """Hears itself, three times."""

    inp = Input[int]()
    out = Output[int]()

    @reaction(inp, effects=out)
    def repeat(self, value: int) -> Effect[int] | None:
        return self.out(value + 1) if value < 3 else None


@pytest.mark.parametrize("options", [{}, {"inline": True}])
def test_a_program_that_has_fallen_silent_can_be_stopped(options):
    program = Program()
    echo = program.add(Echo())
    program.connect(echo.out, echo.inp, after=1, initial=[0])
    timer = threading.Timer(0.3, program.stop)
    timer.start()
    assert program.run(**options).reason == "stopped"


class Watcher(Reactor):
    news = Inputs[int]()

    def __init__(self) -> None:
        self.seen: list[Any] = []

    @reaction(news)
    def look(self, news: tuple[int | None, ...]) -> None:
        self.seen.append(news)


def test_the_latest_of_a_bank_can_drive_a_reactor():
    program = Program()
    bank, watcher = program.bank(Source(range(20), sleep_s=0.001) for _ in range(2)), program.add(Watcher())
    program.connect(bank.out, watcher.news, latest=True)
    program.run(rounds=20)
    assert watcher.seen
    assert watcher.seen == sorted(watcher.seen, key=lambda both: [-1 if one is None else one for one in both])


def test_a_callback_that_takes_its_time_does_not_make_workers_look_lost():
    program = Program()
    counter, sink = program.add(Counter()), program.add(Sink())
    program.connect(counter.out, sink.inp)
    program.place(counter, Processes())
    program.run(rounds=20, snapshot_every=5, on_snapshot=lambda snapshot: time.sleep(0.3))
    assert len(sink.seen) == 20


class Rude(Reactor):
    tick = Timer()

    def __init__(self, how: str) -> None:
        self.how = how

    @reaction(tick)
    def work(self) -> None: ...

    @reaction(shutdown)
    def leave(self) -> None:
        if self.how == "exit":
            os._exit(7)
        sys.exit(1)


def test_a_worker_that_dies_while_it_shuts_down_is_named():
    program = Program()
    program.place(program.add(Rude("exit")), Processes())
    with pytest.raises(PlaceLostError, match=r"exit code 7.*rude"):
        program.run(2)


def test_leaving_in_a_shutdown_reaction_keeps_nobody_else_from_theirs():
    program = Program()
    program.add(Rude("sys"), name="first")
    program.add(Rude("sys"), name="second")
    with pytest.raises(ReactionError, match=r"first\.leave failed at shutdown") as caught:
        program.run(2)
    assert any("second.leave" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("options", [{}, {"inline": True}])
def test_a_run_of_no_rounds_has_a_snapshot(options):
    program = Program()
    counter, sink = program.add(Counter()), program.add(Sink())
    program.connect(counter.out, sink.inp, after=1, initial=[7])
    snapshot = program.run(0, snapshot_at_end=True, **options).snapshot
    assert snapshot is not None
    assert (snapshot.round, list(snapshot.values.values())) == (-1, [[7]])
    program.restore(snapshot)
    program.run(2, **options)
    assert sink.seen == [(0, 7), (1, 0)]


class Quitter(Reactor):
    tick = Timer()
    out = Output[int]()

    @reaction(tick, effects=out)
    def quit(self) -> Effect[int]:
        if self.round == 2:
            self.stop()
        return self.out(self.round)


def chain() -> Program:
    program = Program()
    last: Any = program.add(Quitter())
    for _ in range(4):
        adder = program.add(Adder())
        program.connect(last.out, adder.inp, capacity=3)
        last = adder
    program.connect(last.out, program.add(Sink()).inp)
    return program


def test_an_end_that_was_decided_before_holds_in_every_later_generation():
    snapshots: list[Snapshot] = []
    rounds = chain().run(snapshot_every=1, on_snapshot=snapshots.append).rounds
    after_decision = [snapshot for snapshot in snapshots if 3 <= snapshot.round < rounds - 2]
    for snapshot in after_decision[:2]:
        again: list[Snapshot] = []
        program = chain()
        program.restore(snapshot)
        assert program.run(200, snapshot_every=1, on_snapshot=again.append).rounds == rounds
        program = chain()
        program.restore(again[0])
        assert program.run(200).rounds == rounds


class Mute(Reactor):
    inp = Input[int]()
    out = Output[int]()
    tick = Timer()

    @reaction((tick, inp))
    def listen(self, value: int | None) -> None: ...


def test_a_loop_over_an_output_that_nobody_writes_is_a_loop():
    program = Program()
    mute, adder = program.add(Mute()), program.add(Two())
    program.connect(mute.out, adder.inp)
    program.connect(adder.out, mute.inp)
    with pytest.raises(GraphError, match=r"wait for each other"):
        program.check()


class Two(Reactor):
    tick = Timer()
    inp = Input[int]()
    out = Output[int]()

    @reaction(tick, uses=inp, effects=out)
    def add(self, value: int | None) -> Effect[int]:
        return self.out(1)


class Pair(Reactor):
    """Its second reaction could write what its first has written already."""

    tick = Timer()
    queued = Output[int]()
    direct = Output[int]()

    @reaction(tick, effects=queued)
    def first(self) -> Effect[int]:
        return self.queued(self.round)

    @reaction(tick, effects=(queued, direct))
    def second(self) -> Effect[int]:
        return self.direct(self.round)


class Both(Reactor):
    queued = Input[int]()
    direct = Input[int]()

    def __init__(self) -> None:
        self.seen: list[Any] = []

    @reaction((queued, direct))
    def take(self, queued: int | None, direct: int | None) -> None:
        self.seen.append((queued, direct))


def test_room_is_not_waited_for_by_who_need_not_write():
    program = Program()
    pair, both = program.add(Pair()), program.add(Both())
    program.connect(pair.queued, both.queued, queue=1)
    program.connect(pair.direct, both.direct)
    program.run(5)
    assert both.seen == [(i, i) for i in range(5)]


class Idle(Sink):
    """Driven by a value that comes once."""


def test_a_snapshot_does_not_wait_for_a_reactor_that_waits_for_news():
    program = Program()
    source, idle = program.add(Source([1, *[None] * 99], sleep_s=0.001)), program.add(Idle())
    program.connect(source.out, idle.inp, latest=True)
    taken: list[tuple[int, int]] = []
    program.run(100, snapshot_every=10, on_snapshot=lambda snapshot: taken.append((snapshot.round, source.round)))
    assert [round_ for round_, _ in taken] == list(range(9, 100, 10))
    assert taken[2][1] < 90, "the third snapshot came with the last"


def test_many_snapshots_leave_nothing_that_grows():
    program = Program()
    source, idle = program.add(Source(range(3000))), program.add(Idle())
    program.connect(source.out, idle.inp, latest=True)
    sizes: list[int] = []

    def look(_: Snapshot) -> None:
        assert program._run is not None
        scheduler = program._run._host.scheduler
        sizes.append(
            sum(map(len, scheduler.horizon._marks.values())) + sum(len(n.cuts_taken) for n in scheduler.nodes.values())
        )

    program.run(300, snapshot_every=1, on_snapshot=look, inline=True)
    assert max(sizes) < 20


def test_what_is_done_to_a_snapshot_does_not_reach_the_run():
    program = Program()
    source, sink = program.add(Source([{"k": i} for i in range(6)])), program.add(Sink())
    program.connect(source.out, sink.inp, after=2)

    def spoil(snapshot: Snapshot) -> None:
        for values in snapshot.values.values():
            for value in values:
                if value is not None:
                    value["k"] = 99

    program.run(6, snapshot_every=1, on_snapshot=spoil, inline=True)
    assert [value["k"] for _, value in sink.seen] == [0, 1, 2, 3]


class Asker(Reactor):
    tick = Timer()

    def __init__(self, program: Program) -> None:
        self.program = program

    @reaction(tick)
    def ask(self) -> None:
        self.program.snapshot()


@pytest.mark.parametrize("options", [{}, {"inline": True}])
def test_a_reaction_cannot_ask_for_a_snapshot(options):
    program = Program()
    program.add(Asker(program))
    with pytest.raises(ReactionError, match=r"snapshot\(\) waits for the reactors"):
        program.run(1, **options)


class Last(Reactor):
    tick = Timer()
    first = Output[int]()
    second = Output[int]()

    @reaction(tick, effects=(first, second))
    def write(self) -> Any:
        yield self.first(1)
        return self.second(2)


def test_what_a_reaction_returns_after_yielding_is_sent_too():
    program = Program()
    last, one, two = program.add(Last()), program.add(Sink(), name="one"), program.add(Sink(), name="two")
    program.connect(last.first, one.inp)
    program.connect(last.second, two.inp)
    program.run(1)
    assert (one.seen, two.seen) == ([(0, 1)], [(0, 2)])


class Kept(NamedTuple):
    number: int

    @property
    def double(self) -> int:
        return 2 * self.number


def test_odd_values_arrive_as_they_were():
    masked = np.ma.masked_array([1, 2], mask=[False, True])
    memory = np.zeros(3)
    values = [Kept(3), masked, np.from_dlpack(memory), np.zeros(0), np.array(5), np.zeros(2, "i4,f8")]
    program = Program()
    source, sink = program.add(Source(values)), program.add(Sink())
    program.connect(source.out, sink.inp, after=3)

    class Spoiler(Reactor):
        tick = Timer()

        @reaction(tick)
        def spoil(self) -> None:
            if self.round == 3:
                memory[:] = 7

    program.add(Spoiler())
    program.run(9, inline=True)
    got = [value for _, value in sink.seen]
    assert [type(value) for value in got] == [type(value) for value in values]
    assert got[0].double == 6
    assert got[1].mask.tolist() == [False, True]
    assert got[2].tolist() == [0, 0, 0]


def test_an_attribute_of_something_else_is_not_taken_for_an_output():
    class Metrics:
        loss = 1.0

    class Learner(Reactor):
        tick = Timer()
        loss = Output[float]()

        @reaction(tick)
        def learn(self) -> None:
            metrics = Metrics()
            assert metrics.loss

    assert Learner.reactions[0].effects == ()


@pytest.mark.parametrize("name", ["index", "name", "round", "stop", "save"])
def test_ports_cannot_take_the_names_that_every_reactor_has(name):
    with pytest.raises(GraphError, match=rf"Odd\.{name}"):
        type("Odd", (Reactor,), {name: Output[int]()})


def test_a_trace_that_cannot_be_written_is_told_before_the_run(tmp_path):
    program = Program()
    counter = program.add(Source(range(3)))
    program.connect(counter.out, program.add(Sink()).inp)
    with pytest.raises(OSError, match="nowhere"):
        program.run(3, trace=tmp_path / "nowhere" / "trace.json")
    program.run(3)


SCRIPT = """
    from dataclasses import dataclass
    import numpy as np
    from raceway.graph import Input, Output, Processes, Program, Reactor, Timer, reaction

    @dataclass
    class Batch:
        rows: np.ndarray

    class There(Reactor):
        tick = Timer()
        out = Output[Batch]()

        @reaction(tick, effects=out)
        def send(self):
            return self.out(Batch(np.full(3, self.round)))

    class Mirror(Reactor):
        inp = Input[Batch]()
        out = Output[Batch]()

        @reaction(inp, effects=out)
        def reflect(self, batch):
            assert type(batch) is Batch
            return self.out(Batch(batch.rows * 2))

    class Here(Reactor):
        inp = Input[Batch]()

        @reaction(inp)
        def take(self, batch):
            assert type(batch) is Batch and not batch.rows.flags.writeable
            print(int(batch.rows.sum()))

    program = Program()
    there, mirror, here = program.add(There()), program.add(Mirror()), program.add(Here())
    program.connect(there.out, mirror.inp)
    program.connect(mirror.out, here.inp)
    program.place(mirror, Processes())
    program.run(3)
"""


def test_classes_of_the_main_script_go_to_other_processes_and_come_back(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, timeout=60)
    assert done.stdout.split() == [b"0", b"6", b"12"], done.stderr.decode()


class Unreadable:
    def __reduce__(self) -> Any:
        return (int, ("not a number",))


class Sender(Reactor):
    tick = Timer()
    out = Output[Any]()

    @reaction(tick, effects=out)
    def send(self) -> Iterator[Effect[Any]]:
        yield self.out(Unreadable())


@pytest.mark.parametrize("options", [{}, {"latest": True}])
def test_a_value_that_cannot_be_read_ends_the_run_and_does_not_hang_it(options):
    program = Program()
    sender, sink = program.add(Sender()), program.add(Sink())
    program.connect(sender.out, sink.inp, **options)
    program.place(sender, Processes())
    with pytest.raises(ValueError, match="invalid literal"):
        program.run(5 if not options else None)
