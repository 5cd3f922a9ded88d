"""Returns after a million steps, against SB3's own PPO with the same hyperparameters.

    python -m benchmarks.learning sb3 DIRECTORY      SB3's runs (hours), in the virtual environment of peers
    python -m benchmarks.learning raceway DIRECTORY  ours, both schedules (minutes)
    python -m benchmarks.learning gather DIRECTORY   makes benchmarks/results/learning/returns.json of both

Hyperparameters are SB3's defaults for PPO, its 2048 steps a round spread over 8 environments, with observations and
rewards normalised as its tuned settings for MuJoCo have it: those of the presets. Runs that are there already are not
repeated.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import raceway
from benchmarks.presets import record
from benchmarks.results import machine_facts

ENVS = ("HalfCheetah-v5", "Hopper-v5", "Walker2d-v5")
SEEDS = (1, 2, 3)
SCHEDULES = ("serial", "concurrent")
TOTAL_STEPS = 1_000_000
SETTINGS: dict[str, Any] = {
    "num_envs": 8,
    "n_steps": 256,
    "batch_size": 64,
    "n_epochs": 10,
    "normalize_observations": True,
    "normalize_rewards": True,
}
RESULT = Path(__file__).parent / "results" / "learning" / "returns.json"
PEERS = Path(__file__).parent / ".venv-rl" / "bin" / "python"


def run_sb3(directory: Path) -> None:
    """SB3's runs, one after the other."""
    for env, seed in ((env, seed) for seed in SEEDS for env in ENVS):
        out = directory / f"sb3-{env}-{seed}.json"
        if not out.exists():
            print(out.stem, flush=True)
            command = [str(PEERS), "-m", "benchmarks.learning_sb3", env, "--seed", str(seed), "--out", str(out)]
            subprocess.run(command, check=True)


def run_raceway(directory: Path) -> None:
    """Ours, one after the other."""
    for env, seed, schedule in ((e, s, k) for s in SEEDS for e in ENVS for k in SCHEDULES):
        out = directory / f"raceway-{schedule}-{env}-{seed}.json"
        if out.exists():
            continue
        run = raceway.train(
            env,
            seed=seed,
            schedule=schedule,
            total_steps=TOTAL_STEPS,
            log={"directory": str(directory / "runs"), "interval_s": 30.0},
            **SETTINGS,
        )
        rows = [json.loads(line) for line in (run.directory / "metrics.jsonl").read_text().splitlines()]
        curve = [(row["step"], row["episode/return"]) for row in rows if "episode/return" in row]
        assert run.evaluation is not None
        result = {
            "env": env,
            "seed": seed,
            "total_steps": run.steps,
            "seconds": run.seconds,
            "curve": curve,
            "evaluation": run.evaluation.returns,
            "best": raceway.evaluate(run.directory, episodes=100).mean,
        }
        out.write_text(json.dumps(result))


def gather(directory: Path) -> dict[str, Any]:
    """The returns at the end: of the last 100 episodes of training, and of greedy ones afterwards."""
    entries = []
    for who in ("sb3", *(f"raceway-{schedule}" for schedule in SCHEDULES)):
        for env in ENVS:
            runs = [json.loads(path.read_text()) for path in sorted(directory.glob(f"{who}-{env}-*.json"))]
            if runs:
                entries.append(
                    {
                        "who": who.replace("-", " "),
                        "env": env,
                        "training": [_last_return(who, run) for run in runs],
                        "evaluation": [float(np.mean(run["evaluation"])) for run in runs],
                        "steps_to_2000": [_steps_to(who, run, 2000.0) for run in runs],
                    }
                )
    return {"machine": machine_facts(), "total_steps": TOTAL_STEPS, "entries": entries}


def record_presets(directory: Path) -> None:
    """The concurrent runs are the presets' own: what they reached is theirs too."""
    for env in ENVS:
        runs = [json.loads(path.read_text()) for path in sorted(directory.glob(f"raceway-concurrent-{env}-*.json"))]
        if runs:
            seeds, means, seconds = ([run[name] for run in runs] for name in ("seed", "best", "seconds"))
            record(env, seeds, means, seconds, runs[0]["total_steps"])


def _recent(who: str, run: dict[str, Any]) -> list[tuple[int, float]]:
    """The mean return of the last 100 episodes over the steps: SB3's curve has single episodes."""
    if who != "sb3":
        return [(step, return_) for step, return_ in run["curve"]]
    steps, returns = zip(*run["curve"], strict=True)
    sums = np.cumsum([0.0, *returns])
    counts = np.minimum(np.arange(1, len(returns) + 1), 100)
    ends = np.arange(1, len(returns) + 1)
    return list(zip(steps, ((sums[ends] - sums[ends - counts]) / counts).tolist(), strict=True))


def _last_return(who: str, run: dict[str, Any]) -> float:
    return _recent(who, run)[-1][1]


def _steps_to(who: str, run: dict[str, Any], return_: float) -> int | None:
    return next((step for step, mean in _recent(who, run) if mean >= return_), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["sb3", "raceway", "gather"])
    parser.add_argument("directory", type=Path)
    arguments = parser.parse_args()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    if arguments.what == "sb3":
        run_sb3(arguments.directory)
    elif arguments.what == "raceway":
        run_raceway(arguments.directory)
    else:
        record_presets(arguments.directory)
        RESULT.write_text(json.dumps(gather(arguments.directory), indent=1) + "\n")
        print(RESULT, file=sys.stderr)


if __name__ == "__main__":
    main()
