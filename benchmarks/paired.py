"""Paired measurements: contestants take turns in one run, and what counts is the ratio within each round.

A machine's speed drifts (frequency, neighbours, temperature) by more than the differences that matter. Turns of a few
tenths of a second that alternate see the same drift, so their ratio does not. The order flips every round (ABC, CBA),
because whoever comes first would otherwise always find the machine in the same state.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.turns import Contestant, ContestantProcess

_MAX_GROWTH = 10.0


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    rounds: int = 15
    """Rounds that count."""
    warmup_rounds: int = 2
    """Rounds before those, dropped."""
    turn_s: float = 0.2
    """About how long one turn lasts."""
    turn_timeout_s: float = 60.0
    """A contestant that needs longer for a turn hangs."""
    ready_timeout_s: float = 120.0
    """One that needs longer to get ready does, too."""
    stretch: float = 1.0
    """How many times as long the turn of a slow contestant may be, to take as many steps as the fastest does."""


@dataclass(frozen=True)
class Measurement:
    """What the contestants did, by name."""

    rates: dict[str, list[float]]
    """Environment steps per second, one number per round."""
    steps_per_turn: dict[str, int]
    """Environment steps of one turn."""
    facts: dict[str, dict[str, Any]]
    """What each contestant said about itself, such as versions."""


@dataclass(frozen=True)
class Pair:
    """A question: how many times as fast as `below` is `above`, and how many times should it be?"""

    above: str
    below: str
    target: float | None = None
    """The least ratio wanted."""
    or_share: float | None = None
    """Where that is less: the ratio that this share of the limit would give."""


@dataclass(frozen=True)
class Comparison:
    """The answer: the median over rounds of above / below with its 95% interval, and the limit beside it."""

    above: str
    below: str
    ratio: float
    low: float
    high: float
    limit_ratio: float | None
    """limit / below: the ratio that could be reached."""
    limit_share: float | None
    """above / limit: how much of the limit is reached."""
    target: float | None
    reached: bool | None = field(default=None)


def measure(
    contestants: Sequence[Contestant], plan: Plan, *, report: Callable[[str], None] | None = None
) -> Measurement:
    """Starts the contestants, gives them turns of about equal wall time, and collects their rates."""
    names = [contestant.name for contestant in contestants]
    if len(set(names)) < len(names):
        raise ValueError(f"Contestants need different names to be told apart, these are {names}.")
    with ExitStack() as running:
        processes = [
            running.enter_context(
                ContestantProcess(contestant, ready_timeout_s=plan.ready_timeout_s, turn_timeout_s=plan.turn_timeout_s)
            )
            for contestant in contestants
        ]
        return take_turns(processes, plan, report=report)


def take_turns(
    processes: Sequence[ContestantProcess], plan: Plan, *, report: Callable[[str], None] | None = None
) -> Measurement:
    """Gives contestants that are ready turns of about equal wall time, and collects their rates."""
    names = [process.name for process in processes]
    rates: dict[str, list[float]] = {name: [] for name in names}
    steps = stretched({process.name: calibrate(process, plan.turn_s) for process in processes}, plan.stretch)
    for index in range(-plan.warmup_rounds, plan.rounds):
        found = {}
        for place in turn_order(len(processes), index):
            process = processes[place]
            found[process.name] = process.turn(steps[process.name]).rate
        (report or _report_to_stderr)(progress_line(index, plan.rounds, {name: found[name] for name in names}))
        if index >= 0:
            for name in names:
                rates[name].append(found[name])
    return Measurement(rates, steps, {process.name: process.facts for process in processes})


def calibrate(process: ContestantProcess, turn_s: float) -> int:
    """How many steps make a turn of about `turn_s`. The turns that it takes to find out are a first warm-up."""
    wanted = 1
    while True:
        result = process.turn(wanted)
        if result.seconds >= turn_s / 2:
            return steps_for(result.steps, result.seconds, turn_s)
        wanted = steps_for(result.steps, result.seconds, turn_s)


def steps_for(steps: int, seconds: float, turn_s: float) -> int:
    """How many steps to try next, when `steps` took `seconds`.

    Grows by at most ten times: the first calls also pay for what happens only once.
    """
    return max(1, math.ceil(steps * min(_MAX_GROWTH, turn_s / seconds)))


def stretched(steps: Mapping[str, int], stretch: float) -> dict[str, int]:
    """The steps of everybody's turn: the fastest one's, or `stretch` times the own ones where those are fewer."""
    most = max(steps.values())
    return {name: min(most, math.ceil(own * stretch)) for name, own in steps.items()}


def turn_order(count: int, round_index: int) -> list[int]:
    """0, 1, 2, ... in even rounds, backwards in odd ones."""
    forwards = list(range(count))
    return forwards if round_index % 2 == 0 else forwards[::-1]


def compare(rates: Mapping[str, Sequence[float]], pair: Pair, *, limit: str | None = None) -> Comparison:
    """Answers one question from the rates of every round."""
    ratios = ratios_by_round(rates[pair.above], rates[pair.below])
    ratio = float(np.median(ratios))
    low, high = median_interval(ratios)
    limit_ratio = limit_share = None
    if limit is not None:
        limit_ratio = float(np.median(ratios_by_round(rates[limit], rates[pair.below])))
        limit_share = float(np.median(ratios_by_round(rates[pair.above], rates[limit])))
    target = pair.target
    if target is not None and pair.or_share is not None and limit_ratio is not None:
        target = min(target, pair.or_share * limit_ratio)
    reached = None if target is None else ratio >= target
    return Comparison(pair.above, pair.below, ratio, low, high, limit_ratio, limit_share, target, reached)


def ratios_by_round(above: Sequence[float], below: Sequence[float]) -> np.ndarray:
    """above / below, round by round."""
    if len(above) != len(below) or not above:
        raise ValueError(f"Ratios need the same rounds on both sides, got {len(above)} and {len(below)}.")
    return np.asarray(above, dtype=float) / np.asarray(below, dtype=float)


def median_interval(
    values: Sequence[float] | np.ndarray, *, confidence: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """Percentile bootstrap interval of the median. The seed is fixed: the same rounds give the same interval."""
    sample = np.asarray(values, dtype=float)
    drawn = np.random.default_rng(seed).integers(len(sample), size=(resamples, len(sample)))
    medians = np.median(sample[drawn], axis=1)
    outside = (1.0 - confidence) / 2.0
    low, high = np.quantile(medians, [outside, 1.0 - outside])
    return float(low), float(high)


def progress_line(round_index: int, rounds: int, rates: Mapping[str, float]) -> str:
    """One round on one line."""
    where = "warm-up" if round_index < 0 else f"round {round_index + 1}/{rounds}"
    return f"  {where}: " + ", ".join(f"{name} {short_number(rate)}/s" for name, rate in rates.items())


def short_number(value: float) -> str:
    """Three digits and a letter: 1234567 is 1.23M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        # 999.5 of a unit already prints as 1000: that is one of the next larger unit.
        if value >= size * 0.9995:
            return f"{_three_digits(value / size)}{letter}"
    return _three_digits(value)


def _three_digits(value: float) -> str:
    decimals = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{decimals}f}"


def _report_to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
