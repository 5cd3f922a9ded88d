"""`queue` and `latest` connections: what they promise although they are not deterministic."""

from __future__ import annotations

import time
from typing import Any

import pytest

from raceway.graph import Effect, Input, Inputs, Output, Program, Reactor, Timer, reaction
from tests.graph.parts import Counter, Sink, Source


@pytest.mark.parametrize("capacity", [1, 3])
def test_a_queue_loses_nothing_and_keeps_the_order(how, capacity):
    program = Program("queue")
    source, sink = program.add(Source([1, None, 3, None, None, 6, 7])), program.add(Sink())
    program.connect(source.out, sink.inp, queue=capacity)
    program.run(rounds=4, **how)
    # The sink leads: it runs its four rounds, one value in each.
    assert sink.seen == [(0, 1), (1, 3), (2, 6), (3, 7)]


def test_values_of_several_writers_come_as_they_arrive(how):
    program = Program("queues")
    sources = program.bank(Source([(at, number) for number in range(5)]) for at in range(3))
    sink = program.add(Sink())
    program.connect(sources.out, sink.inp, queue=2)
    program.run(rounds=15, **how)
    values = [value for _, value in sink.seen]
    assert sorted(values) == [(at, number) for at in range(3) for number in range(5)]
    for at in range(3):
        assert [number for source, number in values if source == at] == list(range(5))


class Lead(Reactor):
    """Notes how many values its reader is behind, at most."""

    out = Output[int]()
    tick = Timer()

    def __init__(self, read: list[int]) -> None:
        self.read = read
        self.most = 0

    @reaction(tick, effects=out)
    def write(self) -> Effect[int]:
        self.most = max(self.most, self.round - len(self.read))
        return self.out(self.round)


class Late(Reactor):
    """Takes its time."""

    inp = Input[int]()

    def __init__(self, read: list[int]) -> None:
        self.read = read

    @reaction(inp)
    def take(self, value: int) -> None:
        time.sleep(0.004)
        self.read.append(value)


def test_the_writer_waits_when_the_queue_is_full():
    read: list[int] = []
    program = Program("full queue")
    lead, late = program.add(Lead(read)), program.add(Late(read))
    program.connect(lead.out, late.inp, queue=3)
    program.run(rounds=20, threads=3)
    assert read == list(range(20))
    assert 2 <= lead.most <= 3


class Poller(Reactor):
    """Looks at the newest value, every round or when there is one."""

    newest = Input[int]()
    tick = Timer()

    def __init__(self) -> None:
        self.polled: list[int | None] = []
        self.news: list[int] = []

    @reaction(tick, uses=newest)
    def poll(self, newest: int | None) -> None:
        time.sleep(0.001)
        self.polled.append(newest)

    @reaction(newest)
    def hear(self, newest: int) -> None:
        self.news.append(newest)


def test_the_latest_value_is_seen_by_whoever_looks_and_triggers_once(how):
    program = Program("latest")
    counter, poller = program.add(Counter()), program.add(Poller())
    program.connect(counter.out, poller.newest, latest=True)
    program.run(rounds=30, **how)
    seen = [value for value in poller.polled if value is not None]
    assert len(poller.polled) == 30
    assert seen == sorted(seen)
    assert poller.news == sorted(set(poller.news))
    assert set(seen) <= set(poller.news)


class Asker(Reactor):
    """Sends on the newest answer."""

    answer = Input[int]()
    out = Output[int]()
    tick = Timer()

    @reaction(tick, uses=answer, effects=out)
    def ask(self, answer: int) -> Effect[int]:
        return self.out(answer)


class Answerer(Reactor):
    """Takes its time, and answers with how many it has answered."""

    inp = Input[int]()
    out = Output[int]()

    def __init__(self) -> None:
        self.behind: list[int] = []

    @reaction(inp, effects=out)
    def reply(self, inp: int) -> Effect[int]:
        time.sleep(0.002)
        self.behind.append(len(self.behind) - inp)
        return self.out(len(self.behind))


@pytest.mark.parametrize("queue", [1, 2, 3])
def test_whoever_waits_for_room_reads_the_latest_after_that(queue):
    program = Program("latest")
    asker, answerer = program.add(Asker()), program.add(Answerer())
    program.connect(asker.out, answerer.inp, queue=queue)
    program.connect(answerer.out, asker.answer, latest=True, initial=[0])
    program.run(rounds=20, threads=2)
    assert max(answerer.behind) == queue - 1


class Silent(Reactor):
    """Writes its round, but only from the fifth on."""

    out = Output[int]()
    tick = Timer(first=5)

    @reaction(tick, effects=out)
    def write(self) -> Effect[int]:
        return self.out(self.round)


def test_an_initial_value_is_the_latest_until_there_is_another(how):
    program = Program("latest")
    silent, poller = program.add(Silent()), program.add(Poller())
    program.connect(silent.out, poller.newest, latest=True, initial=[-1])
    program.run(rounds=30, **how)
    assert poller.polled[0] == -1
    assert poller.news[0] == -1
    assert None not in poller.polled
    assert poller.polled == sorted(value for value in poller.polled if value is not None)


class Evaluator(Reactor):
    """Works on the newest value for as long as it takes."""

    weights = Input[int]()

    def __init__(self) -> None:
        self.seen: list[int] = []

    @reaction(weights)
    def evaluate(self, weights: int) -> None:
        time.sleep(0.01)
        self.seen.append(weights)


def test_nobody_waits_for_a_reader_of_the_latest():
    program = Program("evaluator")
    counter, evaluator = program.add(Counter()), program.add(Evaluator())
    program.connect(counter.out, evaluator.weights, latest=True)
    outcome = program.run(rounds=1000, threads=2)
    assert outcome.rounds == 1000
    assert len(evaluator.seen) < 500
    assert evaluator.seen == sorted(set(evaluator.seen))


class Crowd(Reactor):
    """Gathers the newest of several."""

    newest = Inputs[Any]()
    tick = Timer()

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []

    @reaction(tick, uses=newest)
    def look(self, newest: tuple[Any, ...]) -> None:
        time.sleep(0.001)
        self.seen.append(newest)


def test_the_latest_of_a_bank_is_gathered_by_index(how):
    program = Program("crowd")
    bank = program.bank(Source([(at, number) for number in range(50)]) for at in range(3))
    crowd = program.add(Crowd())
    program.connect(bank.out, crowd.newest, latest=True)
    program.run(rounds=50, **how)
    for values in crowd.seen:
        assert [value[0] for value in values if value is not None] == [
            at for at, value in enumerate(values) if value is not None
        ]
    for at in range(3):
        numbers = [values[at][1] for values in crowd.seen if values[at] is not None]
        assert numbers == sorted(numbers)
        assert numbers
