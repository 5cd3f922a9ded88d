"""Environments in Python that raise, and workers that are killed, in the middle of training."""

from __future__ import annotations

import json
import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import raceway
from raceway.errors import EnvError, SettingError
from raceway.graph import ReactionError
from tests.training.probes import Walk
from tests.training.small_runs import SMALL, chain

ROUNDS = 8


class Deadly(Walk):
    """Kills its process, once, in a step of its choice."""

    def __init__(self, mark: str, after: int) -> None:
        super().__init__()
        self.mark, self.left = Path(mark), after

    def step(self, action: Any) -> Any:
        self.left -= 1
        if self.left == 0 and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().step(action)


class Loose(Walk):
    """Raises now and then."""

    def step(self, action: Any) -> Any:
        if self.np_random.random() < 0.02:
            raise RuntimeError("the cable is loose")
        return super().step(action)


@pytest.mark.parametrize("collector", ["worker", "central"])
def test_a_run_whose_worker_is_killed_has_the_same_chain(tmp_path: Path, collector: str) -> None:
    settings: dict[str, Any] = {"collector": collector, "on_error": "restart", "num_workers": 2}
    undisturbed = chain(Walk, ROUNDS, **settings)
    # In the first round, and in the middle of a later one.
    for number, after in enumerate((3, 37)):
        mark = tmp_path / f"killed-{number}"
        assert chain(partial(Deadly, str(mark), after), ROUNDS, **settings) == undisturbed
        assert mark.exists()


def train(directory: Path, env: Any, **settings: Any) -> raceway.Run:
    log = {"directory": str(directory), "quiet": True}
    small = {**SMALL, "num_workers": 2, "total_steps": 4 * 8 * 20, "log": log, "evaluation": {"enabled": False}}
    return raceway.train(env, **{**small, **settings})


@pytest.mark.parametrize("collector", ["worker", "central"])
def test_restarts_are_counted(tmp_path: Path, collector: str, capsys: pytest.CaptureFixture[str]) -> None:
    log = {"directory": str(tmp_path), "interval_s": 1000.0}
    run = train(tmp_path, Loose, on_error="restart", collector=collector, log=log)
    rows = [json.loads(line) for line in (run.directory / "metrics.jsonl").read_text().splitlines()]
    assert rows[-1]["faults/total"] == sum(row["faults/round"] for row in rows) > 0
    out = capsys.readouterr().out
    assert f"environments were made anew {rows[-1]['faults/total']:.0f} times" in out
    assert "made anew, environment" in out
    assert ": RuntimeError: the cable is loose" in out


def test_workers_that_are_started_again_are_counted(tmp_path: Path) -> None:
    run = train(tmp_path, partial(Deadly, str(tmp_path / "mark"), 20), on_error="restart")
    last = json.loads((run.directory / "metrics.jsonl").read_text().splitlines()[-1])
    assert (last["faults/total"], last["faults/workers"]) == (0, 1)


def test_runs_without_restarts_have_no_such_metrics(tmp_path: Path) -> None:
    run = train(tmp_path, Walk)
    assert "faults" not in (run.directory / "metrics.jsonl").read_text()


@pytest.mark.parametrize("settings", [{}, {"collector": "central"}, {"lane": "inline"}], ids=str)
def test_an_environment_that_raises_ends_the_run_with_its_own_words(tmp_path: Path, settings: dict[str, Any]) -> None:
    with pytest.raises(EnvError, match="the cable is loose") as caught:
        train(tmp_path, Loose, **settings)
    assert caught.value.env is not None
    assert 'raise RuntimeError("the cable is loose")' in str(caught.value)
    assert "ReactionError" not in str(caught.value)


def test_a_killed_worker_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(EnvError, match=r"(?i)sigkill|killed"):
        train(tmp_path, partial(Deadly, str(tmp_path / "mark"), 20))


class Stuck(Walk):
    """Does not come back from a step."""

    def step(self, action: Any) -> Any:
        if self.steps == 7:
            signal.pause()
        return super().step(action)


def test_a_worker_that_hangs_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvError, match=r"worker"):
        train(tmp_path, Stuck, worker_timeout=2.0)
    with pytest.raises(SettingError, match="worker_timeout"):
        train(tmp_path, Walk, worker_timeout=0)


def test_a_policy_that_is_not_finite_is_told_as_such(tmp_path: Path) -> None:
    class Blind(Walk):
        def _seen(self) -> np.ndarray:
            return np.array([np.nan if self.steps == 3 else self.place, 0.0])

    with pytest.raises(
        ReactionError, match=r"DivergedError: Round 0: .* So is the observation that the environment gave"
    ):
        train(tmp_path, Blind)


def test_a_lane_that_cannot_be_leaves_no_folder_behind(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="lane='native', but Walk is not one"):
        train(tmp_path, Walk, lane="native")
    assert not list(tmp_path.iterdir())
