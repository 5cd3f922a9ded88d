"""Raceway's training, and its limit: `python -m benchmarks.train_raceway <setting as JSON>`.

A style is a schedule, or *limit*: the same steps of the same environments in a bare loop, and after them the same
update on a round that is stored, with nothing else.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ParamSpec, TypeVar
from unittest.mock import patch

import numpy as np

from benchmarks.tasks import ACTIONS, Continuous
from benchmarks.train_settings import CLIP, ENTROPY, HIDDEN, MAX_GRADIENT, VALUE, Setting, serve_rounds, timed
from benchmarks.turns import Turn
from raceway.algos.algorithm import Algorithm
from raceway.algos.rollout import Rollout, Weights
from raceway.graph import Input, Reactor, reaction
from raceway.report.console import Console
from raceway.report.metrics import MetricsLog
from raceway.training import programs
from raceway.training.config import TrainConfig
from raceway.training.environments import EnvSource
from raceway.training.folder import RunFolder
from raceway.training.learner import Progress
from raceway.training.programs import Report, Training
from raceway.training.reporter import Reporting
from raceway.training.rescue import Rescue
from raceway.training.resolve import resolve
from raceway.training.sampler import Sampler
from raceway.training.setup import Setup

P = ParamSpec("P")
T = TypeVar("T")
ENDLESS = 10**12
USUAL_ROUNDS = 1000
"""Of a run: it writes a row of metrics for every so many rounds that there are a thousand of them."""
_FAILURE_POLL_S = 1.0


def configuration(setting: Setting, schedule: str, **others: Any) -> TrainConfig:
    """As `raceway.train` gets it, with nothing from a preset."""
    return resolve(
        setting.task,
        preset=False,
        total_steps=ENDLESS,
        schedule=schedule,
        num_envs=setting.num_envs,
        n_steps=setting.num_steps,
        n_epochs=setting.epochs,
        batch_size=setting.minibatch,
        learning_rate=setting.learning_rate,
        gamma=setting.gamma,
        gae_lambda=setting.gae_lambda,
        clip_range=CLIP,
        ent_coef=ENTROPY,
        vf_coef=VALUE,
        max_grad_norm=MAX_GRADIENT,
        hidden=HIDDEN,
        evaluation={"enabled": False},
        log={"quiet": True},
        **others,
    )


class Gate:
    """Lets collector and learner begin so many rounds each, and knows when both have done them.

    Between turns one collected round is waiting to be learnt from, as in the middle of a run: so a turn has as many
    updates as rounds, and those overlap from its beginning to its end if the schedule lets them.
    """

    def __init__(self) -> None:
        self._may_collect, self._may_learn = threading.Semaphore(1), threading.Semaphore(0)
        self._collected, self._learnt = threading.Semaphore(0), threading.Semaphore(0)
        self._failure: BaseException | None = None

    def prime(self) -> None:
        """Until the first round is there."""
        self._wait(self._collected)

    def turn(self, rounds: int) -> None:
        """So many rounds collected, so many learnt from."""
        self._may_collect.release(rounds)
        self._may_learn.release(rounds)
        for _ in range(rounds):
            self._wait(self._collected)
            self._wait(self._learnt)

    def collecting(self, collect: Callable[P, T]) -> Callable[P, T]:
        """`collect` when it may, and told when it is done."""

        def gated(*args: P.args, **kwargs: P.kwargs) -> T:
            self._may_collect.acquire()
            found = collect(*args, **kwargs)
            self._collected.release()
            return found

        return gated

    def learning(self, learn: Callable[P, T]) -> Callable[P, T]:
        """`learn` when it may."""

        def gated(*args: P.args, **kwargs: P.kwargs) -> T:
            self._may_learn.acquire()
            return learn(*args, **kwargs)

        return gated

    def learnt(self) -> None:
        """All that belongs to an update is done."""
        self._learnt.release()

    def fail(self, error: BaseException) -> None:
        self._failure = error

    def _wait(self, done: threading.Semaphore) -> None:
        while not done.acquire(timeout=_FAILURE_POLL_S):
            if self._failure is not None:
                raise self._failure


class Exit(Reactor):
    """Hears of every update that is done."""

    progress = Input[Progress]()

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    @reaction(progress)
    def count(self, progress: Progress) -> None:
        self._gate.learnt()


def train(setup: Setup) -> Callable[[int], None]:
    """A run with its folder and its report, as `raceway.train` has it, that stops at the gate between turns."""
    gate = Gate()
    folder = RunFolder.at(setup.config)
    folder.begin(setup.config)
    log = MetricsLog(folder.path, tensorboard=setup.config.log.tensorboard)
    console = Console("", "", quiet=True, interval_s=1.0)
    log.__enter__()
    console.__enter__()
    make_sampler = programs.training_sampler

    def make_gated(*given: Any) -> Sampler:
        sampler = make_sampler(*given)
        sampler.collect = gate.collecting(sampler.collect)  # type: ignore[method-assign]
        return sampler

    # An endless run would write next to no metrics: it reports as often as one of a usual length.
    report_on = programs._reporting
    usual = partial(_usual_length, report_on)
    with patch.object(programs, "training_sampler", make_gated), patch.object(programs, "_reporting", usual):
        training = programs.build(setup, Report(folder, log, console, Rescue(folder, console.trouble)))
    learner = training.learner
    learner._update = gate.learning(learner._update)  # type: ignore[method-assign]
    training.program.connect(learner.progress, training.program.add(Exit(gate)).progress)
    threading.Thread(target=_run, args=(training, setup.rounds, gate), daemon=True).start()
    gate.prime()
    return gate.turn


def _usual_length(report_on: Callable[..., Reporting], *given: Any, **options: Any) -> Reporting:
    return replace(report_on(*given, **options), rounds=USUAL_ROUNDS)


def _run(training: Training, rounds: int, gate: Gate) -> None:
    try:
        training.program.run(rounds)
    except BaseException as error:
        gate.fail(error)


def limit(setting: Setting, setup: Setup) -> Turn:
    """The bare loop and the bare update, one after the other. Actions are those of a policy that knows nothing yet."""
    from benchmarks.bare import bare_loop

    algorithm = setup.algorithm()
    state, seed = algorithm.init(0), setup.config.seed
    rollout = first_round(setup, algorithm)
    actions, space = rollout.actions, ACTIONS[setting.task]
    if isinstance(space, Continuous):
        actions = np.clip(actions, -space.bound, space.bound)

    def turn(steps: int) -> tuple[int, float]:
        nonlocal state
        count, seconds = setting.rounds(steps), 0.0
        for index in range(count):
            seconds += bare_loop(setting.task, setting.num_envs, actions, seed=index)
            start = time.perf_counter()
            state, metrics = algorithm.update(state, rollout, 0.0, seed, index)
            for found in metrics.values():
                np.asarray(found)
            seconds += time.perf_counter() - start
        return count * setting.batch, seconds

    return turn


def first_round(setup: Setup, algorithm: Algorithm) -> Rollout:
    """A round under the first weights."""
    sampler = programs.training_sampler(setup, algorithm.native_layout())
    sampler.open()
    rollout, _ = sampler.collect(Weights(0, np.array(algorithm.policy(algorithm.init(0))), None), 0, np.empty)
    sampler.close()
    return rollout


def set_up_run(setting: Setting, schedule: str) -> Setup:
    """A run of the setting's task."""
    config = configuration(setting, schedule, env_args=setting.env_kwargs)
    return Setup.of(config, EnvSource(setting.task, setting.env_kwargs))


def set_up(setting: Setting) -> Turn:
    if setting.style == "limit":
        return limit(setting, set_up_run(setting, "serial"))
    return timed(setting, train(set_up_run(setting, setting.style)))


def main() -> None:
    """Serves the setting given as the only argument."""
    serve_rounds(set_up, lambda setting: ("jax", "mujoco", "numpy", "optax", "raceway"))
    os._exit(0)  # what waits at the gate waits for ever


if __name__ == "__main__":
    main()
