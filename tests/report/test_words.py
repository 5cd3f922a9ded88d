"""Numbers as people read them."""

from __future__ import annotations

import math

import pytest

from raceway.report.words import clock, count, number, percent


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0:00"),
        (59.6, "1:00"),
        (725, "12:05"),
        (3753, "1:02:33"),
        (200_000, "2 d 7 h"),
        (8.64e304, "1.00e+300 d 8 h"),
        (math.nan, "?"),
        (-3, "0:00"),
    ],
)
def test_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.00"),
        (0.01234, "0.0123"),
        (-4.561, "-4.56"),
        (187.34, "187.3"),
        (-4012.4, "-4,012"),
        (-1e308, "-1.00e+308"),
        (math.inf, "inf"),
        (math.nan, "-"),
        (None, "-"),
    ],
)
def test_number(value: float | None, text: str) -> None:
    assert number(value) == text


def test_count_and_percent() -> None:
    assert (count(1e6), count(math.inf)) == ("1,000,000", "?")
    assert (percent(0.625), percent(None)) == ("62%", "-")
