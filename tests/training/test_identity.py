"""Checkpoints and policies say which run they belong to."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import raceway
from raceway.errors import RunFolderError
from raceway.training.config import TrainConfig, lost_arguments
from raceway.training.identity import check_identity, identity_of
from tests.training.fuzz_run_folders import SETTINGS

MORE = 4 * 8 * 20


def train(directory: Path, **others: Any) -> Path:
    log = {"directory": str(directory), "name": "run", "quiet": True, "tensorboard": False}
    return raceway.train("CartPole-v1", log=log, **{**SETTINGS, **others}).directory


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Of two seeds, with equal settings."""
    return {seed: train(tmp_path_factory.mktemp(f"seed{seed}"), seed=seed) for seed in (1, 2)}


@pytest.fixture
def run(runs: dict[int, Path], tmp_path: Path) -> Path:
    shutil.copytree(runs[1], tmp_path / "run")
    return tmp_path / "run"


def test_a_checkpoint_of_another_seed_is_refused(run: Path, runs: dict[int, Path]) -> None:
    shutil.rmtree(run / "checkpoints")
    shutil.copytree(runs[2] / "checkpoints", run / "checkpoints")
    with pytest.raises(RunFolderError, match=r"checkpoint-\d+\.json belongs to another run: seed=2 \(here 1\)"):
        raceway.resume(run, total_steps=MORE)


@pytest.mark.parametrize("which", ["best", "final"])
def test_a_policy_of_another_seed_is_refused(run: Path, runs: dict[int, Path], which: str) -> None:
    shutil.rmtree(run / which)
    shutil.copytree(runs[2] / which, run / which)
    with pytest.raises(RunFolderError, match=rf"The policy in .*{which} belongs to another run: seed=2 \(here 1\)"):
        raceway.load(run, which)
    other = "final" if which == "best" else "best"
    assert raceway.load(run, other).config.seed == 1


def test_settings_that_were_changed_afterwards_are_noticed(run: Path) -> None:
    config = json.loads((run / "config.json").read_text())
    config["ppo"]["gamma"] = 0.5
    (run / "config.json").write_text(json.dumps(config))
    with pytest.raises(RunFolderError, match=r"under other settings than those in this run's config\.json"):
        raceway.resume(run, total_steps=MORE)


def test_what_does_not_show_in_the_bits_may_change(run: Path) -> None:
    config = json.loads((run / "config.json").read_text())
    config["evaluation"]["episodes"] = 3
    config["checkpoint"]["keep"] = 5
    config["num_workers"] = 1
    (run / "config.json").write_text(json.dumps(config))
    assert raceway.resume(run, total_steps=MORE).steps == MORE


def test_equal_runs_have_equal_files(runs: dict[int, Path], tmp_path: Path) -> None:
    again = train(tmp_path, seed=1)
    for name in ("final/policy.json", "config.json"):
        mine, other = (json.loads((each / name).read_text()) for each in (again, runs[1]))
        assert {k: v for k, v in mine.items() if k != "log"} == {k: v for k, v in other.items() if k != "log"}


@pytest.mark.parametrize("told", [None, 7, "x", [], {}, {"sha256": "x"}, {"env": ["x"] * 100_000}])
def test_whatever_a_file_says_instead_is_refused_in_words(told: Any) -> None:
    with pytest.raises(RunFolderError) as raised:
        check_identity("file", told, TrainConfig(env="CartPole-v1"))
    assert len(str(raised.value)) < 500


def test_arguments_that_no_file_can_hold_do_not_count() -> None:
    one, other = (TrainConfig(env="a:b", env_args={"tell": each}) for each in (object(), object()))
    assert identity_of(one) == identity_of(other) == identity_of(TrainConfig(env="a:b"))
    assert identity_of(TrainConfig(env="a:b", env_args={"tell": 1})) != identity_of(one)


@pytest.mark.parametrize("held", [lambda it: [it], lambda it: {"in": {"a": [1, it]}}, lambda it: {3: it}])
def test_nor_do_those_that_only_contain_an_object(held: Any) -> None:
    one, other = (TrainConfig(env="a:b", env_args={"parts": held(object()), "n": 2}) for _ in range(2))
    read_again = TrainConfig.from_dict(json.loads(json.dumps(one.to_dict())))
    assert identity_of(one) == identity_of(other) == identity_of(read_again)
    assert lost_arguments(one.env_args) == lost_arguments(read_again.env_args) == ["parts"]


def test_where_a_header_lies_makes_no_difference() -> None:
    one, other = (identity_of(TrainConfig(env=f"/{place}/task.hpp")) for place in "ab")
    assert one == other


def test_the_outcome_of_another_run_is_refused(run: Path, runs: dict[int, Path]) -> None:
    shutil.copy(runs[2] / "outcome.json", run / "outcome.json")
    with pytest.raises(RunFolderError, match=r"outcome\.json belongs to another run: seed=2 \(here 1\)"):
        raceway.resume(run)
    shutil.copy(runs[1] / "outcome.json", run / "outcome.json")
    raceway.resume(run)
    config = json.loads((run / "config.json").read_text())
    config["ppo"]["gamma"] = 0.5
    (run / "config.json").write_text(json.dumps(config))
    with pytest.raises(RunFolderError, match=r"outcome\.json was written under other settings.*Put the settings back"):
        raceway.resume(run)
