"""The folder of a run."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from raceway.errors import RunFolderError, UserError
from raceway.files import read_json, write_json, write_whole
from raceway.training.array_files import read_arrays, write_arrays
from raceway.training.config import LogConfig, TrainConfig
from raceway.training.folder import RunFolder


def config_in(directory: Path, env: str = "CartPole-v1", name: str | None = None) -> TrainConfig:
    return TrainConfig(env=env, seed=3, log=LogConfig(directory=str(directory), name=name))


def created(config: TrainConfig) -> RunFolder:
    folder = RunFolder.at(config)
    folder.begin(config)
    return folder


def test_a_new_folder_has_its_name_its_settings_and_the_facts_of_the_system(tmp_path: Path) -> None:
    config = config_in(tmp_path)
    folder = created(config)
    assert folder.path.parent == tmp_path / "CartPole-v1"
    assert re.fullmatch(r"ppo-3-\d{8}-\d{6}", folder.path.name)
    assert RunFolder.open(folder.path).read_config() == config
    assert read_json(folder.system)["versions"]["raceway"]
    assert folder.videos.is_dir()


def test_those_that_start_in_the_same_second_do_not_meet(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: created(config_in(tmp_path)), range(8)))
    assert len({folder.path for folder in folders}) == 8


def test_a_name_that_is_given_is_the_name(tmp_path: Path) -> None:
    folder = RunFolder.at(config_in(tmp_path, name="same"))
    assert folder.path == tmp_path / "CartPole-v1" / "same"
    assert not folder.is_begun
    folder.begin(config_in(tmp_path, name="same"))
    again = RunFolder.at(config_in(tmp_path, name="same"))
    assert again.path == folder.path
    assert again.is_begun


@pytest.mark.parametrize("env", ["ALE/Pong-v5", "my.package:make_env", "../../etc", "a b\tc"])
def test_any_environment_makes_one_folder_below_the_directory(tmp_path: Path, env: str) -> None:
    folder = created(config_in(tmp_path / "runs", env))
    assert folder.path.parent.parent.resolve() == (tmp_path / "runs").resolve()
    assert re.fullmatch(r"[\w.+-]+", folder.path.parent.name)


def test_a_folder_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunFolderError, match=r"Not a directory\. Name another place: --log\.directory"):
        created(config_in(tmp_path / "file"))


def test_what_is_no_run_folder_is_told_apart(tmp_path: Path) -> None:
    folder = created(config_in(tmp_path))
    write_json(folder.best / "policy.json", {})
    for path, message in (
        (tmp_path / "none", "There is no"),
        (folder.config, "it is a file"),
        (folder.best, f"Give the folder above it: {folder.path}"),
        (tmp_path, f"it has no config.json. The newest run in it is {folder.path}"),
        (folder.videos, "it has no config.json."),
    ):
        with pytest.raises(RunFolderError) as raised:
            RunFolder.open(path)
        assert message in str(raised.value)
        assert isinstance(raised.value, UserError)


def test_the_best_policy_comes_before_the_final_one(tmp_path: Path) -> None:
    folder = created(config_in(tmp_path))
    with pytest.raises(RunFolderError, match="no policy yet"):
        folder.policy()
    write_json(folder.final / "policy.json", {})
    assert folder.policy() == folder.final
    with pytest.raises(RunFolderError, match=r"has no policy 'best'. There is: final"):
        folder.policy("best")
    write_json(folder.best / "policy.json", {})
    assert folder.policy() == folder.best
    assert folder.policy("final") == folder.final
    with pytest.raises(RunFolderError, match="There are: best, final"):
        folder.policy("worst")


def test_arrays_come_back_as_they_were(tmp_path: Path) -> None:
    arrays: dict[str, np.ndarray] = {
        "params": np.arange(7, dtype=np.float32),
        "mean.0": np.eye(3)[:, ::2],
        "count": np.array(3, np.int64),
    }
    write_arrays(tmp_path / "policy.safetensors", arrays)
    found = read_arrays(tmp_path / "policy.safetensors")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array, strict=True)


def test_damage_is_told_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(RunFolderError, match=r"a\.json is damaged"):
        read_json(tmp_path / "a.json")
    (tmp_path / "a.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0nonsense")
    with pytest.raises(RunFolderError, match=r"a\.safetensors is damaged"):
        read_arrays(tmp_path / "a.safetensors")
    with pytest.raises(RunFolderError, match=r"b\.safetensors cannot be read: No such file"):
        read_arrays(tmp_path / "b.safetensors")


def test_json_that_is_none_is_refused_and_leaves_the_old_one(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"x": 1})
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "a.json", {"x": float("nan")})
    assert read_json(tmp_path / "a.json") == {"x": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_whole(tmp_path / "a", b"old")

    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, "disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=f"disk full: '{tmp_path}/a'"):
        write_whole(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


def test_a_reader_never_sees_a_part_while_the_writer_is_killed_again_and_again(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    script = f"""if True:
        from pathlib import Path
        from raceway.files import write_json
        n = 0
        while True:
            n += 1
            write_json(Path({str(path)!r}), {{"n": n, "rest": [n] * 5000}})
    """
    for _ in range(3):
        before = path.stat().st_mtime_ns if path.exists() else 0
        writer = subprocess.Popen([sys.executable, "-c", script])
        deadline = time.monotonic() + 30
        while (not path.exists() or path.stat().st_mtime_ns == before) and time.monotonic() < deadline:
            time.sleep(0.01)
        for _ in range(100):
            content = json.loads(path.read_text())
            assert content["rest"] == [content["n"]] * 5000
        writer.kill()
        writer.wait()
        assert json.loads(path.read_text())["n"] >= 1


def test_files_can_be_read_by_those_who_may(tmp_path: Path) -> None:
    script = f"""if True:
        import os
        os.umask(0o027)
        from pathlib import Path
        from raceway.files import write_json
        write_json(Path({str(tmp_path / "a.json")!r}), {{}})
    """
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    assert (tmp_path / "a.json").stat().st_mode & 0o777 == 0o640
