"""The table of runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import raceway
from raceway.cli import main
from raceway.errors import SettingError
from raceway.report.comparison import _SORTS, _WIDTH
from tests.report.logged import line, log_run


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Five seeds that reach 100, 200, ..., and another schedule that is twice as fast."""
    for number, schedule in enumerate(("concurrent", "serial")):
        for seed in range(1, 6):
            path = tmp_path / f"{schedule}{seed}"
            evaluations = [(500, 900.0 + seed), (1000, 10.0)]
            log_run(path, line(seed / 10, speed=100.0 / (number + 1)), evaluations, seed=seed, schedule=schedule)
    return tmp_path


def test_numbers_are_those_of_the_seeds(runs: Path) -> None:
    found = raceway.compare(runs)
    first, second = found.rows
    assert (first.label, first.env, first.seeds, first.steps) == ("concurrent", "CartPole-v1", 5, (1000, 1000))
    assert first.final_return is not None
    assert first.final_return.value == pytest.approx(300.0)
    assert 100.0 <= first.final_return.low < 300.0 < first.final_return.high <= 500.0
    assert first.best_evaluation is not None
    assert first.best_evaluation.value == pytest.approx(903.0)
    assert first.seconds is not None
    assert second.seconds is not None
    assert (first.seconds.value, second.seconds.value) == pytest.approx((10.0, 20.0))
    assert first.steps_per_second is not None
    assert first.steps_per_second.value == pytest.approx(100.0)
    assert first.reached is None


def test_when_a_return_was_first_reached_and_by_how_many(runs: Path) -> None:
    found = raceway.compare(runs, at=150.0)
    first, second = found.rows
    # Seed 1 never does; the others at 800, 500, 400, 300 steps: the middle three of five.
    assert (first.reached, second.reached) == (4, 4)
    assert first.steps_to is not None
    assert first.steps_to.value == pytest.approx((800 + 500 + 400) / 3)
    assert first.seconds_to is not None
    assert second.seconds_to is not None
    assert second.seconds_to.value == pytest.approx(2 * first.seconds_to.value)
    assert "reached 150.0" in str(found)
    assert "4 of 5" in str(found)
    nobody = raceway.compare(runs, at=1e6)
    assert nobody.rows[0].reached == 0
    assert "0 of 5            -" in str(nobody)
    json.dumps(nobody.to_dict(), allow_nan=False)


def test_the_table_is_aligned_and_fits_a_hundred_columns(tmp_path: Path) -> None:
    for number in range(3):
        for seed in (1, 2, 3):
            points = [(2_000_000 + 9 * seed, 54321.9, -12345.6 * seed)]
            settings = {"ppo": {"gamma": number / 7, "some_long_name": number, "another_long_name": number / 3}}
            log_run(
                tmp_path / f"{number}-{seed}", points, [(1, -9999.5)], seed=seed, env="HumanoidStandup-v5", **settings
            )
    text = str(raceway.compare(tmp_path, at=-30000.0))
    lines = text.splitlines()
    assert max(map(len, lines)) <= _WIDTH
    assert "some_long_name=2" in text
    header = lines[0]
    assert header.startswith("HumanoidStandup-v5")
    rows = [line for line in lines[1:] if line.startswith("gamma=")][:3]
    assert len(rows) == 3
    assert {len(row) for row in rows} == {len(header)}


def test_what_the_numbers_are_is_said_for_the_seeds_there_are(runs: Path) -> None:
    assert "interquartile mean (95% bootstrap interval)" in str(raceway.compare(runs)).replace("\n", " ")
    two = str(raceway.compare([runs / "serial1", runs / "serial2"])).replace("\n", " ")
    assert "Over seeds: mean (range)" in two
    one = str(raceway.compare(runs / "serial1"))
    assert "seeds:" not in one
    assert " to " not in one.splitlines()[1]


def test_markdown_is_a_table_with_the_same_cells(runs: Path) -> None:
    text = raceway.compare(runs, at=150.0).markdown()
    tables = [[row.split(" | ") for row in block.splitlines()] for block in text.split("\n\n")[:2]]
    for table in tables:
        assert len({len(row) for row in table}) == 1
        assert len(table) == 4
    assert tables[0][2][:2] == ["| CartPole-v1", "concurrent"]


def test_runs_that_have_measured_little_have_dashes(tmp_path: Path) -> None:
    path = log_run(tmp_path / "1")
    (path / "metrics.jsonl").write_text('{"step": 100, "train/entropy": 0.5}\n')
    found = raceway.compare(tmp_path, at=1.0)
    assert found.rows[0].final_return is None
    assert str(found).splitlines()[1].split() == ["ppo", "1", "100", "-", "-", "-", "-"]


def test_lengths_that_differ_are_told_as_a_span(tmp_path: Path) -> None:
    log_run(tmp_path / "1", line(1.0, last=1000), seed=1)
    log_run(tmp_path / "2", line(1.0, last=400), seed=2)
    assert "400 to 1k" in str(raceway.compare(tmp_path))


@pytest.mark.filterwarnings("error")
def test_returns_near_the_largest_float_fit_into_the_table(tmp_path: Path) -> None:
    for seed in (1, 2, 3, 4, 5):
        log_run(tmp_path / str(seed), [(100, 1.0, 1.7e308)], [(100, -1.7e308)], seed=seed)
    found = raceway.compare(tmp_path, at=1e308)
    (row,) = found.rows
    assert row.final_return is not None
    assert (row.final_return.low, row.final_return.value, row.final_return.high) == (1.7e308,) * 3
    assert "1.70e+308 (1.70e+308 to 1.70e+308)" in str(found)
    assert max(map(len, str(found).splitlines())) <= _WIDTH
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.fixture
def several(tmp_path: Path) -> Path:
    """Three groups of two environments: what is best in one column is not in another."""
    for env in ("Walker2d-v5", "Ant-v5"):
        for slope, speed, evaluation in ((3.0, 10.0, 5.0), (2.0, 20.0, 9.0), (1.0, 50.0, 7.0)):
            path = tmp_path / f"{env}-{speed:.0f}"
            log_run(path, line(slope, speed=speed), [(900, evaluation)], env=env, ppo={"gamma": speed})
    return tmp_path


def order_of(found: Any) -> list[str]:
    return [f"{row.env[0]}{row.label.removeprefix('gamma=')}" for row in found.rows]


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("return", ["10", "20", "50"]),
        ("final_return", ["10", "20", "50"]),
        ("evaluation", ["20", "50", "10"]),
        ("steps/s", ["50", "20", "10"]),
        ("steps_per_second", ["50", "20", "10"]),
        ("seconds", ["50", "20", "10"]),
        ("label", ["10", "20", "50"]),
        ("after-steps", ["10", "20", "50"]),
        ("after-seconds", ["50", "20", "10"]),
    ],
)
def test_rows_are_sorted_by_environment_and_then_the_best_first(several: Path, sort: str, expected: list[str]) -> None:
    assert order_of(raceway.compare(several, at=600.0, sort=sort)) == [
        f"{env}{label}" for env in ("A", "W") for label in expected
    ]
    if sort == "return":
        assert order_of(raceway.compare(several)) == order_of(raceway.compare(several, sort=sort))


def test_rows_may_keep_the_order_in_which_runs_are_given(several: Path) -> None:
    runs = [several / f"Walker2d-v5-{name}" for name in (20, 50, 10)]
    assert order_of(raceway.compare(runs, sort="given")) == ["W20", "W50", "W10"]
    assert order_of(raceway.compare(runs)) == ["W10", "W20", "W50"]


def test_a_group_without_a_value_comes_last(several: Path) -> None:
    path = log_run(several / "none", env="Ant-v5", ppo={"gamma": 5.0})
    (path / "metrics.jsonl").write_text('{"step": 100, "train/entropy": 0.5}\n')
    assert order_of(raceway.compare(several))[:4] == ["A10", "A20", "A50", "A5"]


@pytest.mark.parametrize(
    ("sort", "message"),
    [("retrun", "Did you mean 'return'"), ("x", "There are: return, evaluation"), ("after-steps", "--at RETURN")],
)
def test_a_column_that_cannot_be_sorted_by_is_refused(several: Path, sort: str, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        raceway.compare(several, sort=sort)


def test_the_command_sorts_too(several: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(several), "--sort", "steps/s", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["label"] for row in rows] == ["gamma=50", "gamma=20", "gamma=10"] * 2
    assert main(["compare", str(several), "--sort", "speed"]) == 2
    assert "there is no such column" in capsys.readouterr().err


def test_every_field_and_column_is_on_the_page(several: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/plotting.md").read_text()
    page = page.partition("## Comparisons")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([\w/-]+)`", page))
    found = raceway.compare(several, at=600.0)
    assert set(found.to_dict()) <= named
    assert set(found.to_dict()["rows"][0]) <= named
    assert set(found.to_dict()["rows"][0]["final_return"]) <= named
    assert {*_SORTS} <= named
    assert "`--sort given`" in page
