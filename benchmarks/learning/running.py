"""Runs a study's jobs: each in a fresh process with a low priority, several at a time, what is done left out.

Two runs at once use two cores better than one run does, and where the schedule is deterministic it changes nothing but
the time they take. Speed is therefore measured apart, in turns, with nothing beside it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.learning import records
from benchmarks.learning.digest import digest_of
from benchmarks.learning.records import Record
from benchmarks.learning.study import Job, Study
from benchmarks.paired import turn_order
from benchmarks.results import machine_facts

PEERS = Path(__file__).parents[1] / ".venv-rl" / "bin" / "python"
ERRORS = Path("runs/learning/errors.log")
MACHINE = Path("runs/learning/machine")
"""Its lock is held by runs that share the machine, and exclusively by those that must be alone."""
NICENESS = 10


def pending(study: Study, folder: Path = records.FOLDER) -> list[Job]:
    """The jobs that have no record under the study's settings yet."""
    found = records.of_study(study, folder)
    done = {
        (task, setting, each.seed)
        for task, by in found.items()
        for setting, records_ in by.items()
        for each in records_
    }
    return [job for job in study.jobs() if (job.task.name, job.setting.name, job.seed) not in done]


def run_all(jobs: Sequence[Job], at_once: int, folder: Path = records.FOLDER) -> int:
    """Runs jobs in processes of their own. Returns how many failed; why is in ERRORS."""
    failed = 0
    for alone in (False, True):
        batch = [job for job in jobs if job.setting.alone == alone]
        with ThreadPoolExecutor(1 if alone else at_once) as pool:
            for job, code in zip(batch, pool.map(lambda job: _in_process(job, folder), batch), strict=True):
                print(f"{datetime.now(UTC):%H:%M:%S} {job.name}{': failed' if code else ''}", flush=True)
                failed += code != 0
    return failed


def _in_process(job: Job, folder: Path) -> int:
    words = ["one", job.study, "--tasks", job.task.name, "--settings", job.setting.name, "--seeds", str(job.seed)]
    command = ["nice", "-n", str(NICENESS), sys.executable, "-m", "benchmarks.learning", *words]
    ERRORS.parent.mkdir(parents=True, exist_ok=True)
    with records.locked(MACHINE, shared=not job.setting.alone), ERRORS.open("ab") as errors:
        done = subprocess.run([*command, "--folder", str(folder)], stdout=errors, stderr=errors, check=False)
    return done.returncode


def run_one(job: Job, episodes: int, folder: Path = records.FOLDER) -> None:
    """Runs a job here and now, and keeps its record."""
    facts = machine_facts()  # before it: somebody may commit meanwhile
    trained = _train_sb3(job, episodes) if job.setting.trainer == "sb3" else _train(job, episodes)
    record = Record(
        setting=job.setting.name,
        seed=job.seed,
        digest=digest_of(job, episodes),
        machine=f"{facts['cpu']}, {facts['cpus']} CPUs",
        commit=facts["commit"],
        date=facts["date"],
        **trained,
    )
    records.append(job, record, folder)


def _train(job: Job, episodes: int) -> dict[str, Any]:
    import raceway
    from raceway.report.metrics import read_rows

    with tempfile.TemporaryDirectory(prefix="raceway-study-") as directory:
        run = raceway.train(
            job.task.env,
            log={"directory": directory, "tensorboard": False, "quiet": True},
            checkpoint={"enabled": False},
            evaluation={"enabled": False},
            **job.options,
        )
        rows = [row for row in read_rows(run.directory / "metrics.jsonl") if row.get("episode/return") is not None]
        final = raceway.evaluate(run.directory, episodes=episodes) if episodes else None
    return {
        "steps": run.steps,
        "seconds": records.shortened(run.seconds),
        "curve": records.thinned([row["step"] for row in rows], [row["episode/return"] for row in rows]),
        "final": None if final is None else records.shortened(final.mean),
        "final_std": None if final is None else records.shortened(final.std),
    }


def _train_sb3(job: Job, episodes: int) -> dict[str, Any]:
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [str(PEERS), "-m", "benchmarks.learning.sb3_zoo", job.task.env, "--seed", str(job.seed)]
        command += ["--total-steps", str(job.task.total_steps), "--episodes", str(episodes), "--out", file.name]
        subprocess.run(command, check=True)
        told = json.loads(Path(file.name).read_text(encoding="utf-8"))
    # Of the last 100 episodes at the end of each, as in Raceway's metrics; one number per 2,000 steps.
    every, count, window = 2000, int(told["total_steps"]), 100
    steps, returns = [], []
    for mark in range(every, count + 1, every):
        ended = [value for step, value in told["episodes"] if step <= mark][-window:]
        if ended:
            steps.append(mark)
            returns.append(sum(ended) / len(ended))
    final = told["final"]
    return {
        "steps": count,
        "seconds": records.shortened(told["seconds"]),
        "curve": records.thinned(steps, returns),
        "final": None if final is None else records.shortened(final[0]),
        "final_std": None if final is None else records.shortened(final[1]),
    }


def measure_speed(study: Study, turns: int, tasks: Iterable[str] = (), folder: Path = records.FOLDER) -> None:
    """Steps per second of each setting: short runs that take turns, the order flipping, with nothing beside them."""
    for task in study.tasks:
        if tasks and task.name not in tasks:
            continue
        seeds = study.seeds_of(task)
        found: dict[str, list[float]] = {setting.name: [] for setting in study.settings}
        for turn in range(turns):
            for place in turn_order(len(study.settings), turn):
                job = Job(study.name, task, study.settings[place], seeds[turn % len(seeds)])
                with records.locked(MACHINE):
                    found[job.setting.name].append(_speed_of(job, study.speed_steps))
        records.keep_speeds(study, task, found, folder)
        print(f"{task.name}: {', '.join(f'{k} {sum(v) / len(v):,.0f}/s' for k, v in found.items())}", flush=True)


def _speed_of(job: Job, steps: int) -> float:
    words = ["pace", job.study, "--tasks", job.task.name, "--settings", job.setting.name, "--seeds", str(job.seed)]
    command = [sys.executable, "-m", "benchmarks.learning", *words, "--steps", str(steps)]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()[-1])


def pace(job: Job, steps: int) -> float:
    """Steps per second of a short run, here and now."""
    # SB3 is slow enough to be measured over a fourth.
    steps = steps // 4 if job.setting.trainer == "sb3" else steps
    short = replace(job, task=replace(job.task, total_steps=steps))
    trained = (_train_sb3 if job.setting.trainer == "sb3" else _train)(short, 0)
    return float(trained["steps"] / trained["seconds"])
