"""How fast graphs of reactors run: `python -m benchmarks.graph [--quick] [--only NAME]`.

Every section becomes `benchmarks/results/graph-<name>.json`; `python -m benchmarks.table` makes README's tables of
them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.company import LIMIT, RAY, Company, Player, Question
from benchmarks.environments import run_sections
from benchmarks.paired import Plan
from benchmarks.results import RESULTS, Amount, Experiment, Section
from benchmarks.turns import ContestantError
from benchmarks.workloads import Job

RAY_PYTHON = "benchmarks/.venv-ray/bin/python"
FULL = Plan(rounds=9, warmup_rounds=1, turn_s=0.25, turn_timeout_s=120.0)
QUICK = Plan(rounds=2, warmup_rounds=1, turn_s=0.05, turn_timeout_s=120.0)

SIZES = {"1 KB": 10**3, "1 MB": 10**6, "10 MB": 10**7, "100 MB": 10**8}
MOST_OVER_A_COPY = 1.3
SAMPLING_GOALS = {"ray": 10.0, "ray compiled": 10.0}
INFERENCE_GOALS = {"ray": 5.12, "ray compiled": 5.12}
TRACING_GOALS = {"untraced": 0.98}

INLINE, THREADS, SPREAD, PROCESSES, TRACED = (
    Player("benchmarks.raceway_side", style) for style in ("inline", "threads", "spread", "processes", "threads-traced")
)
ACTORS = {"ray": Player(RAY, "actors"), "ray compiled": Player(RAY, "compiled"), "ray paper": Player(RAY, "paper")}
PACKED = {"ray packed": Player(RAY, "packed")}
# For small pieces of work, what a program does by itself comes first.
SMALL_WORK = {"in one process": THREADS, "in a process per CPU": SPREAD, "in a process each": PROCESSES}
LARGE_MESSAGES = {"in a process each": PROCESSES, "in one process": THREADS}


@dataclass(frozen=True)
class Bench:
    """What a section needs to be measured."""

    company: Company
    plan: Plan
    sizes: Sequence[str] = tuple(SIZES)
    counts: Sequence[int] = (2, 4, 8)
    """Workers in a broadcast."""
    match: str = ""
    """Only questions whose words have this are asked."""

    def answers(self, section: str, questions: Sequence[Question]) -> list[Experiment]:
        """Measures a section's questions, one after the other."""
        asked = [question for question in questions if self.match in question.words]
        experiments = []
        for number, question in enumerate(asked, 1):
            print(f"{section} {number}/{len(asked)}: {question.words}", file=sys.stderr, flush=True)
            experiments += self.company.answer(question)
        return experiments

    def longer(self, rounds: int, turn_s: float) -> Plan:
        """For ratios near one."""
        return self.plan if self.plan is QUICK else replace(self.plan, rounds=rounds, turn_s=turn_s)


def own(bench: Bench) -> Section:
    """What reactions and hops cost, beside a plain copy."""
    plan = bench.longer(15, 0.25)
    ratios = [
        Question(words, job, {"": PROCESSES}, goals={LIMIT: share}, plan=plan)
        for words, job, share in (
            ("10 MB to another process", Job("deliver", 1, payload_bytes=10**7), 1 / MOST_OVER_A_COPY),
            ("10 MB to 8 other processes", Job("deliver", 8, payload_bytes=10**7), 1 / MOST_OVER_A_COPY),
            ("collector and learner, 10 ms each, `after=2`", Job("overlap", 2), 0.95),
        )
    ]
    times = {
        10.0: Question("a reaction that does nothing, in one thread", Job("react", 100), {"": PROCESSES}, plan=plan),
        30.0: Question("1 KB to another process", Job("hop", 1, payload_bytes=10**3), {"": PROCESSES}, plan=plan),
    }
    experiments = bench.answers("own", ratios)
    amounts = [
        microseconds(timed, most) for most, question in times.items() for timed in bench.answers("own", [question])
    ]
    about = (
        "How long an array is underway, against a plain copy of it in memory (at most 1.3 times as long: a share of "
        f"{1 / MOST_OVER_A_COPY:.2f}); and how well two overlap, against two threads that never meet."
    )
    return Section("graph-own", "Reactions and hops", about, 20, experiments, amounts, "graph", unit="per second")


def microseconds(experiment: Experiment, most: float) -> Amount:
    """How long one takes, and how long it may."""
    value = 1e6 / statistics.median(experiment.measurement.rates["raceway"])
    return Amount(experiment.setting, "median", value, "us", most, value <= most)


def broadcast(bench: Bench) -> Section:
    """One sends everybody an array, all send back a copy."""
    questions = [
        Question(
            f"{words} to {count} and back", Job("broadcast", count, payload_bytes=SIZES[words]), LARGE_MESSAGES, ACTORS
        )
        for count in bench.counts
        for words in bench.sizes
    ]
    about = (
        "A fresh array goes to 2 to 8 workers, and a copy of it comes back from each. *ray*: an actor for each worker, "
        "one `ray.put` (none for 1 KB, which travels in the call), one `ray.get`. *ray compiled*: the same in a "
        "Compiled Graph. *ray paper*: a put for each worker and everything printed (to nowhere), as in "
        "[arXiv 2312.04704](https://arxiv.org/abs/2312.04704)."
    )
    experiments = bench.answers("broadcast", questions)
    return Section("graph-broadcast", "Broadcast and gather", about, 21, experiments, (), "graph", unit="rounds/s")


def sampling(bench: Bench) -> Section:
    """Fifteen Python environments in lock-step."""
    questions = [
        Question(task, Job("sampling", 15, task), SMALL_WORK, {**ACTORS, **PACKED}, SAMPLING_GOALS)
        for task in ("CartPole-v1", "Blackjack-v1", "Pendulum-v1")
    ]
    about = (
        "Gymnasium's Python environments, one for each of 15 workers; every round all get a random action and the "
        "driver gathers what their steps gave. *ray packed* is another program: a Compiled Graph of one actor per CPU, "
        "which steps its share of the environments in a loop."
    )
    experiments = bench.answers("sampling", questions)
    return Section("graph-sampling", "Sampling in lock-step", about, 22, experiments, (), "graph")


def inference(bench: Bench) -> Section:
    """A policy for every agent."""
    questions = [
        Question(f"{count} policies", Job("inference", count), SMALL_WORK, {**ACTORS, **PACKED}, INFERENCE_GOALS)
        for count in (4, 10)
    ]
    about = (
        "A junction of roads with 4 or 10 cars on them, each with a policy of its own (an MLP of 64 x 64, one "
        "observation at a time): the driver steps the junction when all have acted."
    )
    experiments = bench.answers("inference", questions)
    return Section("graph-inference", "A policy for every agent", about, 23, experiments, (), "graph")


def tracing(bench: Bench) -> Section:
    """What it costs to record every reaction and every wait."""
    questions = [
        Question(words, job, {"traced": TRACED}, {"untraced": THREADS}, TRACING_GOALS, bench.longer(25, 0.4))
        for words, job in (
            ("CartPole-v1, 15 workers", Job("sampling", 15, "CartPole-v1")),
            ("10 policies", Job("inference", 10)),
        )
    ]
    about = "With `trace=` against without, in one process, where nothing else takes long."
    return Section("graph-tracing", "Tracing", about, 24, bench.answers("tracing", questions), (), "graph")


SECTIONS: dict[str, Callable[[Bench], Section]] = {
    "own": own,
    "broadcast": broadcast,
    "sampling": sampling,
    "inference": inference,
    "tracing": tracing,
}


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.graph", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few short rounds, to see that it works; saves nothing")
    parser.add_argument("--only", choices=SECTIONS, action="append", metavar="NAME", help=", ".join(SECTIONS))
    parser.add_argument("--match", default="", metavar="TEXT", help="only settings that have this; saves nothing")
    parser.add_argument("--ray", default=RAY_PYTHON, help="the Python that has benchmarks/ray.txt installed")
    parser.add_argument("--out", type=Path, help="folder for the results, instead of benchmarks/results")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Measures the sections asked for, prints their answers and writes their results."""
    options = _arguments(argv)
    if not Path(options.ray).exists():
        print(f"No interpreter at {options.ray}: Ray is not installed. `make bench` does it.", file=sys.stderr)
        return 2
    plan = QUICK if options.quick else FULL
    folder = options.out or (None if options.quick or options.match else RESULTS)
    # As Ray has it for its actors: matrices this small are not worth a second thread, for anybody.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        with Company(plan, options.ray) as company:
            bench = Bench(company, plan, match=options.match)
            if options.quick:
                bench = replace(bench, sizes=("1 KB", "10 MB"), counts=(2,))
            return run_sections({name: SECTIONS[name] for name in options.only or SECTIONS}, bench, plan, folder)
    except ContestantError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
