"""Schedules and algorithms beside each other: the whole way with tiny runs, and what is made of their numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import algorithms
from benchmarks.algorithms import Bench, return_at, schedules_compared
from raceway.training.outcome import Run
from raceway.training.presets import presets

TINY = {"hidden": (4,), "num_envs": 4}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(algorithms, "SCHEDULE_TASKS", {"CartPole-v1": 150_000})
    monkeypatch.setattr(algorithms, "CORRECTION_TASKS", {"CartPole-v1": 300_000})
    return Bench(tmp_path / "runs", [1, 2], 0.004, tmp_path / "results", tmp_path / "picture.svg", TINY)


def _result(bench: Bench, section: str) -> dict[str, Any]:
    return json.loads((bench.results / f"{section}.json").read_text())


@pytest.mark.slow
def test_schedules_are_compared_seed_by_seed(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    algorithms.concurrent_async(bench)
    (entry,) = _result(bench, "concurrent_async")["entries"]
    for name in ("at_equal_steps", "at_equal_seconds", "steps_per_second", "lag_mean", "lag_max"):
        assert {variant: len(values) for variant, values in entry[name].items()} == dict.fromkeys(
            algorithms.SCHEDULES, 2
        )
    assert entry["lag_max"]["concurrent"] == [1, 1]
    order = [line.split(", ", 1)[1] for line in capsys.readouterr().err.splitlines() if "CartPole-v1, " in line]
    assert order == [
        "concurrent-1", "async-1", "async-decoupled-1", "async-decoupled-2", "async-2", "concurrent-2"
    ]  # fmt: skip


@pytest.mark.slow
def test_what_is_finished_is_not_repeated(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    algorithms.delayed(bench)
    first = _result(bench, "delayed")["entries"]
    assert set(first[0]["returns"]) == set(algorithms.CORRECTIONS)
    assert bench.picture.read_text().startswith("<?xml")
    chains = {path: path.stat().st_mtime_ns for path in bench.directory.rglob("chain.jsonl")}
    assert len(chains) == 8
    algorithms.delayed(bench)
    assert _result(bench, "delayed")["entries"] == first
    assert {path: path.stat().st_mtime_ns for path in chains} == chains


@pytest.mark.slow
def test_what_the_presets_reach_is_of_fresh_episodes(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(algorithms, "SOLVERS", ("a2c",))
    short = Bench(bench.directory, [1], 1.0, bench.results, common={**TINY, "total_steps": 500})
    algorithms.solve(short)
    (entry,) = _result(bench, "solve")["entries"]
    assert entry["algo"] == "a2c"
    assert 5 < entry["returns"][0] < 500


def test_everything_that_is_to_be_solved_has_a_preset() -> None:
    known = {(preset.env, preset.algo) for preset in presets()}
    assert {("CartPole-v1", algo) for algo in algorithms.SOLVERS} <= known
    assert {(env, "ppo") for env in algorithms.SCHEDULE_TASKS} <= known
    assert {(env, "a2c") for env in algorithms.CORRECTION_TASKS} <= known


def test_equal_seconds_are_those_of_the_seeds_shortest_run(monkeypatch: pytest.MonkeyPatch) -> None:
    class Told:
        steps, steps_per_second = 100, 1.0

        def __init__(self, curve: list[tuple[float, float]]) -> None:
            self.curve = curve

    monkeypatch.setattr(algorithms, "curve_of", lambda run: run.curve)
    monkeypatch.setattr(algorithms, "lags_of", lambda run: [0, 1, 3])
    fast: Run = Told([(1, 10), (2, 20), (3, 30)])  # type: ignore[assignment]
    slow: Run = Told([(2, 15), (4, 25), (6, 35)])  # type: ignore[assignment]
    assert (return_at(slow, 1), return_at(slow, 5), return_at(slow, 6)) == (15, 25, 35)
    found = schedules_compared({"one": [fast, slow], "other": [slow, slow]})
    assert found["moments_s"] == [3, 6]
    assert found["at_equal_steps"] == {"one": [30, 35], "other": [35, 35]}
    assert found["at_equal_seconds"] == {"one": [30, 35], "other": [15, 35]}
    assert found["lag_max"] == {"one": [3, 3], "other": [3, 3]}
