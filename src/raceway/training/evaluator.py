"""The evaluator: tries candidates beside the training, in a process of its own, and keeps the best."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from gymnasium.utils.env_checker import data_equivalence

from raceway.algos.rollout import Weights
from raceway.errors import UserError
from raceway.graph import Effect, Input, Output, Reactor, reaction, shutdown, startup
from raceway.training.checkpoints import fitting
from raceway.training.evaluation import Evaluation, Trial, evaluating, evaluation_row
from raceway.training.evaluation_log import append_evaluation
from raceway.training.policy_files import Best
from raceway.training.sampler import Sampler

MakeSampler = Callable[[dict[str, Any]], Sampler]
"""Makes a sampler of environments with these arguments beside those of the settings."""

_NICENESS = 10
"""Training comes first: when CPUs are scarce it gets about nine tenths of them."""


class Evaluator(Reactor):
    """Evaluates the newest candidate; those that come meanwhile are passed over."""

    candidate = Input[Weights]()
    evaluations = Output[list[Evaluation]]()
    """All so far: over a connection that keeps only the latest value, none is lost."""
    goes_on = Output[bool]()
    """To itself: there may be more to do."""
    more = Input[bool]()

    def __init__(
        self,
        make_sampler: MakeSampler,
        best: Best,
        log: Path,
        trial: Trial,
        steps_per_round: int,
        env_args: dict[str, Any] | None = None,
    ) -> None:
        self._built_in = os.getpid()
        self._make_sampler = make_sampler
        self._sampler: Sampler | None = None
        self._env_args = env_args or {}
        self._best = best
        self._log = log
        self._trial = trial
        self._steps_per_round = steps_per_round
        self._evaluations: list[Evaluation] = []
        self._underway: tuple[Weights, Iterator[Evaluation | None]] | None = None
        """Not saved: a resumed run evaluates the newest candidate from the beginning."""
        self._is_resumed = False

    @reaction(startup)
    def open(self) -> None:
        # Of this thread alone, and of those that it starts: nothing else is slowed if it shares its process.
        thread = threading.get_native_id()
        # Nicer is always allowed, less nice is not.
        os.setpriority(os.PRIO_PROCESS, thread, max(_NICENESS, os.getpriority(os.PRIO_PROCESS, thread)))
        if os.getpid() != self._built_in:
            _leave_accelerators_alone()
        self._open()

    def _open(self) -> Sampler:
        sampler = self._make_sampler(self._env_args)
        try:
            sampler.open()
        except BaseException:
            sampler.close()
            raise
        self._sampler = sampler
        return sampler

    def _sampler_for(self, candidate: Weights) -> Sampler:
        """Environments with the arguments that the candidate was trained for: evaluation follows a curriculum."""
        if self._sampler is not None and data_equivalence(candidate.env_args or {}, self._env_args):
            return self._sampler
        self.close()
        self._env_args = candidate.env_args or {}
        return self._open()

    @reaction((candidate, more), effects=(evaluations, goes_on))
    def evaluate(self, candidate: Weights | None, more: bool | None) -> Iterator[Effect[Any]]:
        """A part of an evaluation: a snapshot, or the end of the run, need not wait for the whole."""
        if self._is_resumed:
            self._is_resumed = False
            yield self.evaluations(list(self._evaluations))  # the last of them may not have arrived before
            yield self.goes_on(True)
            return
        if self._underway is None:
            if candidate is None or (self._evaluations and self._evaluations[-1].version >= candidate.version):
                return  # a resumed run brings the last one again
            steps = candidate.version * self._steps_per_round
            self._underway = candidate, evaluating(self._sampler_for(candidate), candidate, self._trial, steps)
        weights, parts = self._underway
        found = next(parts)
        if found is not None:
            self._underway = None
            self._best.offer(weights, found)
            self._evaluations.append(found)
            # It is for an evaluation that comes too late for the metrics: without it the run goes on.
            with suppress(OSError, UserError):
                append_evaluation(self._log, found.steps, evaluation_row(found))
            yield self.evaluations(list(self._evaluations))
        yield self.goes_on(True)

    def save(self) -> dict[str, Any]:
        return {"evaluations": [each.to_dict() for each in self._evaluations]}

    def load(self, state: dict[str, Any]) -> None:
        with fitting("evaluations"):
            self._evaluations = [Evaluation.of(each) for each in state["evaluations"]]
        self._is_resumed = bool(self._evaluations)

    @reaction(shutdown)
    def close(self) -> None:
        if self._sampler is not None:  # or opening it failed, and that is the error to tell
            self._sampler.close()
            self._sampler = None


def _leave_accelerators_alone() -> None:
    """In a process of its own: JAX would take most of a GPU's memory away from the learner."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_platforms", "cpu")
