"""Runs in processes of their own, to be killed; and what two runs must have in common to be the same.

`python -m tests.training.killing DIRECTORY SETTINGS` trains, or goes on with, the run of that directory.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SETTINGS: dict[str, Any] = {
    "env": "CartPole-v1",
    "preset": False,
    "num_envs": 8,
    "n_steps": 64,
    "total_steps": 64 * 8 * 150,
    "batch_size": 128,
    "n_epochs": 4,
    "normalize_observations": True,
    "normalize_rewards": True,
    "lr_schedule": "linear",
    "evaluation": {"times": 5, "episodes": 2},
    "checkpoint": {"interval_s": 0.03},
}


def start(directory: Path, settings: dict[str, Any]) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-m", "tests.training.killing", str(directory), json.dumps(SETTINGS | settings)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def train(directory: Path, settings: dict[str, Any]) -> Path:
    """To its end; returns its folder."""
    process = start(directory, settings)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    return folder(directory, settings)


def folder(directory: Path, settings: dict[str, Any]) -> Path:
    return directory / (SETTINGS | settings)["env"].replace(":", "-") / "run"


def kill_at_random(directory: Path, settings: dict[str, Any], longest_s: float, in_writing: bool) -> bool:
    """Kills a run at a random moment after its first checkpoint, or else in the middle of writing a later one.

    Returns whether there was still something to kill.
    """
    run = folder(directory, settings)
    earlier = _names(run / "checkpoints")
    process = start(directory, settings)
    while process.poll() is None and not any(n.endswith(".json") for n in _names(run / "checkpoints") - earlier):
        time.sleep(0.002)
    end = time.monotonic() + random.SystemRandom().uniform(0.0, longest_s)
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.001)
    while in_writing and process.poll() is None and not any(n.startswith(".") for n in _names(run / "checkpoints")):
        pass
    was_alive = process.poll() is None
    process.kill()
    output, _ = process.communicate()
    assert was_alive or process.returncode == 0, output
    return was_alive


def _names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()} if directory.is_dir() else set()


def same(killed: Path, whole: Path) -> list[str]:
    """What differs between two finished runs, beside the times: nothing, if all is well."""
    differences = []
    if (killed / "chain.jsonl").read_bytes() != (whole / "chain.jsonl").read_bytes():
        differences.append("chain")
    (rows, found), (their_rows, their_found) = metrics(killed), metrics(whole)
    if rows != their_rows:
        differences.append("metrics")
    # Which candidates are evaluated depends on timing; what comes out for one of them does not.
    if any(found[step] != their_found[step] for step in found.keys() & their_found.keys()):
        differences.append("evaluations")
    if max(found, default=0) != max(their_found, default=0):
        differences.append("last evaluation")
    names = [sorted(path.name for path in (run / "final").iterdir()) for run in (killed, whole)]
    contents = [[(run / "final" / name).read_bytes() for name in names[0]] for run in (killed, whole)]
    if names[0] != names[1] or contents[0] != contents[1]:
        differences.append("final policy")
    return differences


def metrics(run: Path) -> tuple[list[dict[str, float]], dict[int, dict[str, float]]]:
    """The rows of training in order, and evaluations by their step; without times."""
    rows, found = [], {}
    for line in (run / "metrics.jsonl").read_text().splitlines():
        row = {name: value for name, value in json.loads(line).items() if not name.startswith("time")}
        if "round" in row:
            rows.append(row)
        else:
            assert row["step"] not in found, "an evaluation is told once"
            found[row["step"]] = row
    return rows, found


def main() -> None:
    import raceway

    directory, settings = sys.argv[1], json.loads(sys.argv[2])
    raceway.train(settings.pop("env"), **settings, log={"directory": directory, "name": "run", "interval_s": 1.0})


if __name__ == "__main__":
    main()
