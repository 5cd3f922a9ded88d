"""Settings that are known to work, by environment, with what they reached when they were last measured."""

from __future__ import annotations

import functools
import hashlib
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
    """Interquartile mean over seeds, each the mean of 100 fresh episodes of the final policy."""
    low: float
    """Of the 95% interval over seeds."""
    high: float
    steps: int
    """Environment steps of a run."""
    seconds: float
    """Of training: steps over the speed of short runs with nothing beside them."""
    seeds: int
    command: str
    """What made it."""
    machine: str = ""
    settings: str = ""
    """Digest of the settings that it was reached with."""


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
    return [
        Preset(env, algo, settings, _result_of(f"{env} {algo}", settings)) for (env, algo), settings in SETTINGS.items()
    ]


def _result_of(name: str, settings: Mapping[str, Any]) -> Result | None:
    """What was measured with these settings, and not with earlier ones."""
    found = measured().get(name)
    return found if found is not None and found.settings == digest_of_settings(settings) else None


def digest_of_settings(settings: Mapping[str, Any]) -> str:
    """Names the settings of a preset."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]


def preset_for(env: str, algo: str) -> Preset | None:
    """The preset of an environment, if there is one."""
    name = env.removeprefix("raceway/")
    return next((each for each in presets() if (each.env, each.algo) == (name, algo)), None)


@functools.cache
def measured() -> Mapping[str, Result]:
    """What was measured, by `env algo`: presets.json beside this file, which a benchmark writes."""
    file = importlib.resources.files("raceway.training") / "presets.json"
    return {name: Result(**values) for name, values in json.loads(file.read_text(encoding="utf-8")).items()}
