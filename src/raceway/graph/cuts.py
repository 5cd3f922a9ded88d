"""A consistent cut through a run, in parts: each reactor's state after a round, with what is on its way to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from raceway.graph.values import Plain

KEPT = -(1 << 62)
"""The name of parts that belong to no snapshot: what is kept of a reactor in case its process is lost."""
AT_END = -1
"""The name of the cut at the end of a run. Those that are taken every so many rounds are named by their round."""


@dataclass
class Part:
    """What one reactor contributes."""

    cut: int
    member: int
    round: int
    """The last round that is in it."""
    state: Plain
    values: dict[int, list[Any]] = field(default_factory=dict)
    """By connection: the values for later rounds."""
    stops_at: int | None = None
    """A later round at which the run ends because this reactor has said so."""
    lacking: int = 0
    """Connections whose writer has not come so far yet."""
    when_complete: Callable[[Part], None] | None = None

    def complete_one(self) -> None:
        self.lacking -= 1
        self.report()

    def report(self) -> None:
        if not self.lacking and self.when_complete is not None:
            report, self.when_complete = self.when_complete, None
            report(self)
