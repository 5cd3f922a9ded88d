"""The report of a check."""

from __future__ import annotations

from dataclasses import replace

import pytest

from raceway.envs.checking import CheckReport, EnvSpeed, Finding, LaneSpeed
from raceway.report.checked import report, show

GOOD = Finding("api", "api", "ok", "reset and step return what they should")
NOTE = Finding("x", "spaces", "note", "The observation is float64. " + "It goes on and on. " * 5, "return float32")
BAD = Finding("y", "api", "problem", "step 3 raises ValueError.", details="mine.py:3 in step: raise ValueError")
SPEED = EnvSpeed(step_s=6.25e-6, reset_s=11e-6, reset_share=0.0, slowest_s=8e-6, wrappers=("A",), wrapper_share=0.2)
LANE = LaneSpeed("process async", 64, 2, 272_000.0, 320_000.0, 0.85)


def test_marks_what_to_do_and_the_sum() -> None:
    assert report(CheckReport("mine", (GOOD,))).splitlines() == [
        "mine",
        "",
        "api",
        "  ✓ reset and step return what they should",
        "",
        "All is well.",
    ]
    noted = report(CheckReport("mine", (GOOD, NOTE)))
    assert "  ! The observation is float64." in noted
    assert "    to change that: return float32" in noted
    assert noted.endswith("Training works. 1 thing could be better (!).")
    bad = report(CheckReport("mine", (BAD, NOTE)))
    assert "  ✗ step 3 raises ValueError.\n      mine.py:3 in step: raise ValueError" in bad
    assert bad.endswith("1 thing must be put right before training works (✗).")


def test_the_lanes_are_a_table() -> None:
    said = report(CheckReport("mine", (GOOD,), SPEED, 320_000.0, 2, (LANE,), ("Do something.",)))
    assert "one environment: 6.25 µs a step, 160,000 steps/s; 11 µs a reset" in said
    head, row = (line for line in said.splitlines() if "steps/s  " in line or line.startswith("    process async"))
    assert head.split() == ["lane", "envs", "workers", "steps/s", "of", "the", "limit"]
    assert row.split() == ["process", "async", "64", "2", "272,000", "85%", "of", "320,000"]
    assert "advice\n  - Do something." in said


def test_no_line_is_wider_than_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    long = replace(BAD, text="word " * 60, fix="w" * 200, details="/path" * 50)
    found = CheckReport("n" * 100, (long, NOTE), SPEED, 320_000.0, 2, (LANE,), ("advice " * 40,))
    assert max(map(len, report(found).splitlines())) <= 80
    show(found)
    assert capsys.readouterr().out == f"{report(found)}\n"
    assert str(found) == report(found)


def test_what_a_terminal_would_take_for_markup_is_shown_as_it_is() -> None:
    odd = replace(BAD, text="obs[0] is [bold]x[/bold] [/] [red]")
    assert "obs[0] is [bold]x[/bold] [/] [red]" in report(CheckReport("mine", (odd,)))
