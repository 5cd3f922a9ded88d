"""What PPO's corrections of older rounds cost: the same update with each, in turns."""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path
from typing import Any, Literal

import numpy as np
from gymnasium import spaces

from benchmarks.learning import records
from benchmarks.learning.running import MACHINE
from benchmarks.paired import turn_order
from benchmarks.results import machine_facts
from benchmarks.table import markdown_table
from raceway.algos.configs import PPOConfig
from raceway.algos.ppo import PPO
from raceway.algos.rollout import Rollout

CORRECTIONS: tuple[Literal["none", "decoupled", "vtrace"], ...] = ("none", "decoupled", "vtrace")
TURNS = 31
_OBS, _ACTIONS, _ENVS = 17, 6, 8


def _round(steps: int) -> Rollout:
    """A round of HalfCheetah-v5's shapes, one update old."""
    rng = np.random.default_rng(0)
    lead = (steps, _ENVS)
    return Rollout(
        version=0,
        scaling=None,
        obs=rng.normal(size=(steps + 1, _ENVS, _OBS)).astype(np.float32),
        actions=rng.normal(size=(*lead, _ACTIONS)).astype(np.float32),
        rewards=rng.normal(size=lead).astype(np.float32),
        terminated=np.zeros(lead, bool),
        truncated=np.zeros(lead, bool),
        log_probs=np.full(lead, -8.0, np.float32),
        values=rng.normal(size=(steps + 1, _ENVS)).astype(np.float32),
        final_values=np.zeros(lead, np.float32),
    )


def _update(ppo: PPO, state: Any, rollout: Rollout) -> None:
    """An update of an older round, waited for."""
    after, _ = ppo.update(state, rollout, 0.0, 1, 1)
    np.asarray(after.params)


def measure(folder: Path = records.FOLDER, turns: int = TURNS) -> dict[str, Any]:
    """Milliseconds of an update under PPO's default hyperparameters, by correction, one number for each turn."""
    learners = {}
    for name in CORRECTIONS:
        ppo = PPO(
            PPOConfig(correction=name),
            spaces.Box(-np.inf, np.inf, (_OBS,), np.float32),
            spaces.Box(-1, 1, (_ACTIONS,), np.float32),
        )
        state, rollout = ppo.init(1), _round(ppo.config.n_steps)
        _update(ppo, state, rollout)  # compiles
        learners[name] = ppo, state, rollout
    found: dict[str, list[float]] = {name: [] for name in CORRECTIONS}
    with records.locked(MACHINE):
        for turn in range(turns):
            for place in turn_order(len(CORRECTIONS), turn):
                ppo, state, rollout = learners[CORRECTIONS[place]]
                start = time.perf_counter()
                _update(ppo, state, rollout)
                found[CORRECTIONS[place]].append(round(1000 * (time.perf_counter() - start), 3))
    told = {"machine": machine_facts(), "milliseconds": found}
    path = folder / "corrections" / "cost.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return told


def cost_table(folder: Path = records.FOLDER) -> str:
    """The median update with each correction, and what is added to one without."""
    path = folder / "corrections" / "cost.json"
    if not path.is_file():
        return "Nothing is measured yet."
    found = json.loads(path.read_text(encoding="utf-8"))["milliseconds"]
    plain = found["none"]
    rows = []
    for name, times in found.items():
        added = statistics.median(one / other for one, other in zip(times, plain, strict=True)) - 1
        rows.append([f"`{name}`", f"{statistics.median(times):.1f} ms", "" if name == "none" else f"{added:+.1%}"])
    return markdown_table(["`correction`", "update of 2,048 rows, 10 epochs", "added time"], rows)
