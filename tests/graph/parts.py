"""Small reactors to build examples from."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from raceway.graph import Effect, Input, Inputs, Output, Reactor, Timer, reaction


class Source(Reactor):
    """Writes one of its values in each round, and nothing for None or when there are no more."""

    out = Output[Any]()
    tick = Timer()

    def __init__(self, values: Sequence[Any], sleep_s: float = 0.0) -> None:
        self.values = list(values)
        self.sleep_s = sleep_s

    @reaction(tick, effects=out)
    def write(self) -> Effect[Any] | None:
        time.sleep(self.sleep_s)
        value = self.values[self.round] if self.round < len(self.values) else None
        return None if value is None else self.out(value)


class Counter(Reactor):
    """Writes the number of the round."""

    out = Output[int]()
    tick = Timer()

    @reaction(tick, effects=out)
    def count(self) -> Effect[int]:
        return self.out(self.round)


class Sink(Reactor):
    """Keeps what it sees, with the rounds."""

    inp = Input[Any]()

    def __init__(self, sleep_s: float = 0.0) -> None:
        self.seen: list[Any] = []
        self.sleep_s = sleep_s

    @reaction(inp)
    def take(self, value: Any) -> None:
        time.sleep(self.sleep_s)
        self.seen.append((self.round, value))


class Collector(Reactor):
    """Keeps what it gathers, with the rounds."""

    all = Inputs[Any]()

    def __init__(self) -> None:
        self.seen: list[Any] = []

    @reaction(all)  # noqa: A003 (the port, not the function)
    def take(self, values: tuple[Any, ...]) -> None:
        self.seen.append((self.round, values))


class Adder(Reactor):
    """Writes what it reads, plus its own number."""

    inp = Input[int]()
    out = Output[int]()

    def __init__(self, number: int = 1) -> None:
        self.number = number

    @reaction(inp, effects=out)
    def add(self, value: int) -> Effect[int]:
        return self.out(value + self.number)


class Accumulator(Reactor):
    """Sums up what it reads, writes the sum, and hears its own sum of the round before."""

    inp = Input[int]()
    before = Input[int]()
    out = Output[int]()

    def __init__(self) -> None:
        self.sum = 0
        self.seen: list[Any] = []

    @reaction(inp, uses=before, effects=out)
    def add(self, value: int, before: int | None) -> Effect[int]:
        self.sum += value
        self.seen.append((self.round, value, before))
        return self.out(self.sum)
