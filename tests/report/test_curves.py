"""Curves of several runs on one axis."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from raceway.errors import RunFolderError
from raceway.report.curves import Axis, Curve, curves_of
from raceway.report.groups import group_runs
from tests.report.logged import line, log_run


def curve_of(runs: Any, metric: str = "episode/return", axis: Axis = "steps") -> Curve:
    (found,), _ = curves_of(group_runs(runs), metric, axis)
    return found


def test_one_run_is_drawn_as_it_is(tmp_path: Path) -> None:
    curve = curve_of(log_run(tmp_path / "1", [(10, 1.0, 5.0), (30, 2.0, 7.0)]))
    assert (curve.x.tolist(), curve.centre.tolist(), curve.count) == ([10, 30], [5.0, 7.0], 1)


def test_rows_at_different_steps_meet_on_a_grid_only_where_all_runs_have_data(tmp_path: Path) -> None:
    log_run(tmp_path / "1", [(0, 0.0, 0.0), (1000, 10.0, 1000.0)], seed=1)
    log_run(tmp_path / "2", [(100, 1.0, 200.0), (700, 7.0, 1400.0), (1200, 12.0, 2400.0)], seed=2)
    curve = curve_of(tmp_path)
    assert (curve.x[0], curve.x[-1]) == (100.0, 1000.0)
    np.testing.assert_allclose(curve.centre, 1.5 * curve.x)
    np.testing.assert_allclose(curve.low, curve.x)
    np.testing.assert_allclose(curve.high, 2 * curve.x)


def test_over_seconds_each_run_has_its_own_speed(tmp_path: Path) -> None:
    for seed, speed in ((1, 100.0), (2, 200.0)):
        log_run(tmp_path / str(seed), line(1.0, speed=speed), seed=seed)
    curve = curve_of(tmp_path, axis="seconds")
    assert (curve.x[0], curve.x[-1]) == (1.0, 5.0)
    np.testing.assert_allclose(curve.centre, 150.0 * curve.x)


def test_evaluations_are_over_the_seconds_of_their_policies(tmp_path: Path) -> None:
    log_run(tmp_path / "1", line(1.0), [(500, 7.0), (1000, 9.0)])
    curve = curve_of(tmp_path, "evaluation/return", "seconds")
    assert (curve.x.tolist(), curve.centre.tolist()) == ([5.0, 10.0], [7.0, 9.0])


def test_a_seed_that_went_astray_shows_in_the_interval_and_not_in_the_curve(tmp_path: Path) -> None:
    for seed, slope in enumerate((1.0, 1.0, 1.0, 1.0, -5.0)):
        log_run(tmp_path / str(seed), line(slope), seed=seed)
    curve = curve_of(tmp_path)
    np.testing.assert_allclose(curve.centre, curve.x)
    assert curve.count == 5
    assert (curve.low < curve.centre).all()
    np.testing.assert_allclose(curve.high, curve.centre)


def test_a_run_that_is_behind_ends_the_curve_and_is_named(tmp_path: Path) -> None:
    for seed, last in ((1, 1000), (2, 400)):
        log_run(tmp_path / str(seed), line(1.0, last=last), seed=seed)
    (curve,), notes = curves_of(group_runs(tmp_path), "episode/return", "steps")
    assert curve.x[-1] == 400
    assert notes == [f"{tmp_path / '2'} has 400 of 1,000 steps: the curve of its group ends there."]


def test_runs_without_anything_in_common_are_left_out_with_the_reason(tmp_path: Path) -> None:
    log_run(tmp_path / "1", [(100, 1.0, 1.0), (200, 2.0, 1.0)], seed=1)
    log_run(tmp_path / "2", [(300, 1.0, 1.0), (310, 2.0, 1.0)], seed=2)
    log_run(tmp_path / "3", schedule="serial")
    found, notes = curves_of(group_runs(tmp_path), "episode/return", "steps")
    assert [curve.label for curve in found] == ["serial"]
    gap = f"{tmp_path / '1'} ends at 200, {tmp_path / '2'} begins at 300"
    assert f"CartPole-v1, concurrent is left out over steps: its runs have none in common ({gap})." in notes


@pytest.mark.parametrize("axis", ["steps", "seconds"])
def test_where_no_group_has_a_curve_there_is_none_and_the_reason(tmp_path: Path, axis: Axis) -> None:
    log_run(tmp_path / "1", [(100, 1.0, 1.0)], seed=1)
    log_run(tmp_path / "2", [(300, 3.0, 1.0)], seed=2)
    found, (note,) = curves_of(group_runs(tmp_path), "episode/return", axis)
    assert found == []
    assert f"is left out over {axis}" in note


def test_runs_without_a_clock_are_left_out_over_seconds_only(tmp_path: Path) -> None:
    log_run(tmp_path / "1", [(100, 0.0, 1.0), (200, 0.0, 2.0)])
    assert curve_of(tmp_path).x.tolist() == [100, 200]
    found, (note,) = curves_of(group_runs(tmp_path), "episode/return", "seconds")
    assert found == []
    assert note == f"{tmp_path / '1'} is left out over seconds: it has logged none (time/seconds) yet."


def test_one_row_is_one_point_and_one_row_of_several_runs_too(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        log_run(tmp_path / str(seed), [(100, 1.0, float(seed))], seed=seed)
    for axis, x in zip(get_args(Axis), (100.0, 1.0), strict=True):
        curve = curve_of(tmp_path, axis=axis)
        assert (curve.x.tolist(), curve.centre.tolist(), curve.count) == ([x], [2.0], 3)
    assert curve_of(tmp_path / "1").x.tolist() == [100.0]


@pytest.mark.filterwarnings("error")
def test_returns_near_the_largest_float_do_not_overflow(tmp_path: Path) -> None:
    for seed in (1, 2, 3, 4):
        sign = 1 if seed % 2 else -1
        log_run(tmp_path / str(seed), [(100, 1.0, 1.5e308), (200, 1.001, sign * 1.7e308)], seed=seed)
    for axis in get_args(Axis):
        curve = curve_of(tmp_path, axis=axis)
        for values in (curve.low, curve.centre, curve.high):
            assert np.isfinite(values).all()
        assert curve.centre[0] == pytest.approx(1.5e308)
        assert (curve.low <= curve.centre).all()
        assert (curve.centre <= curve.high).all()


def test_a_metric_that_no_run_has_is_refused_with_a_near_one(tmp_path: Path) -> None:
    log_run(tmp_path / "1", evaluations=[(100, 1.0)])
    with pytest.raises(RunFolderError, match="Did you mean 'evaluation/return'"):
        curve_of(tmp_path, "evaluation/retrun")
    (tmp_path / "1/metrics.jsonl").write_text('{"step": 1, "episode/return": null}\n')
    with pytest.raises(RunFolderError, match="no episode has ended"):
        curve_of(tmp_path)
    (tmp_path / "1/metrics.jsonl").write_text(
        '{"step": 1, "train/entropy": 1e400}\n{"step": 2, "train/entropy": NaN}\n'
    )
    with pytest.raises(RunFolderError, match="No run has a finite value of 'train/entropy' yet"):
        curve_of(tmp_path, "train/entropy")
