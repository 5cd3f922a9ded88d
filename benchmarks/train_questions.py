"""What is asked of learners: who trains on what, in which of several ways, and which ratios are wanted."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.paired import Pair, Plan, compare, measure
from benchmarks.results import Experiment
from benchmarks.train_settings import Setting

RACEWAY = "raceway"


@dataclass(frozen=True)
class Question:
    """Who takes part, and which ratios are asked for."""

    words: str
    players: Mapping[str, Sequence[Setting]]
    """By name; where a player has several ways of doing it, the fastest takes part."""
    pairs: Sequence[Pair]
    limit: str | None = None
    plan: Plan | None = None
    """How much is measured, where it is not what the bench measures of everything."""


@dataclass(frozen=True)
class Bench:
    """What a section needs to be measured."""

    plan: Plan
    heats: Plan | None
    """How it is found out which way is the fastest. None: the first is taken."""
    interpreters: Mapping[str, str]
    seeds: Sequence[int] = (1, 2, 3)
    match: str = ""
    """Only questions whose words have this are asked."""

    def answers(self, section: str, questions: Sequence[Question]) -> list[Experiment]:
        """Measures a section's questions, one after the other."""
        asked = [question for question in questions if self.match in question.words]
        experiments = []
        for number, question in enumerate(asked, 1):
            print(f"{section} {number}/{len(asked)}: {question.words}", file=sys.stderr, flush=True)
            experiments.append(self.answer(question))
        return experiments

    def answer(self, question: Question) -> Experiment:
        """Measures one question."""
        heats = {name: self.heat(name, ways) for name, ways in question.players.items()}
        chosen = {name: question.players[name][fastest(rates)] for name, rates in heats.items()}
        plan = question.plan or self.plan
        contestants = [setting.contestant(name, self.interpreters) for name, setting in chosen.items()]
        measurement = measure(contestants, plan)
        for name, rates in heats.items():
            if len(rates) > 1:
                ways = [setting.style for setting in question.players[name]]
                measurement.facts[name]["heats"] = dict(zip(ways, rates, strict=True))
        comparisons = [compare(measurement.rates, pair, limit=question.limit) for pair in question.pairs]
        setting = chosen[RACEWAY]
        task = (setting.task, setting.num_envs)
        return Experiment(question.words, RACEWAY, question.limit, measurement, comparisons, *task, question.plan)

    def heat(self, name: str, ways: Sequence[Setting]) -> list[float]:
        """How fast each of the ways is; nothing is known (and measured) where there is but one."""
        if len(ways) == 1 or self.heats is None:
            return [0.0]
        print(f"  which {name}?", file=sys.stderr, flush=True)
        named = {way.style: way.contestant(way.style, self.interpreters) for way in ways}
        rates = measure(list(named.values()), self.heats).rates
        return [statistics.median(rates[style]) for style in named]


def fastest(rates: Sequence[float]) -> int:
    """The place of the highest rate."""
    return max(range(len(rates)), key=rates.__getitem__)


def ways(setting: Setting, *styles: str) -> list[Setting]:
    """The same setting in several styles."""
    return [replace(setting, style=style) for style in styles]


def chosen_in_words(experiments: Sequence[Experiment], names: Mapping[str, str]) -> str:
    """Which ways have won their heats: `SB3: DummyVecEnv ...`."""
    found = []
    for experiment in experiments:
        for name, facts in experiment.measurement.facts.items():
            if "heats" in facts and (line := f"{name} {names.get(facts['style'], facts['style'])}") not in found:
                found.append(line)
    return f" Fastest configurations found: {', '.join(found)}." if found else ""
