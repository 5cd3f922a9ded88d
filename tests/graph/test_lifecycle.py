"""From startup to shutdown: what runs when, how a run ends, what a failure says."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from raceway.graph import Effect, Output, Program, ReactionError, Reactor, Timer, reaction, shutdown, startup
from tests.graph.parts import Adder, Collector, Counter, Sink, Source


class Diary(Reactor):
    """Writes down what happens to it."""

    tick = Timer()

    def __init__(self, fails_in: int | None = None) -> None:
        self.fails_in = fails_in
        self.seen: list[Any] = []

    @reaction(shutdown)
    def close(self) -> None:
        self.seen.append("close")

    @reaction(startup)
    def open(self) -> None:
        self.seen.append("open")

    @reaction(tick)
    def work(self) -> None:
        if self.round == self.fails_in:
            raise ZeroDivisionError("a fault of the test")
        self.seen.append(self.round)

    @reaction(startup)
    def warm_up(self) -> None:
        self.seen.append("warm up")

    @reaction(shutdown)
    def lock_up(self) -> None:
        self.seen.append("lock up")


def test_startup_comes_first_and_shutdown_last_in_the_order_of_declaration(how):
    program = Program("diary")
    diary = program.add(Diary())
    program.run(rounds=2, **how)
    assert diary.seen == ["open", "warm up", 0, 1, "close", "lock up"]


def test_a_failure_names_reactor_reaction_and_round_and_all_are_shut_down(how):
    program = Program("failure")
    diaries = [Diary(fails_in=2 if at == 1 else None) for at in range(3)]
    program.bank(diaries)
    with pytest.raises(ReactionError, match=r"diary\[1\]\.work.*2") as caught:
        program.run(rounds=50, **how)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert [diary.seen[-2:] for diary in diaries] == [["close", "lock up"]] * 3
    assert diaries[1].seen == ["open", "warm up", 0, 1, "close", "lock up"]


class Refuser(Diary):
    """Does not come up."""

    @reaction(startup)
    def refuse(self) -> None:
        raise FileNotFoundError("no such thing")


def test_a_startup_that_fails_is_named_and_only_what_was_opened_is_closed(how):
    program = Program("refuser")
    before, refuser, after = (
        program.add(Diary(), name="a"),
        program.add(Refuser(), name="b"),
        program.add(Diary(), name="c"),
    )
    with pytest.raises(ReactionError, match=r"b\.refuse") as caught:
        program.run(rounds=1, **how)
    assert isinstance(caught.value.__cause__, FileNotFoundError)
    assert before.seen == ["open", "warm up", "close", "lock up"]
    assert refuser.seen == ["open", "warm up", "close", "lock up"]
    assert after.seen == []


def test_an_outcome_counts(how):
    program = Program("outcome")
    source, sink = program.add(Source([1, None, 3])), program.add(Sink())
    program.connect(source.out, sink.inp)
    outcome = program.run(rounds=3, **how)
    assert (outcome.rounds, outcome.reason) == (3, "rounds")
    calls = {(each.reactor, each.reaction): each.calls for each in outcome.reactions}
    assert calls == {("source", "write"): 3, ("sink", "take"): 2}
    assert 0 <= outcome.seconds < 10


# Stopping.


class Stopper(Counter):
    """Asks for the end in a certain round."""

    out = Output[int]()
    tick = Timer()

    def __init__(self, stops_in: int) -> None:
        self.stops_in = stops_in

    @reaction(tick, effects=out)
    def count(self) -> Effect[int]:
        if self.round == self.stops_in:
            self.stop()
        return self.out(self.round)


def stopped(fast: bool, **how: Any) -> tuple[int, list[Any]]:
    """Stops a chain with delays in round 5, from its first or its last reactor; who is not asked is slow."""
    program = Program("stop")
    stopper, adder = program.add(Stopper(5)), program.add(Adder())
    sinks = [Sink(sleep_s=0.002 if fast else 0.0) for _ in range(3)]
    other, collector = program.add(Source(range(100), sleep_s=0.0 if fast else 0.002)), program.add(Collector())
    program.connect(stopper.out, adder.inp, after=1, capacity=4)
    program.connect(adder.out, program.bank(sinks).inp, after=1, capacity=6)
    program.connect(adder.out, collector.all)
    program.connect(other.out, collector.all, capacity=3)
    outcome = program.run(rounds=100, **how)
    assert outcome.reason == "stopped"
    return outcome.rounds, [*(sink.seen for sink in sinks), collector.seen]


@pytest.mark.parametrize("fast", [True, False])
def test_a_stop_ends_all_reactors_at_the_same_round_in_every_run(fast):
    rounds, seen = stopped(fast, inline=True)
    assert 6 <= rounds < 40
    for threads in (1, 2, 3, 5):
        assert stopped(fast, threads=threads) == (rounds, seen)
    assert seen[0] == [(round_, round_ - 1) for round_ in range(2, rounds)]


def test_of_two_stops_the_earlier_counts(how):
    program = Program("two stops")
    stoppers = program.bank(Stopper(stops_in) for stops_in in (7, 4, 30))
    collector = program.add(Collector())
    program.connect(stoppers.out, collector.all)
    alone = Program("one stop")
    counters, other = alone.bank(Stopper(stops_in) for stops_in in (50, 4, 50)), alone.add(Collector())
    alone.connect(counters.out, other.all)
    assert program.run(rounds=100, **how).rounds == alone.run(rounds=100, **how).rounds


def test_a_stop_near_the_last_round_does_not_add_rounds(how):
    program = Program("late stop")
    stopper, sink = program.add(Stopper(2)), program.add(Sink())
    program.connect(stopper.out, sink.inp, capacity=9)
    outcome = program.run(rounds=3, **how)
    assert outcome.rounds == 3
    assert [round_ for round_, _ in sink.seen] == [0, 1, 2]


def test_a_program_without_a_number_of_rounds_runs_until_it_is_stopped(how):
    program = Program("endless")
    stopper, sink = program.add(Stopper(20)), program.add(Sink())
    program.connect(stopper.out, sink.inp)
    outcome = program.run(**how)
    assert outcome.reason == "stopped"
    assert 21 <= outcome.rounds < 40


def test_a_program_can_be_stopped_from_outside(how):
    program = Program("outside")
    source, sink = program.add(Counter()), program.add(Sink(sleep_s=0.001))
    program.connect(source.out, sink.inp)
    later = threading.Timer(0.1, program.stop)
    later.start()
    outcome = program.run(**how)
    later.join()
    assert outcome.reason == "stopped"
    assert sink.seen == [(round_, round_) for round_ in range(outcome.rounds)]


class Sleeper(Reactor):
    """Sleeps in its only reaction."""

    tick = Timer()

    @reaction(tick)
    def sleep(self) -> None:
        time.sleep(0.05)


def test_threads_run_reactions_side_by_side():
    seconds = {}
    ways: dict[str, dict[str, Any]] = {"side by side": {"threads": 4}, "in turn": {"inline": True}}
    for name, how in ways.items():
        program = Program("sleepers")
        program.bank(Sleeper() for _ in range(4))
        seconds[name] = program.run(rounds=2, **how).seconds
    assert seconds["side by side"] < 0.3  # 0.1 s if nothing else runs
    assert seconds["in turn"] > 0.39


def test_everything_inline_runs_in_the_calling_thread():
    class Witness(Diary):
        @reaction(Diary.tick)
        def work(self) -> None:
            self.seen.append(threading.current_thread())

    program = Program("witness")
    witness = program.add(Witness())
    program.run(rounds=2, inline=True)
    assert witness.seen[2:-2] == [threading.current_thread()] * 2
