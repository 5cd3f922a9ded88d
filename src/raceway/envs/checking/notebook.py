"""What a probe writes down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from raceway.envs.checking.findings import EnvSpeed, Finding, LaneSpeed, Mark


@dataclass
class Facts:
    """What later probes, and the advice, need to know of earlier ones. Travels between processes."""

    is_native: bool = False
    time_limit: int | None = None
    """Steps after which an episode is cut off, if somebody sees to that."""
    has_masks: bool = False
    """Whether infos have an "action_mask"."""
    trace: list[bytes] = field(default_factory=list)
    """A hash for each step of the episodes that others are compared with."""
    is_deterministic: bool | None = None
    """Without the wrappers in `carriers`."""
    carriers: tuple[str, ...] = ()
    """Wrappers that carry something over from episode to episode, which no seed decides."""
    steps_seen: int = 0
    mean_length: float | None = None
    make_s: float = 0.0
    step_s: float = 0.0
    obs_size: int | None = None
    """How many numbers an observation of a native environment has."""
    obs_bytes: int = 0
    is_variable: bool = False
    """Whether a space has values of different sizes."""
    free_cpus: float | None = None
    """The share of the CPUs' time that was to be had while lanes were timed."""
    speed: EnvSpeed | None = None
    limit: float | None = None
    cpus: int = 1
    lanes: tuple[LaneSpeed, ...] = ()

    @property
    def is_repeatable(self) -> bool:
        """Whether nothing was found that keeps an episode from being played again from its seed."""
        return self.is_deterministic is not False and not self.carriers

    @property
    def is_slow(self) -> bool:
        """Whether every step counts."""
        return self.step_s > 0.2


class Notebook:
    """Findings, told as they are made: whoever makes them may not live to the end."""

    def __init__(self, tell: Callable[[Finding], Any]) -> None:
        self._tell = tell
        self._codes: set[str] = set()
        self.topic = ""

    def ok(self, code: str, text: str) -> None:
        self._add(code, "ok", text)

    def note(self, code: str, text: str, fix: str = "", details: str = "") -> None:
        self._add(code, "note", text, fix, details)

    def problem(self, code: str, text: str, fix: str = "", details: str = "") -> None:
        self._add(code, "problem", text, fix, details)

    def has(self, *codes: str) -> bool:
        """Whether one of these was found."""
        return not self._codes.isdisjoint(codes)

    def _add(self, code: str, mark: Mark, text: str, fix: str = "", details: str = "") -> None:
        """Each once: the first time says it."""
        if code not in self._codes:
            self._codes.add(code)
            self._tell(Finding(code, self.topic, mark, text, fix, details))
