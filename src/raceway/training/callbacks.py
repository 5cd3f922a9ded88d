"""Callbacks: code that is told of a run's rounds, evaluations and checkpoints, and may change the run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.utils.env_checker import data_equivalence

from raceway.algos.configs import MOST_FLOAT, AlgorithmConfig
from raceway.algos.rollout import Collected, Episodes
from raceway.errors import SettingError
from raceway.messages import quoted
from raceway.training.evaluation import Evaluation
from raceway.training.recent import RecentEpisodes


@dataclass(frozen=True)
class Round:
    """What happened in a round of training."""

    round: int
    steps: int
    """Environment steps so far."""
    progress: float
    """The fraction of the run that is over, 0 to 1."""
    episodes: Episodes
    """Those that ended in it: `returns`, `lengths`, `envs`, and the means of the environment's infos."""
    return_mean: float | None
    """Mean return of the last hundred episodes with these `env_args`; None before any has ended."""
    metrics: Mapping[str, float]
    """The algorithm's metrics, as in docs/metrics.md, without `train/`."""
    env_args: Mapping[str, Any] = field(default_factory=dict)
    """The `control.env_args` that its environments were made with."""


class Control:
    """What a callback may change. Each change holds until the next one."""

    __slots__ = ("_console", "_is_stopped", "ent_coef", "env_args", "is_stopping", "learning_rate", "stop_reason")

    def __init__(self) -> None:
        self.learning_rate: float | None = None
        """Learning rate of the next updates; None: as in the settings."""
        self.ent_coef: float | None = None
        """Weight of the entropy bonus in the next updates; None: as in the settings."""
        self.env_args: dict[str, Any] | None = None
        """Arguments of the environments, over those of the settings. A change remakes all environments."""
        self.is_stopping = False
        self.stop_reason = ""
        self._is_stopped = False
        self._console: Callable[[str], None] | None = None

    def stop(self, reason: str = "") -> None:
        """Ends the run within a few rounds: always after the same number of them, if called in `on_round`.

        reason: shown at the end, and kept as `run.stopped`. That of the first call is: `on_round` is called for the
            last rounds too, and may call this again.
        """
        self.is_stopping = True
        if not self._is_stopped:
            self.stop_reason = reason or "a callback stopped the run"
        self._is_stopped = True

    def note(self, text: str) -> None:
        """Prints a line without disturbing the progress panel. Nothing is printed by a quiet run or in `on_start`."""
        if self._console is not None:
            self._console(text)

    def print_notes_with(self, console: Callable[[str], None]) -> None:
        """Sets where notes go."""
        self._console = console

    def save(self) -> dict[str, Any]:
        """What was changed, for checkpoints."""
        return {name: getattr(self, name) for name in self.__slots__ if not name.startswith("_")}

    def load(self, state: Mapping[str, Any], *, has_new_end: bool = False) -> None:
        """Restores what `save` returned. `has_new_end`: the run is to end elsewhere than before."""
        rate, ent_coef, env_args = (state[name] for name in ("learning_rate", "ent_coef", "env_args"))
        self.learning_rate = None if rate is None else float(rate)
        self.ent_coef = None if ent_coef is None else float(ent_coef)
        self.env_args = None if env_args is None else {str(name): env_args[name] for name in env_args}
        self.is_stopping = bool(state["is_stopping"])
        self.stop_reason = "" if has_new_end else str(state["stop_reason"])
        self._is_stopped = bool(self.stop_reason)


class Callback:
    """Base class of callbacks: override what you need. Methods run one at a time, in one of the run's own threads.

    What `on_round` decides by what it is told is as reproducible as the run itself. Evaluations and checkpoints arrive
    when they are ready, so decisions made there depend on timing.
    """

    def on_start(self, control: Control) -> None:
        """Before the first round: what is set here holds from the first update and the first environments on.

        Also called when a run is resumed, before `load` restores the callback and the control.
        """

    def on_round(self, told: Round, control: Control) -> None:
        """After every update, before the next one: a slow `on_round` slows the run."""

    def on_evaluation(self, found: Evaluation, control: Control) -> None:
        """When an evaluation is done."""

    def on_checkpoint(self, path: Path, control: Control) -> None:
        """When a checkpoint is on disk."""

    def save(self) -> dict[str, Any]:
        """State to keep in checkpoints: numbers, strings, arrays, and lists, tuples and dicts of them."""
        return {}

    def load(self, state: Mapping[str, Any]) -> None:
        """Restores what `save` returned, when a run is resumed."""


class Director:
    """Calls a run's callbacks, one at a time, and keeps what they have changed."""

    def __init__(
        self,
        callbacks: Sequence[Callback] = (),
        stop_at_return: float | None = None,
        *,
        has_new_end: bool = False,
        on_args: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> None:
        """
        has_new_end: the run is resumed to train for longer than before, or to another return.
        on_args: told of other `env_args` that a callback has set, before anything is made with them.
        """
        self.callbacks = _checked(callbacks)
        self._has_new_end = has_new_end
        self.control = Control()
        self._stop_at_return = stop_at_return
        self._recent = RecentEpisodes()
        self._evaluated = 0
        """Version of the last policy whose evaluation the callbacks know.

        Kept with their state, and not with the log of evaluations: an evaluation that is newer than a checkpoint of the
        callbacks is told again after a resume.
        """
        self._lock = threading.RLock()
        self._on_args = on_args
        with self._watching_args():
            for callback in self.callbacks:
                callback.on_start(self.control)

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to ask after a round."""
        return not self.callbacks and self._stop_at_return is None

    def on_round(
        self, round_: int, steps: int, progress: float, collected: Collected, metrics: Mapping[str, float]
    ) -> None:
        """Tells the callbacks of a round, and stops the run if its training return is the one to stop at."""
        with self._lock:
            episodes = collected.episodes
            self._recent.add(episodes, collected.env_args)
            told = Round(round_, steps, progress, episodes, self._recent.return_mean, metrics, collected.env_args)
            with self._watching_args():
                for callback in self.callbacks:
                    callback.on_round(told, self.control)
            if self._stop_at_return is not None and self._recent.has_reached(self._stop_at_return):
                self.control.stop(reached(self._recent, f"stop_at_return={self._stop_at_return:g}"))

    def on_evaluations(self, found: Sequence[Evaluation]) -> None:
        """Tells those of the evaluations that the callbacks do not know yet."""
        with self._lock, self._watching_args():
            for evaluation in found:
                if evaluation.version > self._evaluated:
                    self._evaluated = evaluation.version
                    for callback in self.callbacks:
                        callback.on_evaluation(evaluation, self.control)

    def on_checkpoint(self, path: Path) -> None:
        with self._lock, self._watching_args():
            for callback in self.callbacks:
                callback.on_checkpoint(path, self.control)

    @contextmanager
    def _watching_args(self) -> Iterator[None]:
        before = dict(self.control.env_args or {})
        yield
        args = self.control.env_args
        if self._on_args is None or not args or not isinstance(args, Mapping):  # which is told elsewhere
            return
        if not data_equivalence(dict(args), before):
            self._on_args(args)

    def save(self) -> dict[str, Any]:
        """The state of the callbacks and what they have changed."""
        with self._lock:
            return {
                "callbacks": [callback.save() for callback in self.callbacks],
                "recent": self._recent.save(),
                "evaluated": self._evaluated,
                **self.control.save(),
            }

    def load(self, state: Mapping[str, Any]) -> None:
        """Restores what `save` returned."""
        with self._lock:
            for callback, its in zip(self.callbacks, state["callbacks"], strict=True):
                callback.load(its)
            self._recent.load(state["recent"])
            self._evaluated = int(state["evaluated"])
            self.control.load(state, has_new_end=self._has_new_end)


def _checked(callbacks: Any) -> list[Callback]:
    if isinstance(callbacks, Callback) or not isinstance(callbacks, Sequence):
        raise SettingError(f"callbacks={quoted(callbacks)} is not a list. Give one: callbacks=[...].")
    for each in callbacks:
        if isinstance(each, type) and issubclass(each, Callback):
            raise SettingError(f"callbacks: {each.__name__} is a class. Give an object of it: {each.__name__}(...).")
        if not isinstance(each, Callback):
            raise SettingError(f"callbacks: {quoted(each)} is not a callback. Derive its class from raceway.Callback.")
        _check_names(type(each))
    return list(callbacks)


def _check_names(kind: type[Callback]) -> None:
    """A method `on_rounds` or `on_eval` in place of an event's own would never be called, and nobody would know."""
    events = [name for name in dir(Callback) if name.startswith("on_")]
    unused = [event for event in events if getattr(kind, event) is getattr(Callback, event)]
    for name in sorted({*dir(kind)} - {*events}):
        if not name.startswith("on_") or not callable(getattr(kind, name)):
            continue
        if meant := [event for event in unused if name.startswith(event) or event.startswith(name)]:
            raise SettingError(f"callbacks: {kind.__name__}.{name} is never called. Is {meant[0]} meant?")


def reached(recent: RecentEpisodes, goal: str) -> str:
    """The reason to stop at a training return."""
    return f"the mean return of the last {recent.size} training episodes, {recent.return_mean:.1f}, reached {goal}"


def _is_rate(value: Any) -> bool:
    try:
        return not isinstance(value, str) and 0 <= float(value) <= MOST_FLOAT  # which NaN is not either
    except (TypeError, ValueError, OverflowError):
        return False


def check_control(control: Control, config: AlgorithmConfig) -> None:
    """Refuses what a callback has set if the algorithm cannot use it."""
    rate, ent_coef = control.learning_rate, control.ent_coef
    if control.env_args is not None and not isinstance(control.env_args, Mapping):
        raise SettingError(f"A callback has set env_args={quoted(control.env_args)}. Set a dict, or None.")
    if not isinstance(control.is_stopping, (bool, np.bool_)):
        raise SettingError(f"A callback has set is_stopping={quoted(control.is_stopping)}. Call control.stop().")
    for name, value in (("learning_rate", rate), ("ent_coef", ent_coef)):
        if value is not None and not _is_rate(value):
            raise SettingError(
                f"A callback has set {name}={quoted(value)}. Set a number from 0 to {MOST_FLOAT:g}, or None."
            )
    if rate is not None and config.lr_schedule != "constant":
        raise SettingError(
            f"A callback has set learning_rate={rate:g}, but lr_schedule={config.lr_schedule!r} sets it with every "
            "update. Train with lr_schedule='constant'."
        )
    if ent_coef is not None and not hasattr(config, "ent_coef"):
        algo = type(config).__name__.removesuffix("Config").lower()
        raise SettingError(f"A callback has set ent_coef={ent_coef:g}, but {algo} has no entropy bonus. Leave it out.")
