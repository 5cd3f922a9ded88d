"""Values on their way: what was sent is what arrives, and nobody can change it for anybody else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from raceway.graph import Effect, GraphError, Input, Output, Program, ReactionError, Reactor, Timer, reaction
from tests.graph.parts import Sink, Source


def received(how: dict[str, Any], *values: Any, readers: int = 1) -> list[list[Any]]:
    """What each reader gets of values that are written round by round."""
    program = Program("values")
    source, sinks = program.add(Source(values)), [Sink() for _ in range(readers)]
    program.connect(source.out, program.bank(sinks).inp)
    program.run(rounds=len(values), **how)
    return [[value for _, value in sink.seen] for sink in sinks]


class Point(NamedTuple):
    x: Any
    y: Any


@dataclass
class Box:
    inside: Any


@dataclass(frozen=True)
class FrozenBox:
    inside: Any


def test_arrays_arrive_read_only_wherever_they_are(how):
    arrays = [np.arange(3) for _ in range(7)]
    sent = (
        arrays[0],
        [arrays[1]],
        {"key": (arrays[2],)},
        Box(arrays[3]),
        FrozenBox([arrays[4]]),
        Point(arrays[5], Box({"deep": arrays[6]})),
    )
    got = received(how, *sent)[0]
    insides = [
        got[0],
        got[1][0],
        got[2]["key"][0],
        got[3].inside,
        got[4].inside[0],
        got[5].x,
        got[5].y.inside["deep"],
    ]
    for array in insides:
        assert array.tolist() == [0, 1, 2]
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_types_stay_what_they_are(how):
    sent = (
        1,
        True,
        1.5,
        "text",
        b"bytes",
        (1, [2]),
        [1],
        {"k": 1, 2: 3},
        Point(1, 2),
        Box(1),
        FrozenBox(2),
        np.float32(2),
    )
    got = received(how, *sent)[0]
    assert [type(value) for value in got] == [type(value) for value in sent]
    assert list(got) == list(sent)


class Hoarder(Reactor):
    """Keeps what it has written, and changes it afterwards."""

    out = Output[Any]()
    tick = Timer()

    def __init__(self, make: Callable[[], Any], change: Callable[[Any], None]) -> None:
        self.make = make
        self.change = change

    @reaction(tick, effects=out)
    def write(self) -> Iterator[Effect[Any]]:
        value = self.make()
        yield self.out(value)
        self.change(value)


class Buffer:
    """Memory that several arrays look at."""

    def __init__(self) -> None:
        self.whole = np.zeros(6)
        self.bytes = bytearray(8)

    def change(self, _: Any) -> None:
        self.whole += 1
        self.bytes[:] = b"\x01" * 8


@pytest.mark.parametrize("what", ["list", "dict", "dataclass", "view", "strided view", "reshaped", "bytes"])
def test_a_value_is_what_it_was_when_it_was_sent(how, what):
    buffer = Buffer()
    cases: dict[str, tuple[Callable[[], Any], Callable[[Any], None], Any]] = {
        "list": (lambda: [0], lambda value: value.append(1), [0]),
        "dict": (lambda: {"k": [0]}, lambda value: value["k"].append(1), {"k": [0]}),
        "dataclass": (lambda: Box([0]), lambda value: value.inside.append(1), Box([0])),
        "view": (lambda: buffer.whole[:3], buffer.change, [0.0] * 3),
        "strided view": (lambda: buffer.whole[::2], buffer.change, [0.0] * 3),
        "reshaped": (lambda: buffer.whole.reshape(2, 3), buffer.change, [[0.0] * 3] * 2),
        "bytes": (lambda: np.frombuffer(buffer.bytes, np.uint8), buffer.change, [0] * 8),
    }
    make, change, expected = cases[what]
    program = Program("hoarder")
    hoarder, sink = program.add(Hoarder(make, change)), program.add(Sink(sleep_s=0.002))
    program.connect(hoarder.out, sink.inp)
    program.run(rounds=1, **how)
    value = sink.seen[0][1]
    assert (value.tolist() if isinstance(value, np.ndarray) else value) == expected


def test_an_array_is_read_only_for_its_writer_too_from_then_on():
    array = np.zeros(3)
    received({"inline": True}, array)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


class Spoiler(Reactor):
    """Two reactions that change what they read."""

    inp = Input[Any]()

    def __init__(self) -> None:
        self.seen: list[str] = []

    @reaction(inp)
    def first(self, value: Any) -> None:
        self.spoil(value)

    @reaction(inp)
    def second(self, value: Any) -> None:
        self.spoil(value)

    def spoil(self, value: Any) -> None:
        self.seen.append(repr(value))
        value[0]["k"].inside.append("spoilt")
        value[0]["more"] = 1
        value.clear()


def test_containers_are_fresh_for_every_reader_and_reaction(how):
    program = Program("fresh")
    source, spoilers = program.add(Source([[{"k": Box([1])}]])), [Spoiler() for _ in range(3)]
    program.connect(source.out, program.bank(spoilers).inp)
    program.run(rounds=1, **how)
    assert [spoiler.seen for spoiler in spoilers] == [["[{'k': Box(inside=[1])}]"] * 2] * 3


def test_initial_values_are_as_safe_as_others(how):
    array, box = np.zeros(2), [{"k": Box([1])}]
    program = Program("initial")
    source, spoilers, readers = program.add(Source([])), [Spoiler() for _ in range(2)], [Sink() for _ in range(2)]
    program.connect(source.out, program.bank(spoilers).inp, after=2, initial=[box, box])
    program.connect(source.out, program.bank(readers).inp, after=1, initial=[array])
    program.run(rounds=2, **how)
    assert [spoiler.seen for spoiler in spoilers] == [["[{'k': Box(inside=[1])}]"] * 4] * 2
    assert box == [{"k": Box([1])}]
    assert not any(reader.seen[0][1].flags.writeable for reader in readers)


class Keeper(Reactor):
    """Keeps every array that it ever got."""

    inp = Input[np.ndarray]()

    def __init__(self) -> None:
        self.kept: list[np.ndarray] = []

    @reaction(inp)
    def take(self, value: np.ndarray) -> None:
        self.kept.append(value)


def test_what_a_reader_keeps_stays_as_it_is(how):
    program = Program("keeper")
    source = program.add(Source([np.full(20_000, float(at)) for at in range(8)]))
    keeper = program.add(Keeper())
    program.connect(source.out, keeper.inp)
    program.run(rounds=8, **how)
    assert [(array.min(), array.max()) for array in keeper.kept] == [(at, at) for at in range(8)]


# What a reaction must not write.


class Clumsy(Reactor):
    """Writes as it is told."""

    out = Output[Any]()
    other = Output[Any]()
    tick = Timer()

    def __init__(self, write: Callable[[Clumsy], Any]) -> None:
        self.write = write

    @reaction(tick, effects=out)
    def clumsy(self) -> Any:
        return self.write(self) if self.round == 2 else None


def refusal(how: dict[str, Any], write: Callable[[Clumsy], Any]) -> str:
    program = Program("clumsy")
    program.add(Clumsy(write))
    with pytest.raises(ReactionError, match=r"clumsy.*clumsy.*2") as caught:
        program.run(rounds=5, **how)
    assert isinstance(caught.value.__cause__, GraphError)
    return str(caught.value.__cause__)


def test_a_second_write_in_one_round_is_refused(how):
    assert "already" in refusal(how, lambda self: iter([self.out(1), self.out(2)]))


def test_an_effect_that_was_not_declared_is_refused(how):
    assert "other" in refusal(how, lambda self: self.other(1))


def test_none_is_refused(how):
    assert "None" in refusal(how, lambda self: self.out(None))


@pytest.mark.parametrize("value", [1, [3], "text"])
def test_what_is_no_effect_is_refused(how, value):
    assert "effect" in refusal(how, lambda self: value)


def test_an_output_that_a_reaction_names_but_does_not_declare_is_found_before_anything_runs():
    with pytest.raises(GraphError, match=r"write.*secret"):

        class Hidden(Reactor):
            out = Output[int]()
            secret = Output[int]()
            tick = Timer()

            @reaction(tick, effects=out)
            def write(self) -> Effect[int]:
                return self.secret(1)


class Second(Reactor):
    """Two reactions that write the same output in the same round."""

    out = Output[int]()
    tick = Timer()

    @reaction(tick, effects=out)
    def one(self) -> Effect[int]:
        return self.out(1)

    @reaction(tick, effects=out)
    def two(self) -> Effect[int]:
        return self.out(2)


def test_a_second_write_by_another_reaction_is_refused(how):
    program = Program("second")
    program.add(Second())
    with pytest.raises(ReactionError, match=r"second\.two"):
        program.run(rounds=1, **how)
