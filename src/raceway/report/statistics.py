"""What a few seeds tell: the interquartile mean and its bootstrap interval. Pure functions of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_RESAMPLES = 2000
_SEED = 0
_LEVEL = 0.95
_LEAST_FOR_INTERVAL = 3
_LEAST_FOR_TRIMMING = 4
_NUMBERS_AT_ONCE = 4_000_000
"""Numbers that one block of resamples holds: 32 MB."""


@dataclass(frozen=True)
class Estimate:
    """A number over seeds with its interval; `math.inf` stands for what was never reached."""

    value: float
    low: float
    high: float
    count: int
    """Seeds."""


def interquartile_mean(values: np.ndarray) -> np.ndarray:
    """The mean of the middle half along the first axis, [n, ...] to [...].

    A quarter of the values, rounded down, is left out at either end (Agarwal et al. 2021), so of fewer than four none
    is: then it is the mean.
    """
    ordered = np.sort(np.asarray(values, np.float64), axis=0)
    cut = len(ordered) // 4
    return mean(ordered[cut : len(ordered) - cut])


def mean(values: np.ndarray) -> np.ndarray:
    """The mean along the first axis. Finite values have a finite mean, even where their sum is beyond any float."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = values.mean(axis=0)
    overflowed = ~np.isfinite(found) & np.isfinite(values).all(axis=0)
    if not overflowed.any():
        return found
    low, high = values.min(axis=0), values.max(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):  # rounding may go one step beyond them, to infinity
        small = (values / len(values)).sum(axis=0)
    return np.where(overflowed, np.clip(small, low, high), found)


def interval(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the interquartile mean of [n, ...] lies with 95% confidence: percentiles of a bootstrap over the n.

    The resamples are the same every time, and for every column the same seeds are drawn together. Fewer than three
    values have no interval that deserves the name: they get their range.
    """
    values = np.asarray(values, np.float64)
    if len(values) < _LEAST_FOR_INTERVAL:
        return values.min(axis=0), values.max(axis=0)
    drawn = np.random.default_rng(_SEED).integers(len(values), size=(_RESAMPLES, len(values)))
    columns = values.reshape(len(values), -1)
    bounds = np.empty((2, columns.shape[1]))
    width = max(1, _NUMBERS_AT_ONCE // drawn.size)
    for start in range(0, columns.shape[1], width):
        block = slice(start, start + width)
        means = np.sort(interquartile_mean(columns[drawn.T, block]), axis=0)
        # Values that occur, not mixtures of two: infinities stay what they are.
        bounds[:, block] = means[[_rank((1 - _LEVEL) / 2), _rank((1 + _LEVEL) / 2)]]
    low, high = bounds.reshape(2, *values.shape[1:])
    return low, high


def _rank(quantile: float) -> int:
    return round(quantile * (_RESAMPLES - 1))


def estimate(values: Sequence[float]) -> Estimate | None:
    """Of one number per seed; None if there is none."""
    if not len(values):
        return None
    numbers = np.asarray(values, np.float64)
    low, high = interval(numbers)
    return Estimate(float(interquartile_mean(numbers)), float(low), float(high), len(numbers))


def centre_name(count: int) -> str:
    """What the interquartile mean of so many is, in honest words."""
    return "interquartile mean" if count >= _LEAST_FOR_TRIMMING else "mean" if count > 1 else "the run"


def interval_name(count: int) -> str:
    """What the interval of so many is; empty: there is none."""
    return "95% bootstrap interval" if count >= _LEAST_FOR_INTERVAL else "range" if count > 1 else ""
