"""Inputs at work: what one reaction after the other reads from its channels in a round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from raceway.graph.channels import AfterChannel, Channel, LatestChannel, Line, QueueChannel
from raceway.graph.values import hand_out


class Inlet(ABC):
    """One input of one reactor. A round's value is looked at by any number of its reactions, then released."""

    channels: Sequence[Channel]

    @abstractmethod
    def lacks(self, round_: int) -> int:
        """How many channels the reader has to wait for. They will tell it when they have something."""

    @abstractmethod
    def is_present(self) -> bool: ...

    @abstractmethod
    def look(self) -> Any: ...

    @abstractmethod
    def release(self) -> Sequence[Channel]:
        """Ends the round: the channels that a value was taken from."""


class Single(Inlet):
    """An input with one `after` connection: by far the most frequent kind."""

    def __init__(self, channel: AfterChannel) -> None:
        self.channel = channel
        self.channels = (channel,)

    def lacks(self, round_: int) -> int:
        if self.channel.known > round_:
            return 0
        self.channel.reader_waits = True
        return 1

    def is_present(self) -> bool:
        return self.channel.values[0] is not None

    def look(self) -> Any:
        return hand_out(self.channel.values[0])

    def release(self) -> Sequence[Channel]:
        self.channel.values.popleft()
        return self.channels


class Unconnected(Inlet):
    """An input that nobody writes to."""

    channels = ()

    def lacks(self, round_: int) -> int:
        return 0

    def is_present(self) -> bool:
        return False

    def look(self) -> Any:
        return None

    def release(self) -> Sequence[Channel]:
        return ()


class QueueInlet(Inlet):
    """Takes one value a round from the line. If it is a trigger its reader waits for one."""

    def __init__(self, channels: Sequence[QueueChannel], line: Line, is_trigger: bool) -> None:
        self.channels = channels
        self.line = line
        self.is_trigger = is_trigger
        self.is_open = False
        self.taken: QueueChannel | None = None

    def lacks(self, round_: int) -> int:
        if not self.is_open:
            if self.line:
                self.taken = self.line.popleft()
            elif self.is_trigger and not all(channel.closed for channel in self.channels):
                self.line.reader_waits = True
                return 1
            self.is_open = True
        return 0

    def is_present(self) -> bool:
        return self.taken is not None

    def look(self) -> Any:
        return None if self.taken is None else hand_out(self.taken.values[0])

    def release(self) -> Sequence[Channel]:
        self.is_open = False
        taken, self.taken = self.taken, None
        if taken is None:
            return ()
        taken.values.popleft()
        return (taken,)


class LatestInlet(Inlet):
    """The newest value there is. It is the same for all reactions of a round, and a trigger only if it is new."""

    def __init__(self, channel: LatestChannel) -> None:
        self.channel = channel
        self.channels = (channel,)
        self.is_open = False
        self.value: Any = None
        self.version = 0
        self.seen = 0

    def has_news(self) -> bool:
        return self.channel.version > self.seen

    def lacks(self, round_: int) -> int:
        return 0

    def open(self) -> None:
        """Takes the newest value for this round. Only when nothing else is waited for: by then there may be another."""
        if not self.is_open:
            self.value, self.version = self.channel.value, self.channel.version
            self.is_open = True

    def is_present(self) -> bool:
        return self.version > self.seen

    def look(self) -> Any:
        return hand_out(self.value)

    def release(self) -> Sequence[Channel]:
        self.is_open = False
        self.seen = self.version
        return ()


class Gather(Inlet):
    """The values of several writers as a tuple, in the order of the bank."""

    def __init__(self, inlets: Sequence[Inlet]) -> None:
        self.inlets = inlets
        self.channels = [channel for inlet in inlets for channel in inlet.channels]

    def lacks(self, round_: int) -> int:
        return sum([inlet.lacks(round_) for inlet in self.inlets])

    def is_present(self) -> bool:
        return any(inlet.is_present() for inlet in self.inlets)

    def look(self) -> Any:
        return tuple([inlet.look() for inlet in self.inlets])

    def release(self) -> Sequence[Channel]:
        return [channel for inlet in self.inlets for channel in inlet.release()]
