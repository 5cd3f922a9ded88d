"""The cache of compiled headers: what is in it is used only if it is what was made, and made again if not."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from raceway.envs import compiler
from raceway.files import sync as sync_file
from tests.envs import own_headers
from tests.envs.fuzz_cache import try_cases

FEW, MANY = 100, 2_000
_TWICE = """
import shutil, sys, raceway, raceway.errors
open(sys.argv[1], "wb").close()
try:
    raceway.load_native(sys.argv[1])
except raceway.errors.NativeEnvError:
    print("refused")
shutil.copy(sys.argv[2], sys.argv[1])
print(raceway.load_native(sys.argv[1]))
"""
LOAD = "import sys, raceway; print(raceway.load_native(sys.argv[1]))"


@pytest.fixture(scope="module")
def header(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return own_headers.noise(tmp_path_factory.mktemp("header"))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CXXFLAGS", "-O0")
    return tmp_path / "raceway/native"


def load(header: Path) -> str:
    """In a process of its own: a library is opened once for all."""
    done = subprocess.run([sys.executable, "-c", LOAD, str(header)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def files(cache: Path) -> tuple[Path, Path]:
    (library,), (record,) = cache.glob("*.so"), cache.glob("*.json")
    return library, record


def forge(cache: Path, content: bytes) -> None:
    """As if a library that cannot be used had been made."""
    library, record = files(cache)
    library.write_bytes(content)
    told = json.loads(record.read_text())
    told[library.name]["sha256"] = compiler._digest(library)
    record.write_text(json.dumps(told))


def library_without_environment(place: Path) -> bytes:
    """One that can be opened."""
    (place / "other.c").write_text("int nothing(void) { return 1; }")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "other.so", "other.c"], cwd=place, check=True)
    return (place / "other.so").read_bytes()


def test_an_empty_and_a_foreign_library_do_not_blame_the_header(header: Path, cache: Path) -> None:
    assert load(header) == "Noise-v0"
    library, record = files(cache)
    good = json.loads(record.read_text())
    library.write_bytes(b"")
    assert load(header) == "Noise-v0"
    forge(cache, b"\x7fELF" + bytes(5000))
    assert load(header) == "Noise-v0"
    forge(cache, library_without_environment(cache.parent))
    assert load(header) == "Noise-v0"
    library, record = files(cache)
    assert json.loads(record.read_text()).keys() == good.keys()
    assert compiler._digest(library) == json.loads(record.read_text())[library.name]["sha256"]


def test_spoiled_caches_are_healed(cache: Path, tmp_path: Path) -> None:
    assert try_cases(tmp_path, range(FEW)) == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_thousands_of_spoiled_caches_are_healed(cache: Path, tmp_path: Path) -> None:
    assert try_cases(tmp_path, range(MANY)) == []


def test_a_library_that_others_can_write_or_that_is_a_link_is_not_opened(
    header: Path, cache: Path, tmp_path: Path
) -> None:
    load(header)
    library, record = files(cache)
    for path in (library, record):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    entry = library.with_name(library.name.rpartition("-")[0])
    assert compiler._hit(entry) == library
    for path in (library, record):
        os.chmod(path, 0o666)
        assert compiler._hit(entry) is None
        os.chmod(path, 0o600)
    library.rename(tmp_path / "elsewhere.so")
    library.symlink_to(tmp_path / "elsewhere.so")
    assert compiler._hit(entry) is None


def test_a_cache_of_somebody_else_is_not_used(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiler.cache_directory() == cache
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    assert compiler.cache_directory() != cache


def test_a_cache_that_everybody_can_write_to_is_emptied(cache: Path) -> None:
    assert compiler.cache_directory() == cache
    (cache / "planted.so").write_bytes(b"x")
    (cache / "folder").mkdir()
    os.chmod(cache, 0o777)
    assert compiler.cache_directory() == cache
    assert list(cache.iterdir()) == []
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700


def test_a_cache_below_a_folder_that_everybody_can_write_to_is_not_used(cache: Path, tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o777)
    assert compiler.cache_directory() != cache
    os.chmod(tmp_path, 0o1777)  # as /tmp: others cannot rename what is ours
    assert compiler.cache_directory() == cache


def test_it_works_for_those_whose_files_are_their_groups_too(header: Path, cache: Path) -> None:
    before = os.umask(0o002)
    try:
        load(header)
        library, _ = files(cache)
        inode = library.stat().st_ino
        load(header)
        assert files(cache)[0].stat().st_ino == inode  # it was found, and not compiled again
    finally:
        os.umask(before)


def test_a_library_is_on_disk_before_it_has_its_name(
    header: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[str, str]] = []
    sync, replace = sync_file, Path.replace

    def synced(path: Path) -> None:
        done.append(("sync", path.name))
        sync(path)

    def replaced(self: Path, target: Any) -> Path:
        done.append(("replace", Path(target).suffix))
        return replace(self, target)

    monkeypatch.setattr("raceway.envs.compiler.sync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    compiler.compiled(header)
    assert done == [("sync", "library.so"), ("replace", ".so")]


@pytest.mark.parametrize("kind", [*(pytest.param(each, marks=pytest.mark.slow) for each in ("lock", "json")), "so"])
def test_a_folder_in_the_place_of_a_file_is_removed(header: Path, cache: Path, kind: str) -> None:
    load(header)
    (path,) = cache.glob(f"*.{kind}")
    path.unlink()
    (path / "inside").mkdir(parents=True)
    assert load(header) == "Noise-v0"
    if kind == "lock":  # it is needed only when something is compiled
        for each in cache.glob("*.so"):
            each.unlink()
        assert load(header) == "Noise-v0"
    assert path.is_file()


def test_what_a_killed_compiler_left_is_removed_in_time(header: Path, cache: Path) -> None:
    load(header)
    names = [".begun-old", ".begun-new"]
    for name in names:
        (cache / name).mkdir()
        (cache / name / "library.so").touch()
    os.utime(cache / ".begun-old", (0, 0))
    for each in cache.glob("*.so"):
        each.unlink()
    load(header)
    assert [(cache / name).exists() for name in names] == [False, True]


def test_a_library_that_was_refused_can_be_put_right(header: Path, cache: Path, tmp_path: Path) -> None:
    """One of the user's own: a refused one was not opened for good, and does not stand for its name."""
    load(header)
    library, _ = files(cache)
    arguments = [str(tmp_path / "own.so"), str(library)]
    done = subprocess.run([sys.executable, "-c", _TWICE, *arguments], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["refused", "Noise-v0"], done.stderr
