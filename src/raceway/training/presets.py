"""Settings that are known to work, by environment, with what they reached when they were last measured."""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from raceway.training.preset_settings import SETTINGS


@dataclass(frozen=True)
class Result:
    """What a preset reached."""

    evaluation: float
    """Mean return of the best policy's evaluation, over seeds."""
    low: float
    """Of the 95% interval over seeds."""
    high: float
    steps: int
    """Environment steps of a run."""
    seconds: float
    """Of training, the median over seeds."""
    seeds: int
    command: str
    """What made it."""
    machine: str = ""


@dataclass(frozen=True)
class Preset:
    """Settings for one environment and algorithm."""

    env: str
    algo: str
    settings: Mapping[str, Any]
    """As `raceway.train` takes them."""
    result: Result | None = None


def presets() -> list[Preset]:
    """All of them, in the order in which people meet the tasks."""
    results = measured()
    return [Preset(env, algo, settings, results.get(f"{env} {algo}")) for (env, algo), settings in SETTINGS.items()]


def preset_for(env: str, algo: str) -> Preset | None:
    """The preset of an environment, if there is one."""
    name = env.removeprefix("raceway/")
    return next((each for each in presets() if (each.env, each.algo) == (name, algo)), None)


@functools.cache
def measured() -> Mapping[str, Result]:
    """What was measured, by `env algo`: presets.json beside this file, which a benchmark writes."""
    file = importlib.resources.files("raceway.training") / "presets.json"
    return {name: Result(**values) for name, values in json.loads(file.read_text(encoding="utf-8")).items()}
