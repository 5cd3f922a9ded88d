"""Run folders as training leaves them, without the training."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

CONFIG: dict[str, Any] = {
    "env": "CartPole-v1",
    "env_args": {},
    "algo": "ppo",
    "schedule": "concurrent",
    "seed": 1,
    "total_steps": 1000,
    "num_workers": None,
    "preset": True,
    "ppo": {"gamma": 0.99, "learning_rate": 0.001},
    "network": {"hidden": [64, 64]},
    "log": {"name": None},
}


def log_run(
    path: Path,
    points: Iterable[tuple[float, float, float]] = ((100, 1.0, 10.0), (200, 2.0, 20.0)),
    evaluations: Iterable[tuple[float, float]] = (),
    **settings: Any,
) -> Path:
    """A run with (step, seconds, return) rows, (step, return) evaluations and settings, of groups as dicts."""
    config = {**CONFIG, "log": {"name": path.name}}
    if settings.get("algo", "ppo") != "ppo":
        config.pop("ppo")
    for name, value in settings.items():
        config[name] = {**config.get(name, {}), **value} if isinstance(value, Mapping) else value
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps(config))
    rows: list[dict[str, Any]] = [
        {"step": step, "round": 0, "time/seconds": seconds, "episode/return": return_, "episode/length": 9.0}
        for step, seconds, return_ in points
    ]
    rows += [{"step": step, "time": 1.0, "evaluation/return": return_} for step, return_ in evaluations]
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def line(slope: float, last: int = 1000, speed: float = 100.0) -> list[tuple[float, float, float]]:
    """Rows every hundred steps of a return that rises by `slope` a step."""
    return [(step, step / speed, slope * step) for step in range(100, last + 1, 100)]
