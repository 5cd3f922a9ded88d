"""The graph of a training run. The schedule is the delay of one connection: how many updates later weights are used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from raceway._core import usable_cpus
from raceway.algos.algorithm import Algorithm
from raceway.algos.moments import Normaliser
from raceway.algos.rollout import Weights
from raceway.errors import SettingError
from raceway.graph import Processes, Program
from raceway.report.console import Console
from raceway.report.metrics import MetricsLog
from raceway.training.callbacks import Director
from raceway.training.central import Actor, CentralSampler
from raceway.training.collector import Collector, OnResumed
from raceway.training.environments import EnvSource
from raceway.training.evaluation import CHUNK_STEPS, Evaluation, Trial, evaluate_weights
from raceway.training.evaluator import Evaluator
from raceway.training.folder import RunFolder
from raceway.training.initial import Initial
from raceway.training.learner import Learner
from raceway.training.native_actor import NativeActor
from raceway.training.policy_files import Best
from raceway.training.process_sampler import ProcessSampler
from raceway.training.reporter import Reporter, Reporting
from raceway.training.rescue import Rescue
from raceway.training.sampler import Sampler, Sampling
from raceway.training.setup import Setup
from raceway.training.worker import WorkerSampler

_RESTARTS = 3
"""How often an evaluator whose process dies is started again."""
DELAYS = {"serial": 1, "concurrent": 2}
"""The rounds from an update to the rollout that is collected under it. Under `async` there is no such number."""


def make_sampler(
    setup: Setup, layout: dict[str, Any] | None, sampling: Sampling, group_size: int | None = None
) -> Sampler:
    """The way of collecting that is asked for, or the fastest that can be."""
    config = setup.config
    why_not = "its network cannot be run there" if layout is None else ""
    if sampling.source.is_single:
        why_not = "the vector environment that was given has workers of its own, or none"
    if config.collector == "worker" and why_not:
        raise SettingError(
            f"collector='worker', but {config.env} cannot have its policy in the worker: {why_not}. Use 'auto' or "
            "'central'."
        )
    if layout is None:
        return CentralSampler(sampling, partial(make_jax_actor, setup, sampling.seed), group_size)
    if not why_not and config.collector != "central":
        return WorkerSampler(sampling, layout) if sampling.source.is_native else ProcessSampler(sampling, layout)
    spaces = setup.observation_space, setup.action_space
    return CentralSampler(sampling, partial(NativeActor, layout, *spaces, sampling.seed), group_size)


def make_jax_actor(setup: Setup, seed: int) -> Actor:
    """In the process that computes with it."""
    from raceway.training.actor import JaxActor

    return JaxActor(setup.algorithm(), seed)


def training_sampler(
    setup: Setup, layout: dict[str, Any] | None, env_args: Mapping[str, Any] | None = None, purpose: str = "training"
) -> Sampler:
    """Of the run's own environments, which may get other arguments as training goes on."""
    config = setup.config
    if env_args:
        setup.check_args(env_args)
    sampling = Sampling(
        setup.with_args(env_args or {}),
        config.num_envs,
        config.algorithm.n_steps,
        config.seed,
        config.num_workers,
        purpose=purpose,
        action_masks=config.action_masks,
    )
    return make_sampler(setup, layout, sampling, config.group_size)


def evaluation_sampler(
    setup: Setup,
    layout: dict[str, Any] | None,
    source: EnvSource,
    num_envs: int,
    seed: int,
    num_workers: int | None = 1,
) -> Sampler:
    """Greedy, with seeds that training has not."""
    sampling = Sampling(
        source,
        num_envs,
        CHUNK_STEPS,
        seed,
        num_workers,
        purpose="evaluation",
        greedy=True,
        action_masks=setup.config.action_masks,
    )
    return make_sampler(setup, layout, sampling)


def evaluated(setup: Setup, layout: dict[str, Any] | None, weights: Weights, trial: Trial, seed: int) -> Evaluation:
    """Evaluates a policy here and now."""
    source = setup.with_args(weights.env_args or {})
    sampler = evaluation_sampler(setup, layout, source, trial.num_envs, seed, setup.config.num_workers)
    sampler.open()
    try:
        return evaluate_weights(sampler, weights, trial, weights.version * setup.steps_per_round)
    finally:
        sampler.close()


@dataclass(frozen=True)
class Training:
    """A program that is ready to run, and those of its parts that are asked something afterwards."""

    program: Program
    learner: Learner
    layout: dict[str, Any] | None
    director: Director
    reporter: Reporter | None


@dataclass(frozen=True)
class Report:
    """Where a run writes and what it speaks through."""

    folder: RunFolder
    log: MetricsLog
    console: Console
    rescue: Rescue


def build(
    setup: Setup,
    report: Report | None,
    director: Director | None = None,
    on_resumed: OnResumed | None = None,
    initial: Initial | None = None,
) -> Training:
    """Collector and learner, connected; with a report also a reporter, and an evaluator in a process of its own.

    initial: the weights that the run begins with; None: random ones.
    """
    config = setup.config
    algorithm = setup.algorithm()
    layout = algorithm.native_layout()
    director = Director() if director is None else director
    first_args = director.control.env_args
    program = Program(f"{config.algo} {setup.source.name}")
    collector = program.add(Collector(partial(training_sampler, setup, layout), on_resumed, first_args))
    learner = program.add(_learner(setup, algorithm, report, director))
    if initial is not None:
        learner.begin_from(initial)
    if config.schedule == "async":
        # One more, for the round that the learner is at stays in the queue until it is done.
        program.connect(collector.collected, learner.collected, queue=config.queue + 1)
        program.connect(learner.weights, collector.weights, latest=True, initial=[learner.current])
    else:
        delay = DELAYS[config.schedule]
        program.connect(collector.collected, learner.collected)
        program.connect(learner.weights, collector.weights, after=delay, initial=[learner.current] * delay)
    reporter = None
    if report is not None:
        reporting = _reporting(setup, report, layout, has_callbacks=bool(director.callbacks))
        reporter = program.add(Reporter(reporting, report.log, report.console, director))
        program.connect(learner.progress, reporter.progress)
        if setup.evaluates:
            evaluator = program.add(_evaluator(setup, layout, report, first_args))
            program.place(evaluator, Processes(1, restarts=_RESTARTS))
            program.connect(learner.candidate, evaluator.candidate, latest=True)
            program.connect(evaluator.goes_on, evaluator.more, latest=True)
            program.connect(evaluator.evaluations, reporter.evaluations, latest=True)
    return Training(program, learner, layout, director, reporter)


def _learner(setup: Setup, algorithm: Algorithm, report: Report | None, director: Director) -> Learner:
    config = setup.config
    normaliser = Normaliser(
        setup.observation_space,
        config.num_envs,
        config.algorithm.gamma,
        observations=config.algorithm.normalize_observations,
        rewards=config.algorithm.normalize_rewards,
    )
    every = max(1, setup.rounds // config.evaluation.times) if setup.evaluates else 0
    dumps = None if report is None else lambda: report.rescue.folder.dumps
    return Learner(algorithm, config.seed, normaliser, setup.shape, setup.rounds, every, dumps, director)


def _reporting(setup: Setup, report: Report, layout: dict[str, Any] | None, *, has_callbacks: bool) -> Reporting:
    config = setup.config
    return Reporting(
        chain=report.folder.chain,
        schedule=config.schedule,
        rounds=setup.rounds,
        steps_per_round=setup.steps_per_round,
        num_workers=_num_workers(setup),
        num_envs=config.num_envs,
        epochs=hasattr(config.algorithm, "n_epochs"),
        central=layout is None or config.collector == "central",
        counts_faults=config.on_error == "restart",
        has_to_stop=report.rescue.has_to_stop,
        again=setup.how_to("resume", report.folder.path, has_callbacks=has_callbacks),
    )


def _num_workers(setup: Setup) -> int | None:
    """Threads or processes that step environments; None: they are stepped one after the other, or by who knows whom."""
    if setup.source.is_single or setup.config.lane == "inline":
        return None
    return min(setup.config.num_workers or usable_cpus(), setup.config.num_envs)


def _evaluator(
    setup: Setup, layout: dict[str, Any] | None, report: Report, first_args: dict[str, Any] | None
) -> Evaluator:
    best = Best(setup.policy_file(report.folder.best, report.rescue.known))
    sampler = partial(_evaluators_sampler, setup, layout)
    return Evaluator(sampler, best, report.folder.evaluations, setup.trial, setup.steps_per_round, first_args)


def _evaluators_sampler(setup: Setup, layout: dict[str, Any] | None, env_args: Mapping[str, Any]) -> Sampler:
    # The evaluator has one process already, which is enough.
    source = setup.with_args(env_args).inline
    return evaluation_sampler(setup, layout, source, setup.trial.num_envs, setup.config.seed)
