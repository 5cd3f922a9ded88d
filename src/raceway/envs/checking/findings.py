"""What a check finds, as data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Mark = Literal["ok", "note", "problem"]

TOPICS: Mapping[str, str] = {
    "api": "reset and step take and return what Gymnasium says; nothing raises, hangs or ends the process",
    "spaces": "observations are within their space, and trainers can use both spaces",
    "seeding": "a seed decides how an episode begins",
    "determinism": "the same seed and actions give the same episode, here and in another process",
    "episodes": "episodes end, can be reset, and observations stay as they were given",
    "state": "whether a run that is stopped in the middle of an episode goes on exactly",
    "rendering": "pictures for videos",
    "speed": "what one environment takes, and what each lane makes of it",
}
"""What is looked at, in this order."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    code: str
    """Its name, for programs: such as `seed-ignored`."""
    topic: str
    mark: Mark
    """ok; note: training works, but something could be better; problem: training breaks, or is wrong."""
    text: str
    fix: str = ""
    """What to do."""
    details: str = ""
    """The end of a traceback, or of what was printed."""


@dataclass(frozen=True)
class EnvSpeed:
    """What one environment takes in a bare loop, in one process, without any lane."""

    step_s: float
    """The mean over a loop of steps, without resets."""
    reset_s: float
    reset_share: float
    """Of the time of a loop that resets when episodes end: the share that resets take."""
    slowest_s: float
    """What one in a hundred steps takes at least."""
    cpu_share: float = 1.0
    """Of its time: the share in which it computes. The rest it waits."""
    wrappers: tuple[str, ...] = ()
    """From the outermost in."""
    wrapper_share: float = 0.0
    """The share of a step's time that they take."""

    @property
    def steps_per_second(self) -> float:
        """Of the loop, its resets included."""
        return (1.0 - self.reset_share) / self.step_s


@dataclass(frozen=True)
class LaneSpeed:
    """What a lane makes of the environment."""

    name: str
    """native, inline, process, process async."""
    num_envs: int
    num_workers: int
    steps_per_second: float
    limit: float
    """What could not be exceeded: the steps a second of a bare loop, in C++ for the native lane, times the CPUs."""
    of_limit: float
    """The share of it, as the median of turns that were taken side by side."""


@dataclass(frozen=True)
class CheckReport:
    """All that a check has found."""

    name: str
    findings: tuple[Finding, ...]
    speed: EnvSpeed | None = None
    limit: float | None = None
    """Steps a second that no lane for Python environments can exceed: a bare loop on each CPU."""
    cpus: int = 1
    lanes: tuple[LaneSpeed, ...] = ()
    advice: tuple[str, ...] = ()
    """What to do for speed, in plain words."""
    free_cpus: float | None = None
    """The share of the CPUs' time that was to be had while lanes were timed: others had the rest."""
    seconds: float = field(default=0.0, compare=False)

    @property
    def problems(self) -> tuple[Finding, ...]:
        return tuple(each for each in self.findings if each.mark == "problem")

    @property
    def notes(self) -> tuple[Finding, ...]:
        return tuple(each for each in self.findings if each.mark == "note")

    @property
    def is_disturbed(self) -> bool:
        """Whether others were at work while lanes were timed."""
        return self.free_cpus is not None and self.free_cpus < 0.85

    @property
    def trains(self) -> bool:
        """Whether nothing was found that breaks training."""
        return not self.problems

    def find(self, code: str) -> Finding | None:
        """The finding of this name, if there is one."""
        return next((each for each in self.findings if each.code == code), None)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return dataclasses.asdict(self) | {"trains": self.trains}

    def __str__(self) -> str:
        from raceway.report.checked import report

        return report(self)
