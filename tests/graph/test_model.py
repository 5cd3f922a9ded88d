"""The model by small examples: presence, triggers, order, timers, delays, banks. Results are worked out by hand."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from raceway.graph import Effect, Input, Inputs, Output, Program, Reactor, Timer, reaction
from tests.graph.parts import Adder, Collector, Counter, Sink, Source


def test_a_value_triggers_in_its_round_and_absence_does_not(how):
    program = Program("presence")
    source, sink = program.add(Source([1, None, 3, None])), program.add(Sink())
    program.connect(source.out, sink.inp)
    program.run(rounds=5, **how)
    assert sink.seen == [(0, 1), (2, 3)]


@pytest.mark.parametrize("value", [0, False, "", (), [], {}, 0.0])
def test_a_value_that_is_false_is_present(how, value):
    program = Program("false")
    source, sink = program.add(Source([value])), program.add(Sink())
    program.connect(source.out, sink.inp)
    program.run(rounds=2, **how)
    assert sink.seen == [(0, value)]


class Mixed(Reactor):
    """A reaction with two triggers and a use, and one that has the use for its trigger."""

    first = Input[int]()
    second = Input[int]()
    other = Input[int]()

    def __init__(self) -> None:
        self.seen: list[Any] = []

    @reaction((first, second), uses=other)
    def either(self, *values: int | None) -> None:
        self.seen.append((self.round, "either", *values))

    @reaction(other)
    def alone(self, other: int) -> None:
        self.seen.append((self.round, "alone", other))


def test_any_trigger_is_enough_and_a_use_is_none(how):
    program = Program("uses")
    mixed = program.add(Mixed())
    for values, port in (
        ([1, None, 3, None, 5], mixed.first),
        ([10, None, None, 40], mixed.second),
        ([None, 200, 300], mixed.other),
    ):
        program.connect(program.add(Source(values)).out, port)
    program.run(rounds=6, **how)
    assert mixed.seen == [
        (0, "either", 1, 10, None),
        (1, "alone", 200),
        (2, "either", 3, None, 300),
        (2, "alone", 300),
        (3, "either", None, 40, None),
        (4, "either", 5, None, None),
    ]


class Ordered(Reactor):
    """Reactions that leave their traces in one state."""

    inp = Input[int]()
    out = Output[int]()
    back = Input[int]()
    tick = Timer()

    def __init__(self) -> None:
        self.seen: list[Any] = []

    @reaction(tick, effects=out)
    def zulu(self) -> Effect[int]:
        self.seen.append("zulu")
        return self.out(self.round)

    @reaction(inp)
    def mike(self, value: int) -> None:
        self.seen.append(("mike", value))

    @reaction((back, tick))
    def alpha(self, value: int | None) -> None:
        self.seen.append(("alpha", value))


def test_reactions_run_in_the_order_of_their_declaration_however_late_their_inputs_come(how):
    program = Program("order")
    ordered, source = program.add(Ordered()), program.add(Source([7, None, 9], sleep_s=0.002))
    adder = program.add(Adder())
    program.connect(source.out, ordered.inp)
    # Out and back into a later reaction, within the round.
    program.connect(ordered.out, adder.inp)
    program.connect(adder.out, ordered.back)
    program.run(rounds=3, **how)
    by_hand = ["zulu", ("mike", 7), ("alpha", 1), "zulu", ("alpha", 2), "zulu", ("mike", 9), ("alpha", 3)]
    assert ordered.seen == by_hand


class Inherited(Ordered):
    """Reactions of a base class come first; one that is declared anew keeps its place."""

    @reaction(Ordered.tick)
    def late(self) -> None:
        self.seen.append("late")

    @reaction(Ordered.inp)
    def mike(self, value: int) -> None:
        self.seen.append(("new mike", value))


def test_reactions_are_inherited(how):
    program = Program("inherited")
    ordered, source = program.add(Inherited()), program.add(Source([7]))
    program.connect(source.out, ordered.inp)
    program.connect(ordered.out, ordered.back, after=1)
    program.run(rounds=2, **how)
    assert ordered.seen == ["zulu", ("new mike", 7), ("alpha", None), "late", "zulu", ("alpha", 0), "late"]


class Timed(Reactor):
    """Timers of all kinds."""

    always = Timer()
    third = Timer(every=3)
    later = Timer(every=2, first=3)

    def __init__(self) -> None:
        self.seen: dict[str, list[int]] = {"always": [], "third": [], "later": [], "both": []}

    @reaction(always)
    def on_always(self) -> None:
        self.seen["always"].append(self.round)

    @reaction(third)
    def on_third(self) -> None:
        self.seen["third"].append(self.round)

    @reaction(later)
    def on_later(self) -> None:
        self.seen["later"].append(self.round)

    @reaction((third, later))
    def on_both(self) -> None:
        self.seen["both"].append(self.round)


def test_timers_count_rounds(how):
    program = Program("timers")
    timed = program.add(Timed())
    program.run(rounds=8, **how)
    assert timed.seen == {
        "always": list(range(8)),
        "third": [0, 3, 6],
        "later": [3, 5, 7],
        "both": [0, 3, 5, 6, 7],
    }


def test_a_delay_shifts_rounds_and_the_first_ones_are_absent(how):
    program = Program("delay")
    source, sink = program.add(Source([1, None, 3, 4])), program.add(Sink())
    program.connect(source.out, sink.inp, after=2)
    program.run(rounds=5, **how)
    assert sink.seen == [(2, 1), (4, 3)]


def test_initial_values_fill_the_first_rounds(how):
    program = Program("initial")
    source, sink = program.add(Source([1, None, 3, 4])), program.add(Sink())
    program.connect(source.out, sink.inp, after=3, initial=[-3, None, -1])
    program.run(rounds=5, **how)
    assert sink.seen == [(0, -3), (2, -1), (3, 1)]


def test_one_output_goes_to_many_each_with_its_own_delay(how):
    program = Program("fan out")
    source = program.add(Counter())
    sinks = [program.add(Sink(), name=f"sink_{at}") for at in range(3)]
    for delay, sink in enumerate(sinks):
        program.connect(source.out, sink.inp, after=delay)
    program.run(rounds=3, **how)
    assert [sink.seen for sink in sinks] == [[(0, 0), (1, 1), (2, 2)], [(1, 0), (2, 1)], [(2, 0)]]


def test_a_reactor_hears_itself_a_round_later(how):
    program = Program("self loop")
    adder = program.add(Adder(10))
    sink = program.add(Sink())
    program.connect(adder.out, adder.inp, after=1, initial=[1])
    program.connect(adder.out, sink.inp)
    program.run(rounds=3, **how)
    assert sink.seen == [(0, 11), (1, 21), (2, 31)]


def test_a_loop_through_others_needs_one_delay(how):
    program = Program("loop")
    one, two, sink = program.add(Adder(1), name="one"), program.add(Adder(2), name="two"), program.add(Sink())
    program.connect(one.out, two.inp)
    program.connect(two.out, one.inp, after=2, initial=[100, 200])
    program.connect(two.out, sink.inp)
    program.run(rounds=5, **how)
    assert sink.seen == [(0, 103), (1, 203), (2, 106), (3, 206), (4, 109)]


class Placed(Reactor):
    """Says where in its bank it is."""

    out = Output[tuple[int, int]]()
    tick = Timer()

    @reaction(tick, effects=out)
    def say(self) -> Effect[tuple[int, int]]:
        # The last come first: a gather by arrival would be the wrong way round.
        time.sleep(0.003 * (self.width - self.index))
        return self.out((self.index, self.width))


def test_a_bank_is_gathered_by_index_whoever_comes_first(how):
    program = Program("gather")
    bank, collector, alone = program.bank(Placed() for _ in range(3)), program.add(Collector()), program.add(Placed())
    program.connect(bank.out, collector.all)
    program.connect(alone.out, collector.all)
    program.run(rounds=2, **how)
    assert collector.seen == [(round_, ((0, 3), (1, 3), (2, 3), (0, 1))) for round_ in range(2)]


def test_several_connections_into_one_gather_stand_in_the_order_of_connecting(how):
    program = Program("connects")
    collector = program.add(Collector())
    late = program.bank((Source([values]) for values in ("b0", "b1")), name="late")
    early, delayed = program.add(Source(["a"]), name="early"), program.add(Source(["c", "d"]), name="delayed")
    program.connect(delayed.out, collector.all, after=1, initial=["before"])
    program.connect(late.out, collector.all)
    program.connect(early.out, collector.all)
    program.run(rounds=4, **how)
    assert collector.seen == [
        (0, ("before", "b0", "b1", "a")),
        (1, ("c", None, None, None)),
        (2, ("d", None, None, None)),
    ]


def test_one_is_broadcast_to_a_whole_bank(how):
    program = Program("broadcast")
    source, sinks = program.add(Source([5, None, [6]])), [Sink() for _ in range(3)]
    program.connect(source.out, program.bank(sinks).inp, after=1, initial=["first"])
    program.run(rounds=4, **how)
    assert [sink.seen for sink in sinks] == [[(0, "first"), (1, 5), (3, [6])]] * 3


def test_banks_of_one_width_are_connected_index_to_index(how):
    program = Program("bank to bank")
    adders, sinks = program.bank(Adder(at) for at in range(3)), [Sink() for _ in range(3)]
    counter = program.add(Counter())
    program.connect(counter.out, adders.inp)
    program.connect(adders.out, program.bank(sinks).inp)
    program.run(rounds=2, **how)
    assert [sink.seen for sink in sinks] == [[(0, at), (1, 1 + at)] for at in range(3)]


class Quorum(Reactor):
    """Gathers as a use and as a trigger."""

    votes = Inputs[int]()
    tick = Timer(every=2)

    def __init__(self) -> None:
        self.seen: list[Any] = []

    @reaction(tick, uses=votes)
    def poll(self, votes: tuple[int | None, ...]) -> None:
        self.seen.append((self.round, "poll", votes))

    @reaction(votes)
    def hear(self, votes: tuple[int | None, ...]) -> None:
        self.seen.append((self.round, "hear", votes))


def test_a_gather_is_present_if_any_entry_is(how):
    program = Program("quorum")
    quorum, sources = program.add(Quorum()), program.bank(Source(values) for values in ([1], [None, 2], []))
    program.connect(sources.out, quorum.votes)
    program.run(rounds=3, **how)
    assert quorum.seen == [
        (0, "poll", (1, None, None)),
        (0, "hear", (1, None, None)),
        (1, "hear", (None, 2, None)),
        (2, "poll", (None, None, None)),
    ]


class Optional(Reactor):
    """Uses what may not be there."""

    one = Input[int]()
    many = Inputs[int]()
    tick = Timer()

    def __init__(self) -> None:
        self.seen: list[Any] = []

    @reaction(tick, uses=(one, many))
    def look(self, one: int | None, many: tuple[int | None, ...]) -> None:
        self.seen.append((one, many))


def test_an_input_that_nobody_writes_is_absent(how):
    program = Program("unconnected")
    optional = program.add(Optional())
    program.run(rounds=2, **how)
    assert optional.seen == [(None, ())] * 2


class Ahead(Reactor):
    """Notes how many of its values were not read when it began to write another, at most."""

    out = Output[int]()
    tick = Timer()

    def __init__(self, read: list[int]) -> None:
        self.read = read
        self.most = 0

    @reaction(tick, effects=out)
    def write(self) -> Effect[int]:
        self.most = max(self.most, self.round - len(self.read))
        return self.out(self.round)


class SlowReader(Reactor):
    """Takes its time."""

    inp = Input[int]()

    def __init__(self, read: list[int]) -> None:
        self.read = read

    @reaction(inp)
    def take(self, value: int) -> None:
        time.sleep(0.004)
        self.read.append(value)


@pytest.mark.parametrize(("after", "capacity"), [(0, 1), (0, 3), (0, 6), (2, 3), (2, 5)])
def test_a_writer_waits_when_its_connection_is_full(after, capacity):
    read: list[int] = []  # shared on purpose: who is where is what is measured
    program = Program("capacity")
    ahead, reader = program.add(Ahead(read)), program.add(SlowReader(read))
    program.connect(ahead.out, reader.inp, after=after, capacity=capacity)
    program.run(rounds=20, threads=3)
    assert ahead.most == capacity
    assert read == list(range(20 - after))


def test_by_default_a_connection_holds_its_delay_and_one_more():
    read: list[int] = []
    program = Program("default capacity")
    ahead, reader = program.add(Ahead(read)), program.add(SlowReader(read))
    program.connect(ahead.out, reader.inp, after=1)
    program.run(rounds=20, threads=3)
    assert ahead.most == 2


class Early(Reactor):
    """Goes on after it has written, until its reader has read."""

    out = Output[str]()
    other = Output[str]()
    tick = Timer()

    def __init__(self, heard: threading.Event) -> None:
        self.heard = heard
        self.waited = False

    @reaction(tick, effects=(out, other))
    def write(self) -> Iterator[Effect[str]]:
        yield self.out("early")
        self.waited = self.heard.wait(10)
        yield self.other("late")


class Listener(Reactor):
    """Tells the writer that the value is there."""

    inp = Input[str]()

    def __init__(self, heard: threading.Event) -> None:
        self.heard = heard

    @reaction(inp)
    def take(self, value: str) -> None:
        self.heard.set()


def test_what_is_yielded_is_read_while_its_writer_goes_on():
    heard = threading.Event()
    program = Program("early")
    early, listener, sink = program.add(Early(heard)), program.add(Listener(heard)), program.add(Sink())
    program.connect(early.out, listener.inp)
    program.connect(early.other, sink.inp)
    program.run(rounds=1, threads=2)
    assert early.waited
    assert sink.seen == [(0, "late")]


class TwoWriters(Reactor):
    """Two reactions that share an output."""

    out = Output[str]()
    odd = Timer(every=2, first=1)
    third = Timer(every=3, first=2)

    @reaction(odd, effects=out)
    def one(self) -> Effect[str] | None:
        return self.out("one") if self.round != 5 else None

    @reaction(third, effects=out)
    def two(self) -> Effect[str]:
        return self.out("two")


def test_reactions_may_share_an_output(how):
    program = Program("shared output")
    writer, sink = program.add(TwoWriters()), program.add(Sink())
    program.connect(writer.out, sink.inp)
    program.run(rounds=8, **how)
    assert sink.seen == [(1, "one"), (2, "two"), (3, "one"), (5, "two"), (7, "one")]


def test_rounds_overlap_where_connections_allow_it():
    """A chain of three runs as a pipeline: three rounds are under way at once, each in another stage."""
    together = threading.Barrier(3)

    class Stage(Adder):
        @reaction(Adder.inp, effects=Adder.out)
        def add(self, value: int) -> Effect[int]:
            if self.round == 4 - self.number:
                together.wait(timeout=60)  # which is broken if the others are not there by then
            return self.out(value + self.number)

    program = Program("pipeline")
    counter = program.add(Counter())
    stages = [program.add(Stage(at), name=f"stage_{at}") for at in range(3)]
    program.connect(counter.out, stages[0].inp)
    for one, two in itertools.pairwise(stages):
        program.connect(one.out, two.inp)
    program.run(rounds=10, threads=4)
    assert together.n_waiting == 0
    assert not together.broken
