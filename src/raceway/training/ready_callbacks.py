"""Ready-made callbacks: stopping at a return, schedules, and curricula. They are public as `raceway.callbacks`."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from gymnasium.utils.env_checker import data_equivalence

from raceway.errors import SettingError
from raceway.graph.packing import shown
from raceway.training.callbacks import Callback, Control, Round, reached
from raceway.training.evaluation import Evaluation
from raceway.training.recent import RECENT, RecentEpisodes

Schedule = Callable[[float], float]
"""A value as a function of progress, which is 0 before the first update and 1 at the end of the run."""


class StopAtReturn(Callback):
    """Ends the run when the mean return of the last `episodes` training episodes reaches `value`.

    Only episodes with the same `env_args` count, those of a curriculum's current level for instance. Reproducible: the
    same run always stops after the same round. With the default of 100 episodes it does what the setting
    `stop_at_return` does.
    """

    def __init__(self, value: float, episodes: int = RECENT) -> None:
        if math.isnan(value):
            raise SettingError("StopAtReturn(nan): no return reaches that. Give a number.")
        self.value = value
        self._recent = RecentEpisodes(_at_least_one("StopAtReturn", episodes))

    def on_start(self, control: Control) -> None:
        self._recent = RecentEpisodes(self._recent.size)

    def on_round(self, told: Round, control: Control) -> None:
        self._recent.add(told.episodes, told.env_args)
        if self._recent.has_reached(self.value):
            control.stop(reached(self._recent, f"{self.value:g}"))

    def save(self) -> dict[str, Any]:
        return self._recent.save()

    def load(self, state: Mapping[str, Any]) -> None:
        self._recent.load(state)


class LearningRateSchedule(Callback):
    """Sets the learning rate of every update, from the first on, to `schedule(progress)`.

    schedule: `linear`, `cosine`, `steps`, `piecewise`, or any function of progress (0 to 1).

    It needs `lr_schedule="constant"`, the default.
    """

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = _numbers("LearningRateSchedule", schedule)

    def on_start(self, control: Control) -> None:
        control.learning_rate = self._schedule(0.0)

    def on_round(self, told: Round, control: Control) -> None:
        control.learning_rate = self._schedule(told.progress)


class EntropySchedule(Callback):
    """Sets the weight of the entropy bonus (`ent_coef`) of every update, from the first on, to `schedule(progress)`.

    schedule: `linear`, `cosine`, `steps`, `piecewise`, or any function of progress (0 to 1).
    """

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = _numbers("EntropySchedule", schedule)

    def on_start(self, control: Control) -> None:
        control.ent_coef = self._schedule(0.0)

    def on_round(self, told: Round, control: Control) -> None:
        control.ent_coef = self._schedule(told.progress)


class Curriculum(Callback):
    """Trains on one level after the other: the next one begins when the return reaches a threshold.

    levels: the environment's arguments at each level, beside those of the settings; easiest first.
    threshold: the return that completes a level: one for all, or one for each but the last.
    by: "evaluation": the mean return of an evaluation on the level. Evaluations are done when they are done, so when a
        level begins depends on timing. "training": the mean return of the last `episodes` training episodes on the
        level, which is reproducible.

    Evaluations are made on the level that the policy was trained on.
    """

    def __init__(
        self,
        levels: Sequence[Mapping[str, Any]],
        threshold: float | Sequence[float],
        *,
        by: Literal["evaluation", "training"] = "evaluation",
        episodes: int = RECENT,
    ) -> None:
        self.levels = [dict(level) for level in levels]
        if len(self.levels) < 2:
            raise SettingError(f"Curriculum: {len(self.levels)} levels leave nothing to advance to. Give two or more.")
        self.thresholds = _thresholds(threshold, len(self.levels))
        if by not in ("evaluation", "training"):
            raise SettingError(f"Curriculum(by={shown(by)}): levels are completed by 'evaluation' or by 'training'.")
        self.by = by
        """What completes a level: "evaluation" or "training"."""
        self._recent = RecentEpisodes(_at_least_one("Curriculum", episodes))
        self.level = 0
        """The level that is trained on, from 0."""

    def on_start(self, control: Control) -> None:
        self._begin(0, control)

    def on_round(self, told: Round, control: Control) -> None:
        if self.by != "training" or self._is_last or not data_equivalence(dict(told.env_args), self._args):
            return
        self._recent.add(told.episodes)
        if self._recent.has_reached(self.thresholds[self.level]):
            self._advance(control, f"training return {self._recent.return_mean:.1f}", told.steps)

    def on_evaluation(self, found: Evaluation, control: Control) -> None:
        if self.by != "evaluation" or self._is_last or not data_equivalence(found.env_args or {}, self._args):
            return
        if found.mean >= self.thresholds[self.level]:  # NaN, the mean of no episodes, is not
            self._advance(control, f"evaluation {found.mean:.1f}", found.steps)

    @property
    def place(self) -> str:
        """The current level, in words."""
        return f"level {self.level + 1} of {len(self.levels)}, {shown(self._args)}"

    @property
    def _args(self) -> dict[str, Any]:
        return self.levels[self.level]

    @property
    def _is_last(self) -> bool:
        return self.level == len(self.levels) - 1

    def _advance(self, control: Control, why: str, steps: int) -> None:
        self._begin(self.level + 1, control)
        control.note(f"{self.place}, after {steps:,} steps: {why}")

    def _begin(self, level: int, control: Control) -> None:
        self.level = level
        self._recent = RecentEpisodes(self._recent.size)
        control.env_args = dict(self._args)

    def save(self) -> dict[str, Any]:
        return {"level": self.level, "recent": self._recent.save()}

    def load(self, state: Mapping[str, Any]) -> None:
        level = int(state["level"])
        if not 0 <= level < len(self.levels):
            raise ValueError(f"level {level + 1} of a curriculum of {len(self.levels)}")
        self.level = level
        self._recent.load(state["recent"])


def curricula(callbacks: Sequence[Callback]) -> list[Curriculum]:
    """Those of the callbacks that are curricula."""
    return [each for each in callbacks if isinstance(each, Curriculum)]


def linear(start: float, end: float = 0.0) -> Schedule:
    """From `start` to `end` in a straight line."""
    return lambda progress: start + (end - start) * progress


def cosine(start: float, end: float = 0.0) -> Schedule:
    """From `start` to `end` along half a cosine: slowly at first and at last."""
    return lambda progress: end + (start - end) * (1 + math.cos(math.pi * progress)) / 2


def steps(values: Mapping[float, float]) -> Schedule:
    """Constant between steps: `{0: 1e-3, 0.5: 1e-4}` is 1e-3 in the first half of the run, 1e-4 in the second."""
    places, heights = _points("steps", values)
    return lambda progress: heights[bisect.bisect_right(places, progress) - 1]


def piecewise(values: Mapping[float, float]) -> Schedule:
    """Straight lines between points: `{0: 0, 0.1: 1e-3, 1: 0}` rises for a tenth of the run, then falls to its end."""
    places, heights = _points("piecewise", values)

    def value(progress: float) -> float:
        after = bisect.bisect_right(places, progress)
        if after == len(places):
            return heights[-1]
        left, right = places[after - 1], places[after]
        share = (progress - left) / (right - left)
        return heights[after - 1] + (heights[after] - heights[after - 1]) * share

    return value


def _points(name: str, values: Mapping[float, float]) -> tuple[list[float], list[float]]:
    """Progress and values, in order."""
    places = sorted(values)
    if not places or places[0] != 0 or not all(0 <= place <= 1 for place in places):
        raise SettingError(
            f"{name}({shown(dict(values))}): give values by progress, from 0 to 1, the first one at 0: "
            "{0: 1e-3, 0.5: 1e-4}."
        )
    return [float(place) for place in places], [float(values[place]) for place in places]


def _numbers(name: str, schedule: Any) -> Schedule:
    if not callable(schedule):
        raise SettingError(
            f"{name}({shown(schedule)}): give a function of progress, such as linear(1e-3, 0.0) of raceway.callbacks."
        )

    def value(progress: float) -> float:
        given = schedule(progress)
        try:
            return float(given)
        except (TypeError, ValueError, OverflowError):
            raise SettingError(
                f"{name}: its schedule gives {shown(given)} at progress {progress:g}. Return a number."
            ) from None

    return value


def _at_least_one(name: str, episodes: int) -> int:
    if episodes < 1:
        raise SettingError(f"{name}(episodes={episodes}): give how many episodes the mean is of, from 1 up.")
    return episodes


def _thresholds(given: float | Sequence[float], levels: int) -> list[float]:
    each = [float(one) for one in given] if isinstance(given, Sequence) else [float(given)] * (levels - 1)
    if len(each) != levels - 1 or any(map(math.isnan, each)):
        raise SettingError(
            f"Curriculum(threshold={shown(given)}): {levels} levels need one threshold for all, or {levels - 1}: one "
            "for each level but the last."
        )
    return each
