"""`raceway.train` and `raceway.resume`: the ways in. One call, one folder with everything in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from gymnasium.vector import VectorEnv

from raceway.envs.user_native import plain
from raceway.errors import EnvError, MissingPackageError, RunFolderError, SettingError, UserError
from raceway.files import remove, write_json, write_whole
from raceway.graph import GraphError, ReactionError
from raceway.interrupts import keeping_ctrl_c, raise_lost_ctrl_c
from raceway.report.console import Console
from raceway.report.metrics import MetricsLog
from raceway.training.callbacks import Callback, Director, check_control
from raceway.training.checkpointer import Checkpointer
from raceway.training.checkpoints import Checkpoint, Checkpoints, MisfitError, fitting, lock
from raceway.training.compiling import keep_compiled
from raceway.training.config import TrainConfig, savable
from raceway.training.device import choose_device
from raceway.training.ending import Ending, farewell
from raceway.training.environments import EnvSource
from raceway.training.folder import RunFolder
from raceway.training.identity import check_identity, identity_of
from raceway.training.initial import Initial, LearnerShape, read_initial, read_source, write_initial
from raceway.training.outcome import Run, read_outcome
from raceway.training.programs import Report, Training, build, training_sampler
from raceway.training.ready_callbacks import curricula
from raceway.training.rescue import Rescue
from raceway.training.resolve import resolve, with_whole_paths
from raceway.training.resuming import (
    check_arguments,
    check_callbacks,
    check_environment,
    check_settings,
    check_system,
    check_weights,
    facts_now,
    new_episodes,
    note_resumption,
    rewind,
)
from raceway.training.run_source import check_is_made, network_of_run, portable, source_of_run, with_lane_for
from raceway.training.settings import replaced
from raceway.training.setup import Setup
from raceway.training.stuck import StuckHeader
from raceway.training.trust import ArgumentsGuard, remember_arguments, remember_code
from raceway.training.user_network import name_of_network, network_of


@keeping_ctrl_c()
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
    network: your own network as a pair (init, apply), see `raceway.algos.networks.UserNetwork`, or the name of one,
        "package.module:pair". A dict is settings.
    callbacks: code that is told of rounds, evaluations and checkpoints: of your own (`raceway.Callback`) or ready-made
        (`raceway.callbacks`).
    settings: total_steps, num_envs, seed, schedule, ... and hyperparameters, such as learning_rate, under the names of
        SB3 or CleanRL. `raceway train --help` names them all.
    """
    if isinstance(network, Mapping):  # settings of the network, as for the other groups
        settings["network"], network = network, None
    elif network is not None:
        settings["network.custom"] = name_of_network(network)
    env = plain(env)
    if isinstance(env, VectorEnv):
        settings.setdefault("num_envs", env.num_envs)
    elif isinstance(env, (list, tuple)):
        settings.setdefault("num_envs", max(1, len(env)))
    config = resolve(env, config_file, **settings)
    check_is_made(env, config.env_args)
    pair = network_of(config.network.custom if network is None else network)
    remember_code(savable(config))
    target = portable(config.env if isinstance(env, str) else env)
    setup = _set_up(config, EnvSource(target, config.env_args), pair)
    director = _directing(setup, callbacks)
    initial = _initial_weights(setup)
    folder = RunFolder.at(config)
    with lock(folder.path):
        folder.check_links()
        if folder.is_begun:
            check_settings(folder, config)
        else:
            folder.begin(config, None if initial is None else write_initial(folder, initial, _learner_shape(setup)))
        return _go(setup, folder, director, Resumption())


@keeping_ctrl_c()
def resume(
    run: str | os.PathLike[str],
    *,
    anyway: bool = False,
    total_steps: int | None = None,
    stop_at_return: float | Literal["as before"] | None = "as before",
    env: Any = None,
    env_args: Mapping[str, Any] | None = None,
    network: Any = None,
    callbacks: Sequence[Callback] = (),
    trust: bool = False,
    quiet: bool | None = None,
) -> Run:
    """Goes on with a run from its last checkpoint, to the bit as if it had never been stopped. A finished one says so.

    anyway: even under other versions, on another CPU, with changed code or other `env_args`, where the bits differ from
        there on.
    total_steps: train for this many steps in all; a run that was finished goes on if that is more.
    stop_at_return: stop at another training return from now on, or at none (None). A run that stopped at one goes on.
    env: the environment that the run was begun with, if it cannot be found by its name; anything that `train` takes.
    env_args: keyword arguments of the environment, over those of the run: objects that its folder could not hold.
    network: the (init, apply) pair of a run with a network of your own, or its name, "package.module:pair".
    callbacks: those that the run was begun with.
    trust: calls the code that the folder names for its environment, even if nothing was trained with it here.
    quiet: whether to say nothing. None: as the run was begun.
    """
    folder = RunFolder.open(run)
    with lock(folder.path):
        folder.check_links()
        saved = folder.read_config()
        config = saved if total_steps is None else replace(saved, total_steps=total_steps)
        if stop_at_return != "as before":
            config = replaced(config, {"stop_at_return": stop_at_return})
        env_args = with_whole_paths(config, env_args or {})
        network = network_of_run(folder, config, "resume", network)
        source = source_of_run(folder, config, "resume", env=env, env_args=env_args, trust=trust)
        changes = [
            *check_environment(folder, config, source, anyway),
            *check_arguments(folder, config, env_args, anyway),
        ]
        if env_args:
            config = replace(config, env_args={**config.env_args, **env_args})
        wanted = replace(with_lane_for(source, config), env_args=dict(source.args))
        if quiet is not None:
            wanted = replace(wanted, log=replace(wanted.log, quiet=quiet))
        setup = _set_up(wanted, source, network)
        if env is None and not trust:
            setup = replace(setup, guard=ArgumentsGuard(folder, config))
        has_new_end = total_steps is not None or stop_at_return != "as before"
        director = _directing(setup, callbacks, has_new_end=has_new_end)
        kept = config if config.to_dict() != saved.to_dict() else None
        # What the caller gives says nothing about what the folder names.
        code = savable(config) if env is None or env == config.env else None
        return _go(setup, folder, director, Resumption(kept, anyway, has_new_end, changes, code))


def _set_up(config: TrainConfig, source: EnvSource, network: Any) -> Setup:
    """What is refused leaves no folder behind."""
    if network is not None and config.network.gru is not None:
        raise SettingError(
            f"network.gru={config.network.gru} is for the built-in network, but your own is given. Leave one out."
        )
    choose_device(config.device)
    keep_compiled()
    setup = Setup.of(config, source, network)
    setup.check_memory()
    training_sampler(setup, setup.algorithm().native_layout())
    return setup


def _directing(setup: Setup, callbacks: Sequence[Callback], *, has_new_end: bool = False) -> Director:
    """Starts the callbacks. What they cannot have is refused before there is a folder."""
    on_args = partial(remember_arguments, setup.config)
    director = Director(callbacks, setup.config.stop_at_return, has_new_end=has_new_end, on_args=on_args)
    check_control(director.control, setup.config.algorithm)
    for curriculum in curricula(callbacks):
        for level in curriculum.levels:
            setup.check_args(level)
        if curriculum.by == "evaluation" and not setup.evaluates:
            raise SettingError(
                "Curriculum(by='evaluation') advances by evaluations, but evaluation is off. Use by='training', or "
                "turn evaluation on (evaluation={'enabled': True})."
            )
    return director


def _initial_weights(setup: Setup) -> Initial | None:
    """Those of `init_from`, for a run that has none yet: one that is begun has a copy."""
    config = setup.config
    there = None if config.log.name is None else RunFolder(RunFolder.parent_for(config) / config.log.name)
    if config.init_from is None or (there is not None and there.is_begun):
        return None
    return read_source(config.init_from, _learner_shape(setup))


def _learner_shape(setup: Setup) -> LearnerShape:
    num_params = setup.algorithm().network.num_params
    spaces = setup.observation_space, setup.action_space
    return LearnerShape(setup.config, *spaces, num_params, has_own_network=setup.network is not None)


@dataclass(frozen=True)
class Resumption:
    """What is to be different from now on in a run that goes on."""

    settings: TrainConfig | None = None
    """The settings for its folder, if they change."""
    anyway: bool = False
    """Goes on where the bits differ, too."""
    has_new_end: bool = False
    changes: Sequence[str] = ()
    """What differs in its environments, in words."""
    code: TrainConfig | None = None
    """Settings that name code to be known from now on, if the run goes on."""


def _go(setup: Setup, folder: RunFolder, director: Director, resumption: Resumption) -> Run:
    """From its last checkpoint, or else from the beginning, to its end."""
    with _disk_errors_told(folder):
        return _go_on(setup, folder, director, resumption)


def _go_on(setup: Setup, folder: RunFolder, director: Director, resumption: Resumption) -> Run:
    config = setup.config
    console = Console(*_headline(setup, folder), quiet=config.log.quiet, interval_s=config.log.interval_s)
    finished = read_outcome(folder)
    if finished is not None and not resumption.has_new_end:
        with console:
            console.finish(farewell(setup, finished, f"finished before: {finished.steps:,} steps"))
        return finished
    checkpoints = Checkpoints(folder.checkpoints, config.checkpoint.keep)
    checkpoint = checkpoints.newest()
    differences = list(resumption.changes)
    if checkpoint is not None:
        differences += check_identity(checkpoint.path, checkpoint.facts.get("run"), config, resumption.anyway)
        check_callbacks(checkpoint, len(director.callbacks))
        with _fitting(checkpoint), fitting("learner"):
            setup.algorithm().load(checkpoint.snapshot.reactors["learner"]["algorithm"])
        differences += check_system(folder, setup.source, resumption.anyway)
    begins_anew = checkpoint is None and config.init_from is not None
    initial = read_initial(folder, _learner_shape(setup)) if begins_anew else None
    if resumption.has_new_end:
        _check_end(setup, folder, checkpoint, finished)
    # Nothing refuses it any more: from here on the folder is changed.
    if resumption.code is not None:
        remember_code(resumption.code, with_network=False)
    if resumption.settings is not None:
        write_json(folder.config, resumption.settings.to_dict())
    if resumption.has_new_end:
        remove(folder.outcome)
    if differences or checkpoint is None:
        write_json(folder.system, facts_now(folder, setup.source))  # what it goes on under
    troubles = [*checkpoints.troubles, *rewind(folder, checkpoint, setup.steps_per_round)]
    if checkpoint is None and folder.graph.exists():
        troubles.append("begins again: it was stopped before its first checkpoint")
    log = MetricsLog(folder.path, tensorboard=config.log.tensorboard, wandb_project=config.log.wandb_project)
    with log, console, Rescue(folder, console.trouble) as rescue:
        report = Report(folder, log, console, rescue)

        def on_resumed(lost: list[int] | None) -> None:
            assert checkpoint is not None
            note_resumption(folder, checkpoint, differences, lost)
            console.note(_welcome_back(setup, checkpoint, differences, lost))

        director.control.print_notes_with(console.note)
        training = build(setup, report, director, on_resumed, initial)
        if checkpoint is not None:
            _restore(training, checkpoint)
        for trouble in troubles:
            console.trouble(trouble)
        for note in (*setup.notes(), *([] if initial is None else [f"begins with the weights of {initial.source}"])):
            console.note(note)
        return _run(setup, report, training, checkpoints, checkpoint, has_callbacks=bool(director.callbacks))


def _check_end(setup: Setup, folder: RunFolder, checkpoint: Checkpoint | None, finished: Run | None) -> None:
    """Refuses an end that is behind the run already: it may train longer, or shorter, or to another return."""
    wanted, rounds = setup.config.total_steps, 0 if checkpoint is None else checkpoint.round + 1
    if setup.rounds < rounds or (finished is not None and wanted <= finished.steps):
        behind = rounds * setup.steps_per_round if finished is None else finished.steps
        raise SettingError(f"total_steps={wanted}, but {folder.path} has {behind} behind it already.")
    if finished is not None and checkpoint is None:
        raise SettingError(f"{folder.path} is finished and has no checkpoint to go on from. Begin another run.")


@contextmanager
def _disk_errors_told(folder: RunFolder) -> Iterator[None]:
    """A full disk and the like, whenever it is noticed, is one message."""
    try:
        yield
    except OSError as error:
        if isinstance(error, UserError):
            raise
        raise RunFolderError(f"{error.filename or folder.path} cannot be written: {error.strerror}.") from None


def _headline(setup: Setup, folder: RunFolder) -> tuple[str, str]:
    config = setup.config
    return (
        f"{setup.source.name}  {config.algo}  {config.schedule}  seed {config.seed}",
        f"{config.num_envs} environments x {config.algorithm.n_steps} steps  {folder.path}",
    )


def _restore(training: Training, checkpoint: Checkpoint) -> None:
    """Lets the program begin at a checkpoint."""
    with _fitting(checkpoint):
        training.program.restore(checkpoint.snapshot)
        training.learner.load_weights(checkpoint.snapshot.reactors["learner"])  # what does not fit is told at once
        check_weights(checkpoint, training.learner.current)


@contextmanager
def _fitting(checkpoint: Checkpoint) -> Iterator[None]:
    """Names the checkpoint where it does not fit: it is damaged, or the environment or network is another one."""
    try:
        yield
    except (GraphError, RunFolderError, KeyError, TypeError) as error:
        raise RunFolderError(f"{checkpoint.path} does not fit the run that it is in: {error}") from None


def _welcome_back(setup: Setup, checkpoint: Checkpoint, differences: Sequence[str], lost: list[int] | None) -> str:
    steps = (checkpoint.round + 1) * setup.steps_per_round
    text = f"goes on after {steps:,} steps"
    if differences:
        text += f", with changes: {', '.join(differences)}"
    if lost is None:
        text += ", with new episodes: its environments have no get_state() and set_state()"
    elif lost:
        text += f". Of its environments {new_episodes(lost)}"
    return text


def _run(
    setup: Setup,
    report: Report,
    training: Training,
    checkpoints: Checkpoints,
    start: Checkpoint | None,
    has_callbacks: bool = False,
) -> Run:
    folder, config = report.folder, setup.config
    checkpointer = Checkpointer(
        checkpoints,
        report.rescue,
        facts={"steps_per_round": setup.steps_per_round, "run": identity_of(config)},
        interval_s=config.checkpoint.interval_s,
        logs=(folder.chain, folder.metrics),
        on_written=training.director.on_checkpoint,
        on_trouble=report.console.trouble,
    )
    if start is not None:
        checkpointer.last = start.round
    ending = Ending(setup, report, training)
    run = partial(training.program.run, on_loss=ending.tell_loss, is_stuck=StuckHeader(report.console.note))
    left = max(0, setup.rounds - (start.round + 1 if start is not None else 0))
    try:
        drawing = training.program.draw()
        write_whole(folder.graph, drawing.svg.encode())
        write_whole(folder.mermaid, drawing.mermaid.encode())
        raise_lost_ctrl_c()
        if config.checkpoint.enabled:
            with checkpointer.watch(training.program):
                outcome = run(left, snapshot_at_end=True, on_snapshot=checkpointer.write)
        else:
            outcome = run(left)
        if report.rescue.look():
            raise RunFolderError(f"{report.rescue.why}.")
        return ending.finish(outcome)
    except BaseException as error:
        ending.keep_what_there_is(error, has_callbacks)
        cause = error.__cause__ if isinstance(error, ReactionError) else None
        misfit = error if isinstance(error, GraphError) else cause if isinstance(cause, MisfitError) else None
        if misfit is not None and start is not None:
            raise RunFolderError(f"{start.path} does not fit the run that it is in: {misfit}") from None
        if isinstance(cause, (RunFolderError, SettingError, EnvError, MissingPackageError)):
            raise cause from None
        raise
