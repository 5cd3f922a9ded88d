"""`raceway.train` and `raceway.resume`: the ways in. One call, one folder with everything in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gymnasium.vector import VectorEnv

from raceway.envs.user_native import plain
from raceway.errors import EnvError, RunFolderError, SettingError, UserError
from raceway.graph import GraphError, Outcome, ReactionError
from raceway.report.console import Console
from raceway.report.metrics import MetricsLog
from raceway.training.callbacks import Callback
from raceway.training.checkpointer import Checkpointer
from raceway.training.checkpoints import Checkpoint, Checkpoints, MisfitError, lock
from raceway.training.compiling import keep_compiled
from raceway.training.config import TrainConfig
from raceway.training.device import choose_device
from raceway.training.environments import EnvSource
from raceway.training.folder import RunFolder, write_json, write_whole
from raceway.training.outcome import Run, read_outcome, write_outcome
from raceway.training.policy_files import Best
from raceway.training.programs import Report, Setup, Training, build, evaluated, training_sampler
from raceway.training.reporter import Reporter, evaluation_row
from raceway.training.resolve import resolve
from raceway.training.resuming import (
    check_callbacks,
    check_settings,
    check_system,
    check_weights,
    new_episodes,
    note_resumption,
    rewind,
)
from raceway.training.trust import check_code, remember_code


def train(
    env: str | os.PathLike[str] | Callable[..., Any] | Sequence[Callable[..., Any]] | VectorEnv,
    *,
    config_file: str | os.PathLike[str] | None = None,
    network: Any = None,
    callbacks: Sequence[Callback] = (),
    **settings: Any,
) -> Run:
    """Trains an agent. A run of the same name (`log={"name": ...}`) that is there already goes on where it was.

    env: a name (`raceway list envs`), any Gymnasium id, `"package.module:callable"`, the path of a native environment
        of your own (see `raceway.load_native`), a callable that makes a Gymnasium environment, a list of such callables
        that take turns, or a vector environment.
    config_file: settings from a JSON or TOML file, such as the config.json of another run.
    network: your own network as a pair (init, apply): see `raceway.algos.networks.UserNetwork`. A dict is settings.
    callbacks: code of your own that hears of rounds, evaluations and checkpoints: see `raceway.Callback`.
    settings: total_steps, num_envs, seed, schedule, ... and hyperparameters, such as learning_rate, under the names of
        SB3 or CleanRL. `raceway train --help` names them all.
    """
    if isinstance(network, Mapping):  # settings of the network, as for the other groups
        settings["network"], network = network, None
    env = plain(env)
    if isinstance(env, VectorEnv):
        settings.setdefault("num_envs", env.num_envs)
    elif isinstance(env, (list, tuple)):
        settings.setdefault("num_envs", max(1, len(env)))
    config = resolve(env, config_file, **settings)
    if isinstance(env, VectorEnv) and config.env_args:
        raise SettingError(
            f"env_args={config.env_args}, but the vector environment that was given is there already. Give them where "
            "it is made."
        )
    remember_code(config)
    setup = _set_up(config, env if not isinstance(env, str) else config.env, network)
    folder = RunFolder.at(config)
    with lock(folder.path):
        if folder.is_begun:
            check_settings(folder, config)
        else:
            folder.begin(config)
        return _go(setup, folder, callbacks, anyway=False)


def resume(
    run: str | os.PathLike[str],
    *,
    anyway: bool = False,
    total_steps: int | None = None,
    env: Any = None,
    network: Any = None,
    callbacks: Sequence[Callback] = (),
    trust: bool = False,
    quiet: bool | None = None,
) -> Run:
    """Goes on with a run from its last checkpoint, to the bit as if it had never been stopped. A finished one says so.

    anyway: even under other versions, or on another CPU, where the bits differ from there on.
    total_steps: train for so many steps in all; a run that was finished goes on if that is more.
    env, network, callbacks: those that the run was begun with, if no name leads to them.
    trust: calls the code that the folder names for its environment, even if nothing was trained with it here.
    quiet: whether to say nothing. None: as the run was begun.
    """
    folder = RunFolder.open(run)
    with lock(folder.path):
        config = folder.read_config()
        if total_steps is not None:
            config = replace(config, total_steps=total_steps)
        if quiet is not None:
            config = replace(config, log=replace(config.log, quiet=quiet))
        lost = [name for name, value in config.env_args.items() if _is_lost(value)]
        if lost and env is None:
            raise SettingError(
                f"{folder.path} was begun with arguments for its environment that a file cannot hold: "
                f"{', '.join(lost)}. Give the environment itself: raceway.resume(run, env=lambda: ...)."
            )
        config = replace(config, env_args={name: it for name, it in config.env_args.items() if name not in lost})
        if env is None:
            check_code(folder, config, trust)
        setup = _set_up(config, config.env if env is None else plain(env), network)
        return _go(setup, folder, callbacks, anyway, has_new_length=total_steps is not None)


def _is_lost(value: Any) -> bool:
    return isinstance(value, Mapping) and set(value) == {"not saved"}


def _set_up(config: TrainConfig, target: Any, network: Any) -> Setup:
    """What is refused leaves no folder behind."""
    if network is not None and config.network.gru is not None:
        raise SettingError(
            f"network.gru={config.network.gru} is for the built-in network, but your own is given. Leave one out."
        )
    choose_device(config.device)
    keep_compiled()
    setup = Setup.of(config, EnvSource(target, config.env_args), network)
    training_sampler(setup, setup.algorithm().native_layout())
    return setup


def _go(
    setup: Setup, folder: RunFolder, callbacks: Sequence[Callback], anyway: bool, has_new_length: bool = False
) -> Run:
    """From its last checkpoint, or else from the beginning, to its end."""
    config = setup.config
    console = Console(*_headline(setup, folder), quiet=config.log.quiet, interval_s=config.log.interval_s)
    finished = read_outcome(folder)
    if finished is not None and not has_new_length:
        with console:
            console.finish(_farewell(finished, f"finished before: {finished.steps:,} steps"))
        return finished
    checkpoints = Checkpoints(folder.checkpoints, config.checkpoint.keep)
    checkpoint = checkpoints.newest()
    differences: list[str] = []
    if checkpoint is not None:
        check_callbacks(checkpoint, len(callbacks))
        differences = check_system(folder, anyway)
    if has_new_length:
        _set_length(setup, folder, checkpoint)
    troubles = [*checkpoints.troubles, *rewind(folder, checkpoint)]
    if checkpoint is None and folder.graph.exists():
        troubles.append("begins again: it was stopped before its first checkpoint")
    log = MetricsLog(folder.path, tensorboard=config.log.tensorboard, wandb_project=config.log.wandb_project)
    with log, console:
        report = Report(folder, log, console)

        def on_resumed(lost: list[int] | None) -> None:
            assert checkpoint is not None
            note_resumption(folder, checkpoint, differences, lost)
            console.note(_welcome_back(setup, checkpoint, differences, lost))

        training = build(setup, report, callbacks, on_resumed)
        if checkpoint is not None:
            _restore(training, checkpoint)
        for trouble in troubles:
            console.trouble(trouble)
        if unheeded := setup.unheeded():
            console.note(unheeded)
        return _run(setup, report, training, checkpoints, checkpoint)


def _set_length(setup: Setup, folder: RunFolder, checkpoint: Checkpoint | None) -> None:
    """Has the run train for more steps, or fewer that are not behind it yet."""
    wanted, rounds = setup.config.total_steps, 0 if checkpoint is None else checkpoint.round + 1
    finished = read_outcome(folder)
    if setup.rounds < rounds or (finished is not None and wanted <= finished.steps):
        behind = rounds * setup.steps_per_round if finished is None else finished.steps
        raise SettingError(f"total_steps={wanted}, but {folder.path} has {behind} behind it already.")
    if finished is not None and checkpoint is None:
        raise SettingError(f"{folder.path} is finished and has no checkpoint to go on from. Begin another run.")
    write_json(folder.config, replace(folder.read_config(), total_steps=wanted).to_dict())
    folder.outcome.unlink(missing_ok=True)


def _headline(setup: Setup, folder: RunFolder) -> tuple[str, str]:
    config = setup.config
    return (
        f"{setup.source.name}  {config.algo}  {config.schedule}  seed {config.seed}",
        f"{config.num_envs} environments x {config.algorithm.n_steps} steps  {folder.path}",
    )


def _restore(training: Training, checkpoint: Checkpoint) -> None:
    """Lets the program begin at a checkpoint."""
    try:
        training.program.restore(checkpoint.snapshot)
        training.learner.load_weights(checkpoint.snapshot.reactors["learner"])  # what does not fit is told at once
        check_weights(checkpoint, training.learner.current)
    except (GraphError, RunFolderError, KeyError, TypeError) as error:
        raise RunFolderError(f"{checkpoint.path} does not fit the run that it is in: {error}") from None


def _welcome_back(setup: Setup, checkpoint: Checkpoint, differences: Sequence[str], lost: list[int] | None) -> str:
    steps = (checkpoint.round + 1) * setup.steps_per_round
    text = f"goes on after {steps:,} steps"
    if differences:
        text += f", under other conditions: {', '.join(differences)}"
    if lost is None:
        text += ", with new episodes: its environments have no get_state() and set_state()"
    elif lost:
        text += f". Of its environments {new_episodes(lost)}"
    return text


def _run(setup: Setup, report: Report, training: Training, checkpoints: Checkpoints, start: Checkpoint | None) -> Run:
    folder, config = report.folder, setup.config
    drawing = training.program.draw()
    write_whole(folder.graph, drawing.svg.encode())
    write_whole(folder.mermaid, drawing.mermaid.encode())
    checkpointer = Checkpointer(
        checkpoints,
        facts={"steps_per_round": setup.steps_per_round},
        interval_s=config.checkpoint.interval_s,
        logs=(folder.chain, folder.metrics),
        on_written=training.director.on_checkpoint,
        on_trouble=report.console.trouble,
    )
    if start is not None:
        checkpointer.last = start.round
    left = max(0, setup.rounds - (start.round + 1 if start is not None else 0))
    try:
        if config.checkpoint.enabled:
            with checkpointer.watch(training.program):
                outcome = training.program.run(left, snapshot_at_end=True, on_snapshot=checkpointer.write)
        else:
            outcome = training.program.run(left)
        return _finish(setup, report, training, outcome)
    except BaseException as error:
        _keep_what_there_is(setup, report, training, checkpointer, error)
        cause = error.__cause__ if isinstance(error, ReactionError) else None
        misfit = error if isinstance(error, GraphError) else cause if isinstance(cause, MisfitError) else None
        if misfit is not None and start is not None:
            raise RunFolderError(f"{start.path} does not fit the run that it is in: {misfit}") from None
        if isinstance(cause, (RunFolderError, SettingError, EnvError)):
            raise cause from None
        raise


def _keep_what_there_is(
    setup: Setup, report: Report, training: Training, checkpointer: Checkpointer, error: BaseException
) -> None:
    """However a run ends, what was learnt so far is not lost."""
    weights = training.learner.current
    why = {KeyboardInterrupt: "Interrupted", SystemExit: "Told to end"}.get(type(error), "Stopped by an error")
    if weights.version == 0:
        report.console.finish(f"{why} before the first update.")
        return
    lines = {"stopped": f"{why} after {weights.version * setup.steps_per_round:,} steps"}
    try:
        file = setup.policy_file(report.folder.final)
        if file.version != weights.version:
            file.write(weights)
        lines["policy"] = str(file.directory)
    except (OSError, UserError) as trouble:
        lines["policy"] = f"it could not be written: {trouble}"
    if checkpointer.last is not None:
        lines["go on"] = f"raceway resume {report.folder.path}"
    report.console.finish(lines)


def _finish(setup: Setup, report: Report, training: Training, outcome: Outcome) -> Run:
    """Evaluates the policy of the end, and keeps it."""
    folder = report.folder
    weights = training.learner.current
    steps = outcome.rounds * setup.steps_per_round
    seconds = outcome.seconds + (training.reporter.earlier_s if training.reporter is not None else 0.0)
    best = Best(setup.policy_file(folder.best))
    last = None
    final = setup.policy_file(folder.final)
    final.write(weights)
    if setup.evaluates:
        report.console.note(f"evaluating the policy of the end over {setup.trial.episodes} episodes")
        last = evaluated(setup, training.layout, weights, setup.trial, setup.config.seed)
        best.offer(weights, last)
        report.log.write(steps, {"time/seconds": seconds, **evaluation_row(last)})
        final.write(weights, last)
    for trouble in report.log.troubles:
        report.console.note(trouble)
    run = Run(
        directory=folder.path,
        config=setup.config,
        steps=steps,
        seconds=seconds,
        evaluation=last,
        best_return=best.score,
        digest=training.learner.digest,
        summary=training.program.summary(),
    )
    write_outcome(folder, run)
    report.console.finish(_farewell(run, f"{run.steps:,} steps", training.reporter))
    return run


def _farewell(run: Run, steps: str, reporter: Reporter | None = None) -> dict[str, str]:
    """What to say at the end: what was reached, how fast, and what to do with it."""
    lines = {"trained": f"{steps} in {run.seconds:.1f} s ({run.steps_per_second:,.0f} a second)"}
    if reporter is not None and (reporter.env_faults or reporter.worker_faults):
        lines["faults"] = (
            f"environments were made anew {reporter.env_faults} times, workers started again {reporter.worker_faults} "
            "times"
        )
    if run.result:
        lines["evaluated"] = run.result
        if run.best_return is not None and run.evaluation is not None and run.best_return > run.evaluation.mean:
            lines["best"] = f"{run.best_return:.1f}, kept"
    lines["watch"] = f"raceway play {run.directory}"
    return lines
