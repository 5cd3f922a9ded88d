"""The limits beside the experiments with graphs: the same work in bare loops, with nothing in between.

One process per CPU, each with its share of the workers and a driver of its own, from the beginning of a turn to its
end: nobody waits for anybody. Where a round's work is one chain of small steps there is one process.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import platform
import threading
import time
from collections.abc import Callable
from importlib import metadata
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from benchmarks.turns import Turn, serve_settings
from benchmarks.workloads import NAP_S, Job


class Loops:
    """Processes that each loop over their share of the workers."""

    def __init__(self, job: Job) -> None:
        count = 1 if job.experiment == "inference" else min(job.workers, len(os.sched_getaffinity(0)))
        context = multiprocessing.get_context("fork")
        self._ends: list[Connection] = []
        self._processes = []
        for share in np.array_split(np.arange(job.workers), count):
            mine, others = context.Pipe()
            process = context.Process(target=_loop, args=(job, share.tolist(), others), daemon=True)
            process.start()
            self._ends.append(mine)
            self._processes.append(process)
        self.run(job.workload().proof_rounds)

    def run(self, rounds: int) -> float:
        """So many rounds of all workers; gives the seconds until the last has done them."""
        start = time.perf_counter()
        for end in self._ends:
            end.send(rounds)
        for end in self._ends:
            end.recv()
        return time.perf_counter() - start

    def close(self) -> None:
        for end in self._ends:
            end.send(0)
        for process in self._processes:
            process.join()


def _loop(job: Job, share: list[int], end: Connection) -> None:
    workload = job.workload()
    drive, works = workload.driver(), [workload.worker(index) for index in share]
    results: list[Any] | None = None
    while rounds := end.recv():
        for _ in range(rounds):
            messages = drive(results)
            mine = [messages] * len(share) if workload.shared else messages[share[0] : share[-1] + 1]
            results = [work(message) for work, message in zip(works, mine, strict=True)]
        end.send(True)


def copies(job: Job) -> Turn:
    """Plain copies of an array, into memory that is used in turn."""
    array = np.arange(job.payload_bytes // 8)
    targets = [np.zeros_like(array) for _ in range(2)]

    def turn(steps: int) -> tuple[int, float]:
        start = time.perf_counter()
        for step in range(steps):
            np.copyto(targets[step % 2], array)
        return steps, time.perf_counter() - start

    return turn


def naps(job: Job) -> Turn:
    """Two threads that take their time and never meet."""

    def nap(times: int) -> None:
        for _ in range(times):
            time.sleep(NAP_S)

    def turn(steps: int) -> tuple[int, float]:
        threads = [threading.Thread(target=nap, args=(steps,)) for _ in range(job.workers)]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return steps, time.perf_counter() - start

    return turn


OWN: dict[str, Callable[[Job], Turn]] = {"deliver": copies, "hop": copies, "overlap": naps}


def main() -> None:
    """Serves one job after the other."""
    versions = {"python": platform.python_version(), "numpy": metadata.version("numpy")}
    loops: Loops | None = None

    def set_up(setting: dict[str, Any]) -> tuple[Turn, dict[str, Any]]:
        nonlocal loops
        if loops is not None:
            loops.close()
            loops = None
        job = Job(**setting)
        if job.experiment in OWN:
            return OWN[job.experiment](job), {"versions": versions}
        loops, steps_per_round = Loops(job), job.workload().steps_per_round

        def turn(steps: int) -> tuple[int, float]:
            rounds = math.ceil(steps / steps_per_round)
            return rounds * steps_per_round, loops.run(rounds)

        return turn, {"versions": versions}

    serve_settings(set_up)


if __name__ == "__main__":
    main()
