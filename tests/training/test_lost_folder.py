"""A run's folder that is deleted, moved, replaced, full or read-only during training: told in one line, and saved."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import raceway
from raceway.errors import RunFolderError
from raceway.files import KnownFolder
from raceway.graph import ReactionError
from raceway.training.callbacks import Control, Round
from raceway.training.checkpoints import Checkpoints
from raceway.training.evaluation import Evaluation
from raceway.training.folder import RunFolder
from raceway.training.rescue import Rescue
from tests.training.full_disks import files_of_at_most
from tests.training.small_runs import SMALL

pytestmark = pytest.mark.usefixtures("compiled_without_optimizing")

ROUNDS = 40
SETTINGS: dict[str, Any] = {
    **SMALL,
    "total_steps": 4 * 8 * ROUNDS,
    "evaluation": {"enabled": False},
    "checkpoint": {"interval_s": 0.2},
}


class At(raceway.Callback):
    """Does something in the middle of training, and then waits until the folder has been looked at."""

    def __init__(self, act: Callable[[], None]) -> None:
        self.act = act

    def on_round(self, told: Round, control: Control) -> None:
        if told.round == ROUNDS // 2:
            self.act()


@pytest.fixture(autouse=True)
def looked_at_every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rather than once a second: these runs are shorter."""
    monkeypatch.setattr("raceway.training.rescue._LOOKS_EVERY_S", 0.0)


def train(directory: Path, act: Callable[[Path], None], **settings: Any) -> raceway.Run:
    log = {"directory": str(directory), "name": "run", "interval_s": 1000.0, "tensorboard": False}
    path = directory / "CartPole-v1/run"
    callbacks = [At(lambda: act(path))]
    return raceway.train("CartPole-v1", **{**SETTINGS, "log": log, "callbacks": callbacks, **settings})


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> raceway.Run:
    return train(tmp_path_factory.mktemp("undisturbed"), lambda path: None)


def deleted(path: Path) -> None:
    while path.exists():
        shutil.rmtree(path, ignore_errors=True)  # a checkpoint may be being written


def moved(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


def replaced(path: Path) -> None:
    moved(path)
    shutil.copytree(path.with_name("elsewhere"), path)


def linked(path: Path) -> None:
    moved(path)
    path.symlink_to(path.with_name("elsewhere"))


@pytest.mark.parametrize("act", [deleted, moved, replaced, linked], ids=["deleted", "moved", "replaced", "link"])
def test_a_folder_that_is_lost_is_saved_beside_it_and_resumed_from(
    act: Callable[[Path], None], tmp_path: Path, undisturbed: raceway.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: dict[Path, float] = {}

    def act_and_look(path: Path) -> None:
        act(path)
        seen.update({each: each.stat().st_mtime_ns for each in path.rglob("*")} if path.exists() else {})

    with pytest.raises(
        RunFolderError, match=r"run(/chain\.jsonl|/metrics\.jsonl)? was (deleted or moved|replaced by .*) while"
    ):
        train(tmp_path, act_and_look)
    said = capsys.readouterr().out
    path, saved = tmp_path / "CartPole-v1/run", tmp_path / "CartPole-v1/run-saved"
    assert said.count(f"The run stops, and is saved in {saved}") == 1
    assert f'raceway.resume("{saved}", callbacks=[...])' in said
    assert raceway.load(saved, "final").weights.version > ROUNDS // 2
    assert path.exists() == (act in (replaced, linked))
    if act is replaced:
        assert {each: each.stat().st_mtime_ns for each in path.rglob("*")} == seen, "nothing is written to it"
    run = raceway.resume(saved, callbacks=[At(lambda: None)], quiet=True)
    assert run.digest == undisturbed.digest
    assert (saved / "chain.jsonl").read_bytes() == (undisturbed.directory / "chain.jsonl").read_bytes()
    rounds = [json.loads(line).get("round") for line in (saved / "metrics.jsonl").read_text().splitlines()]
    assert rounds == list(range(ROUNDS))


@pytest.mark.parametrize("how", ["deleted", "replaced"])
@pytest.mark.parametrize("name", ["metrics.jsonl", "chain.jsonl"])
def test_a_log_that_is_lost_is_saved_with_the_run_beside_it(
    name: str, how: str, tmp_path: Path, undisturbed: raceway.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    def act(path: Path) -> None:
        (path / name).rename(path / "elsewhere")
        if how == "replaced":
            (path / name).touch()

    with pytest.raises(RunFolderError, match=rf"{name} was (deleted or moved|replaced by another file) while"):
        train(tmp_path, act)
    path, saved = tmp_path / "CartPole-v1/run", tmp_path / "CartPole-v1/run-saved"
    assert capsys.readouterr().out.count(f"The run stops, and is saved in {saved}") == 1
    assert (path / name).exists() == (how == "replaced")
    raceway.resume(saved, callbacks=[At(lambda: None)], quiet=True)
    assert (saved / "chain.jsonl").read_bytes() == (undisturbed.directory / "chain.jsonl").read_bytes()
    rounds = [json.loads(line).get("round") for line in (saved / "metrics.jsonl").read_text().splitlines()]
    assert rounds == list(range(ROUNDS))


def test_a_folder_whose_parent_is_gone_is_saved_where_the_user_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(RunFolderError, match="deleted or moved"):
        train(tmp_path / "runs", lambda path: deleted(tmp_path / "runs"), checkpoint={"enabled": False})
    saved = tmp_path / "here/run-saved"
    assert raceway.load(saved, "final").weights.version > 0
    assert not (tmp_path / "runs").exists()


def test_the_command_line_says_it_in_one_line_with_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from raceway.cli import answered

    def run() -> int:
        train(tmp_path, deleted)
        return 0

    assert answered(run) == 2
    said = capsys.readouterr()
    assert said.err == f"raceway: {tmp_path}/CartPole-v1/run was deleted or moved while the run was writing to it.\n"
    assert "Traceback" not in said.out


def test_a_folder_is_looked_at_once_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raceway.training.rescue._LOOKS_EVERY_S", 1000.0)
    (tmp_path / "run").mkdir()
    with Rescue(RunFolder(tmp_path / "run"), print) as rescue:
        shutil.rmtree(tmp_path / "run")
        assert not rescue.has_to_stop()
        assert rescue.look()
        assert rescue.has_to_stop()


# --- folders that stay, and cannot be written


class OnceSaved(At):
    """Does it when there is a checkpoint, however long that takes."""

    def __init__(self, path: Path, act: Callable[[], None]) -> None:
        super().__init__(act)
        self.path = path

    def on_round(self, told: Round, control: Control) -> None:
        if list(self.path.glob("checkpoints/*.json")):
            self.act()


def test_a_full_disk_is_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "CartPole-v1/run"

    def fill() -> None:
        limit = (path / "chain.jsonl").stat().st_size + 10
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    with (
        files_of_at_most(resource.RLIM_INFINITY),
        pytest.raises(RunFolderError, match="cannot be written: File too large"),
    ):
        train(tmp_path, lambda path: None, callbacks=[OnceSaved(path, fill)], total_steps=10_000_000)
    said = capsys.readouterr().out
    assert "go on       raceway.resume(" in said
    assert "Traceback" not in said


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_one_message(tmp_path: Path) -> None:
    path = tmp_path / "CartPole-v1/run"
    try:
        with pytest.raises(RunFolderError, match=r"could not be written|cannot be written"):
            train(tmp_path, lambda path: path.chmod(0o500))
    finally:
        path.chmod(0o700)


def test_a_policy_does_not_bring_back_a_deleted_folder(tmp_path: Path, undisturbed: raceway.Run) -> None:
    from raceway.training.policy_files import PolicyFile

    policy = raceway.load(undisturbed, "final")
    file = PolicyFile(tmp_path / "gone/best", policy.observation_space, policy.action_space)
    with pytest.raises(FileNotFoundError):
        file.write(policy.weights)
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize("link", [False, True], ids=["folder", "link"])
def test_a_policy_is_not_written_to_another_folder_at_the_path_of_its_run(
    tmp_path: Path, undisturbed: raceway.Run, link: bool
) -> None:
    from raceway.training.policy_files import Best, PolicyFile

    policy = raceway.load(undisturbed, "final")
    run, other = tmp_path / "run", tmp_path / "other"
    run.mkdir()
    file = PolicyFile(run / "best", policy.observation_space, policy.action_space, home=KnownFolder(run))
    evaluation = Evaluation(policy.weights.version, 0, (1.0,), (1,))
    file.write(policy.weights, evaluation)
    shutil.copytree(run, other)
    there = other / "best/policy-1.safetensors"
    there.write_bytes(b"of another run")
    run.rename(tmp_path / "elsewhere")
    if link:
        run.symlink_to(other)
    else:
        other.rename(run)
    before = {each: each.stat().st_mtime_ns for each in (run / "best").iterdir()}
    with pytest.raises(RunFolderError, match=r"run was replaced by (a link|something else) while the run was writing"):
        file.write(policy.weights)
    with pytest.raises(RunFolderError, match="run was replaced by"):
        Best(file).offer(policy.weights, evaluation)
    assert {each: each.stat().st_mtime_ns for each in (run / "best").iterdir()} == before


class Poisoned(gymnasium.Env[Any, Any]):
    """Gives NaN in the round after the folder was lost."""

    observation_space = gymnasium.spaces.Box(0, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        return np.zeros(1, np.float32), np.nan if self.steps > 8 * (ROUNDS // 2 + 1) else 1.0, False, False, {}


def test_the_data_of_an_update_that_failed_is_saved_beside_a_folder_that_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raceway.training.rescue._LOOKS_EVERY_S", 1000.0)
    log = {"directory": str(tmp_path), "name": "run", "quiet": True, "tensorboard": False}
    settings = {**SETTINGS, "checkpoint": {"enabled": False}, "lane": "inline", "log": log}
    with pytest.raises(ReactionError, match=r"The data of the update is in \S+/run-saved/dumps/round-\d+\.npz"):
        raceway.train(Poisoned, callbacks=[At(lambda: replaced(next(tmp_path.glob("*/run"))))], **settings)
    assert [each.parent.parent.name for each in tmp_path.glob("*/*/dumps/*")] == ["run-saved"]


def test_a_folder_that_cannot_be_looked_at_for_a_moment_is_not_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path) -> os.stat_result:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    (tmp_path / "run").mkdir()
    with Rescue(RunFolder(tmp_path / "run"), print) as rescue:
        with monkeypatch.context() as patch:
            patch.setattr(os, "lstat", fail)
            assert not rescue.look()
        assert not rescue.look()
        (tmp_path / "run").rename(tmp_path / "elsewhere")
        assert rescue.look()


def test_checkpoints_of_another_run_at_the_path_stay_as_they_are(tmp_path: Path, undisturbed: raceway.Run) -> None:
    newest = Checkpoints(undisturbed.directory / "checkpoints", keep=1).newest()
    assert newest is not None
    run = tmp_path / "run"
    run.mkdir()
    checkpoints = Checkpoints(run / "checkpoints", keep=1)
    checkpoints.home = KnownFolder(run)
    checkpoints.write(newest.snapshot, {})
    replaced(run)
    before = {each: each.stat().st_mtime_ns for each in run.rglob("*")}
    with pytest.raises(RunFolderError, match="run was replaced by something else"):
        checkpoints.write(newest.snapshot, {"other": "facts"})
    assert {each: each.stat().st_mtime_ns for each in run.rglob("*")} == before
