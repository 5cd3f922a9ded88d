"""Snapshots: what is in them, and that a run that goes on from one is the run that was never interrupted."""

from __future__ import annotations

import contextlib
import copy
import itertools
import threading
import time
from typing import Any

import numpy as np
import pytest

from raceway.graph import (
    Effect,
    GraphError,
    Input,
    Output,
    Processes,
    Program,
    ReactionError,
    Reactor,
    Snapshot,
    Timer,
    reaction,
    startup,
)
from tests.graph.parts import Accumulator, Adder, Counter, Sink, Source


def pipeline() -> tuple[Program, Accumulator, Sink]:
    """Values in flight on every kind of `after` connection: a self loop, a delay with initial values, a long one."""
    program = Program("pipeline")
    counter, accumulator, sink = program.add(Counter()), program.add(Accumulator()), program.add(Sink())
    program.connect(counter.out, accumulator.inp, after=2, initial=[100, 200], capacity=5)
    program.connect(accumulator.out, accumulator.before, after=1)
    program.connect(accumulator.out, sink.inp, after=3)
    return program, accumulator, sink


def by_hand(rounds: int) -> tuple[list[Any], list[Any]]:
    """What accumulator and sink of the pipeline see."""
    values = [100, 200, *range(rounds)][:rounds]
    sums = [sum(values[: at + 1]) for at in range(rounds)]
    heard = [(at, value, sums[at - 1] if at else None) for at, value in enumerate(values)]
    return heard, [(at, sums[at - 3]) for at in range(3, rounds)]


def test_a_snapshot_has_every_state_and_what_is_on_its_way(how):
    program, _, _ = pipeline()
    snapshot = program.run(rounds=4, snapshot_at_end=True, **how).snapshot
    assert snapshot is not None
    heard, sunk = by_hand(4)
    assert snapshot.round == 3
    assert snapshot.reactors["accumulator"] == {"sum": 301, "seen": heard}
    assert snapshot.reactors["sink"]["seen"] == sunk
    assert sorted(map(repr, snapshot.values.values())) == sorted(map(repr, [[2, 3], [301], [300, 300, 301]]))


@pytest.mark.parametrize("other", [{"inline": True}, {"threads": 2}])
def test_a_run_goes_on_from_every_snapshot_as_if_never_interrupted(how, other):
    program, _, _ = pipeline()
    snapshots: list[Snapshot] = []
    program.run(rounds=12, snapshot_every=3, on_snapshot=snapshots.append, **how)
    assert [snapshot.round for snapshot in snapshots] == [2, 5, 8, 11]
    for snapshot in snapshots:
        fresh, accumulator, sink = pipeline()
        fresh.restore(snapshot)
        if snapshot.round == 11:
            break
        assert fresh.run(rounds=11 - snapshot.round, **other).rounds == 12
        assert (accumulator.seen, sink.seen) == by_hand(12)


def test_a_snapshot_is_not_touched_by_what_comes_after_it(how):
    program, _, _ = pipeline()
    snapshots: list[Snapshot] = []
    copies: list[Snapshot] = []

    def keep(snapshot: Snapshot) -> None:
        snapshots.append(snapshot)
        copies.append(copy.deepcopy(snapshot))

    program.run(rounds=9, snapshot_every=2, on_snapshot=keep, **how)
    for _ in range(2):
        fresh, accumulator, sink = pipeline()
        fresh.restore(snapshots[1])
        fresh.run(rounds=5, **how)
        assert (accumulator.seen, sink.seen) == by_hand(9)
    assert snapshots == copies


def test_a_snapshot_can_be_asked_for_from_another_thread(how):
    program, _, _ = pipeline()
    slow, counter = program.add(Sink(sleep_s=0.002), name="slow"), program.add(Counter(), name="other")
    program.connect(counter.out, slow.inp)
    taken: list[Snapshot] = []
    asking = threading.Timer(0.05, lambda: taken.append(program.snapshot()))
    asking.start()
    program.run(rounds=150, **how)
    asking.join()
    assert len(taken) == 1
    fresh, accumulator, sink = pipeline()
    slow, counter = fresh.add(Sink(), name="slow"), fresh.add(Counter(), name="other")
    fresh.connect(counter.out, slow.inp)
    fresh.restore(taken[0])
    fresh.run(rounds=149 - max(taken[0].rounds.values()), **how)
    assert (accumulator.seen, sink.seen) == by_hand(150)
    assert slow.seen == [(round_, round_) for round_ in range(150)]


class SlowToOpen(Reactor):
    """Takes its time before the first round."""

    @reaction(startup)
    def open(self) -> None:
        time.sleep(0.3)

    tick = Timer()

    @reaction(tick)
    def work(self) -> None:
        time.sleep(0.001)


def test_a_snapshot_that_is_asked_for_before_the_first_round_waits_for_it(how):
    """And that of the end is not lost by it."""
    program = Program("slow")
    program.add(SlowToOpen())
    taken: list[Snapshot] = []
    asking = threading.Timer(0.1, lambda: taken.append(program.snapshot()))
    asking.start()
    outcome = program.run(rounds=20, snapshot_at_end=True, **how)
    asking.join()
    assert outcome.snapshot is not None
    assert outcome.snapshot.round == 19
    assert -1 <= taken[0].round <= 19


def parts() -> tuple[Program, Sink, Sink]:
    """Two pipelines that are not connected, one of them slow: each has rounds of its own."""
    program = Program("parts")
    sinks = program.add(Sink(), name="fast"), program.add(Sink(sleep_s=0.001), name="slow")
    for sink in sinks:
        counter = program.add(Counter())
        program.connect(counter.out, sink.inp, after=1, initial=[-1])
    return program, *sinks


@pytest.mark.parametrize("every", [1, 2, 3, 5])
def test_parts_that_are_not_connected_are_in_one_snapshot(how, every):
    program, _, _ = parts()
    snapshots: list[Snapshot] = []
    program.run(rounds=12, snapshot_every=every, on_snapshot=snapshots.append, **how)
    assert len(snapshots) == 12 // every
    for snapshot in snapshots:
        last = max(snapshot.rounds.values())
        if last < 11:
            fresh, fast, slow = parts()
            fresh.restore(snapshot)
            fresh.run(rounds=11 - last, **how)
            assert fast.seen == slow.seen == [(round_, round_ - 1) for round_ in range(12)]


class Stopper(Reactor):
    """Asks for the end in round 2."""

    out = Output[int]()
    tick = Timer()

    @reaction(tick, effects=out)
    def count(self) -> Effect[int]:
        if self.round == 2:
            self.stop()
        return self.out(self.round)


def stopping() -> Program:
    program = Program("stopping")
    stopper, sink = program.add(Stopper()), program.add(Sink())
    program.connect(stopper.out, sink.inp, capacity=3)
    return program


def test_an_end_that_was_asked_for_is_in_the_snapshot(how):
    snapshots: list[Snapshot] = []
    rounds = stopping().run(rounds=50, snapshot_every=1, on_snapshot=snapshots.append, **how).rounds
    assert rounds > 3  # there are snapshots between the wish and the end
    for snapshot in snapshots[: rounds - 1]:
        program = stopping()
        program.restore(snapshot)
        assert program.run(rounds=49 - snapshot.round, **how).rounds == rounds


class Asker(Reactor):
    """In its last round others ask for two snapshots while it is at work."""

    inp = Input[int]()

    def __init__(self, program: Program) -> None:
        self.program = program
        self.threads: list[threading.Thread] = []
        self.taken: list[Snapshot] = []

    @reaction(inp)
    def ask(self, value: int) -> None:
        if self.round == 5:
            self.threads = [threading.Thread(target=self.keep_snapshot) for _ in range(2)]
            for thread in self.threads:
                thread.start()
            time.sleep(0.1)

    def keep_snapshot(self) -> None:
        self.taken.append(self.program.snapshot())

    def save(self) -> dict[str, Any]:
        return {}


class Rounds(Reactor):
    """Keeps the numbers of its rounds, takes its time to save them, and never does so twice at a time."""

    out = Output[int]()
    tick = Timer()

    def __init__(self) -> None:
        self.rounds: list[int] = []
        self.saving = threading.Lock()

    @reaction(tick, effects=out)
    def count(self) -> Effect[int]:
        self.rounds.append(self.round)
        return self.out(self.round)

    def save(self) -> dict[str, Any]:
        assert self.saving.acquire(blocking=False)
        time.sleep(0.02)
        self.saving.release()
        return {"rounds": self.rounds}


@pytest.mark.timeout(60)
def test_a_reactor_that_has_ended_only_saves_when_snapshots_are_asked_for(how):
    program = Program("asker")
    rounds, asker = program.add(Rounds()), program.add(Asker(program))
    chain: list[Any] = [rounds, *(program.add(Adder(), name=f"adder_{at}") for at in range(6)), asker]
    for one, two in itertools.pairwise(chain):
        # Long and wide enough for the first to be done with all its rounds when the last comes to its last.
        program.connect(one.out, two.inp, capacity=9)
    program.run(rounds=6, **how)
    for thread in asker.threads:
        thread.join()
    assert rounds.rounds == list(range(6))
    assert [snapshot.round for snapshot in asker.taken] == [5, 5]


class Opened(Reactor):
    """Opens something, and remembers how often and what was there."""

    tick = Timer()

    def __init__(self) -> None:
        self.count = 0
        self.opened = 0
        self.weights = np.zeros(3)
        self.nested: dict[str, Any] = {"list": [(1, 2)], "none": None}

    @reaction(startup)
    def open(self) -> None:
        self.opened += 1

    @reaction(tick)
    def work(self) -> None:
        self.count += 1
        self.weights += 1
        self.nested["list"].append((self.round, self.opened))


def test_startup_runs_before_the_state_is_loaded(how):
    program = Program("opened")
    opened = program.add(Opened())
    snapshot = program.run(rounds=2, snapshot_at_end=True, **how).snapshot
    assert snapshot is not None
    state = snapshot.reactors["opened"]
    assert sorted(state) == ["count", "nested", "opened", "weights"]
    assert state["weights"].tolist() == [2, 2, 2]
    fresh = Program("opened")
    opened = fresh.add(Opened())
    opened.opened = 5  # whatever startup makes of this, the snapshot's 1 replaces it
    fresh.restore(snapshot)
    fresh.run(rounds=2, **how)
    assert (opened.count, opened.opened, opened.weights.tolist()) == (4, 1, [4, 4, 4])
    assert opened.nested == {"list": [(1, 2), (0, 1), (1, 1), (2, 1), (3, 1)], "none": None}


class Secretive(Reactor):
    """Has state that is not plain, and says how to save it."""

    tick = Timer()

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.ticks = {0}

    @reaction(tick)
    def work(self) -> None:
        self.ticks.add(self.round)

    def save(self) -> dict[str, Any]:
        return {"ticks": sorted(self.ticks)}

    def load(self, state: dict[str, Any]) -> None:
        self.ticks = set(state["ticks"])


class Careless(Reactor):
    """Has state that is not plain, and does not say."""

    tick = Timer()

    def __init__(self) -> None:
        self.lock = threading.Lock()

    @reaction(tick)
    def work(self) -> None: ...


def test_a_reactor_can_say_itself_what_its_state_is(how):
    program = Program("secretive")
    program.add(Secretive())
    snapshot = program.run(rounds=3, snapshot_at_end=True, **how).snapshot
    assert snapshot is not None
    assert snapshot.reactors == {"secretive": {"ticks": [0, 1, 2]}}
    fresh = Program("secretive")
    secretive = fresh.add(Secretive())
    fresh.restore(snapshot)
    fresh.run(rounds=2, **how)
    assert secretive.ticks == {0, 1, 2, 3, 4}


def test_state_that_is_not_plain_is_named(how):
    program = Program("careless")
    program.add(Careless())
    with pytest.raises(ReactionError) as caught:
        program.run(rounds=2, snapshot_at_end=True, **how)
    assert "careless.save()['lock']" in str(caught.value.__cause__)


def test_a_snapshot_of_another_program_is_refused():
    program, _, _ = pipeline()
    snapshot = program.run(rounds=4, snapshot_at_end=True, inline=True).snapshot
    assert snapshot is not None
    other = Program("other")
    adder, source = other.add(Adder()), other.add(Source([1]))
    other.connect(source.out, adder.inp)
    with pytest.raises(GraphError):
        other.restore(snapshot)


class Seldom(Reactor):
    """Hears the newest of what comes, and takes its time over it."""

    inp = Input[int]()

    def __init__(self, sleep_s: float) -> None:
        self.sleep_s = sleep_s
        self.heard: list[int] = []

    @reaction(inp)
    def hear(self, inp: int) -> None:
        time.sleep(self.sleep_s)
        self.heard.append(inp)


class Calls(Reactor):
    """Calls in two of its rounds, and never again."""

    tick = Timer()
    out = Output[int]()

    @reaction(tick, effects=out)
    def call(self) -> Effect[int] | None:
        time.sleep(0.001)
        return self.out(self.round) if self.round in (200, 400) else None


def test_a_snapshot_does_not_wait_for_news_that_do_not_come():
    """Neither right at the beginning nor while, in another process, the last news are still at work on."""
    program = Program("seldom")
    calls, seldom = program.add(Calls()), program.add(Seldom(0.1))
    program.place(seldom, Processes(1))
    program.connect(calls.out, seldom.inp, latest=True)
    taken: list[Snapshot] = []
    is_over = threading.Event()

    def ask() -> None:
        while not is_over.is_set():
            with contextlib.suppress(GraphError):  # it does not run yet, or no longer
                taken.append(program.snapshot())

    asking = threading.Thread(target=ask)
    asking.start()
    program.run(1200)
    is_over.set()
    asking.join()
    rounds = [snapshot.rounds["calls"] for snapshot in taken]
    assert rounds[0] < 100
    assert max(after - before for before, after in itertools.pairwise([*rounds, 1199])) < 400
