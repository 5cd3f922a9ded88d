"""How fast batches of environments step: `python -m benchmarks.environments [--quick] [--only NAME]`.

Every section becomes `benchmarks/results/environments-<name>.json`; `python -m benchmarks.table` makes README's tables
of them.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from benchmarks.contestants import Setting
from benchmarks.mujoco import mujoco, mujoco_memory
from benchmarks.paired import Pair, Plan, short_number
from benchmarks.questions import LIMIT, Bench, Question, against_peers, in_words
from benchmarks.results import RESULTS, Amount, Section, machine_facts, write_section
from benchmarks.tasks import CLASSIC, TOY
from benchmarks.turns import ContestantError, ContestantProcess

B = TypeVar("B")
PEERS = "benchmarks/.venv/bin/python"
FULL = Plan(rounds=25)
QUICK = Plan(rounds=3, warmup_rounds=1, turn_s=0.05)
MEGABYTE = 2.0**20


def cartpole(bench: Bench) -> Section:
    """The task that everybody measures, at two sizes, against everybody who is fast at it."""
    questions = [
        against_peers(
            "CartPole-v1",
            num_envs,
            {"envpool": over_envpool, "gymnasium numpy": 1.0},
            share_target=share,
        )
        for num_envs, over_envpool, share in ((64, 5.0, None), (1024, 10.0, 0.80))
    ]
    about = "One step call for all environments, against EnvPool and against Gymnasium's NumPy-vectorised CartPole."
    return bench.section("cartpole", "CartPole", about, 1, questions)


def tasks(bench: Bench) -> Section:
    """Every task against what a Gymnasium user has today."""
    # Ratios of tens and hundreds need fewer rounds than those near one.
    bench = replace(bench, plan=replace(bench.plan, rounds=min(bench.plan.rounds, 9)))
    questions = [
        against_peers(task, num_envs, {"gymnasium async": 2.8, "gymnasium sync": None, "envpool": None})
        for task in (*CLASSIC, *TOY)
        for num_envs in bench.task_sizes
    ]
    about = "Against Gymnasium's AsyncVectorEnv (a process per environment), its SyncVectorEnv (a loop) and EnvPool."
    return bench.section("tasks", "Every task", about, 2, questions)


def classic(bench: Bench) -> Section:
    """What the pool and the Python call cost where a step costs next to nothing."""
    questions = [against_peers(task, 1024, {}, share_target=0.80) for task in CLASSIC]
    about = "1024 environments that cost next to nothing: the share of the limit shows what the pool and the call cost."
    return bench.section("classic", "Large batches", about, 3, questions)


def busy(bench: Bench) -> Section:
    """Environments whose step has a known price."""
    steady = [
        against_peers("Busy-v0", num_envs, {}, share_target=share, env_kwargs=_priced(20.0))
        for num_envs, share in ((64, 0.95), (8, 0.90))
    ]
    uneven = _priced(200.0, spread="exponential")
    first_ready = Question(
        in_words("Busy-v0", 64, uneven) + ", batches of 16",
        {
            "raceway async": Setting("raceway async", "Busy-v0", 64, batch_size=16, env_kwargs=uneven),
            "raceway": Setting("raceway", "Busy-v0", 64, env_kwargs=uneven),
        },
        (Pair("raceway async", "raceway", 1.0),),
    )
    about = "A task that only computes, for a fixed or an exponentially spread time; async serves whoever is ready."
    return bench.section("busy", "Steps of a known price", about, 4, [*steady, first_ready])


def contention(bench: Bench) -> Section:
    """More worker threads than CPUs."""
    questions = [_crowded("CartPole-v1", 1024, {}), _crowded("Busy-v0", 64, _priced(20.0))]
    about = "More worker threads than there are CPUs, against two workers."
    return bench.section("contention", "Too many workers", about, 5, questions)


def memory(bench: Bench) -> Section:
    """Whether stepping leaves anything behind."""
    settings = {
        "CartPole-v1, 64 envs": Setting("raceway", "CartPole-v1", 64),
        "CartPole-v1, 64 envs, async batches of 16": Setting("raceway async", "CartPole-v1", 64, batch_size=16),
        "Taxi-v3, 64 envs": Setting("raceway", "Taxi-v3", 64),
    }
    amounts = [_growth(bench, words, setting) for words, setting in settings.items()]
    about = "Resident memory before and after, once warm."
    return Section("environments-memory", "Memory", about, 6, amounts=amounts)


SECTIONS: dict[str, Callable[[Bench], Section]] = {
    "cartpole": cartpole,
    "tasks": tasks,
    "classic": classic,
    "busy": busy,
    "contention": contention,
    "memory": memory,
    "mujoco": mujoco,
    "mujoco-memory": mujoco_memory,
}


def _crowded(task: str, num_envs: int, env_kwargs: dict[str, Any]) -> Question:
    """Two workers against many."""
    settings = {
        f"{workers} workers": Setting("raceway", task, num_envs, num_workers=workers, env_kwargs=env_kwargs)
        for workers in (2, 8, 32, 64)
    }
    few, *many = settings
    return Question(in_words(task, num_envs, env_kwargs), settings, tuple(Pair(name, few, 0.90) for name in many))


def _priced(step_us: float, **others: Any) -> dict[str, Any]:
    """Keyword arguments of Busy-v0. How much work a step is, is measured here and not by each contestant for itself."""
    return {"step_us": step_us, "rounds_per_us": _rounds_per_us(), **others}


@functools.cache
def _rounds_per_us() -> float:
    from raceway.envs.bare import bare_loop

    guess, steps = 500.0, np.zeros((500, 1), dtype=np.int64)
    seconds = min(bare_loop("Busy-v0", 1, steps, num_threads=1, step_us=20.0, rounds_per_us=guess) for _ in range(10))
    return guess * 20e-6 * len(steps) / seconds


def _growth(bench: Bench, words: str, setting: Setting) -> Amount:
    """How much a million steps grow the process, after as many that let every buffer reach its size."""
    print(f"memory: {words}", file=sys.stderr, flush=True)
    contestant = setting.contestant(words, bench.interpreter(setting.kind))
    with ContestantProcess(contestant, turn_timeout_s=bench.plan.turn_timeout_s) as process:
        # Twice: the allocator keeps the contestant's own actions for good only when it sees them a second time.
        process.turn(bench.steps_for_memory)
        before = process.turn(bench.steps_for_memory)
        after = process.turn(bench.steps_for_memory)
    grown = (after.rss_bytes - before.rss_bytes) / MEGABYTE
    what = f"growth over {short_number(after.steps)} steps, from {before.rss_bytes / MEGABYTE:.0f} MiB"
    return Amount(words, what, grown, "MiB", 1.0, grown <= 1.0)


def summary_lines(section: Section) -> Iterator[str]:
    """The section's answers, one per line."""
    for experiment in section.experiments:
        for found in experiment.comparisons:
            interval = f"({found.low:.3g} to {found.high:.3g})"
            share = "" if found.limit_share is None or found.below == LIMIT else f", {found.limit_share:.2f} of limit"
            line = f"{experiment.setting}: {found.above} / {found.below} = {found.ratio:.3g} {interval}{share}"
            yield line + _verdict("at least", found.target, found.reached)
    for amount in section.amounts:
        line = f"{amount.setting}: {amount.what}: {amount.value:.2f} {amount.unit}"
        yield line + _verdict("at most", amount.at_most, amount.reached)


def run_sections(sections: Mapping[str, Callable[[B], Section]], bench: B, plan: Plan, folder: Path | None) -> int:
    """Measures each, prints its answers and writes its results; 1 if somebody could not take part."""
    machine = machine_facts()
    try:
        for measure_section in sections.values():
            section = measure_section(bench)
            print(*summary_lines(section), sep="\n", flush=True)
            if folder is not None:
                write_section(section, plan, machine, folder)
    except ContestantError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _verdict(bound: str, target: float | None, reached: bool | None) -> str:
    return "" if target is None else f"; wanted {bound} {target:.3g}: {'reached' if reached else 'MISSED'}"


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.environments", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few short rounds, to see that it works; saves nothing")
    parser.add_argument("--only", choices=SECTIONS, action="append", metavar="NAME", help=", ".join(SECTIONS))
    parser.add_argument("--match", default="", metavar="TEXT", help="only settings that have this; saves nothing")
    parser.add_argument("--peers", default=PEERS, help="the Python that has benchmarks/peers.txt installed")
    parser.add_argument("--out", type=Path, help="folder for the results, instead of benchmarks/results")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Measures the sections asked for, prints their answers and writes their results."""
    options = _arguments(argv)
    if not Path(options.peers).exists():
        print(f"No interpreter at {options.peers}: the peers are not installed. `make bench` does it.", file=sys.stderr)
        return 2
    bench = Bench(FULL, options.peers, match=options.match)
    if options.quick:
        bench = replace(bench, plan=QUICK, steps_for_memory=50_000, many_envs=256, task_sizes=(8,))
    folder = options.out or (None if options.quick or options.match else RESULTS)
    return run_sections({name: SECTIONS[name] for name in options.only or SECTIONS}, bench, bench.plan, folder)


if __name__ == "__main__":
    sys.exit(main())
