"""`raceway.check`: examines an environment in processes that may hang, crash or lie without harm."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import cloudpickle

from raceway.envs.catalog import MOST_WORKERS
from raceway.envs.checking.advice import advise
from raceway.envs.checking.findings import TOPICS, CheckReport, Finding
from raceway.envs.checking.lanes import LaneSettings
from raceway.envs.checking.notebook import Facts
from raceway.envs.checking.process import Examination, Lost, Printed
from raceway.envs.checking.targets import Target, target_of
from raceway.envs.checking.worker import FIRST, Job
from raceway.errors import SettingError
from raceway.local_code import shared_imports
from raceway.messages import quoted
from raceway.report.words import count

Progress = Callable[[str, float], Any]
_MOST_ENVS = 1 << 16
_LONGEST_TIMEOUT_S = 1_000_000

# What is done in one process after the other. Those that one may do without come last in each.
_STAGES = (
    ("made", "called", "seen", "seeded", "repeated", "ended", "kept", "timed", "gone_on", "early"),
    ("elsewhere", "saved", "drawn"),
    ("lanes",),
)
_DOING = {
    "made": "making one",
    "called": "calling reset and step",
    "seen": "looking at observations",
    "seeded": "trying seeds",
    "repeated": "repeating episodes",
    "ended": "counting episodes",
    "kept": "looking at arrays",
    "saved": "saving and loading its state",
    "timed": "timing one environment",
    "gone_on": "stepping past an episode's end",
    "early": "stepping before the first reset",
    "elsewhere": "repeating episodes in another process",
    "drawn": "drawing a picture",
    "lanes": "timing the lanes",
}
_TOPIC = {"seen": "spaces", "seeded": "seeding", "repeated": "determinism", "saved": "state", "drawn": "rendering"}
_MILD = {
    "early": ("dies-before-reset", "A step before the first reset: {}", "raise an error instead"),
    "gone_on": ("dies-after-end", "A step after an episode's end: {}", "raise an error instead"),
    "drawn": ("render-dies", "Drawing it with render_mode='rgb_array': {}", "without it there are no videos"),
}
"""What training never does: to break by it is not well, but no problem. The code, the text, what to do."""
_MOST_LOST = 2
_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS)
"""Signals that usually follow a write to memory that is not the environment's."""


def check(
    env: Any,
    *,
    env_args: Mapping[str, Any] | None = None,
    lanes: bool = True,
    num_envs: int | None = None,
    num_workers: int | None = None,
    timeout_s: float = 30.0,
    on_progress: Progress | None = None,
) -> CheckReport:
    """Examines an environment: whether training works with it, whether runs can be repeated, and how fast it is.

    Nothing of the environment's own code runs in this process. Takes some 20 seconds, longer if a step takes longer
    than a tenth of one.

    Args:
        env: a native task, any Gymnasium id, "package.module:callable", the path of a .hpp file, a class or a callable.
        env_args: its keyword arguments.
        lanes: whether to measure what each lane makes of it, which is half of the time.
        num_envs: environments of each lane; by default chosen by what one takes.
        num_workers: workers of the lanes that have some; by default the CPUs this process may use.
        timeout_s: a call that has not returned after so many seconds hangs.
        on_progress: hears what is done next, and the share (0 to 1) that is done.
    """
    started = time.monotonic()
    if not 0 < timeout_s <= _LONGEST_TIMEOUT_S:
        raise SettingError(
            f"timeout_s={timeout_s} is out of range. Use seconds above 0, {_LONGEST_TIMEOUT_S:,} at most."
        )
    for name, value, most in (("num_envs", num_envs, _MOST_ENVS), ("num_workers", num_workers, MOST_WORKERS)):
        if value is not None and not 1 <= value <= most:
            raise SettingError(f"{name}={quoted(value)} is out of range. Use a number from 1 to {most:,}.")
    target = target_of(env, env_args)
    checking = _Checking(target, LaneSettings(num_envs, num_workers, timeout_s), on_progress or (lambda *_: None))
    checking.run(_STAGES if lanes else _STAGES[:-1])
    facts = checking.facts
    order = list(TOPICS)
    findings = sorted(checking.findings, key=lambda finding: order.index(finding.topic))
    report = CheckReport(
        name=target.name,
        findings=tuple(findings),
        speed=facts.speed,
        limit=facts.limit,
        cpus=facts.cpus,
        free_cpus=facts.free_cpus,
        lanes=facts.lanes,
        seconds=time.monotonic() - started,
    )
    return replace(report, advice=advise(report, is_native=target.is_native))


class _Checking:
    """Runs the stages, each in a fresh process, and as many more as are lost."""

    def __init__(self, target: Target, settings: LaneSettings, progress: Progress) -> None:
        self.findings: list[Finding] = []
        self.facts = Facts(is_native=target.is_native)
        self._target = target
        self._settings = settings
        self._progress = progress
        self._num_lost = self._num_begun = 0
        self._is_over = False

    def run(self, stages: Sequence[Sequence[str]]) -> None:
        self._num_probes = sum(map(len, stages))
        for number, stage in enumerate(stages):
            left = list(stage) if stage != _STAGES[-1] or self._fits_lanes() else []
            while left and not self._is_over:
                left = self._examine(left, number)

    def _fits_lanes(self) -> bool:
        """Whether lanes could run it: what trainers cannot use, or what cannot be saved, they can."""
        problems = {each.code for each in self.findings if each.mark == "problem"}
        return all(code.startswith("state-") or code.endswith("-unsupported") for code in problems)

    def _examine(self, probes: list[str], stage: int) -> list[str]:
        """Runs probes in one process; those that it did not get to."""
        payload = shared_imports() + self._payload(probes)
        patience_s = self._settings.timeout_s + (30.0 if probes == ["lanes"] else 0.0)
        current = probes[0]
        with Examination(payload, patience_s, hash_seed=stage + 1) as examination:
            while True:
                message = examination.next()
                if isinstance(message, Lost):
                    self._lost(message, current)
                    return probes[probes.index(current) + 1 :]
                kind, *content = message
                if kind in ("done", "stop", "broke", "refused"):
                    break
                if kind == "probe":
                    current = content[0]
                    self._begins(current)
                elif kind == "finding":
                    self._found(content[0])
                elif kind == "facts":
                    self.facts = content[0]
        self._over(kind, content)
        if stage == 0:
            self._printed(examination.output)
        return []

    def _payload(self, probes: Sequence[str]) -> bytes:
        job = Job(self._target, tuple(probes), self.facts, self._settings)
        try:
            return cloudpickle.dumps(job)
        except Exception as error:
            raise SettingError(
                f"{self._target.name} cannot be sent to another process, where it is examined and later stepped "
                f"({type(error).__name__}: {error}). Give a function that makes it out of plain arguments."
            ) from None

    def _begins(self, probe: str) -> None:
        self._progress(_DOING[probe], self._num_begun / self._num_probes)
        self._num_begun += 1

    def _found(self, finding: Finding) -> None:
        if all(finding.code != each.code for each in self.findings):
            self.findings.append(finding)

    def _over(self, kind: str, content: Sequence[str]) -> None:
        if kind == "refused":
            raise SettingError(content[0])
        if kind == "broke":
            code, text, details = content
            self.findings.append(Finding(code, "api", "problem", text, "", details))
        self._is_over |= kind in ("broke", "stop")

    def _lost(self, lost: Lost, probe: str) -> None:
        self._num_lost += 1
        topic = _TOPIC.get(probe, "speed" if probe == "lanes" else "api")
        if probe in _MILD:
            code, text, fix = _MILD[probe]
            self.findings.append(Finding(code, topic, "note", text.format(lost.text), fix, lost.last_words))
            return
        code = "hangs" if lost.hung_s is not None else "dies"
        fix = "" if lost.hung_s is None else "if a call may take so long, give the check more time: --timeout 120"
        if self._target.is_header and -lost.code in _CRASHES:
            size = self.facts.obs_size
            row = "" if size is None else f": kObsSize is {size}, so observe() may write entries 0 to {size - 1} only"
            fix = f"look for code that writes outside its memory{row}"
        self.findings.append(Finding(code, topic, "problem", lost.text, fix, lost.last_words))
        self._is_over |= probe in FIRST or self._num_lost >= _MOST_LOST

    def _printed(self, output: Printed) -> None:
        if not output.first.strip():
            return
        first = output.first.decode(errors="replace").strip().splitlines()[0]
        shown = "".join(each for each in first if each.isprintable())[:60]
        text = f"It prints, {count(max(output.lines, 1))} lines in this check, such as: {shown}"
        fix = "take the prints out, or use logging: each takes longer than many a step"
        self.findings.append(Finding("prints", "api", "note", text, fix))
