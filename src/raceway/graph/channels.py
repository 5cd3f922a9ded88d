"""Connections at work: values on their way, and who waits for them.

A connection between two processes has a channel in both: the reader's half holds the values, the writer's half counts.
Everything here is touched under the host's lock only, except that a reader looks at the value that is its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from raceway.graph.cuts import Part
    from raceway.graph.node import Node
    from raceway.graph.plan import Connection


class Channel(ABC):
    """What every kind of connection has."""

    ordered = False
    """Whether every round has a value on it, absence included."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.reader: Node | None = None
        self.writer: Node | None = None
        self.reader_waits = False
        self.writer_waits = False
        self.closed = False
        """Nothing more will come; or, for the writer, nobody reads any more."""
        self.for_value = connection.input
        self.for_room = f"{connection.output} (full)"
        """What its reader and its writer wait for, in words."""

    @abstractmethod
    def is_full(self, round_: int) -> bool:
        """Whether the writer has to wait before it begins that round."""

    @abstractmethod
    def put(self, value: Any) -> bool:
        """Takes what was written; true if the reader waited for it."""

    @abstractmethod
    def acknowledge(self, count: int) -> bool:
        """The reader is done with so many values; true if the writer waited for that."""

    @abstractmethod
    def cut(self, part: Part) -> None:
        """Adds the values for rounds after the part's; those that are not known yet, when they come."""

    def _wake_reader(self) -> bool:
        waited, self.reader_waits = self.reader_waits, False
        return waited

    def _wake_writer(self) -> bool:
        if self.writer_waits and self.writer is not None and not self.is_full(self.writer.round):
            self.writer_waits = False
            return True
        return False

    def close(self) -> tuple[bool, bool]:
        """Ends all waiting on it: whether the reader and the writer waited."""
        self.closed = True
        return self._wake_reader(), self._wake_writer()


class AfterChannel(Channel):
    """Every round has its value, present or not, and they are read in order."""

    ordered = True

    def __init__(self, connection: Connection, first_round: int, initial: list[Any]) -> None:
        super().__init__(connection)
        self.slack = connection.slack
        self.values: deque[Any] = deque(initial)
        self.known = first_round + len(initial)
        """The first round whose value is not known yet."""
        self.consumed = first_round
        """The first round that the reader is not done with."""
        self._cuts: list[tuple[int, Part]] = []
        """Snapshots that still lack values, with the last round that they need."""

    def is_full(self, round_: int) -> bool:
        return self.consumed < round_ - self.slack

    def put(self, value: Any) -> bool:
        self.values.append(value)
        self.known += 1
        if self._cuts:
            self._add_to_cuts(value)
        return self._wake_reader()

    def acknowledge(self, count: int) -> bool:
        self.consumed += count
        return self._wake_writer()

    def close(self) -> tuple[bool, bool]:
        return False, False

    def cut(self, part: Part) -> None:
        values = part.values[self.connection.id] = list(self.values)[: self.connection.delay]
        if len(values) < self.connection.delay:
            part.lacking += 1
            self._cuts.append((part.round + self.connection.delay, part))

    def _add_to_cuts(self, value: Any) -> None:
        waiting, self._cuts = self._cuts, []
        for last, part in waiting:
            part.values[self.connection.id].append(value)
            if self.known > last:
                part.complete_one()
            else:
                self._cuts.append((last, part))


class Line(deque["QueueChannel"]):
    """The channels of the values that wait before one input, in the order in which these arrived."""

    reader_waits = False


class QueueChannel(Channel):
    """Values wait their turn, one a round, in the order in which they arrive from all the writers."""

    def __init__(self, connection: Connection, line: Line) -> None:
        super().__init__(connection)
        self.values: deque[Any] = deque()
        self.line = line
        self.underway = 0
        """Values that the reader is not done with; of the writer's half, those that were sent."""

    def is_full(self, round_: int) -> bool:
        return not self.closed and self.underway >= self.connection.capacity

    def put(self, value: Any) -> bool:
        self.values.append(value)
        self.line.append(self)
        self.underway += 1
        return self._wake_reader()

    def acknowledge(self, count: int) -> bool:
        self.underway -= count
        return self._wake_writer()

    def cut(self, part: Part) -> None:
        part.values[self.connection.id] = list(self.values)

    def _wake_reader(self) -> bool:
        waited, self.line.reader_waits = self.line.reader_waits, False
        return waited


class LatestChannel(Channel):
    """Only the newest value counts, and nobody waits."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.value: Any = None
        self.version = 0
        # Of the writer's half, when the reader lives elsewhere: one value is sent at a time, and the newest is kept.
        self.sending = False
        self.pending: Any = None

    def is_full(self, round_: int) -> bool:
        return False

    def put(self, value: Any) -> bool:
        self.value = value
        self.version += 1
        return self._wake_reader()

    def acknowledge(self, count: int) -> bool:
        self.sending = False
        return False

    def cut(self, part: Part) -> None:
        part.values[self.connection.id] = [self.value] if self.version else []
