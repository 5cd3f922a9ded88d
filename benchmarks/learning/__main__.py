"""Trains the runs of a study, and shows what they gave.

    python -m benchmarks.learning list                       the studies, and how much of each is done
    python -m benchmarks.learning run schedules              trains what is missing, two runs at a time
    python -m benchmarks.learning run schedules --background the same, detached; its log is in runs/learning
    python -m benchmarks.learning speed schedules            steps per second, in turns; run nothing beside it
    python -m benchmarks.learning table schedules            returns with intervals
    python -m benchmarks.learning draw schedules picture.svg learning curves
    python -m benchmarks.learning cost                       what PPO's corrections cost; run nothing beside it
    python -m benchmarks.learning record                     what the presets reached, beside the presets

A study that is stopped goes on where it was: a run is one line in benchmarks/results/learning/STUDY/TASK.jsonl, and is
repeated only if its settings change. `--tasks`, `--settings` and `--seeds` choose a part.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.learning import records, running
from benchmarks.learning.presets import write_results
from benchmarks.learning.studies import STUDIES
from benchmarks.learning.study import Job, Study

LOGS = Path("runs/learning")


def _chosen(study: Study, options: argparse.Namespace) -> list[Job]:
    return [
        job
        for job in study.jobs()
        if (not options.tasks or job.task.name in options.tasks)
        and (not options.settings or job.setting.name in options.settings)
        and (not options.seeds or job.seed in options.seeds)
    ]


def _list(folder: Path) -> None:
    for study in STUDIES.values():
        jobs = list(study.jobs())
        left = len(running.pending(study, folder))
        print(f"{study.name:14} {len(jobs) - left:3} of {len(jobs):3} runs  {study.question}")


def _run(study: Study, options: argparse.Namespace) -> int:
    if options.background:
        return _detach(study)
    wanted = _chosen(study, options)
    jobs = [job for job in running.pending(study, options.folder) if job in wanted]
    print(f"{len(jobs)} of {len(wanted)} runs are missing", flush=True)
    failed = running.run_all(jobs, options.at_once, options.folder)
    if failed:
        print(f"{failed} runs failed. {running.ERRORS} says why.", file=sys.stderr)
    return 1 if failed else 0


def _detach(study: Study) -> int:
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{study.name}.log"
    words = [word for word in sys.argv[1:] if word != "--background"]
    with log.open("ab") as file:
        command = [sys.executable, "-m", "benchmarks.learning", *words]
        process = subprocess.Popen(command, stdout=file, stderr=file, stdin=subprocess.DEVNULL, start_new_session=True)
    print(f"process {process.pid}, log {log}")
    return 0


def _table(study: Study, options: argparse.Namespace) -> None:
    from benchmarks.learning.tables import NOTHING, final_table, over_run_table, seconds_table

    reference = study.settings[0].name
    shown = [table(study, reference, options.folder) for table in (over_run_table, seconds_table, final_table)]
    print("\n\n".join(table for table in shown if table != NOTHING) or NOTHING)


def _draw(study: Study, options: argparse.Namespace) -> None:
    from benchmarks.learning.pictures import draw_study

    draw_study(study, options.picture, seconds=True, folder=options.folder)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.learning", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("list", "record", "cost", "run", "speed", "table", "draw", "one", "pace"):
        options = verbs.add_parser(verb)
        options.add_argument("--folder", type=Path, default=records.FOLDER, help="where the data files are")
        if verb in ("list", "record", "cost"):
            continue
        options.add_argument("study", choices=list(STUDIES))
        if verb not in ("table", "draw"):
            options.add_argument("--tasks", nargs="+", default=[])
        if verb not in ("table", "draw", "speed"):
            options.add_argument("--settings", nargs="+", default=[])
            options.add_argument("--seeds", type=int, nargs="+", default=[])
        if verb == "run":
            options.add_argument("--at-once", type=int, default=2, help="runs side by side")
            options.add_argument("--background", action="store_true", help="detach, and write a log")
        elif verb == "speed":
            options.add_argument("--turns", type=int, default=5)
        elif verb == "draw":
            options.add_argument("picture", type=Path)
        elif verb == "pace":
            options.add_argument("--steps", type=int, required=True)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    if options.verb == "list":
        _list(options.folder)
        return 0
    if options.verb == "record":
        write_results(options.folder)
        return 0
    if options.verb == "cost":
        from benchmarks.learning.cost import cost_table, measure

        measure(options.folder)
        print(cost_table(options.folder))
        return 0
    study = STUDIES[options.study]
    if options.verb == "run":
        return _run(study, options)
    if options.verb == "speed":
        if not study.speed_steps:
            print(f"The study {study.name} does not compare speeds.", file=sys.stderr)
            return 2
        running.measure_speed(study, options.turns, options.tasks, options.folder)
    elif options.verb == "table":
        _table(study, options)
    elif options.verb == "draw":
        _draw(study, options)
    else:
        (job,) = _chosen(study, options)
        if options.verb == "one":
            running.run_one(job, study.episodes, options.folder)
        else:
            print(running.pace(job, options.steps))
    return 0


if __name__ == "__main__":
    sys.exit(main())
