"""D3: kill -9 at any moment, resume, and nothing tells the run from one that was never killed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.training.killing import folder, kill_at_random, same, start, train

CARTPOLE = {"total_steps": 64 * 8 * 500}
CHEETAH = {"env": "HalfCheetah-v5", "n_steps": 32, "total_steps": 32 * 8 * 500}


USUAL = {"collector": "worker", "schedule": "concurrent"}


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the usual settings that was never killed."""
    return train(tmp_path_factory.mktemp("whole"), USUAL)


def check(directory: Path, settings: dict[str, Any], kills: int, whole: Path) -> None:
    killed = 0
    for number in range(kills):
        # Every other one while a checkpoint is being written.
        killed += kill_at_random(directory / "killed", settings, 0.4, in_writing=number % 2 == 1)
    assert killed == kills, "the runs are too short to be killed so often"
    train(directory / "killed", settings)
    assert same(folder(directory / "killed", settings), whole) == []
    resumed = (folder(directory / "killed", settings) / "resumed.jsonl").read_text().splitlines()
    assert resumed, "it never went on from a checkpoint"


def test_a_run_that_is_killed_twice_equals_one_that_never_was(tmp_path: Path, usual: Path) -> None:
    check(tmp_path, USUAL, 2, usual)


@pytest.mark.slow
def test_a_run_that_is_killed_before_its_first_checkpoint_begins_again(tmp_path: Path, usual: Path) -> None:
    settings = {**USUAL, "checkpoint": {"interval_s": 1000.0}}
    process = start(tmp_path / "killed", settings)
    chain = folder(tmp_path / "killed", settings) / "chain.jsonl"
    while not (chain.exists() and chain.stat().st_size) and process.poll() is None:
        time.sleep(0.002)
    process.kill()
    process.communicate()
    train(tmp_path / "killed", settings)
    assert same(folder(tmp_path / "killed", settings), usual) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("schedule", ["serial", "concurrent"])
@pytest.mark.parametrize("collector", ["worker", "central"])
@pytest.mark.parametrize("task", [CARTPOLE, CHEETAH], ids=["CartPole", "HalfCheetah"])
def test_twenty_and_more_kills(tmp_path: Path, task: dict[str, Any], collector: str, schedule: str) -> None:
    settings = {**task, "collector": collector, "schedule": schedule}
    check(tmp_path, settings, 5, train(tmp_path / "whole", settings))
