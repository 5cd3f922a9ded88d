"""Collection without learning: `python -m benchmarks.train_collect <setting as JSON>`.

*raceway*: rounds of the sampler that a training run would have. *bare*: the same environments and the same policy in a
bare C++ loop, one thread per CPU, which times itself and keeps nothing. Everybody's turns begin with a reset. *loop*:
Python environments in a bare Python loop, without a policy. *own*: as *raceway*, but CartPole comes from a header, as a
user's own environment does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.own_native import own_cart_pole
from benchmarks.python_contestants import LIMIT, PythonSetting, python_loop
from benchmarks.train_raceway import set_up_run
from benchmarks.train_settings import Setting, serve_rounds, timed
from benchmarks.turns import Turn
from raceway import _core, load_native
from raceway.algos.rollout import Weights
from raceway.training import programs
from raceway.training.setup import Setup


class Arrays:
    """Memory that every round gets again, as it does in a run."""

    def __init__(self) -> None:
        self._arrays: list[np.ndarray] = []
        self._next = 0

    def begin(self) -> None:
        """Another round: the first array is the first again."""
        self._next = 0

    def empty(self, shape: Sequence[int], dtype: Any) -> np.ndarray:
        if self._next == len(self._arrays):
            self._arrays.append(np.zeros(tuple(shape), dtype))
        array = self._arrays[self._next]
        self._next += 1
        return array


def collect(setup: Setup, setting: Setting) -> Turn:
    """The sampler that a run would have."""
    algorithm = setup.algorithm()
    weights = Weights(0, np.array(algorithm.policy(algorithm.init(0))), None)
    sampler, arrays, done = programs.training_sampler(setup, algorithm.native_layout()), Arrays(), 0
    sampler.open()

    def rounds(count: int) -> None:
        nonlocal done
        for _ in range(count):
            arrays.begin()
            sampler.collect(weights, done, arrays.empty)
            done += 1

    return timed(setting, rounds, sampler.restart)


def bare(setup: Setup, setting: Setting) -> Turn:
    """The limit. It makes its environments anew for every turn, which is not timed."""
    from benchmarks.bare import bare_policy_loop

    algorithm = setup.algorithm()
    layout = algorithm.native_layout()
    assert layout is not None
    policy = _core.Policy(layout)
    policy.load(np.array(algorithm.policy(algorithm.init(0))), None, None)
    seed = 0

    def turn(steps: int) -> tuple[int, float]:
        nonlocal seed
        calls, seed = math.ceil(steps / setting.num_envs), seed + 1
        seconds = bare_policy_loop(setting.task, setting.num_envs, policy, calls, seed=seed)
        return calls * setting.num_envs, seconds

    return turn


def set_up(setting: Setting) -> Turn:
    if setting.style == "loop":
        task = setting.task.rpartition(":")[2]
        return python_loop(PythonSetting(LIMIT, task, setting.num_envs, env_kwargs=setting.env_kwargs))
    if setting.style == "own":
        setting = replace(setting, task=load_native(own_cart_pole()))
    return (bare if setting.style == "bare" else collect)(set_up_run(setting, "serial"), setting)


def main() -> None:
    """Serves the setting given as the only argument."""
    serve_rounds(set_up, lambda setting: ("mujoco", "numpy", "raceway"))


if __name__ == "__main__":
    main()
