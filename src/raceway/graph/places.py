"""Where reactors live. A place is chosen when a program is built, never inside a reactor, and changes no value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from raceway.graph.errors import GraphError


class Worker(Protocol):
    """A process, on this machine or another, that runs some of the reactors."""

    def how_it_ended(self) -> str | None:
        """None while it lives; then how it ended, in words."""

    def kill(self) -> None: ...


class Place(Protocol):
    """A kind of worker, and how many of them the reactors are spread over."""

    @property
    def count(self) -> int: ...

    @property
    def threads(self) -> int:
        """Threads of each."""

    @property
    def restarts(self) -> int | None:
        """None: a run ends when one of them is lost. A number: see `Processes.restarts`."""

    @property
    def label(self) -> str:
        """For pictures."""

    def start(self, host: int, exchange: int, payload: bytes) -> Worker:
        """Starts worker number `host`, which makes its reactors from the payload and speaks over a `Transport`.

        `exchange` is the descriptor of the memory that the processes of this machine share. A place on other machines
        has a transport of its own.
        """


@dataclass(frozen=True)
class Threads:
    """The process that the program is built in: where reactors are if nothing else is said."""


@dataclass(frozen=True)
class Processes:
    """So many worker processes on this machine. Each gets a run of neighbours of a bank."""

    count: int = 1
    threads: int = 1
    """Threads of each: more than one only helps reactions that wait or release the interpreter's lock."""
    restarts: int | None = None
    """None: the run ends when one of them dies or a reaction in it fails.

    A number: the run does not depend on them. One that dies is started again, at most this many times, with the state
    that its reactors had after the last round in which they wrote something for another process (what they wrote last
    may be written again). After that, when a reaction fails or when no process can be started, its reactors are left
    out. Nothing waits for them: neither snapshots nor, for more than some seconds, the end of the run. Such reactors
    have `latest` connections only, and a `save` that works before `startup`.
    """

    def __post_init__(self) -> None:
        for name, value in (("count", self.count), ("threads", self.threads)):
            if value < 1:
                raise GraphError(f"Processes({name}={value}): at least one is needed.")
        if self.restarts is not None and self.restarts < 0:
            raise GraphError(f"Processes(restarts={self.restarts}): use None, or a number from 0 up.")

    @property
    def label(self) -> str:
        return "1 process" if self.count == 1 else f"{self.count} processes"

    def start(self, host: int, exchange: int, payload: bytes) -> Worker:
        from raceway.graph.process import WorkerProcess

        return WorkerProcess(host, exchange, payload)


def spread(widths: Mapping[str, int], places: Mapping[str, Place | Threads]) -> tuple[list[int], dict[int, Place]]:
    """The host of every reactor, in the order of the groups, and what each host but this process is."""
    hosts: list[int] = []
    of_host: dict[int, Place] = {}
    for group, width in widths.items():
        place = places.get(group, Threads())
        if isinstance(place, Threads):
            hosts += [0] * width
            continue
        used = min(place.count, width)
        first = len(of_host) + 1
        of_host |= {first + i: place for i in range(used)}
        hosts += [first + index * used // width for index in range(width)]
    return hosts, of_host
