"""The graph of a training run. The schedule is the delay of one connection: how many updates later weights are used."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from gymnasium import Space
from gymnasium.vector import AutoresetMode

from raceway._core import usable_cpus
from raceway.algos.algorithm import Algorithm
from raceway.algos.build import build_algorithm
from raceway.algos.configs import NetworkConfig
from raceway.algos.moments import Normaliser
from raceway.algos.networks import UserNetwork
from raceway.algos.rollout import Weights
from raceway.algos.spaces import action_parts
from raceway.errors import SettingError
from raceway.graph import Processes, Program
from raceway.report.console import Console
from raceway.report.metrics import MetricsLog
from raceway.training.callbacks import Callback, Director
from raceway.training.central import Actor, CentralSampler
from raceway.training.collector import Collector, OnResumed
from raceway.training.config import TrainConfig
from raceway.training.environments import EnvSource
from raceway.training.evaluation import CHUNK_STEPS, Evaluation, Trial, evaluate_weights
from raceway.training.evaluator import Evaluator
from raceway.training.folder import RunFolder
from raceway.training.learner import Learner
from raceway.training.native_actor import NativeActor
from raceway.training.policy_files import Best, PolicyFile
from raceway.training.process_sampler import ProcessSampler
from raceway.training.reporter import Reporter, Reporting
from raceway.training.sampler import Sampler, Sampling
from raceway.training.slots import Shape
from raceway.training.worker import WorkerSampler

DELAYS = {"serial": 1, "concurrent": 2}
"""The rounds from an update to the rollout that is collected under it. Under `async` there is no such number."""


@dataclass(frozen=True)
class Setup:
    """A run's settings, and what follows from them and from its environment."""

    config: TrainConfig
    source: EnvSource
    observation_space: Space
    action_space: Space
    has_masks: bool
    """Whether the environment tells which actions are allowed, and that is heeded."""
    resets_later: bool
    """Whether some rows are no transitions, since episodes are reset on the next step."""
    network: Any = None
    """A user's own (init, apply) pair; None: the one that the settings describe."""

    @classmethod
    def of(cls, config: TrainConfig, source: EnvSource, network: Any = None) -> Setup:
        """Looks at the environment's spaces."""
        source = replace(source, lane=config.lane, on_error=config.on_error, worker_timeout=config.worker_timeout)
        # One that may hang is looked at where it can be given up.
        looked_at = source.inline if config.worker_timeout is None else source
        env = looked_at.make(config.num_envs if source.is_single else 1)
        _, infos = env.reset(seed=0)
        has_masks = config.action_masks and "action_mask" in infos
        later = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP) == AutoresetMode.NEXT_STEP
        spaces = env.single_observation_space, env.single_action_space
        if not source.is_single:
            env.close()
        return cls(config, source, *spaces, has_masks, later, network)

    def unheeded(self) -> str:
        """What was set for environments in Python, and these are none; empty if nothing was."""
        config, source = self.config, self.source
        said = [f"on_error={config.on_error!r}"] if config.on_error != "raise" else []
        said += [f"worker_timeout={config.worker_timeout:g}"] if config.worker_timeout is not None else []
        if not said or not (source.is_native or source.is_single):
            return ""
        why = "runs natively" if source.is_native else "is a vector environment, which sees to its own faults"
        return f"without effect: {', '.join(said)}, since {source.name} {why}"

    @property
    def steps_per_round(self) -> int:
        return self.config.algorithm.n_steps * self.config.num_envs

    @property
    def evaluates(self) -> bool:
        """Whether there is an evaluator: it needs environments of its own."""
        return self.config.evaluation.enabled and not self.source.is_single

    @property
    def trial(self) -> Trial:
        """How its policies are evaluated."""
        wanted = self.config.evaluation
        return Trial(wanted.num_envs or wanted.episodes, wanted.episodes, wanted.max_steps)

    @property
    def shape(self) -> Shape:
        """Of a round's arrays."""
        logits = action_parts(self.action_space).num_logits if self.has_masks else None
        sizes = self.config.algorithm.n_steps, self.config.num_envs
        memory = (self.config.network.gru or 0) if self.network is None else 0
        return Shape(self.observation_space, self.action_space, *sizes, logits, self.resets_later, memory)

    @property
    def rounds(self) -> int:
        return math.ceil(self.config.total_steps / self.steps_per_round)

    def algorithm(self) -> Algorithm:
        """The algorithm, for these spaces."""
        config = self.config
        network = own_or(self.network, config.network)
        try:
            return build_algorithm(config.algorithm, self.observation_space, self.action_space, network)
        except ValueError as error:  # of spaces or network, told in words
            raise SettingError(str(error)) from None

    def policy_file(self, directory: Path) -> PolicyFile:
        """Where a policy of this run is kept."""
        config = self.config
        facts = {"env": config.env, "env_args": config.to_dict()["env_args"], "algo": config.algo, "seed": config.seed,
                 "has_own_network": self.network is not None, "has_masks": self.has_masks}  # fmt: skip
        return PolicyFile(directory, self.observation_space, self.action_space, facts)


def own_or(own: Any, described: NetworkConfig) -> NetworkConfig | UserNetwork:
    """A user's (init, apply) pair, or the network that the settings describe."""
    return described if own is None else UserNetwork(*own)


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
    source = setup.source
    if env_args and source.is_single:
        raise SettingError(
            f"A callback has set env_args={dict(env_args)}, but the vector environment that was given cannot be made "
            "anew. Give a callable that makes one environment instead."
        )
    sampling = Sampling(
        replace(source, args={**source.args, **env_args}) if env_args else source,
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
    sampler = evaluation_sampler(setup, layout, setup.source, trial.num_envs, seed, setup.config.num_workers)
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


def build(
    setup: Setup, report: Report | None, callbacks: Sequence[Callback] = (), on_resumed: OnResumed | None = None
) -> Training:
    """Collector and learner, connected; with a report also a reporter, and an evaluator in a process of its own."""
    config = setup.config
    algorithm = setup.algorithm()
    layout = algorithm.native_layout()
    director = Director(callbacks)
    program = Program(f"{config.algo} {setup.source.name}")
    collector = program.add(Collector(partial(training_sampler, setup, layout), on_resumed))
    learner = program.add(_learner(setup, algorithm, report.folder if report else None, director))
    if config.schedule == "async":
        program.connect(collector.collected, learner.collected, queue=config.queue)
        program.connect(learner.weights, collector.weights, latest=True, initial=[learner.current])
    else:
        delay = DELAYS[config.schedule]
        program.connect(collector.collected, learner.collected)
        program.connect(learner.weights, collector.weights, after=delay, initial=[learner.current] * delay)
    reporter = None
    if report is not None:
        reporter = program.add(Reporter(_reporting(setup, report.folder), report.log, report.console, director))
        program.connect(learner.progress, reporter.progress)
        if setup.evaluates:
            evaluator = program.add(_evaluator(setup, layout, report.folder))
            program.place(evaluator, Processes(1))
            program.connect(learner.candidate, evaluator.candidate, latest=True)
            program.connect(evaluator.goes_on, evaluator.more, latest=True)
            program.connect(evaluator.evaluations, reporter.evaluations, latest=True)
    return Training(program, learner, layout, director, reporter)


def _learner(setup: Setup, algorithm: Algorithm, folder: RunFolder | None, director: Director) -> Learner:
    config = setup.config
    normaliser = Normaliser(
        setup.observation_space,
        config.num_envs,
        config.algorithm.gamma,
        observations=config.algorithm.normalize_observations,
        rewards=config.algorithm.normalize_rewards,
    )
    every = max(1, setup.rounds // config.evaluation.times) if setup.evaluates else 0
    dumps = None if folder is None else folder.path / "dumps"
    return Learner(algorithm, config.seed, normaliser, setup.shape, setup.rounds, every, dumps, director)


def _reporting(setup: Setup, folder: RunFolder) -> Reporting:
    config = setup.config
    return Reporting(
        chain=folder.chain,
        schedule=config.schedule,
        rounds=setup.rounds,
        steps_per_round=setup.steps_per_round,
        num_workers=_num_workers(setup),
        num_envs=config.num_envs,
        epochs=hasattr(config.algorithm, "n_epochs"),
        counts_faults=config.on_error == "restart",
    )


def _num_workers(setup: Setup) -> int | None:
    """Threads or processes that step environments; None: they are stepped one after the other, or by who knows whom."""
    if setup.source.is_single or setup.config.lane == "inline":
        return None
    return min(setup.config.num_workers or usable_cpus(), setup.config.num_envs)


def _evaluator(setup: Setup, layout: dict[str, Any] | None, folder: RunFolder) -> Evaluator:
    # It has one process already, which is enough.
    sampler = evaluation_sampler(setup, layout, setup.source.inline, setup.trial.num_envs, setup.config.seed)
    return Evaluator(sampler, Best(setup.policy_file(folder.best)), setup.trial, setup.steps_per_round)
