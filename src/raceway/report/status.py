"""How far a run is: what its console shows."""

from __future__ import annotations

import math
from dataclasses import dataclass

from raceway.report.words import clock, count, number, percent


@dataclass(frozen=True)
class Status:
    """How far a run is. What is not known yet is None."""

    steps: int
    total_steps: int
    seconds: float
    """Since the first round began."""
    steps_per_second: float
    """Of late."""
    return_mean: float | None = None
    """Of the episodes that ended of late, as training plays them."""
    length_mean: float | None = None
    episodes: int = 0
    """Ended so far."""
    evaluation: float | None = None
    """Mean return of the last evaluation."""
    best: float | None = None
    """Of the best one."""
    collect: float | None = None
    """Share of the time (0 to 1) in which environments are stepped."""
    learn: float | None = None
    """Share in which the learner is at work; overlaps with collecting under the concurrent schedule."""
    wait: float | None = None
    """Share in which neither is."""
    verdict: str = ""

    @property
    def left_s(self) -> float:
        """Seconds until the end, if it goes on like this."""
        left = max(self.total_steps - self.steps, 0)
        return left / self.steps_per_second if self.steps_per_second > 0 else math.nan

    @property
    def is_over(self) -> bool:
        return self.steps >= self.total_steps

    @property
    def share(self) -> float:
        """Of the steps, 0 to 1. The last round may go beyond what was asked for."""
        return min(self.steps / max(self.total_steps, 1), 1.0)


def line_of(status: Status) -> str:
    """A status in one plain line."""
    parts = [
        f"{percent(status.share):>4}  {count(status.steps)} steps",
        f"{count(status.steps_per_second)} steps/s",
        f"{clock(status.seconds)} in all" if status.is_over else f"{clock(status.left_s)} left",
    ]
    if status.return_mean is not None:
        parts.append(f"return {number(status.return_mean)}, length {number(status.length_mean)}")
    if status.evaluation is not None:
        parts.append(f"evaluation {number(status.evaluation)}, best {number(status.best)}")
    if status.collect is not None:
        parts.append(f"collect {percent(status.collect)} learn {percent(status.learn)} wait {percent(status.wait)}")
    return " | ".join(parts)
