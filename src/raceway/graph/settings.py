"""What every process of a run is told, and what it tells back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from raceway.graph.cuts import Part


@dataclass(frozen=True)
class Settings:
    """How a run goes, for every process of it."""

    snapshot_every: int | None = None
    snapshot_at_end: bool = False
    tracing: bool = False
    perturb: Callable[[str], None] | None = None
    """Called before and after every reaction and around every transport: tests sleep there."""

    def at(self, place: str) -> None:
        if self.perturb is not None:
            self.perturb(place)


class Reporter(Protocol):
    """What a host tells the coordinator of the run. All of it is called under the host's lock."""

    def ended(self, member: int) -> None: ...
    def stopped(self, domain: int) -> None: ...
    def failed(self, where: str, round_: int | None, error: BaseException) -> None: ...
    def cut(self, part: Part) -> None: ...
