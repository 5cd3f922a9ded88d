"""What is asked of contestants: who runs what, and which ratios are wanted."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.contestants import Setting
from benchmarks.paired import Pair, Plan, compare, measure
from benchmarks.results import Experiment, Section

LIMIT = "bare loop"


@dataclass(frozen=True)
class Question:
    """Who runs what, and which ratios are asked for. The limit runs along with every question."""

    words: str
    settings: Mapping[str, Setting]
    """Contestants by name; the first is the one whose rate stands for the question."""
    pairs: tuple[Pair, ...]
    share_target: float | None = None
    """The least share of the limit that the first contestant must reach."""
    plan: Plan | None = None
    """How much is measured, where it is not what the bench measures of everything."""
    limit: str = LIMIT
    """The kind of contestant that is the limit."""


@dataclass(frozen=True)
class Bench:
    """What a section needs to be measured."""

    plan: Plan
    peers: str
    steps_for_memory: int = 1_000_000
    many_envs: int = 4096
    """Environments in the batch whose size in memory is measured."""
    task_sizes: tuple[int, ...] = (8, 64)
    """Environments in a batch, where every task is measured."""
    match: str = ""
    """Only questions whose words have this are asked."""
    others: Mapping[str, str] = field(default_factory=dict)
    """Interpreters of further peers, by how the names of their kinds begin."""

    def answer(self, question: Question) -> Experiment:
        """Measures one question."""
        first, setting = next(iter(question.settings.items()))
        limit = replace(setting, kind=question.limit, batch_size=None, num_workers=None, fresh=False)
        contestants = [
            setting.contestant(name, self.interpreter(setting.kind))
            for name, setting in {**question.settings, question.limit: limit}.items()
        ]
        plan = question.plan or self.plan
        measurement = measure(contestants, plan)
        pairs = (*question.pairs, Pair(first, question.limit, question.share_target))
        comparisons = [compare(measurement.rates, pair, limit=question.limit) for pair in pairs]
        task = (setting.task, setting.num_envs)
        return Experiment(question.words, first, question.limit, measurement, comparisons, *task, question.plan)

    def section(self, name: str, title: str, about: str, order: int, questions: Sequence[Question]) -> Section:
        """Measures a section's questions, one after the other."""
        asked = [question for question in questions if self.match in question.words]
        experiments = []
        for number, question in enumerate(asked, 1):
            print(f"{name} {number}/{len(asked)}: {question.words}", file=sys.stderr, flush=True)
            experiments.append(self.answer(question))
        return Section(f"environments-{name}", title, about, order, experiments=experiments)

    def interpreter(self, kind: str) -> str:
        """The Python that has this contestant's libraries: ours, or the peers'."""
        for first, path in self.others.items():
            if kind.startswith(first):
                return path
        return self.peers if kind.startswith(("envpool", "gymnasium")) else sys.executable


def against_peers(
    task: str,
    num_envs: int,
    peers: dict[str, float | None],
    *,
    share_target: float | None = None,
    env_kwargs: dict[str, Any] | None = None,
) -> Question:
    """Raceway's sync step against peers, each named by its kind, with the ratio that is wanted over it."""
    kwargs = env_kwargs or {}
    settings = {kind: Setting(kind, task, num_envs, env_kwargs=kwargs) for kind in ("raceway", *peers)}
    pairs = tuple(Pair("raceway", kind, target) for kind, target in peers.items())
    return Question(in_words(task, num_envs, kwargs), settings, pairs, share_target)


def in_words(task: str, num_envs: int, env_kwargs: dict[str, Any]) -> str:
    """`Busy-v0 of 20 us, 64 envs`."""
    price = f" of {env_kwargs['step_us']:g} us" if "step_us" in env_kwargs else ""
    spread = f" ({env_kwargs['spread']})" if "spread" in env_kwargs else ""
    return f"{task}{price}{spread}, {num_envs} envs"
