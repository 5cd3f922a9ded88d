"""What is refused before anything runs, and what the message says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from raceway.graph import (
    GraphError,
    Input,
    Output,
    Processes,
    Program,
    Reactor,
    Timer,
    reaction,
    shutdown,
    startup,
)
from tests.graph.parts import Adder, Collector, Counter, Sink, Source


def refused(act: Any, *words: str) -> None:
    with pytest.raises(GraphError) as caught:
        act()
    for word in words:
        assert word in str(caught.value), str(caught.value)


class Texts(Reactor):
    inp = Input[str]()

    @reaction(inp)
    def take(self, text: str) -> None: ...


def test_an_input_has_one_writer():
    program = Program()
    first, second, sink = program.add(Counter()), program.add(Counter()), program.add(Sink())
    program.connect(first.out, sink.inp)
    refused(lambda: program.connect(second.out, sink.inp), "sink.inp", "counter.out, counter_2.out", "Inputs", "queue")


def test_a_bank_cannot_write_to_one_input():
    program = Program()
    bank, sink = program.bank(Counter() for _ in range(2)), program.add(Sink())
    refused(lambda: program.connect(bank.out, sink.inp), "counter[0].out, counter[1].out", "Gather")


def test_types_have_to_agree():
    program = Program()
    counter, texts = program.add(Counter()), program.add(Texts())
    wrong = lambda: program.connect(counter.out, texts.inp)  # type: ignore[misc]  # noqa: E731
    refused(wrong, "counter.out gives int", "texts.inp takes str")


class Animal: ...


class Dog(Animal): ...


@pytest.mark.parametrize(
    ("given", "taken", "fits"),
    [
        (Dog, Animal, True),
        (Animal, Dog, False),
        (int, float, True),
        (float, int, False),
        (Any, int, True),
        (int, Any, True),
        (int | None, int, False),
        (int, int | None, True),
        (list[int], list[int], True),
        (list[int], list[str], False),
        (dict[str, Dog], dict[str, Animal], True),
        (np.ndarray, np.ndarray, True),
        (np.ndarray, int, False),
        (list, list[int], True),
    ],
)
def test_a_type_fits_where_its_values_can_be_read(given, taken, fits):
    class Writer(Reactor):
        out = Output[given]()  # type: ignore[valid-type]
        tick = Timer()

        @reaction(tick, effects=out)
        def write(self) -> None: ...

    class Reader(Reactor):
        inp = Input[taken]()  # type: ignore[valid-type]

        @reaction(inp)
        def read(self, value: Any) -> None: ...

    program = Program()
    writer, reader = program.add(Writer()), program.add(Reader())
    if fits:
        program.connect(writer.out, reader.inp)
    else:
        refused(lambda: program.connect(writer.out, reader.inp), "writer.out gives", "reader.inp takes")


def test_a_trigger_that_is_not_connected_is_named():
    program = Program()
    program.add(Sink())
    refused(program.check, "sink.inp triggers take", "not connected", "uses")


def test_a_loop_that_nothing_starts_is_found():
    program = Program()
    first, second = program.add(Adder()), program.add(Adder())
    program.connect(first.out, second.inp)
    program.connect(second.out, first.inp, after=1)
    refused(program.check, "adder.inp", "adder_2.out is never written", "Timer()")
    program = Program()
    first, second = program.add(Adder()), program.add(Adder())
    program.connect(first.out, second.inp)
    program.connect(second.out, first.inp, after=1, initial=[0])
    program.check()


def test_a_causality_loop_is_printed_port_by_port_with_the_way_out():
    program = Program()
    counter, first, second = program.add(Counter()), program.add(Two()), program.add(Adder())
    program.connect(counter.out, first.start)
    program.connect(first.out, second.inp)
    program.connect(second.out, first.inp)
    lines = ("two.out -> adder.inp", "adder.out -> two.inp", "after=1")
    refused(program.check, *lines)
    refused(lambda: program.run(3), *lines)


class Two(Reactor):
    """One reaction that reads both."""

    start = Input[int]()
    inp = Input[int]()
    out = Output[int]()

    @reaction((start, inp), effects=out)
    def add(self, start: int | None, value: int | None) -> None: ...


class Conversation(Reactor):
    """Asks in one reaction and hears the answer in a later one: not a loop."""

    tick = Timer()
    question = Output[int]()
    answer = Input[int]()

    def __init__(self) -> None:
        self.heard: list[int] = []

    @reaction(tick, effects=question)
    def ask(self) -> Any:
        return self.question(self.round)

    @reaction(answer)
    def hear(self, answer: int) -> None:
        self.heard.append(answer)


def test_an_answer_in_the_same_round_is_no_loop():
    program = Program()
    talker, adder = program.add(Conversation()), program.add(Adder(10))
    program.connect(talker.question, adder.inp)
    program.connect(adder.out, talker.answer)
    program.run(3)
    assert talker.heard == [10, 11, 12]


@pytest.mark.slow
def test_a_deep_chain_is_checked_and_run():
    program = Program()
    last: Any = program.add(Counter())
    for _ in range(1100):  # more than Python calls may be nested
        adder = program.add(Adder())
        program.connect(last.out, adder.inp)
        last = adder
    sink = program.add(Sink())
    program.connect(last.out, sink.inp)
    program.run(2, inline=True)
    assert sink.seen == [(0, 1100), (1, 1101)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"after": -1}, ["after=-1", "0 or more"]),
        ({"after": 2, "initial": [1]}, ["after=2 takes 2 initial values", "not 1"]),
        ({"initial": [1]}, ["after=0 takes 0 initial values"]),
        ({"after": 3, "capacity": 2}, ["capacity=2", "at least 3"]),
        ({"capacity": 0}, ["capacity=0", "at least 1"]),
        ({"queue": 0}, ["queue=0", "at least 1"]),
        ({"after": 1, "latest": True}, ["after and latest exclude"]),
        ({"queue": 2, "latest": True}, ["queue and latest exclude"]),
        ({"latest": True, "initial": [1, 2]}, ["`latest` takes one initial value"]),
        ({"latest": True, "initial": [None]}, ["`latest` takes one initial value"]),
        ({"latest": True, "capacity": 2}, ["capacity is for connections with `after`"]),
        ({"queue": 2, "initial": [1]}, ["initial is for connections with `after` or `latest`"]),
    ],
)
def test_options_of_a_connection_are_checked(options, words):
    program = Program()
    counter, sink = program.add(Counter()), program.add(Sink())
    refused(lambda: program.connect(counter.out, sink.inp, **options), "counter.out, sink.inp", *words)


def test_a_queue_cannot_be_gathered():
    program = Program()
    bank, collector = program.bank(Counter() for _ in range(2)), program.add(Collector())
    refused(lambda: program.connect(bank.out, collector.all, queue=2), "order of arrival", "Use an Input")


def test_banks_of_different_widths_do_not_pair():
    program = Program()
    counters, adders = program.bank(Counter() for _ in range(2)), program.bank(Adder() for _ in range(3))
    refused(lambda: program.connect(counters.out, adders.inp), "bank of 2", "bank of 3", "Inputs")


def test_ends_have_to_be_ends_of_this_program():
    program = Program()
    counter, sink = program.add(Counter()), program.add(Sink())
    refused(lambda: program.connect(sink.inp, counter.out), "sink.inp", "Outputs come first")  # type: ignore[call-overload]
    refused(lambda: program.connect(counter.out, counter.out), "not an input")  # type: ignore[call-overload]
    refused(lambda: program.connect(counter.out, Sink().inp), "Sink", "not in the program")
    refused(lambda: program.place(Sink(), Processes()), "not in program")


def test_reactors_are_added_once_under_one_name():
    program = Program()
    counter = program.add(Counter(), name="clock")
    refused(lambda: program.add(counter), "Counter", "twice")
    refused(lambda: program.add(Sink(), name="clock"), "'clock'", "another name")
    refused(lambda: program.add(3), "3 is not a reactor")  # type: ignore[type-var]
    refused(lambda: program.bank([]), "at least one")
    refused(lambda: program.bank([Counter(), Sink()]), "Counter, Sink")
    refused(lambda: Program("empty").run(1), "'empty' has no reactors")


def test_a_port_that_a_bank_does_not_have_is_an_attribute_error():
    bank = Program().bank(Counter() for _ in range(2))
    with pytest.raises(AttributeError, match=r"counter × 2.*'outt'"):
        bank.outt  # type: ignore[attr-defined]  # noqa: B018


def test_numbers_of_a_run_are_checked():
    program = Program()
    program.add(Counter())
    refused(lambda: program.run(-1), "rounds=-1", "at least 0")
    refused(lambda: program.run(1, threads=0), "threads=0")
    refused(lambda: program.run(1, snapshot_every=0), "snapshot_every=0")
    refused(lambda: Processes(0), "count=0")


def test_a_program_runs_once_and_goes_on_by_its_snapshot():
    program = Program()
    source, sink = program.add(Source(range(6))), program.add(Sink())
    program.connect(source.out, sink.inp)
    outcome = program.run(3, snapshot_at_end=True)
    refused(lambda: program.run(3), "has been run", "snapshot_at_end=True")
    assert outcome.snapshot is not None
    program.restore(outcome.snapshot)
    assert program.run(3).rounds == 6
    assert sink.seen == [(i, i) for i in range(6)]


def test_what_only_works_in_a_run_says_so():
    program = Program("idle")
    counter = program.add(Counter())
    refused(program.stop, "'idle' is not running")
    refused(program.snapshot, "'idle' is not running")
    refused(program.summary, "'idle' has no run")
    refused(counter.stop, "Counter.stop()")
    refused(lambda: counter.out.empty(3), "counter.out.empty()")


def declare(**members: Any) -> None:
    type("Odd", (Reactor,), members)


def test_declarations_are_checked_where_they_stand():
    tick, port, out = Timer(), Input[int](), Output[int]()

    def silent(self): ...
    def takes_one(self, value): ...

    refused(lambda: declare(react=reaction(())(silent)), "Odd.react", "no trigger", "Timer()")
    refused(lambda: declare(port=port, react=reaction(port)(lambda self: None)), "(self, port)")
    refused(lambda: declare(tick=tick, react=reaction(Input[int]())(takes_one)), "not a port of Odd")
    refused(lambda: declare(out=out, react=reaction(out)(takes_one)), "Output(out)", "trigger")  # type: ignore[arg-type]
    for moment in (startup, shutdown):
        refused(
            lambda moment=moment: declare(o=Output[int](), react=reaction((moment, Timer()))(silent)),
            f"a reaction to {moment}",
            "initial=",
        )
    refused(lambda: Timer(every=0), "every=0", "at least 1")
    refused(lambda: Timer(first=-1), "first=-1")


def test_only_lifecycle_reactions_are_not_enough():
    class Idle(Reactor):
        @reaction(startup)
        def open(self) -> None: ...

    refused(lambda: Program().add(Idle()), "Idle", "would do nothing")


def test_a_program_in_which_nobody_counts_the_rounds_says_so():
    program = Program()
    counter, sink = program.add(Counter()), program.add(Sink())
    program.connect(counter.out, sink.inp, queue=2)
    program.connect(counter.out, program.add(Sink()).inp, latest=True)
    program.check()
    program = Program()
    first, second = program.add(Feeder()), program.add(Feeder())
    program.connect(first.out, second.inp, queue=1)
    program.connect(second.out, first.inp, queue=1)
    refused(lambda: program.run(3), "none counts the rounds")


class Feeder(Reactor):
    tick = Timer()
    inp = Input[int]()
    out = Output[int]()

    @reaction(tick, uses=inp, effects=out)
    def feed(self, value: int | None) -> Any:
        return self.out(1)
