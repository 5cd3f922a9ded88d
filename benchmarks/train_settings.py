"""What learners are asked to do, said once for all of them. It runs in everybody's virtual environment."""

from __future__ import annotations

import json
import math
import os
import platform
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

from benchmarks.turns import Contestant, Turn, serve

OWN, RL, RLLIB = "own", "rl", "rllib"
"""Virtual environments: Raceway's, that of rl.txt and that of rllib.txt."""

MODULES = {
    "raceway": ("benchmarks.train_raceway", OWN),
    "collect": ("benchmarks.train_collect", OWN),
    "wait": ("benchmarks.train_wait", OWN),
    "sb3": ("benchmarks.learners_sb3", RL),
    "sbx": ("benchmarks.learners_sb3", RL),
    "jax + envpool": ("benchmarks.learners_jax", RL),
    "rllib": ("benchmarks.learners_rllib", RLLIB),
}
"""Who serves a kind of learner, and where."""

CLIP = 0.2
ENTROPY = 0.0
VALUE = 0.5
MAX_GRADIENT = 0.5
HIDDEN = (64, 64)
"""Of the actor and of the critic, which share nothing; tanh in between. These five are the same in every setting."""


@dataclass(frozen=True)
class Setting:
    """A learner, its task and its hyperparameters, the same for everybody who is compared."""

    kind: str
    """A key of MODULES."""
    task: str
    num_envs: int
    num_steps: int = 256
    """Steps of each environment in a round."""
    epochs: int = 10
    minibatch: int = 256
    learning_rate: float = 3e-4
    gamma: float = 0.99
    gae_lambda: float = 0.95
    style: str = ""
    """Which of the ways in which this kind can do it."""
    work: int = 0
    """Rounds of arithmetic in a step, where the task is one of benchmarks/python_tasks.py that computes."""

    @property
    def env_kwargs(self) -> dict[str, Any]:
        """What the task is made with."""
        return {"rounds": self.work} if self.work else {}

    @property
    def batch(self) -> int:
        """Environment steps in a round."""
        return self.num_envs * self.num_steps

    def rounds(self, steps: int) -> int:
        """How many rounds are at least so many steps."""
        return math.ceil(steps / self.batch)

    def contestant(self, name: str, interpreters: Mapping[str, str]) -> Contestant:
        """This setting as a process to be started. It is stopped between turns: some libraries never rest."""
        module, place = MODULES[self.kind]
        return Contestant(name, interpreters[place], ("-m", module, json.dumps(asdict(self))), restless=True)


Rounds = Callable[[int], None]
"""Trains (or collects) for so many rounds and comes back when everything is done."""


def timed(setting: Setting, rounds: Rounds, before: Callable[[], None] | None = None) -> Turn:
    """Turns of whole rounds, with what has to be done before each outside the timed part."""

    def turn(steps: int) -> tuple[int, float]:
        count = setting.rounds(steps)
        if before is not None:
            before()
        start = time.perf_counter()
        rounds(count)
        return count * setting.batch, time.perf_counter() - start

    return turn


def serve_rounds(set_up: Callable[[Setting], Turn], packages: Callable[[Setting], tuple[str, ...]]) -> None:
    """Serves the setting given as the only argument. What happens only once, compiling above all, is over before."""
    warnings.simplefilter("ignore")  # an old version number or a space's precision is no news here
    setting = Setting(**json.loads(sys.argv[1]))

    def ready() -> tuple[Turn, dict[str, Any]]:
        start = time.perf_counter()
        turn = set_up(setting)
        turn(2 * setting.batch)
        versions = {"python": platform.python_version()}
        versions |= {name: metadata.version(name) for name in packages(setting)}
        return turn, {"versions": versions, "style": setting.style, "ready_s": time.perf_counter() - start}

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # for what libraries leave behind
        serve(ready)
