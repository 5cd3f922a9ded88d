"""Raceway's side of the experiments with graphs: `python -m benchmarks.raceway_side STYLE`.

A style is where the workers live. The program runs all the while, as actors do: between turns its driver waits.
"""

from __future__ import annotations

import math
import os
import platform
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks import reactors
from benchmarks.reactors import Baton
from benchmarks.turns import Turn, serve_settings
from benchmarks.workloads import Job
from raceway.graph import Program

STYLES = ("inline", "threads", "spread", "processes")
"""In the thread that runs the program, in threads of one process, in one process per CPU, in a process each."""
TRACED = "-traced"
"""At the end of a style: the run is traced."""


class Stage:
    """Where one program after the other is run, in a thread of its own."""

    def __init__(self) -> None:
        self._end: Callable[[], None] | None = None

    def run(self, program: Program, baton: Baton, **options: Any) -> None:
        """Starts a program; the one before has ended then."""
        self.clear()
        thread = threading.Thread(target=self._guard, args=(partial(program.run, **options), baton), daemon=True)
        thread.start()

        def end() -> None:
            baton.end()
            thread.join()

        self._end = end

    def clear(self) -> None:
        if self._end is not None:
            self._end()
            self._end = None

    def _guard(self, run: Callable[[], Any], baton: Baton) -> None:
        try:
            run()
        except BaseException as error:
            baton.drop(error)


def play_rounds(job: Job, stage: Stage, style: str, folder: Path) -> tuple[Turn, dict[str, Any]]:
    """Turns of rounds in lock-step, with what they computed in the first few as a fact."""
    place = style.removesuffix(TRACED)
    baton = Baton()
    program, driver = reactors.lock_step(job, baton, processes_of(place, job))
    trace = folder / "trace.json" if style.endswith(TRACED) else None
    stage.run(program, baton, inline=place == "inline", trace=trace)
    baton.turn(job.workload().proof_rounds + 1)
    return rounds_of(baton, job.workload().steps_per_round), {"digest": str(driver.digest)}


def processes_of(place: str, job: Job) -> int:
    if place == "spread":
        return min(job.workers, len(os.sched_getaffinity(0)))
    return job.workers if place == "processes" else 0


def rounds_of(baton: Baton, steps_per_round: int) -> Turn:
    def turn(steps: int) -> tuple[int, float]:
        rounds = math.ceil(steps / steps_per_round)
        return rounds * steps_per_round, baton.turn(rounds)

    return turn


def react(job: Job, stage: Stage) -> Turn:
    """Reactions, one after the other in one thread."""
    baton = Baton()
    stage.run(reactors.chain(job, baton), baton, inline=True)
    return rounds_of(baton, job.workers)


def hop(job: Job, stage: Stage) -> Turn:
    """Hops, from one process to another."""
    baton = Baton()
    stage.run(reactors.ping_pong(job, baton), baton)
    return rounds_of(baton, 2)


def deliver(job: Job, stage: Stage) -> Turn:
    """Deliveries: only the time until the last receiver has the array counts."""
    baton = Baton()
    program, sender = reactors.delivery(job, baton)
    stage.run(program, baton)

    def turn(steps: int) -> tuple[int, float]:
        before = sender.underway_ns
        baton.turn(steps)
        return steps, (sender.underway_ns - before) * 1e-9

    return turn


def overlap(job: Job, stage: Stage) -> Turn:
    """Rounds of two who work at the same time."""
    baton = Baton()
    stage.run(reactors.collect_and_learn(job, baton), baton)
    return rounds_of(baton, 1)


OWN: dict[str, Callable[[Job, Stage], Turn]] = {"react": react, "hop": hop, "deliver": deliver, "overlap": overlap}
"""Experiments that only Raceway takes part in, and its limit."""


def main() -> None:
    """Serves the style given as the only argument."""
    style, stage = sys.argv[1], Stage()
    versions = {"python": platform.python_version()} | {name: metadata.version(name) for name in ("raceway", "numpy")}

    def set_up(setting: dict[str, Any]) -> tuple[Turn, dict[str, Any]]:
        job = Job(**setting)
        if job.experiment in OWN:
            return OWN[job.experiment](job, stage), {"versions": versions}
        turn, facts = play_rounds(job, stage, style, Path(folder))
        return turn, {"versions": versions, **facts}

    with tempfile.TemporaryDirectory() as folder:
        serve_settings(set_up)
        stage.clear()


if __name__ == "__main__":
    main()
