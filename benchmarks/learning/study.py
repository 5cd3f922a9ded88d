"""What a study is: a matrix of tasks, settings and seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Setting:
    """One column of a study: how each task is trained."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """Passed to `raceway.train`; for SB3, nothing."""
    trainer: str = "raceway"
    """raceway or sb3."""
    alone: bool = False
    """Whether nothing may run beside it: its results depend on timing (the async schedule)."""


@dataclass(frozen=True)
class Task:
    """One row of a study."""

    env: str
    total_steps: int | None = None
    """None: as many as the preset has."""
    options: Mapping[str, Any] = field(default_factory=dict)
    seeds: Sequence[int] | None = None
    """Instead of the study's."""
    algo: str = "ppo"

    @property
    def name(self) -> str:
        """The name of its data file."""
        return self.env if self.algo == "ppo" else f"{self.env}-{self.algo}"


@dataclass(frozen=True)
class Job:
    """One training run of a study."""

    study: str
    task: Task
    setting: Setting
    seed: int

    @property
    def name(self) -> str:
        return f"{self.task.name}, {self.setting.name}, seed {self.seed}"

    @property
    def options(self) -> dict[str, Any]:
        """All that `raceway.train` is called with, besides the environment and where to log."""
        steps = {} if self.task.total_steps is None else {"total_steps": self.task.total_steps}
        return {"algo": self.task.algo, "seed": self.seed, **steps, **self.task.options, **self.setting.options}


@dataclass(frozen=True)
class Study:
    """A question, and the runs that answer it."""

    name: str
    question: str
    tasks: Sequence[Task]
    settings: Sequence[Setting]
    seeds: Sequence[int]
    episodes: int = 0
    """Fresh greedy episodes that the final policy is evaluated over; 0: it is not."""
    speed_steps: int = 0
    """Steps of each turn when speed is measured; 0: it is not."""

    def jobs(self) -> Iterator[Job]:
        """Every run, seed by seed, so that an unfinished study has some of everything. Those to run alone come last."""
        most = max(len(self.seeds_of(task)) for task in self.tasks)
        for alone in (False, True):
            for index in range(most):
                for task in self.tasks:
                    seeds = self.seeds_of(task)
                    for setting in self.settings:
                        if setting.alone == alone and index < len(seeds):
                            yield Job(self.name, task, setting, seeds[index])

    def seeds_of(self, task: Task) -> Sequence[int]:
        return self.seeds if task.seeds is None else task.seeds
