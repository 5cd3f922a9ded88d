"""Results on disk: one JSON file per section, with the rates of every round and the machine they came from."""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.paired import Comparison, Measurement, Plan

RESULTS = Path(__file__).parent / "results"

# A run writes these itself, so they do not make the measured code a modified one.
_NOT_MEASURED = (":!benchmarks/results", ":!README.md")


@dataclass(frozen=True)
class Experiment:
    """Contestants measured together, and what they are compared for."""

    setting: str
    """What they all do, in words: `CartPole-v1, 64 envs`."""
    reference: str
    """The contestant whose rate stands for the setting."""
    limit: str | None
    measurement: Measurement
    comparisons: Sequence[Comparison]
    task: str = ""
    num_envs: int = 0
    plan: Plan | None = None
    """Where it is not the whole run's."""


@dataclass(frozen=True)
class Amount:
    """Something measured that is no ratio, and the most it may be: of Raceway's, that is."""

    setting: str
    what: str
    value: float
    unit: str
    at_most: float | None = None
    reached: bool | None = None


@dataclass(frozen=True)
class Section:
    """One table's worth of results."""

    name: str
    title: str
    about: str
    order: int
    """Tables are shown in this order."""
    experiments: Sequence[Experiment] = field(default_factory=tuple)
    amounts: Sequence[Amount] = field(default_factory=tuple)
    block: str = "benchmarks"
    """Which of README's blocks it stands in."""
    by_task: bool = False
    """A row per task, with its sizes side by side, instead of a row per experiment."""
    unit: str = "steps/s"
    """Of the rates."""


def write_section(section: Section, plan: Plan, machine: dict[str, Any], folder: Path = RESULTS) -> Path:
    """Writes `<folder>/<name>.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{section.name}.json"
    path.write_text(json.dumps(section_record(section, plan, machine), indent=1) + "\n")
    return path


def section_record(section: Section, plan: Plan, machine: dict[str, Any]) -> dict[str, Any]:
    """The section as plain data."""
    return {
        "name": section.name,
        "title": section.title,
        "about": section.about,
        "order": section.order,
        "block": section.block,
        "by_task": section.by_task,
        "unit": section.unit,
        "machine": machine,
        "plan": asdict(plan),
        "experiments": [_experiment_record(experiment) for experiment in section.experiments],
        "amounts": [asdict(amount) for amount in section.amounts],
    }


def _experiment_record(experiment: Experiment) -> dict[str, Any]:
    found = experiment.measurement
    return {
        "setting": experiment.setting,
        "reference": experiment.reference,
        "limit": experiment.limit,
        "task": experiment.task,
        "num_envs": experiment.num_envs,
        **({} if experiment.plan is None else {"plan": asdict(experiment.plan)}),
        "contestants": {
            name: {
                "rate": statistics.median(rates),
                "rates": rates,
                "steps_per_turn": found.steps_per_turn[name],
                **found.facts[name],
            }
            for name, rates in found.rates.items()
        },
        "comparisons": [asdict(comparison) for comparison in experiment.comparisons],
    }


def machine_facts() -> dict[str, Any]:
    """What the numbers depend on and a reader may know: no host names, no paths."""
    return {
        "cpu": cpu_model(Path("/proc/cpuinfo").read_text()),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "kernel": kernel_version(platform.release()),
        "python": platform.python_version(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        **_commit_facts(),
    }


def cpu_model(cpuinfo: str) -> str:
    """The processor's name out of /proc/cpuinfo."""
    found = re.search(r"^(?:model name|Model|cpu model)\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    return found.group(1).strip() if found else platform.machine()


def kernel_version(release: str) -> str:
    """The version numbers alone: what follows them names a distribution's or somebody's own build."""
    found = re.match(r"[\d.]*\d", release)
    return found.group() if found else "unknown"


def _commit_facts() -> dict[str, Any]:
    commit = _git("rev-parse", "--short=12", "HEAD")
    changes = _git("status", "--porcelain", "--", ".", *_NOT_MEASURED)
    return {"commit": commit or None, "modified": bool(changes)}


def _git(*arguments: str) -> str:
    """What git says, nothing when there is no git, no repository or no commit."""
    folder = Path(__file__).parent.parent
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
