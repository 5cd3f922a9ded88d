"""D3: kill -9 at any moment, resume, and nothing tells the run from one that was never killed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.training.killing import folder, kill_at_random, same, start, train

CARTPOLE = {"total_steps": 64 * 8 * 500}
CHEETAH = {"env": "HalfCheetah-v5", "n_steps": 32, "total_steps": 32 * 8 * 500}


def check(directory: Path, settings: dict[str, Any], kills: int) -> None:
    whole = train(directory / "whole", settings)
    killed = 0
    for number in range(kills):
        # Every other one while a checkpoint is being written.
        killed += kill_at_random(directory / "killed", settings, 0.4, in_writing=number % 2 == 1)
    assert killed == kills, "the runs are too short to be killed so often"
    train(directory / "killed", settings)
    assert same(folder(directory / "killed", settings), whole) == []
    resumed = (folder(directory / "killed", settings) / "resumed.jsonl").read_text().splitlines()
    assert resumed, "it never went on from a checkpoint"


@pytest.mark.parametrize(
    "settings",
    [{"collector": "worker", "schedule": "concurrent"}, {"collector": "central", "schedule": "serial"}],
    ids=lambda settings: "-".join(settings.values()),
)
def test_a_run_that_is_killed_twice_equals_one_that_never_was(tmp_path: Path, settings: dict[str, Any]) -> None:
    check(tmp_path, settings, kills=2)


def test_a_run_that_is_killed_before_its_first_checkpoint_begins_again(tmp_path: Path) -> None:
    settings = {"checkpoint": {"interval_s": 1000.0}, "total_steps": 64 * 8 * 60}
    process = start(tmp_path / "killed", settings)
    chain = folder(tmp_path / "killed", settings) / "chain.jsonl"
    while not (chain.exists() and chain.stat().st_size) and process.poll() is None:
        time.sleep(0.002)
    process.kill()
    process.communicate()
    train(tmp_path / "killed", settings)
    assert same(folder(tmp_path / "killed", settings), train(tmp_path / "whole", settings)) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("schedule", ["serial", "concurrent"])
@pytest.mark.parametrize("collector", ["worker", "central"])
@pytest.mark.parametrize("task", [CARTPOLE, CHEETAH], ids=["CartPole", "HalfCheetah"])
def test_twenty_and_more_kills(tmp_path: Path, task: dict[str, Any], collector: str, schedule: str) -> None:
    check(tmp_path, {**task, "collector": collector, "schedule": schedule}, kills=5)
