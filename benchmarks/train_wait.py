"""Environments that wait, and a learner that takes its time: `python -m benchmarks.train_wait <setting as JSON>`.

Every step of an environment takes 2 ms on average, exponentially spread; the learner takes as long as the steps of a
round would if they were all average. Both only sleep, so that what shows is who waits for whom. *worker* and *central*
are Raceway's concurrent schedule with either collector (groups of one for the second). *barrier* is the usual loop:
step all environments, infer for all, and so on, then learn.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.train_raceway import configuration, train
from benchmarks.train_settings import Setting, serve_rounds, timed
from benchmarks.turns import Turn
from raceway.algos.algorithm import State
from raceway.algos.ppo import PPO
from raceway.algos.rollout import Rollout
from raceway.training.environments import EnvSource
from raceway.training.setup import Setup

STEP_S = 2e-3
WAITING = {"step_us": STEP_S * 1e6, "spread": "exponential", "wait": True}
METRICS = ("policy_loss", "value_loss", "entropy", "gradient_norm")


class SlowPPO(PPO):
    """Learns nothing, and takes its time for it."""

    def update(
        self, state: State, rollout: Rollout, progress: float, seed: int, round_: int, ent_coef: float | None = None
    ) -> tuple[State, dict[str, Any]]:
        time.sleep(self.config.n_steps * STEP_S)
        return state, {"applied": np.ones(1, bool), **{name: np.zeros(1, np.float32) for name in METRICS}}


class SlowSetup(Setup):
    """A run whose algorithm is the slow one."""

    def algorithm(self) -> SlowPPO:
        return SlowPPO(self.config.ppo, self.observation_space, self.action_space, self.config.network)


def set_up_run(setting: Setting, collector: str) -> Setup:
    groups = {"group_size": 1} if collector == "central" else {}
    config = configuration(
        setting, "concurrent", env_args=WAITING, num_workers=setting.num_envs, collector=collector, **groups
    )
    return SlowSetup.of(config, EnvSource(setting.task, WAITING))


def barrier(setting: Setting) -> Callable[[int], None]:
    """Raceway's own environments and policy, in the usual loop."""
    setup = set_up_run(setting, "worker")
    algorithm, seed = setup.algorithm(), setup.config.seed
    state = algorithm.init(seed)
    envs = setup.source.make(setting.num_envs, num_workers=setting.num_envs)
    obs, _ = envs.reset(seed=seed)
    ids, step = np.arange(setting.num_envs), 0
    shape = (setting.num_steps, setting.num_envs)
    rows = [np.zeros(shape, np.float32) for _ in range(4)]

    def rounds(count: int) -> None:
        nonlocal obs, state, step
        for _ in range(count):
            for row in range(setting.num_steps):
                actions, log_probs, values, _ = algorithm.act(state.params, None, obs, None, seed, ids, np.uint32(step))
                obs, rewards, _, _, _ = envs.step(np.asarray(actions))
                for array, found in zip(rows, (actions, log_probs, values, rewards), strict=True):
                    array[row] = found
                step += 1
            state, _ = algorithm.update(state, None, 0.0, seed, 0)  # type: ignore[arg-type]  # it looks at nothing

    return rounds


def set_up(setting: Setting) -> Turn:
    if setting.style == "barrier":
        return timed(setting, barrier(setting))
    return timed(setting, train(set_up_run(setting, setting.style)))


def main() -> None:
    """Serves the setting given as the only argument."""
    serve_rounds(set_up, lambda setting: ("jax", "numpy", "raceway"))
    os._exit(0)  # what waits at the gate waits for ever


if __name__ == "__main__":
    main()
