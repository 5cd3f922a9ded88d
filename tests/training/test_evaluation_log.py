"""Every evaluation that counts is in the metrics when the run ends, however late it came."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import raceway
from raceway.errors import RunFolderError
from raceway.report.metrics import read_rows
from raceway.training.evaluation import Evaluation
from raceway.training.evaluation_log import append_evaluation, read_evaluations
from raceway.training.outcome import Run
from raceway.training.reporter import Reporter

SHORT: dict[str, Any] = {"num_envs": 4, "n_steps": 32, "batch_size": 64, "hidden": (8,), "total_steps": 3_000}


def _train(directory: Path, seed: int, **settings: Any) -> Run:
    log = {"directory": str(directory), "name": str(seed), "quiet": True, "tensorboard": False}
    evaluation = {"times": 20, "episodes": 4, "num_envs": 4}
    return raceway.train("CartPole-v1", seed=seed, log=log, evaluation=evaluation, **{**SHORT, **settings})


def _evaluations(run: Run) -> dict[int, float]:
    rows = [row for row in read_rows(run.directory / "metrics.jsonl") if "evaluation/return" in row]
    assert len({row["step"] for row in rows}) == len(rows)  # none is told twice
    return {row["step"]: row["evaluation/return"] for row in rows}


def _check_agreement(run: Run) -> None:
    """Metrics, outcome, comparison and the policy that is kept say the same."""
    found = _evaluations(run)
    assert run.evaluation is not None
    assert found[run.steps] == run.evaluation.mean
    assert max(found.values()) == run.best_return
    told = json.loads((run.directory / "outcome.json").read_text())
    assert told["best_return"] == run.best_return
    kept = json.loads((run.directory / "best" / "policy.json").read_text())["evaluation"]
    assert found[kept["steps"]] == kept["return"] == run.best_return
    (row,) = raceway.compare(run).rows
    assert row.best_evaluation is not None
    assert row.best_evaluation.value == run.best_return
    logged = {each.steps: each.mean for each in read_evaluations(run.directory / "evaluations.jsonl")}
    assert logged.items() <= found.items()


def test_metrics_outcome_and_comparison_agree(tmp_path: Path) -> None:
    for seed in range(3):
        _check_agreement(_train(tmp_path, seed))


@pytest.mark.slow
def test_they_agree_over_many_short_runs(tmp_path: Path) -> None:
    for seed in range(40):
        _check_agreement(_train(tmp_path, seed, total_steps=2_000 + 500 * (seed % 8)))


def test_evaluations_that_the_reporter_never_heard_of_are_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Reporter, "_tell_evaluations", lambda self, evaluations: None)
    run = _train(tmp_path, 1, total_steps=20_000)
    assert len(_evaluations(run)) > 1
    _check_agreement(run)


def test_a_policy_that_was_kept_without_a_line_is_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The evaluator was killed in between."""
    monkeypatch.setattr(Reporter, "_tell_evaluations", lambda self, evaluations: None)
    monkeypatch.setattr("raceway.training.ending.read_evaluations", lambda path: [])
    run = _train(tmp_path, 1, total_steps=20_000)
    found = _evaluations(run)
    assert max(found.values()) == run.best_return


def test_a_damaged_log_loses_only_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(path: Path) -> list[Evaluation]:
        raise RunFolderError("evaluations.jsonl is damaged")

    monkeypatch.setattr("raceway.training.ending.read_evaluations", damaged)
    assert _train(tmp_path, 1).evaluation is not None


def test_the_log_is_read_by_policy_and_forgives_its_last_line(tmp_path: Path) -> None:
    path = tmp_path / "evaluations.jsonl"
    assert read_evaluations(path) == []
    first = Evaluation(1, 128, (1.0, 2.0), (1, 2))
    for each in (Evaluation(2, 256, (3.0,), (3,)), first, first):
        append_evaluation(path, each)
    assert [each.version for each in read_evaluations(path)] == [1, 2]
    with path.open("a") as file:
        file.write('{"version": 3, "ste')
    assert [each.version for each in read_evaluations(path)] == [1, 2]
    with path.open("a") as file:
        file.write("\n")
    with pytest.raises(RunFolderError, match="a line that is not an evaluation"):
        read_evaluations(path)
