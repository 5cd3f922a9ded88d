"""The evaluator: tries candidates beside the training, in a process of its own, and keeps the best."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import asdict
from typing import Any

from raceway.algos.rollout import Weights
from raceway.graph import Effect, Input, Output, Reactor, reaction, shutdown, startup
from raceway.training.checkpoints import fitting
from raceway.training.evaluation import Evaluation, Trial, evaluate_weights
from raceway.training.policy_files import Best
from raceway.training.sampler import Sampler

_NICENESS = 10
"""Training comes first: when CPUs are scarce it gets about nine tenths of them."""


class Evaluator(Reactor):
    """Evaluates the newest candidate; those that come meanwhile are passed over."""

    candidate = Input[Weights]()
    evaluations = Output[list[Evaluation]]()
    """All so far: over a connection that keeps only the latest value, none is lost."""

    def __init__(self, sampler: Sampler, best: Best, trial: Trial, steps_per_round: int) -> None:
        self._built_in = os.getpid()
        self._sampler = sampler
        self._is_open = False
        self._best = best
        self._trial = trial
        self._steps_per_round = steps_per_round
        self._evaluations: list[Evaluation] = []

    @reaction(startup)
    def open(self) -> None:
        # Of this thread alone, and of those that it starts: nothing else is slowed if it shares its process.
        thread = threading.get_native_id()
        # Nicer is always allowed, less nice is not.
        os.setpriority(os.PRIO_PROCESS, thread, max(_NICENESS, os.getpriority(os.PRIO_PROCESS, thread)))
        if os.getpid() != self._built_in:
            _leave_accelerators_alone()
        self._sampler.open()
        self._is_open = True

    @reaction(candidate, effects=evaluations)
    def evaluate(self, candidate: Weights) -> Effect[list[Evaluation]] | None:
        if self._evaluations and self._evaluations[-1].version >= candidate.version:
            return None  # a resumed run brings the last one again
        steps = candidate.version * self._steps_per_round
        found = evaluate_weights(self._sampler, candidate, self._trial, steps)
        self._best.offer(candidate, found)
        self._evaluations.append(found)
        return self.evaluations(list(self._evaluations))

    def save(self) -> dict[str, Any]:
        return {"evaluations": [asdict(each) for each in self._evaluations]}

    def load(self, state: dict[str, Any]) -> None:
        with fitting("evaluations"):
            self._evaluations = [Evaluation.of(each) for each in state["evaluations"]]

    @reaction(shutdown)
    def close(self) -> None:
        if self._is_open:  # or opening it failed, and that is the error to tell
            self._sampler.close()


def _leave_accelerators_alone() -> None:
    """In a process of its own: JAX would take most of a GPU's memory away from the learner."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_platforms", "cpu")
