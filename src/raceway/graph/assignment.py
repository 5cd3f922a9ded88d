"""Where a run begins, and what a worker process is told to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from raceway.graph.plan import Plan
from raceway.graph.reactor import Reactor
from raceway.graph.settings import Settings
from raceway.graph.values import Plain


@dataclass(frozen=True)
class Start:
    """Where a run begins: at the beginning, or after a snapshot."""

    rounds: list[int]
    values: dict[int, list[Any]]
    states: dict[int, Plain]
    stops: dict[int, int]
    """By member: the last round of the run, if it has said so before."""


@dataclass(frozen=True)
class Assignment:
    """Its reactors, and where the run begins for them."""

    plan: Plan
    reactors: dict[int, Reactor]
    rounds: list[int]
    values: dict[int, list[Any]]
    states: dict[int, Plain]
    settings: Settings
    threads: int
    limit: int | None
    stops: dict[int, int]
    is_again: bool = False
    """Whether it takes the place of a process that was lost."""
