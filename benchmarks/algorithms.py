"""Schedules and algorithms beside each other: `python -m benchmarks.algorithms concurrent_async|delayed|solve`.

    concurrent_async  PPO's concurrent schedule against the asynchronous one, in turns (about 10 minutes)
    delayed           A2C's ways to learn from a round that is one update old (about 3 minutes)
    solve             what each algorithm's preset reaches on CartPole-v1 (about 1 minute)

Every run has a folder of its own name under --directory: what is finished is not repeated, so that an interrupted
benchmark goes on. Results are written to benchmarks/results/algorithms, and from there to the pages by
`python -m benchmarks.pages`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import raceway
from benchmarks.paired import turn_order
from benchmarks.presets import record
from benchmarks.results import RESULTS, machine_facts
from raceway.report.metrics import read_rows
from raceway.training.outcome import Run

FOLDER = RESULTS / "algorithms"
PICTURE = Path("docs/images/a2c-corrections.svg")
SOLVED = 475.0

ASYNC = {"schedule": "async"}
SCHEDULES: Mapping[str, Mapping[str, Any]] = {
    "concurrent": {"schedule": "concurrent"},
    "async": ASYNC,
    "async, decoupled": {**ASYNC, "decoupled": True},
}
SCHEDULE_TASKS = {"CartPole-v1": 150_000, "Acrobot-v1": 500_000, "HalfCheetah-v5": 400_000}
CORRECTIONS: Mapping[str, Mapping[str, Any]] = {
    "delayed": {"schedule": "concurrent", "correction": "delayed"},
    "ratio": {"schedule": "concurrent", "correction": "ratio"},
    "none": {"schedule": "concurrent", "correction": "none"},
    "none, serial": {"schedule": "serial", "correction": "none"},
}
CORRECTION_TASKS = {"CartPole-v1": 300_000, "Acrobot-v1": 300_000}


@dataclass(frozen=True)
class Bench:
    """How much is measured, and where the runs go."""

    directory: Path
    seeds: Sequence[int]
    share: float = 1.0
    """Of the steps that each run has: less to try things out."""
    results: Path = FOLDER
    picture: Path = PICTURE
    common: Mapping[str, Any] = field(default_factory=dict)
    """Settings of all runs, to try things out."""

    def run(self, section: str, name: str, env: str, total_steps: int | None, **settings: Any) -> Run:
        """The run of this name: what it left if it is finished, else trained now."""
        print(f"{section}: {env}, {name}", file=sys.stderr, flush=True)
        if total_steps is not None:
            settings["total_steps"] = max(1, round(total_steps * self.share))
        log = {"directory": str(self.directory / section), "name": name, "tensorboard": False, "quiet": True}
        return raceway.train(env, log=log, checkpoint={"enabled": False}, **{**settings, **self.common})

    def write(self, section: str, found: Mapping[str, Any]) -> None:
        self.results.mkdir(parents=True, exist_ok=True)
        path = self.results / f"{section}.json"
        path.write_text(json.dumps({"machine": machine_facts(), **found}, indent=1) + "\n", encoding="utf-8")
        print(path, file=sys.stderr)


def concurrent_async(bench: Bench) -> None:
    """The same seeds under each schedule, one after the other, the order turned round from seed to seed."""
    entries = []
    for env, steps in SCHEDULE_TASKS.items():
        runs = in_turns(bench, "concurrent_async", env, steps, "ppo", SCHEDULES)
        entries.append({"env": env, **schedules_compared(runs)})
    bench.write("concurrent_async", {"seeds": list(bench.seeds), "entries": entries})


def delayed(bench: Bench) -> None:
    """Learning curves of A2C by correction."""
    entries, drawn = [], []
    for env, steps in CORRECTION_TASKS.items():
        runs = in_turns(bench, "delayed", env, steps, "a2c", CORRECTIONS)
        drawn.append(runs)
        entries.append(
            {
                "env": env,
                "total_steps": runs["none"][0].steps,
                "returns": {name: [last_return(run) for run in found] for name, found in runs.items()},
                "mean_returns": {name: [mean_return(run) for run in found] for name, found in runs.items()},
            }
        )
    bench.write("delayed", {"seeds": list(bench.seeds), "entries": entries})
    labels = {name: [run.directory for runs in drawn for run in runs[name]] for name in CORRECTIONS}
    raceway.plot(labels, bench.picture, x="steps")
    print(bench.picture, file=sys.stderr)


def solve(bench: Bench) -> None:
    """What the presets reach: the best policy of each run over 100 fresh episodes."""
    entries = []
    for algo in SOLVERS:
        runs = [bench.run("solve", f"{algo}-{seed}", "CartPole-v1", None, algo=algo, seed=seed) for seed in bench.seeds]
        means = [raceway.evaluate(run.directory, episodes=100).mean for run in runs]
        seconds = [run.seconds for run in runs]
        entries.append({"algo": algo, "returns": means, "seconds": seconds, "steps": runs[0].steps})
        said = ", ".join(f"{mean:.1f}" for mean in means)
        print(f"{algo}: {said}; solved: {sum(mean >= SOLVED for mean in means)} of {len(means)}", file=sys.stderr)
        if bench.results == FOLDER and not bench.common:
            record("CartPole-v1", list(bench.seeds), means, seconds, runs[0].steps, algo=algo)
    bench.write("solve", {"seeds": list(bench.seeds), "env": "CartPole-v1", "entries": entries})


SOLVERS = ("a2c", "impala", "pqn")
SECTIONS: Mapping[str, Callable[[Bench], None]] = {
    "concurrent_async": concurrent_async,
    "delayed": delayed,
    "solve": solve,
}
SEEDS = {"concurrent_async": 5, "delayed": 5, "solve": 3}


def in_turns(
    bench: Bench, section: str, env: str, total_steps: int, algo: str, variants: Mapping[str, Mapping[str, Any]]
) -> dict[str, list[Run]]:
    """A run of every variant for every seed. Nothing is evaluated beside them: that would take a CPU of theirs."""
    names = list(variants)
    runs: dict[str, list[Run]] = {name: [] for name in names}
    for index, seed in enumerate(bench.seeds):
        for place in turn_order(len(names), index):
            name = names[place]
            folder = f"{name.replace(', ', '-')}-{seed}"
            settings = {"algo": algo, "seed": seed, "evaluation": {"enabled": False}, **variants[name]}
            runs[name].append(bench.run(section, folder, env, total_steps, **settings))
    return runs


def schedules_compared(runs: Mapping[str, Sequence[Run]]) -> dict[str, Any]:
    """Returns at equal steps and equal seconds, speed and lag of each, seed by seed."""
    # For each seed the last moment that all of its runs have seen.
    moments = [min(curve_of(run)[-1][0] for run in same) for same in zip(*runs.values(), strict=True)]

    def by_then(found: Sequence[Run]) -> list[float]:
        return [return_at(run, moment) for run, moment in zip(found, moments, strict=True)]

    return {
        "total_steps": next(iter(runs.values()))[0].steps,
        "moments_s": moments,
        "at_equal_steps": {name: [last_return(run) for run in found] for name, found in runs.items()},
        "at_equal_seconds": {name: by_then(found) for name, found in runs.items()},
        "steps_per_second": {name: [run.steps_per_second for run in found] for name, found in runs.items()},
        "lag_mean": {name: [float(np.mean(lags_of(run))) for run in found] for name, found in runs.items()},
        "lag_max": {name: [int(np.max(lags_of(run))) for run in found] for name, found in runs.items()},
    }


def curve_of(run: Run) -> list[tuple[float, float]]:
    """Seconds of training, and the mean return of the last 100 episodes then."""
    rows = read_rows(run.directory / "metrics.jsonl")
    return [(row["time/seconds"], row["episode/return"]) for row in rows if "episode/return" in row]


def last_return(run: Run) -> float:
    """Of the last 100 episodes."""
    return curve_of(run)[-1][1]


def mean_return(run: Run) -> float:
    """The mean over the whole curve: how early it rises, and whether it stays up."""
    return float(np.mean([value for _, value in curve_of(run)]))


def return_at(run: Run, seconds: float) -> float:
    """Of the last 100 episodes by then; the first there is, if none had ended."""
    curve = curve_of(run)
    return [curve[0][1], *(value for moment, value in curve if moment <= seconds)][-1]


def lags_of(run: Run) -> list[int]:
    """Of every round."""
    lines = (run.directory / "chain.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["lag"] for line in lines]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=list(SECTIONS))
    parser.add_argument("--seeds", type=int, nargs="+", help="default: 1 to 5; of solve 1 to 3")
    parser.add_argument("--directory", type=Path, default=Path("runs/algorithms"), help="where the runs go")
    chosen = parser.parse_args(argv)
    seeds = chosen.seeds or list(range(1, SEEDS[chosen.what] + 1))
    SECTIONS[chosen.what](Bench(chosen.directory, seeds))


if __name__ == "__main__":
    main()
