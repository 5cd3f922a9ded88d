"""What processes of one program tell each other, in order, over the exchange."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from raceway._core import Exchange
from raceway.encoding import decode, encode
from raceway.errors import LimitError
from raceway.graph.transport import Transport

VALUE = 0  # (VALUE, outlet, value): a value for all its readers in that process
NEWS = 1  # (NEWS, outlets that wrote nothing, {connection: values that its reader is done with})
LATEST = 2  # (LATEST, connection, value)
CLOSE = 3  # (CLOSE, connections)
STOP = 4  # (STOP, domain, last round)
MARK = 5  # (MARK, domain, round or None for the last one, cut)
WIND_UP = 6  # (WIND_UP, domain): choose a last round and tell everybody
CHOOSE_CUT = 7  # (CHOOSE_CUT, domain, cut): choose a round and tell everybody
REPORT = 8  # (REPORT, name, arguments): for the coordinator
BEGIN = 9  # (BEGIN,): rounds may begin
FINISH = 10  # (FINISH,): there is nothing left to run
ABORT = 11  # (ABORT,): a reaction failed somewhere


class Post:
    """One process's end of the exchange. It never waits: what a ring has no room for is kept and sent later."""

    def __init__(self, exchange: Transport) -> None:
        self.exchange = exchange
        self._kept: dict[int, deque[Any]] = {host: deque() for host in range(exchange.hosts)}
        self.is_behind = False
        self.silenced: set[int] = set()
        """Lost processes: nothing is sent to them until they are back."""
        self.perturb: Callable[[str], None] | None = None

    def write(self, message: tuple[Any, ...], readers: int) -> Any:
        """Puts a message where its readers can read it: the one copy that is made of large arrays."""
        return self.exchange.write(*encode(*message), readers)

    def send(self, host: int, letter: Any) -> None:
        if self.perturb is not None:
            self.perturb("send")
        kept = self._kept[host]
        if kept or not self.exchange.post(host, letter):
            kept.append(letter)
            self.is_behind = True

    def tell(self, host: int, message: tuple[Any, ...]) -> None:
        if host not in self.silenced:
            self.send(host, self.write(message, 1))

    def silence(self, host: int) -> None:
        """Sends nothing to a process that is lost, not even what was kept for it."""
        self.silenced.add(host)
        self._kept[host].clear()

    def tell_others(self, message: tuple[Any, ...]) -> None:
        for host in range(self.exchange.hosts):
            if host != self.exchange.host:
                self.tell(host, message)

    def catch_up(self) -> None:
        """Sends what was kept, as far as there is room now."""
        for host, kept in self._kept.items():
            while kept and self.exchange.post(host, kept[0]):
                kept.popleft()
        self.is_behind = any(self._kept.values())

    def receive(self) -> Iterator[tuple[Any, ...]]:
        """The messages that have come, one after the other: one that cannot be read loses no other."""
        for head, parts in self.exchange.receive():
            if self.perturb is not None:
                self.perturb("receive")
            yield decode(head, parts)


def shared_memory(hosts: int) -> int:
    """A descriptor of memory through which so many processes exchange messages."""
    try:
        return Exchange.create(hosts)
    except RuntimeError as error:  # there is less than it takes
        raise LimitError(f"There is {error}") from None
