"""Folders of the cache."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from raceway.cache import private_folder, remove_foreign
from raceway.training.compiling import cache_directory


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "cache/raceway").mkdir(parents=True)
    return tmp_path / "cache/raceway"


@pytest.mark.parametrize(("link", "name"), [("trusted", "trusted"), ("compiled", "compiled/ab")])
def test_what_a_link_in_the_cache_leads_to_is_left_alone(cache: Path, tmp_path: Path, link: str, name: str) -> None:
    project = tmp_path / "project"
    for folder in (project / "src", project / "ab/src"):
        folder.mkdir(parents=True)
        folder.parent.chmod(0o775)
    (cache / link).symlink_to(project)
    assert private_folder(name) is None
    assert sorted(each.name for each in project.rglob("*")) == ["ab", "src", "src"]
    assert [each.stat().st_mode & 0o777 for each in (project, project / "ab")] == [0o775, 0o775]


@pytest.mark.parametrize("open_", ["compiled", "compiled/ab"])
def test_a_folder_that_others_could_write_to_is_emptied(cache: Path, tmp_path: Path, open_: str) -> None:
    made = private_folder("compiled/ab")
    assert made == cache / "compiled/ab"
    (tmp_path / "work").mkdir()
    (tmp_path / "work/file").touch()
    (made / "program").touch()
    (made / "link").symlink_to(tmp_path / "work")
    (cache / open_).chmod(0o775)
    assert private_folder("compiled/ab") == made
    assert list(made.iterdir()) == []
    assert (tmp_path / "work/file").exists()
    assert [each.stat().st_mode & 0o777 for each in (made, made.parent)] == [0o700, 0o700]


def test_what_is_no_file_of_the_users_or_is_too_large_is_removed(cache: Path, tmp_path: Path) -> None:
    folder = private_folder("compiled/ab")
    assert folder is not None
    (tmp_path / "elsewhere").write_text("precious")
    (folder / "good").write_text("x")
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(folder / "pipe")
    (folder / "folder/inside").mkdir(parents=True)
    (folder / "open").touch()
    (folder / "open").chmod(0o666)
    (folder / "large").touch()
    os.truncate(folder / "large", 20 * 10**9)
    remove_foreign(folder, 1 << 28)
    assert [each.name for each in folder.iterdir()] == ["good"]
    assert (tmp_path / "elsewhere").read_text() == "precious"


def test_programs_of_jax_are_looked_at_before_they_are_used(cache: Path) -> None:
    folder = cache_directory()
    assert folder is not None
    os.mkfifo(folder / "jit_learn-cache")  # reading it would take for ever
    assert cache_directory() == folder
    assert list(folder.iterdir()) == []
