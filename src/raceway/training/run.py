"""`raceway.train`: the way in. One call, one folder with everything in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gymnasium.vector import VectorEnv

from raceway.graph import Outcome
from raceway.report.console import Console
from raceway.report.metrics import MetricsLog
from raceway.training.config import TrainConfig
from raceway.training.device import choose_device
from raceway.training.environments import EnvSource
from raceway.training.evaluation import Evaluation
from raceway.training.folder import RunFolder
from raceway.training.policy_files import Best
from raceway.training.programs import Report, Setup, Training, build, evaluated, training_sampler
from raceway.training.reporter import evaluation_row
from raceway.training.resolve import resolve


@dataclass(frozen=True)
class Run:
    """A run that has come to its end."""

    directory: Path
    """Settings, metrics, policies, the hash chain and the picture of its graph are here."""
    config: TrainConfig
    steps: int
    """Environment steps."""
    seconds: float
    """Of training: from the first step to the last update, without starting and compiling."""
    evaluation: Evaluation | None
    """Of the policy of the end."""
    best_return: float | None
    """The mean return of the best policy."""
    digest: str
    """The last line of the hash chain: equal for equal runs."""
    summary: str
    """Where the time went."""

    @property
    def steps_per_second(self) -> float:
        return self.steps / max(self.seconds, 1e-9)


def train(
    env: str | Callable[..., Any] | VectorEnv,
    *,
    config_file: str | os.PathLike[str] | None = None,
    network: Any = None,
    **settings: Any,
) -> Run:
    """Trains an agent.

    env: a name (`raceway list envs`), any Gymnasium id, `"package.module:callable"`, a callable that makes a Gymnasium
        environment, or a vector environment.
    config_file: settings from a JSON or TOML file, such as the config.json of another run.
    network: your own network as a pair (init, apply): see `raceway.algos.networks.UserNetwork`. A dict is settings.
    settings: total_steps, num_envs, seed, schedule, ... and hyperparameters, such as learning_rate, under the names of
        SB3 or CleanRL. `raceway train --help` names them all.
    """
    if isinstance(network, Mapping):  # settings of the network, as for the other groups
        settings["network"], network = network, None
    if isinstance(env, VectorEnv):
        settings.setdefault("num_envs", env.num_envs)
    config = resolve(env, config_file, **settings)
    choose_device(config.device)
    setup = Setup.of(config, EnvSource(env if not isinstance(env, str) else config.env, config.env_args), network)
    training_sampler(setup, setup.algorithm().native_layout())  # what is refused leaves no folder behind
    folder = RunFolder.create(config)
    console = Console(*_headline(setup, folder), quiet=config.log.quiet, interval_s=config.log.interval_s)
    log = MetricsLog(folder.path, tensorboard=config.log.tensorboard, wandb_project=config.log.wandb_project)
    with log, console:
        return _run(setup, Report(folder, log, console))


def _headline(setup: Setup, folder: RunFolder) -> tuple[str, str]:
    config = setup.config
    return (
        f"{setup.source.name}  {config.algo}  {config.schedule}  seed {config.seed}",
        f"{config.num_envs} environments x {config.ppo.n_steps} steps  {folder.path}",
    )


def _run(setup: Setup, report: Report) -> Run:
    folder = report.folder
    training = build(setup, report)
    drawing = training.program.draw()
    drawing.save(folder.graph)
    folder.mermaid.write_text(drawing.mermaid, encoding="utf-8")
    try:
        outcome = training.program.run(setup.rounds)
        return _finish(setup, report, training, outcome)
    except BaseException as error:
        _keep_what_there_is(setup, report, training, error)
        raise


def _keep_what_there_is(setup: Setup, report: Report, training: Training, error: BaseException) -> None:
    """However a run ends, what was learnt so far is not lost."""
    weights = training.learner.current
    why = "Interrupted" if isinstance(error, KeyboardInterrupt) else "Stopped by an error"
    if weights.version == 0:
        report.console.finish(f"{why} before the first update.")
        return
    file = setup.policy_file(report.folder.final)
    if file.version != weights.version:
        file.write(weights)
    report.console.finish(f"{why}. The policy after {weights.version:,} updates is in {file.directory}")


def _finish(setup: Setup, report: Report, training: Training, outcome: Outcome) -> Run:
    """Evaluates the policy of the end, and keeps it."""
    folder = report.folder
    weights = training.learner.current
    steps = outcome.rounds * setup.steps_per_round
    best = Best(setup.policy_file(folder.best))
    last = None
    final = setup.policy_file(folder.final)
    final.write(weights)
    if setup.evaluates:
        report.console.note(f"evaluating the policy of the end over {setup.trial.episodes} episodes")
        last = evaluated(setup, training.layout, weights, setup.trial, setup.config.seed)
        best.offer(weights, last)
        report.log.write(steps, {"time/seconds": outcome.seconds, **evaluation_row(last)})
        final.write(weights, last)
    for trouble in report.log.troubles:
        report.console.note(trouble)
    run = Run(
        directory=folder.path,
        config=setup.config,
        steps=steps,
        seconds=outcome.seconds,
        evaluation=last,
        best_return=best.score,
        digest=training.learner.digest,
        summary=training.program.summary(),
    )
    report.console.finish(_farewell(run))
    return run


def _farewell(run: Run) -> dict[str, str]:
    """What to say at the end: what was reached, how fast, and what to do with it."""
    lines = {"trained": f"{run.steps:,} steps in {run.seconds:.1f} s ({run.steps_per_second:,.0f} a second)"}
    if run.evaluation is not None:
        found = run.evaluation
        lines["evaluated"] = (
            f"{found.mean:.1f} ± {found.std:.1f} over {len(found.returns)} episodes"
            if found.returns
            else f"no episode ended within {run.config.evaluation.max_steps:,} steps"
        )
        if run.best_return is not None and run.best_return > found.mean:
            lines["best"] = f"{run.best_return:.1f}, kept"
    lines["watch"] = f"raceway play {run.directory}"
    return lines
