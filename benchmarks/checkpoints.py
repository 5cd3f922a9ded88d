"""What checkpoints cost, and how soon a run goes on: `python -m benchmarks.checkpoints` (about 3 minutes).

HalfCheetah-v5 with 64 environments is trained with a checkpoint every second, and without any, in turns; what each
reactor's thread spends on its part of a checkpoint is timed in the runs themselves. Then a run is stopped and resumed
in fresh processes: the time until its first new round, with compiled programs kept from before, and without.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np

import raceway
from benchmarks.paired import median_interval
from benchmarks.results import RESULTS, machine_facts
from benchmarks.table import markdown_table
from raceway.training.checkpointer import Checkpointer
from raceway.training.collector import Collector
from raceway.training.learner import Learner
from raceway.training.reporter import Reporter

FILE = RESULTS / "checkpoints" / "cost.json"
PAIRS = 7
INTERVAL_S = 1.0
SETTINGS: Mapping[str, Any] = {
    "preset": False,
    "num_envs": 64,
    "n_steps": 64,
    "batch_size": 512,
    "total_steps": 64 * 64 * 60,
    "normalize_observations": True,
    "normalize_rewards": True,
    "evaluation": {"enabled": False},
}


class Times:
    """How long the calls of some methods took, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}

    def timed(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(*given: Any) -> Any:
            start = time.perf_counter()
            found = method(*given)
            self.seconds.setdefault(name, []).append(time.perf_counter() - start)
            return found

        return call

    @contextmanager
    def watching(self) -> Iterator[None]:
        with ExitStack() as stack:
            for kind, method in ((Collector, "save"), (Learner, "save"), (Reporter, "save"), (Checkpointer, "write")):
                stack.enter_context(patch.object(kind, method, self.timed(kind.__name__, getattr(kind, method))))
            yield


def train(directory: Path, name: str, checkpoint: Mapping[str, Any]) -> float:
    """Steps per second."""
    log = {"directory": str(directory), "name": name, "quiet": True}
    return raceway.train("HalfCheetah-v5", **SETTINGS, checkpoint=dict(checkpoint), log=log).steps_per_second


def cost(directory: Path) -> dict[str, Any]:
    """Paired runs, with and without."""
    times, ratios = Times(), []
    train(directory, "warm-up", {"enabled": False})
    for pair in range(PAIRS):
        found = {}
        order = ["with", "without"] if pair % 2 else ["without", "with"]
        for which in order:
            settings = {"interval_s": INTERVAL_S} if which == "with" else {"enabled": False}
            with times.watching():
                found[which] = train(directory, f"{which}-{pair}", settings)
        ratios.append(found["with"] / found["without"])
        print(f"pair {pair + 1} of {PAIRS}: {ratios[-1]:.3f}", file=sys.stderr)
    low, high = median_interval(np.array(ratios))
    ms = {name: 1e3 * median(seconds) for name, seconds in times.seconds.items()}
    worst = {name: 1e3 * max(seconds) for name, seconds in times.seconds.items()}
    threads = ("Collector", "Learner", "Reporter")
    size = sum(path.stat().st_size for path in (directory / "HalfCheetah-v5/with-0/checkpoints").glob("*9.*"))
    return {
        "interval_s": INTERVAL_S,
        "ratios": ratios,
        "ratio": median(ratios),
        "low": low,
        "high": high,
        "ms": ms,
        "worst_ms": worst,
        "threads_ms": sum(ms[name] for name in threads),
        "threads_worst_ms": sum(worst[name] for name in threads),
        "bytes": size,
    }


def resume_time(directory: Path, cache: Path) -> float:
    """Seconds from the command to the first new round."""
    run = directory / "HalfCheetah-v5" / "stopped"
    chain = run / "chain.jsonl"
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "raceway.cli", "resume", str(run)], env=environment, stdout=subprocess.DEVNULL
    )
    length = chain.stat().st_size
    while chain.stat().st_size <= length and process.poll() is None:
        time.sleep(0.002)
    seconds = time.perf_counter() - start
    process.send_signal(signal.SIGTERM)
    process.wait()
    return seconds


def resuming(directory: Path) -> dict[str, Any]:
    """With compiled programs that were kept, and without."""
    log = {"directory": str(directory), "name": "stopped", "quiet": True}
    # So long that it does not end, so short that every round is written as it comes.
    settings = {**SETTINGS, "total_steps": 64 * 64 * 1000}
    script = f"import raceway; raceway.train('HalfCheetah-v5', **{settings!r}, log={log!r})"
    process = subprocess.Popen([sys.executable, "-c", script])
    chain = directory / "HalfCheetah-v5" / "stopped" / "chain.jsonl"
    while not chain.exists() or chain.stat().st_size < 200:
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    process.wait()
    cold = [resume_time(directory, directory / f"cold-{index}") for index in range(3)]
    kept = [resume_time(directory, directory / "cold-0") for _ in range(5)]
    return {"compiling_s": median(cold), "kept_s": median(kept), "kept_worst_s": max(kept)}


def tables(record: Mapping[str, Any]) -> str:
    """The results, for the page."""
    spent, waited = record["cost"], record["resuming"]
    loss = 100 * (1 - spent["ratio"])
    low, high = 100 * (1 - spent["high"]), 100 * (1 - spent["low"])
    rows = [
        ["time of the training threads for one checkpoint, together", f"**{spent['threads_ms']:.1f} ms**", "50 ms"],
        ["the longest of all", f"{spent['threads_worst_ms']:.1f} ms", "50 ms"],
        ["the writing thread's, beside them", f"{spent['ms']['Checkpointer']:.0f} ms", ""],
        ["size", f"{spent['bytes'] / 1e3:,.0f} kB", ""],
        [f"slower by, with one every {spent['interval_s']:.0f} s", f"**{loss:.1f}%** ({low:.1f} to {high:.1f}%)", "2%"],
        ["`raceway resume` to the first new round, compiled before", f"**{waited['kept_s']:.1f} s**", "5 s"],
        ["the same, compiling everything", f"{waited['compiling_s']:.1f} s", ""],
    ]
    machine = record["machine"]
    return "\n\n".join(
        [
            markdown_table(["", "measured", "wanted at most"], rows),
            f"{record['setting']}, on {machine['cpus']} cores of {machine['cpu']}: the median of "
            f"{len(spent['ratios'])} pairs of runs that took turns, with and without checkpoints, and its 95% "
            "interval. By default there is one every 30 seconds.",
        ]
    )


def main() -> None:
    """Measures, and writes the results."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        found = {"cost": cost(directory), "resuming": resuming(directory)}
    setting = "HalfCheetah-v5, 64 envs x 64 steps, PPO, concurrent"
    record = {"machine": machine_facts(), "setting": setting, **found}
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
