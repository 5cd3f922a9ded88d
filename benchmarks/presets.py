"""What the presets reach: trains each for some seeds and writes the results beside them.

    python -m benchmarks.presets [--algo ppo] [--seeds 1 2 3] [--directory runs] [ENV ...]

The best policy of every run is measured again, over 100 fresh episodes: it was chosen for being lucky in a few.
"""

from __future__ import annotations

import argparse
import importlib.resources
import json
from pathlib import Path

import numpy as np

import raceway
from benchmarks.results import machine_facts
from raceway.training.presets import presets

RESULTS = Path(str(importlib.resources.files("raceway.training") / "presets.json"))


def measure(env: str, algo: str, seeds: list[int], directory: str) -> None:
    """Trains, evaluates, and keeps what was reached."""
    means, seconds, steps = [], [], 0
    for seed in seeds:
        run = raceway.train(env, algo=algo, seed=seed, log={"directory": directory, "interval_s": 60.0})
        means.append(raceway.evaluate(run.directory, episodes=100).mean)
        seconds.append(run.seconds)
        steps = run.steps
        print(f"{env} {algo} seed {seed}: {means[-1]:.1f} over 100 episodes", flush=True)
    record(env, seeds, means, seconds, steps, algo=algo)


def record(
    env: str, seeds: list[int], means: list[float], seconds: list[float], steps: int, *, algo: str = "ppo"
) -> None:
    """Writes what a preset reached to the file beside the presets."""
    low, high = interval(means)
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    machine = machine_facts()
    results[f"{env} {algo}"] = {
        "evaluation": round(float(np.mean(means)), 1),
        "low": round(low, 1),
        "high": round(high, 1),
        "steps": steps,
        "seconds": round(float(np.median(seconds)), 1),
        "seeds": len(seeds),
        "command": f"raceway train {env}{'' if algo == 'ppo' else f' --algo {algo}'} --seed {seeds[0]}",
        "machine": f"{machine['cpu']}, {machine['cpus']} CPUs",
    }
    order = [f"{preset.env} {preset.algo}" for preset in presets()]
    ordered = {name: results[name] for name in order if name in results}
    RESULTS.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")


def interval(values: list[float], draws: int = 10_000) -> tuple[float, float]:
    """The 95% bootstrap interval of the mean."""
    picks = np.random.default_rng(0).integers(0, len(values), (draws, len(values)))
    low, high = np.quantile(np.array(values)[picks].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("envs", nargs="*", metavar="ENV", help="default: all that have a preset")
    parser.add_argument("--algo", default="ppo")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--directory", default="runs")
    arguments = parser.parse_args()
    for env in arguments.envs or [preset.env for preset in presets() if preset.algo == arguments.algo]:
        measure(env, arguments.algo, arguments.seeds, arguments.directory)


if __name__ == "__main__":
    main()
