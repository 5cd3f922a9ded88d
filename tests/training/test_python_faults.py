"""Environments in Python that raise, and workers that are killed, in the middle of training."""

from __future__ import annotations

import json
import signal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import raceway
from raceway.errors import EnvError, SettingError
from raceway.graph import ReactionError
from tests.training.probes import Deadly, Loose, Stuck, Walk
from tests.training.small_runs import SMALL, chain

pytestmark = pytest.mark.usefixtures("compiled_without_optimizing")

ROUNDS = 8


@pytest.mark.parametrize("collector", ["worker", pytest.param("central", marks=pytest.mark.slow)])
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


def test_a_worker_that_hangs_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvError, match=r"worker"):
        train(tmp_path, Stuck, worker_timeout=2.0)
    with pytest.raises(SettingError, match="worker_timeout"):
        train(tmp_path, Walk, worker_timeout=0)


def test_an_environment_that_hangs_at_first_is_given_up(tmp_path: Path) -> None:
    class Asleep(Walk):
        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
            signal.pause()

    with pytest.raises(EnvError, match=r"Worker 0 of .*Asleep .* for more than worker_timeout=1 seconds"):
        train(tmp_path, Asleep, worker_timeout=1.0)
    assert not list(tmp_path.iterdir())


def test_a_native_task_says_that_it_ignores_what_is_for_python(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = {"directory": str(tmp_path), "interval_s": 1000.0}
    train(tmp_path, "CartPole-v1", on_error="restart", worker_timeout=5, log=log)
    said = "without effect: on_error='restart', worker_timeout=5, since CartPole-v1 runs natively"
    assert said in capsys.readouterr().out
    train(tmp_path, "CartPole-v1", on_error="restart", worker_timeout=5, lane="inline", log=log)
    assert "without effect" not in capsys.readouterr().out


def test_a_vector_environment_takes_no_arguments(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"env_args=\{'gravity': 3\}, but the vector environment"):
        train(tmp_path, SyncVectorEnv([Walk] * 4), env_args={"gravity": 3})
    assert not list(tmp_path.iterdir())


def test_a_policy_that_is_not_finite_is_told_as_such(tmp_path: Path) -> None:
    class Blind(Walk):
        def _seen(self) -> np.ndarray:
            return np.array([np.nan if self.steps == 3 else self.place, 0.0])

    with pytest.raises(
        ReactionError, match=r"DivergedError: Round 0: environment \d gave nan in obs\[0\] before step 3"
    ):
        train(tmp_path, Blind)


def test_a_lane_that_cannot_be_leaves_no_folder_behind(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="lane='native', but Walk is not one"):
        train(tmp_path, Walk, lane="native")
    assert not list(tmp_path.iterdir())
