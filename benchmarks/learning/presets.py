"""The presets as a study, and what they reached as src/raceway/training/presets.json."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.learning import records
from benchmarks.learning.study import Setting, Study, Task
from benchmarks.learning.tables import NOTHING, seconds_to
from benchmarks.table import markdown_table
from raceway.report.statistics import estimate
from raceway.report.words import clock, count, number
from raceway.training.preset_settings import SETTINGS
from raceway.training.presets import Preset, digest_of_settings, presets

RESULTS = Path(str(importlib.resources.files("raceway.training") / "presets.json"))
NAME = "presets"
SETTING = Setting("preset")
SEEDS = range(41, 44)
GOALS = {
    "Ant-v5": (4000.0, "EnvPool: 5 minutes for Ant on a laptop, the return not named"),
    "Humanoid-v5": (5000.0, "GPU simulation of another humanoid: 16 minutes on a V100 with 1,024 environments"),
}
"""Returns that others told their time to, and what they told."""
RETUNED = ("HalfCheetah-v5", "Pendulum-v1")
"""PPO's presets that were changed because of what seed 41 reached: other seeds have to judge them."""
FRESH_SEEDS = range(71, 74)
LONG = ("Ant-v5", "Humanoid-v5", "HumanoidStandup-v5")
"""Tasks whose runs take half an hour or more: one seed."""


def presets_study() -> Study:
    """Every preset as it is shipped, its final policy over 100 fresh episodes."""
    tasks = [Task(preset.env, algo=preset.algo, seeds=_seeds_of(preset)) for preset in presets()]
    return Study(NAME, "What do the presets reach?", tasks, [SETTING], SEEDS, episodes=100, speed_steps=100_000)


def _seeds_of(preset: Preset) -> Sequence[int] | None:
    if preset.algo != "ppo":
        return None
    return FRESH_SEEDS if preset.env in RETUNED else SEEDS[:1] if preset.env in LONG else None


def goals_table(folder: Path = records.FOLDER) -> str:
    """The time until the last 100 episodes of training first reach each of GOALS."""
    there, rows = records.of_study(presets_study(), folder), []
    for env, (goal, elsewhere) in GOALS.items():
        if (speed := _speed_of(env, folder)) is None:
            continue
        for each in there[env][SETTING.name]:
            (reached,) = seconds_to([each], goal, speed)
            best = max(value for _, value in each.curve)
            told = [clock(reached), count(reached * speed)] if np.isfinite(reached) else ["not reached", ""]
            rows.append([env, number(goal), *told, number(best), f"{speed:,.0f}", elsewhere])
    header = ["", "return", "time to it", "steps to it", "highest return", "steps/s", "elsewhere"]
    return markdown_table(header, rows) if rows else NOTHING


def _speed_of(task: str, folder: Path) -> float | None:
    """Steps per second of short runs with nothing beside them. Those that returns come from shared the machine."""
    found = records.speeds(presets_study(), folder).get(task, {}).get(SETTING.name)
    return float(np.median(found)) if found else None


def write_results(folder: Path = records.FOLDER, path: Path = RESULTS) -> None:
    """Writes what each preset reached to the file beside the presets."""
    results = {}
    there = records.of_study(presets_study(), folder)
    for task in presets_study().tasks:
        found = [each for each in there[task.name][SETTING.name] if each.final is not None]
        reached = estimate([float(each.final) for each in found if each.final is not None])
        speed = _speed_of(task.name, folder)
        if reached is None or speed is None:
            continue
        algo = "" if task.algo == "ppo" else f" --algo {task.algo}"
        results[f"{task.env} {task.algo}"] = {
            "evaluation": round(reached.value, 1),
            "low": round(reached.low, 1),
            "high": round(reached.high, 1),
            "steps": found[0].steps,
            "seconds": round(found[0].steps / speed, 1),
            "seeds": len(found),
            "command": f"raceway train {task.env}{algo} --seed {found[0].seed}",
            "machine": found[0].machine,
            "settings": digest_of_settings(SETTINGS[task.env, task.algo]),
        }
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
