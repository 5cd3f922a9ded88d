"""The arithmetic of paired measurements."""

import pytest

from benchmarks.paired import (
    Pair,
    compare,
    median_interval,
    progress_line,
    ratios_by_round,
    short_number,
    steps_for,
    stretched,
    turn_order,
)


def test_order_flips_every_round():
    assert [turn_order(3, index) for index in range(3)] == [[0, 1, 2], [2, 1, 0], [0, 1, 2]]


def test_order_flips_from_warm_up_into_the_rounds_that_count():
    assert turn_order(2, -1) != turn_order(2, 0)


def test_ratio_is_the_median_of_each_rounds_ratio_not_the_ratio_of_medians():
    rates = {"ours": [2.0, 30.0, 5.0], "peer": [1.0, 10.0, 5.0]}
    assert compare(rates, Pair("ours", "peer")).ratio == 2.0


def test_drift_that_both_share_leaves_the_ratio_alone():
    drift = [1.0, 0.5, 0.25, 3.0, 0.1]
    rates = {"ours": [4.0 * factor for factor in drift], "peer": [2.0 * factor for factor in drift]}
    found = compare(rates, Pair("ours", "peer"))
    assert (found.ratio, found.low, found.high) == pytest.approx((2.0, 2.0, 2.0))


def test_limit_stands_beside_the_ratio():
    rates = {"ours": [8.0, 8.0], "peer": [2.0, 2.0], "limit": [10.0, 10.0]}
    found = compare(rates, Pair("ours", "peer"), limit="limit")
    assert (found.limit_ratio, found.limit_share) == (5.0, 0.8)


@pytest.mark.parametrize(("target", "reached"), [(None, None), (1.9, True), (2.0, True), (2.1, False)])
def test_target_is_reached_by_the_median(target: float | None, reached: bool | None):
    rates = {"ours": [4.0, 4.0, 4.0], "peer": [2.0, 2.0, 2.0]}
    assert compare(rates, Pair("ours", "peer", target)).reached is reached


@pytest.mark.parametrize(("limit", "target", "reached"), [(10.0, 2.8, False), (5.0, 2.25, True)])
def test_target_gives_way_to_a_share_of_the_limit_where_that_is_less(limit: float, target: float, reached: bool):
    rates = {"ours": [4.6, 4.6], "peer": [2.0, 2.0], "limit": [limit, limit]}
    found = compare(rates, Pair("ours", "peer", 2.8, or_share=0.9), limit="limit")
    assert found.target == pytest.approx(target)
    assert found.reached is reached


def test_interval_is_the_same_every_time_and_holds_the_median():
    values = [1.0, 1.2, 0.9, 1.1, 1.05, 0.95, 1.3]
    low, high = median_interval(values)
    assert (low, high) == median_interval(values)
    assert min(values) <= low < 1.05 < high <= max(values)


def test_interval_widens_with_the_spread():
    narrow_low, narrow_high = median_interval([1.0 + 0.01 * index for index in range(15)])
    wide_low, wide_high = median_interval([1.0 + 0.1 * index for index in range(15)])
    assert wide_high - wide_low == pytest.approx(10 * (narrow_high - narrow_low))


def test_interval_covers_the_true_median_about_as_often_as_it_says():
    import numpy as np

    generator = np.random.default_rng(1)
    trials = [median_interval(generator.normal(size=15), resamples=500) for _ in range(300)]
    covered = np.mean([low <= 0.0 <= high for low, high in trials])
    assert 0.90 <= covered <= 0.99


def test_unequal_rounds_are_refused():
    with pytest.raises(ValueError, match="got 2 and 1"):
        ratios_by_round([1.0, 2.0], [1.0])


def test_next_number_of_steps_aims_at_the_turn_but_grows_slowly():
    assert steps_for(100, 0.1, 0.2) == 200
    assert steps_for(100, 1e-6, 0.2) == 1000
    assert steps_for(1, 10.0, 0.2) == 1


def test_slow_turns_are_stretched_towards_the_fastest_ones_steps_and_no_further():
    assert stretched({"fast": 900, "slow": 300, "slowest": 100}, 4.0) == {"fast": 900, "slow": 900, "slowest": 400}
    assert stretched({"fast": 900, "slow": 300}, 1.0) == {"fast": 900, "slow": 300}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.50"),
        (12.34, "12.3"),
        (999.4, "999"),
        (999.7, "1.00k"),
        (1234.0, "1.23k"),
        (999_600.0, "1.00M"),
        (45.6e6, "45.6M"),
        (2e9, "2.00G"),
    ],
)
def test_short_numbers_have_three_digits(value: float, text: str):
    assert short_number(value) == text


def test_progress_names_warm_up_and_rounds():
    assert progress_line(-1, 5, {"a": 1000.0}) == "  warm-up: a 1.00k/s"
    assert progress_line(0, 5, {"a": 1000.0, "b": 2.0}) == "  round 1/5: a 1.00k/s, b 2.00/s"
