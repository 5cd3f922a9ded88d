"""Every evaluation that counts is in the metrics when the run ends, however late it came."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import raceway
from raceway.errors import RunFolderError
from raceway.report.metrics import read_rows
from raceway.training.evaluation_log import append_evaluation, forget_evaluations, read_evaluations
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
    logged = read_evaluations(run.directory / "evaluations.jsonl")
    assert {steps: row["evaluation/return"] for steps, row in logged.items()} == found


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
    monkeypatch.setattr("raceway.training.ending.read_evaluations", lambda path: {})
    run = _train(tmp_path, 1, total_steps=20_000)
    found = _evaluations(run)
    assert max(found.values()) == run.best_return
    kept = json.loads((run.directory / "best" / "policy.json").read_text())["evaluation"]
    assert kept["steps"] in read_evaluations(run.directory / "evaluations.jsonl")


def test_a_damaged_log_loses_only_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(path: Path) -> dict[int, dict[str, float]]:
        raise RunFolderError("evaluations.jsonl is damaged")

    monkeypatch.setattr("raceway.training.ending.read_evaluations", damaged)
    assert _train(tmp_path, 1).evaluation is not None


def test_the_log_is_in_order_and_torn_lines_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "evaluations.jsonl"
    assert read_evaluations(path) == {}
    for steps, value in ((256, 3.0), (128, 1.0), (128, 2.0)):
        append_evaluation(path, steps, {"evaluation/return": value})
    assert list(read_evaluations(path).items()) == [
        (128, {"evaluation/return": 2.0}),
        (256, {"evaluation/return": 3.0}),
    ]
    with path.open("a") as file:
        file.write('{"step": 384, "evalu')
    assert list(read_evaluations(path)) == [128, 256]
    append_evaluation(path, 512, {"evaluation/return": math.nan})
    found = read_evaluations(path)
    assert list(found) == [128, 256, 512]
    assert math.isnan(found[512]["evaluation/return"])


@pytest.mark.parametrize("line", ["null", "[]", '{"step": -5}', '{"step": NaN}', '{"step": 1e400}', "{" * 2000, "\0"])
def test_a_line_that_is_no_evaluation_is_skipped(tmp_path: Path, line: str) -> None:
    path = tmp_path / "evaluations.jsonl"
    path.write_text(line + "\n")
    assert read_evaluations(path) == {}


def test_what_comes_after_a_checkpoint_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "evaluations.jsonl"
    forget_evaluations(path, 128)
    assert not path.exists()
    for steps in (64, 128, 192):
        append_evaluation(path, steps, {"evaluation/return": float(steps)})
    forget_evaluations(path, 128)
    assert list(read_evaluations(path)) == [64, 128]


def test_a_log_that_cannot_be_written_costs_no_evaluation(tmp_path: Path) -> None:
    class Obstacle(raceway.Callback):
        def on_round(self, told: Any, control: Any) -> None:
            (tmp_path / "CartPole-v1" / "1" / "evaluations.jsonl").mkdir(exist_ok=True)

    run = _train(tmp_path, 1, callbacks=[Obstacle()])
    assert len(_evaluations(run)) > 1
    longer = raceway.resume(run.directory, total_steps=2 * run.steps, callbacks=[Obstacle()])
    assert longer.steps > run.steps


class Interrupted(raceway.Callback):
    """Ctrl-C, late in the run."""

    def on_round(self, told: Any, control: Any) -> None:
        if told.steps > 15_000:
            raise KeyboardInterrupt


def test_an_interrupted_run_has_its_late_evaluations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reporter, "_tell_evaluations", lambda self, evaluations: None)
    with pytest.raises(KeyboardInterrupt):
        _train(tmp_path, 1, total_steps=20_000, callbacks=[Interrupted()])
    folder = tmp_path / "CartPole-v1" / "1"
    logged = read_evaluations(folder / "evaluations.jsonl")
    found = [row for row in read_rows(folder / "metrics.jsonl") if "evaluation/return" in row]
    rows = {row["step"]: row["evaluation/return"] for row in found}
    assert rows
    assert rows == {steps: row["evaluation/return"] for steps, row in logged.items()}


@pytest.mark.slow
def test_they_agree_after_a_kill(tmp_path: Path) -> None:
    """A run that is stopped and resumed says the same of its evaluations as one that was not."""
    run = _train(tmp_path, 1, total_steps=20_000, checkpoint={"interval_s": 0.2})
    (run.directory / "outcome.json").unlink()
    files = sorted((run.directory / "checkpoints").iterdir())
    for file in files:
        if file.stem == files[-1].stem:
            file.unlink()
    _check_agreement(raceway.resume(run.directory))
