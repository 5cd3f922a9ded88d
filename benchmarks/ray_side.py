"""Ray's side of the experiments with graphs: `python -m benchmarks.ray_side STYLE`, in the environment of ray.txt.

Each style is a way in which Ray's users write a round: send every worker its message, gather what they give back. All
but the paper's are written to be fast: actors are made once, calls go out in a burst and are gathered by one `ray.get`,
a large message is put once for all, small ones travel inside the call, nothing is printed, and workers run at the
driver's priority (by default Ray makes them yield to everybody).
"""

from __future__ import annotations

import math
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any, Protocol, TextIO

import numpy as np

from benchmarks.turns import Turn, serve_settings
from benchmarks.workloads import Digest, Job, Workload

os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}

import ray
from ray.dag import InputNode, MultiOutputNode

OBJECT_STORE_BYTES = 4 * 2**30
# Ray itself puts what is larger than this into its object store, once for every call.
INLINE_BYTES = 100 * 1024
# What a message has besides its array.
HEAD_BYTES = 64 * 1024

Play = Callable[[Any], Sequence[Any]]
"""Sends the messages of one round; gives what the workers gave."""


class Style(Protocol):
    """A way to play rounds. It may be asked to make ready again and again."""

    def ready(self, job: Job, workload: Workload) -> Play: ...


class Actor:
    """Holds one or several of the workers."""

    def ready(self, job: Job, indices: Sequence[int]) -> None:
        workload = job.workload()
        self._works = [workload.worker(index) for index in indices]
        self._work = self._works[0]

    def do(self, message: Any) -> Any:
        """The work of the one."""
        return self._work(message)

    def do_all(self, messages: Sequence[Any]) -> list[Any]:
        """The work of several, one after the other."""
        return [work(message) for work, message in zip(self._works, messages, strict=True)]


class Actors:
    """As many actors as there are workers, and a call for each of them."""

    def __init__(self) -> None:
        self.actors: list[Any] = []

    def ready(self, job: Job, workload: Workload) -> Play:
        self.hire(job, [[index] for index in range(job.workers)])
        return self.broadcast if workload.shared else self.scatter

    def broadcast(self, message: np.ndarray) -> Sequence[Any]:
        given = ray.put(message) if message.nbytes > INLINE_BYTES else message
        return ray.get([actor.do.remote(given) for actor in self.actors])

    def scatter(self, messages: np.ndarray) -> Sequence[Any]:
        return ray.get([actor.do.remote(message) for actor, message in zip(self.actors, rows(messages), strict=True)])

    def hire(self, job: Job, shares: Sequence[Sequence[int]]) -> None:
        """Exactly one actor for every share of the workers: idle ones would only be in the way."""
        for actor in self.actors[len(shares) :]:
            ray.kill(actor)
        make = ray.remote(num_cpus=0)(Actor)
        self.actors[len(shares) :] = [make.remote() for _ in shares[len(self.actors) :]]
        ray.get([actor.ready.remote(job, share) for actor, share in zip(self.actors, shares, strict=True)])


class PaperActors(Actors):
    """The baseline of arXiv 2312.04704: a put for every worker, and everything printed in the loop."""

    def __init__(self) -> None:
        super().__init__()
        self._nowhere: TextIO = open(os.devnull, "w")  # noqa: SIM115 (until the process ends)

    def broadcast(self, message: np.ndarray) -> Sequence[Any]:
        return self._print([actor.do.remote(ray.put(message)) for actor in self.actors])

    def scatter(self, messages: np.ndarray) -> Sequence[Any]:
        pairs = zip(self.actors, rows(messages), strict=True)
        return self._print([actor.do.remote(ray.put(message)) for actor, message in pairs])

    def _print(self, references: Sequence[Any]) -> Sequence[Any]:
        results = [ray.get(reference) for reference in references]
        for result in results:
            print(result, file=self._nowhere, flush=True)
        return results


class CompiledActors(Actors):
    """Ray's Compiled Graphs: the round is compiled once, values go through channels that stay."""

    def __init__(self) -> None:
        super().__init__()
        self._graph: Any = None

    def ready(self, job: Job, workload: Workload) -> Play:
        self.release()
        self.hire(job, [[index] for index in range(job.workers)])
        with InputNode() as given:
            calls = [actor.do.bind(given if workload.shared else given[n]) for n, actor in enumerate(self.actors)]
            outputs = MultiOutputNode(calls)
        self.compile(outputs, job)
        return self.broadcast if workload.shared else self.scatter

    def broadcast(self, message: np.ndarray) -> Sequence[Any]:
        return ray.get(self._graph.execute(message))

    def scatter(self, messages: np.ndarray) -> Sequence[Any]:
        return ray.get(self._graph.execute(*rows(messages)))

    def compile(self, outputs: Any, job: Job) -> None:
        # One round at a time is all that lock-step needs. More would only mean more buffers to go through.
        self._graph = outputs.experimental_compile(
            _buffer_size_bytes=job.payload_bytes + HEAD_BYTES, _max_inflight_executions=1
        )

    def release(self) -> None:
        """The actors are free again: in a compiled graph they do nothing else."""
        if self._graph is not None:
            self._graph.teardown()
            self._graph = None


class PackedActors(CompiledActors):
    """A compiled graph of one actor per CPU, each with its share of the workers: another program than one actor each,
    but the least that a round can cost with Ray."""

    def ready(self, job: Job, workload: Workload) -> Play:
        self.release()
        count = min(job.workers, len(os.sched_getaffinity(0)))
        self._shares = [share.tolist() for share in np.array_split(np.arange(job.workers), count)]
        self.hire(job, self._shares)
        with InputNode() as given:
            outputs = MultiOutputNode([actor.do_all.bind(given[n]) for n, actor in enumerate(self.actors)])
        self.compile(outputs, job)
        return self.scatter

    def scatter(self, messages: np.ndarray) -> Sequence[Any]:
        parts = [messages[share[0] : share[-1] + 1] for share in self._shares]
        return [result for results in ray.get(self._graph.execute(*parts)) for result in results]


STYLES: dict[str, Callable[[], Style]] = {
    "actors": Actors,
    "compiled": CompiledActors,
    "packed": PackedActors,
    "paper": PaperActors,
}


def rows(messages: np.ndarray) -> Sequence[Any]:
    """One message for each worker: plain numbers where they are numbers, which travel best."""
    return messages.tolist() if messages.ndim == 1 else list(messages)


def set_up(style: Style, job: Job) -> tuple[Turn, dict[str, Any]]:
    """Turns of rounds in lock-step, with what they computed in the first few as a fact."""
    workload = job.workload()
    play, drive = style.ready(job, workload), workload.driver()
    results: Sequence[Any] | None = None
    digest = Digest()
    for _ in range(workload.proof_rounds):
        messages, results = drive(results), None
        results = play(messages)
        digest.add(results)
    versions = {"python": platform.python_version()} | {name: metadata.version(name) for name in ("ray", "numpy")}

    def turn(steps: int) -> tuple[int, float]:
        nonlocal results
        rounds = math.ceil(steps / workload.steps_per_round)
        start = time.perf_counter()
        for _ in range(rounds):
            # Results of a compiled graph lie in the memory that its next round needs: nobody may hold them.
            messages, results = drive(results), None
            results = play(messages)
        return rounds * workload.steps_per_round, time.perf_counter() - start

    return turn, {"versions": versions, "digest": str(digest)}


def main() -> None:
    """Serves the style given as the only argument."""
    style = STYLES[sys.argv[1]]()
    ray.init(
        num_cpus=len(os.sched_getaffinity(0)),
        object_store_memory=OBJECT_STORE_BYTES,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="error",
    )
    serve_settings(lambda setting: set_up(style, Job(**setting)))


if __name__ == "__main__":
    main()
