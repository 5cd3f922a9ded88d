"""Code that a run folder names is run only if the very same files were trained with here."""

from __future__ import annotations

import importlib
import json
import os
import stat
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from raceway import local_code
from raceway.cli import main
from raceway.errors import SettingError
from raceway.training.config import TrainConfig
from raceway.training.folder import RunFolder
from raceway.training.resolve import resolve
from raceway.training.trust import check_code, remember_code

TASK = "class MyTask: ...\n"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/raceway/trusted"


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Path]:
    """The folder that commands are given in, with a module."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "my_task_of_trust.py").write_text(TASK)
    local_code.look_in(str(folder))
    yield folder
    local_code.look_in(None)


def config_of(env: str = "my_task_of_trust:MyTask", **env_args: object) -> TrainConfig:
    return TrainConfig(env=env, env_args=dict(env_args))


def is_trusted(config: TrainConfig) -> bool:
    try:
        check_code(RunFolder(Path("run")), config, trust=False)
    except SettingError:
        return False
    return True


def test_what_was_trained_with_is_trusted(here: Path) -> None:
    assert not is_trusted(config_of())
    remember_code(config_of())
    assert is_trusted(config_of())
    assert not is_trusted(config_of(size=3))
    assert not is_trusted(config_of("my_task_of_trust:Other"))


def test_another_folders_module_of_the_same_name_is_not(here: Path, tmp_path: Path) -> None:
    remember_code(config_of())
    other = tmp_path / "other"
    other.mkdir()
    (other / "my_task_of_trust.py").write_text(TASK)  # even if it says the same: what it imports may differ
    local_code.look_in(str(other))
    assert not is_trusted(config_of())


def test_a_file_that_was_changed_is_not_and_that_is_said(here: Path) -> None:
    remember_code(config_of())
    (here / "my_task_of_trust.py").write_text(TASK + "import os\n")
    with pytest.raises(
        SettingError, match=r"has changed since .* my_task_of_trust:MyTask\(\) of .*my_task_of_trust\.py, for its env"
    ):
        check_code(RunFolder(Path("run")), config_of(), trust=False)
    check_code(RunFolder(Path("run")), config_of(), trust=True)


def test_the_packages_above_a_module_count_too(here: Path) -> None:
    inner = here / "package_of_trust/inner"
    inner.mkdir(parents=True)
    for file in (inner / "task.py", inner / "__init__.py", inner.parent / "__init__.py"):
        file.write_text("")
    config = config_of("package_of_trust.inner.task:make")
    remember_code(config)
    assert is_trusted(config)
    (inner.parent / "__init__.py").write_text("import os\n")
    assert not is_trusted(config)


def test_nothing_is_imported_to_find_that_out(here: Path) -> None:
    package = here / "loud_package_of_trust"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('imported')\n")
    (package / "task.py").write_text("")
    assert not is_trusted(config_of("loud_package_of_trust.task:make"))
    assert not is_trusted(config_of("no_such_package_of_trust.task:make"))
    assert not is_trusted(config_of("os:system", command="true"))


def test_a_header_is_known_by_path_and_content(tmp_path: Path) -> None:
    header = tmp_path / "task.hpp"
    header.write_text("// one\n")
    config = config_of(str(header))
    remember_code(config)
    assert is_trusted(config)
    header.write_text("// two\n")
    assert not is_trusted(config)


def test_marks_that_somebody_else_could_have_made_do_not_count(here: Path, cache: Path) -> None:
    remember_code(config_of())
    (mark,) = cache.iterdir()
    assert stat.S_IMODE(mark.stat().st_mode) == 0o600
    os.chmod(mark, 0o666)
    assert not is_trusted(config_of())
    os.chmod(mark, 0o600)
    assert is_trusted(config_of())
    os.chmod(cache, 0o777)
    assert not is_trusted(config_of())  # and what was in it is gone
    assert not list(cache.iterdir())
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700


@pytest.mark.parametrize("content", ["", "{}", "[]", "null", '{"a": 1}', "{" * 100_000, '"x"' * 1_000_000])
def test_a_mark_that_says_something_else_does_not_count(here: Path, cache: Path, content: str) -> None:
    remember_code(config_of())
    (mark,) = cache.iterdir()
    mark.write_text(content)
    assert not is_trusted(config_of())


LOUD = "raise SystemExit('imported')\n"


def settings_file(folder: Path, **settings: object) -> Path:
    file = folder / "config.json"
    file.write_text(json.dumps(settings))
    return file


@pytest.mark.parametrize("options", [[], ["--help"], ["--seeds", "2"]], ids=str)
def test_an_environment_that_only_a_settings_file_names_is_not_run(
    here: Path,
    cache: Path,
    options: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(here)
    (here / "loud_of_trust.py").write_text(LOUD)
    settings_file(here, env="loud_of_trust:make")
    assert main(["train", "--config", "config.json", *options]) == 2
    assert "name it yourself: raceway train loud_of_trust:make --config config.json." in capsys.readouterr().err
    assert not cache.exists() or not list(cache.iterdir())


def test_a_network_that_only_a_settings_file_names_is_not_run(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(here)
    (here / "loud_of_trust.py").write_text(LOUD)
    settings_file(here, network="loud_of_trust:pair")
    assert main(["train", "CartPole-v1", "--config", "config.json"]) == 2
    assert "raceway train --network loud_of_trust:pair --config config.json." in capsys.readouterr().err


def test_a_header_that_only_a_settings_file_names_is_not_compiled(tmp_path: Path) -> None:
    header = tmp_path / "task.hpp"
    header.write_text("#error compiled\n")
    with pytest.raises(SettingError, match=r"that you have not trained with, .*task\.hpp, for its environment"):
        resolve(config_file=settings_file(tmp_path, env=str(header)))


def test_code_in_a_settings_file_is_used_if_it_was_trained_with_here_or_is_named_beside_it(here: Path) -> None:
    code = {"env": "my_task_of_trust:MyTask", "network.custom": "my_task_of_trust:pair"}
    file = settings_file(here, **code)
    named = resolve(code["env"], file, **{"network.custom": code["network.custom"]})
    for given in ({}, {"network.custom": code["network.custom"]}):
        with pytest.raises(SettingError, match="for its environment"):
            resolve(None, file, **given)
    with pytest.raises(SettingError, match="for its network"):
        resolve(code["env"], file)
    remember_code(named)
    assert resolve(config_file=file) == named


def test_the_network_of_a_folder_is_not_remembered_with_its_environment(here: Path, cache: Path) -> None:
    config = resolve("my_task_of_trust:MyTask", **{"network.custom": "my_task_of_trust:pair"})
    remember_code(config, with_network=False)
    assert len(list(cache.iterdir())) == 1


def test_code_that_cannot_be_read_is_not_trusted(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody would notice that it has changed."""
    monkeypatch.setattr("raceway.local_code._LARGEST", 100)
    (here / "my_task_of_trust.py").write_text(TASK + "#" * 100)
    remember_code(config_of())
    assert not is_trusted(config_of())


def test_code_in_an_archive_is_trusted_by_what_is_in_that(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = here / "code.zip"

    def write(text: str) -> None:
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr("task_in_archive.py", text)
        importlib.invalidate_caches()

    write(TASK)
    monkeypatch.setattr(sys, "path", [*sys.path, str(archive)])
    config = config_of("task_in_archive:MyTask")
    remember_code(config)
    assert is_trusted(config)
    write("import os\n" + TASK)
    assert not is_trusted(config)


def test_built_in_modules_have_no_file_and_are_remembered(here: Path) -> None:
    config = config_of("math:sqrt")
    remember_code(config)
    assert is_trusted(config)
