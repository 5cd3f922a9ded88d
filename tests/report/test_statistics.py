"""Interquartile mean and bootstrap interval: by hand, and by the laws that they obey."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from raceway.report.statistics import centre_name, estimate, interquartile_mean, interval, interval_name

seeds = st.integers(1, 12).flatmap(lambda n: arrays(np.float64, (n, 3), elements=st.floats(-1e6, 1e6)))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([7.0], 7.0),
        ([1.0, 2.0], 1.5),
        ([0.0, 1.0, 5.0], 2.0),
        ([100.0, 1.0, 3.0, -100.0], 2.0),
        ([9.0, 1.0, 2.0, 3.0, -50.0], 2.0),
        ([0.0, 0.0, 3.0, 4.0, 5.0, 6.0, 99.0, 99.0], 4.5),
    ],
)
def test_the_interquartile_mean_by_hand(values: list[float], expected: float) -> None:
    assert interquartile_mean(np.array(values)) == expected


@given(seeds)
def test_it_lies_between_the_quartiles_of_each_column_and_takes_no_notice_of_the_order(values: np.ndarray) -> None:
    found = interquartile_mean(values)
    assert found.shape == (3,)
    np.testing.assert_array_equal(interquartile_mean(values[::-1]), found)
    cut = len(values) // 4
    ordered = np.sort(values, axis=0)
    slack = 1e-9 * np.abs(ordered).max() + 1e-12
    assert (found >= ordered[cut] - slack).all()
    assert (found <= ordered[-1 - cut] + slack).all()


@given(st.integers(4, 12), st.floats(1e3, 1e9))
def test_one_seed_that_went_astray_does_not_move_it(n: int, astray: float) -> None:
    ordinary = np.arange(n - 1, dtype=float)
    assert interquartile_mean(np.append(ordinary, astray)) == interquartile_mean(np.append(ordinary, 1e3))


@given(seeds)
def test_the_interval_is_the_same_every_time_and_within_the_range(values: np.ndarray) -> None:
    low, high = interval(values)
    again = interval(values)
    np.testing.assert_array_equal((low, high), again)
    slack = 1e-9 * np.abs(values).max() + 1e-12
    assert (low <= high).all()
    assert (low >= values.min(axis=0) - slack).all()
    assert (high <= values.max(axis=0) + slack).all()


def test_columns_do_not_see_each_other_however_many_there_are() -> None:
    values = np.random.default_rng(3).normal(size=(9, 1000))  # more than one block of resamples
    low, high = interval(values)
    for column in (0, 221, 222, 223, 999):
        assert interval(values[:, column]) == (low[column], high[column])


@given(arrays(np.float64, 6, elements=st.floats(-100, 100)), st.floats(0.125, 8), st.floats(-50, 50))
def test_the_interval_moves_and_grows_with_the_values(values: np.ndarray, scale: float, shift: float) -> None:
    low, high = interval(values)
    moved = interval(values * scale + shift)
    assert moved == pytest.approx((float(low) * scale + shift, float(high) * scale + shift), abs=1e-8)


def test_it_covers_the_truth_about_as_often_as_it_says() -> None:
    draws = np.random.default_rng(1).normal(size=(20, 400))  # 400 experiments of 20 seeds, whose true mean is 0
    low, high = interval(draws)
    assert 0.88 < ((low <= 0) & (high >= 0)).mean() < 0.98


def test_it_shrinks_with_more_seeds() -> None:
    draws = np.random.default_rng(2).normal(size=(64, 50))
    few, many = interval(draws[:8]), interval(draws)
    assert (many[1] - many[0]).mean() < 0.5 * (few[1] - few[0]).mean()


def test_fewer_than_three_have_a_range_and_are_called_by_their_names() -> None:
    assert interval(np.array([4.0, 2.0])) == (2.0, 4.0)
    assert interval(np.array([4.0])) == (4.0, 4.0)
    assert [interval_name(n) for n in (1, 2, 3)] == ["", "range", "95% bootstrap interval"]
    assert [centre_name(n) for n in (1, 2, 3, 4)] == ["the run", "mean", "mean", "interquartile mean"]


@pytest.mark.filterwarnings("error")
@example(np.full(3, np.finfo(np.float64).max))
@given(arrays(np.float64, st.integers(1, 9), elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_finite_values_have_finite_estimates(values: np.ndarray) -> None:
    found = estimate([*values])
    assert found is not None
    assert values.min() <= found.low <= found.high <= values.max()
    assert values.min() <= found.value <= values.max()


def test_what_was_never_reached_counts_as_infinite() -> None:
    found = estimate([10.0, 20.0, 30.0, 40.0, math.inf])
    assert found is not None
    assert (found.value, found.high, found.count) == (30.0, math.inf, 5)
    assert 10.0 <= found.low < 30.0
    mostly = estimate([10.0, math.inf, math.inf, math.inf])
    assert mostly is not None
    assert mostly.value == math.inf
    assert estimate([]) is None
