"""How long CartPole takes to be solved: `python -m benchmarks.train_solve SEED` tries it once and prints JSON."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.results import Amount
from benchmarks.turns import ContestantError

TASK = "CartPole-v1"
SOLVED = 475.0
EPISODES = 100
MOST_S = 10.0
_TIMEOUT_S = 600.0


def solve_amounts(seeds: Sequence[int]) -> list[Amount]:
    """Seconds of training, and seconds of everything, for each seed, each in a fresh process."""
    return [amount for seed in seeds for amount in amounts_of(seed, _attempt(seed))]


def amounts_of(seed: int, found: dict[str, Any]) -> Iterator[Amount]:
    """What one attempt took. It counts only if it has solved the task."""
    setting, solved = f"{TASK}, seed {seed}", found["mean"] >= SOLVED
    what = f"training to {found['mean']:.1f} over {EPISODES} episodes, {found['steps']} steps"
    yield Amount(setting, what, found["training_s"], "s", MOST_S, solved and found["training_s"] <= MOST_S)
    yield Amount(setting, "with importing, compiling and the evaluation", found["total_s"], "s")


def _attempt(seed: int) -> dict[str, Any]:
    print(f"solve: seed {seed}", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "benchmarks.train_solve", str(seed)]
    done = subprocess.run(command, stdout=subprocess.PIPE, timeout=_TIMEOUT_S, check=False)
    if done.returncode:
        raise ContestantError(f"`{' '.join(command[1:])}` failed: its standard error says why.")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Trains by the preset, and evaluates the policy of the end."""
    start = time.perf_counter()
    import raceway

    with tempfile.TemporaryDirectory() as folder:
        run = raceway.train(
            TASK,
            seed=int(sys.argv[1]),
            evaluation={"times": 1, "episodes": EPISODES},
            log={"directory": folder, "quiet": True},
        )
        assert run.evaluation is not None
        found = {"mean": run.evaluation.mean, "steps": run.steps, "training_s": run.seconds}
        print(json.dumps({**found, "total_s": time.perf_counter() - start}))


if __name__ == "__main__":
    main()
