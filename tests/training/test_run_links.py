"""No link below a run folder is followed to write or delete anything."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import raceway
from raceway.errors import RunFolderError
from raceway.files import cut, open_to_append, remove, write_whole
from raceway.report.metrics import MetricsLog
from raceway.report.video import write_video
from raceway.training.checkpoints import Checkpoints
from raceway.training.dump import write_dump
from tests.training.fuzz_run_folders import SETTINGS

FOLDERS = ("best", "checkpoints", "dumps", "final", "initial", "tensorboard", "videos")


def train(directory: Path, **others: object) -> Path:
    log = {"directory": str(directory), "name": "run", "quiet": True, "tensorboard": False}
    return raceway.train("CartPole-v1", log=log, **{**SETTINGS, **others}).directory


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def mine(run: Path, tmp_path: Path) -> Path:
    shutil.copytree(run, tmp_path / "mine")
    return tmp_path / "mine"


@pytest.fixture
def precious(run: Path, tmp_path: Path) -> Path:
    """Another run, which nothing may change."""
    shutil.copytree(run, tmp_path / "precious")
    (tmp_path / "precious/policy-7.safetensors").write_text("years of work")
    (tmp_path / "precious/checkpoint-000000001.json").write_text("years of work")
    return tmp_path / "precious"


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_run_with_a_linked_folder_is_neither_begun_nor_gone_on_with(
    mine: Path, precious: Path, tmp_path: Path, name: str
) -> None:
    before = content(precious)
    if (mine / name).exists():
        shutil.rmtree(mine / name)
    (mine / name).symlink_to(precious)
    with pytest.raises(RunFolderError, match=rf"{name} is a link, and nothing is written or deleted through links"):
        raceway.resume(mine, total_steps=4 * 8 * 20)
    (mine / "config.json").unlink()
    (tmp_path / "CartPole-v1").mkdir()
    mine.rename(tmp_path / "CartPole-v1/run")
    with pytest.raises(RunFolderError, match=f"{name} is a link"):
        train(tmp_path)
    assert content(precious) == before


def test_a_link_that_is_put_there_during_a_run_is_not_followed(tmp_path: Path, precious: Path) -> None:
    class Plant(raceway.Callback):
        def on_round(self, told: object, control: object) -> None:
            for name in ("final", "best"):
                path = tmp_path / "CartPole-v1/run" / name
                if not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                    path.symlink_to(precious)

    before = content(precious)
    with pytest.raises(RunFolderError, match="is a link"):
        train(tmp_path, callbacks=[Plant()], evaluation={"enabled": False})
    assert content(precious) == before


def test_a_run_folder_may_itself_be_named_by_a_link(mine: Path, tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to(mine)
    assert raceway.resume(tmp_path / "latest", total_steps=4 * 8 * 20).directory == mine
    assert raceway.load(tmp_path / "latest").env == "CartPole-v1"
    (tmp_path / "CartPole-v1").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "CartPole-v1/run").symlink_to(tmp_path / "elsewhere")
    assert train(tmp_path) == tmp_path / "elsewhere"


def test_nothing_that_writes_or_deletes_follows_a_linked_folder(tmp_path: Path, precious: Path) -> None:
    before = content(precious)
    link = tmp_path / "link"
    link.symlink_to(precious)
    acts: list[Callable[[], object]] = [
        lambda: write_whole(link / "new", b"x"),
        lambda: remove(link / "policy-7.safetensors"),
        lambda: open_to_append(link / "metrics.jsonl"),
        lambda: cut(link / "metrics.jsonl", 0),
        lambda: Checkpoints(link, keep=1)._remove_all_but(100, ""),
        lambda: write_dump(link, 1, {}),
    ]
    for act in acts:
        with pytest.raises(RunFolderError, match="is a link"):
            act()
    with MetricsLog(precious, tensorboard=False):
        pass
    assert content(precious) == before


def test_tensorboard_does_not_empty_what_a_link_leads_to(tmp_path: Path, precious: Path) -> None:
    before = content(precious)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/tensorboard").symlink_to(precious)
    log = MetricsLog(tmp_path / "mine", tensorboard=True)
    log.write(1, {"a": 1.0})
    log.close()
    assert "is a link" in log.troubles[0]
    assert content(precious) == before


def test_a_copy_that_was_made_by_hard_links_is_not_changed(mine: Path, tmp_path: Path) -> None:
    shutil.copytree(mine, tmp_path / "copy", copy_function=os.link)
    before = content(mine)
    assert raceway.resume(tmp_path / "copy", total_steps=4 * 8 * 20).steps == 4 * 8 * 20
    assert {name: each for name, each in content(mine).items() if name != "lock"} == {
        name: each for name, each in before.items() if name != "lock"
    }


def test_of_a_huge_log_with_hard_links_only_what_is_wanted_is_copied(tmp_path: Path) -> None:
    log, other = tmp_path / "chain.jsonl", tmp_path / "other"
    log.write_text("a\nb\n")
    os.truncate(log, 40 << 30)
    os.link(log, other)
    assert cut(log, 2) == 40 << 30
    assert log.read_text() == "a\n"
    assert other.stat().st_size == 40 << 30


@pytest.mark.parametrize("planted", ["videos", "videos/.policy-1.part.mp4", "videos/policy-1.mp4"])
def test_a_video_is_not_written_through_a_link(mine: Path, precious: Path, planted: str) -> None:
    before = content(precious)
    shutil.rmtree(mine / "videos")
    if planted != "videos":
        (mine / "videos").mkdir()
    (mine / planted).symlink_to(precious if planted == "videos" else precious / "policy-7.safetensors")
    if planted == "videos":  # and no settings to tell that it is a run's
        (mine / "config.json").unlink()
        (mine / "config.json").symlink_to("nowhere")
    frames = [np.zeros((16, 16, 3), np.uint8)] * 2
    if planted == "videos":
        with pytest.raises(RunFolderError, match="videos is a link, and nothing is written"):
            write_video(mine / "videos/policy-1.mp4", frames, 30)
    else:
        write_video(mine / "videos/policy-1.mp4", frames, 30)
        assert (mine / "videos/policy-1.mp4").stat().st_size
        assert not (mine / "videos/policy-1.mp4").is_symlink()
    assert content(precious) == before


def test_a_video_elsewhere_may_go_through_the_users_own_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "mine").symlink_to(tmp_path / "disk")
    write_video(tmp_path / "mine/a.mp4", [np.zeros((16, 16, 3), np.uint8)], 30)
    assert [file.name for file in (tmp_path / "disk").iterdir()] == ["a.mp4"]
