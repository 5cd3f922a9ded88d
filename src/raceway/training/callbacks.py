"""Callbacks: what a user's own code may do beside training."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raceway.algos.rollout import Episodes
from raceway.training.evaluation import Evaluation
from raceway.training.recent import RecentEpisodes


@dataclass(frozen=True)
class Round:
    """What a round of training has brought."""

    round: int
    steps: int
    """Environment steps so far."""
    progress: float
    """The part of the run that is over, 0 to 1."""
    episodes: Episodes
    """Those that ended in it: `returns`, `lengths`, `envs`, and the means of the environment's infos."""
    return_mean: float | None
    """Of the last hundred episodes; None before any has ended."""
    metrics: Mapping[str, float]
    """The algorithm's, as docs/metrics.md has them, without `train/`."""


class Control:
    """What a callback may change. Each change holds until the next one."""

    def __init__(self) -> None:
        self.learning_rate: float | None = None
        """Of the next updates; None: as the settings say."""
        self.env_args: dict[str, Any] | None = None
        """The environments' arguments, beside those of the settings. Others: all environments are made anew."""
        self.is_stopping = False

    def stop(self) -> None:
        """Ends the run in a few rounds: always the same ones, if it is said in `on_round`."""
        self.is_stopping = True


class Callback:
    """Override what you need. One method of one callback runs at a time, in one of the run's own threads.

    What `on_round` decides by what it is told is as reproducible as the run itself. Evaluations and checkpoints come
    when they are ready, so what is decided by them depends on timing.
    """

    def on_round(self, told: Round, control: Control) -> None:
        """After every update, before the next one: what takes long here slows the run."""

    def on_evaluation(self, found: Evaluation, control: Control) -> None:
        """When an evaluation is known."""

    def on_checkpoint(self, path: Path, control: Control) -> None:
        """When a checkpoint is on disk."""

    def save(self) -> dict[str, Any]:
        """What it remembers, for checkpoints: numbers, strings, arrays, and lists, tuples and dicts of them."""
        return {}

    def load(self, state: Mapping[str, Any]) -> None:
        """Takes over what `save` gave, when a run is resumed."""


class Director:
    """Calls a run's callbacks, one at a time, and keeps what they have changed."""

    def __init__(self, callbacks: Sequence[Callback] = ()) -> None:
        self.callbacks = list(callbacks)
        self.control = Control()
        self._recent = RecentEpisodes()
        self._lock = threading.RLock()

    def on_round(
        self, round_: int, steps: int, progress: float, episodes: Episodes, metrics: Mapping[str, float]
    ) -> None:
        with self._lock:
            self._recent.add(episodes)
            told = Round(round_, steps, progress, episodes, self._recent.return_mean, metrics)
            for callback in self.callbacks:
                callback.on_round(told, self.control)

    def on_evaluation(self, found: Evaluation) -> None:
        with self._lock:
            for callback in self.callbacks:
                callback.on_evaluation(found, self.control)

    def on_checkpoint(self, path: Path) -> None:
        with self._lock:
            for callback in self.callbacks:
                callback.on_checkpoint(path, self.control)

    def save(self) -> dict[str, Any]:
        """What they remember and have changed."""
        with self._lock:
            return {
                "callbacks": [callback.save() for callback in self.callbacks],
                "recent": self._recent.save(),
                **vars(self.control),
            }

    def load(self, state: Mapping[str, Any]) -> None:
        """What `save` gave."""
        with self._lock:
            for callback, its in zip(self.callbacks, state["callbacks"], strict=True):
                callback.load(its)
            self._recent.load(state["recent"])
            rate, env_args = state["learning_rate"], state["env_args"]
            self.control.learning_rate = None if rate is None else float(rate)
            self.control.env_args = None if env_args is None else {str(name): env_args[name] for name in env_args}
            self.control.is_stopping = bool(state["is_stopping"])
