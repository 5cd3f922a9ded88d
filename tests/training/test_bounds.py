"""Sizes from files and settings: refused in a moment, in a short message, before anything is allocated."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import raceway
from raceway.cli import main
from raceway.errors import RunFolderError, UserError
from raceway.training.array_files import read_arrays, write_arrays
from raceway.training.seeds import last_row
from tests.training.fuzz_run_folders import template

SPARSE = 20 * 10**9
_LONGEST_MESSAGE = 2000


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = template(tmp_path_factory.mktemp("runs"))
    raceway.load(found)  # so that what is imported for it is not counted below
    return found


@pytest.fixture
def copied(run: Path, tmp_path: Path) -> Path:
    shutil.copytree(run, tmp_path / "run")
    return tmp_path / "run"


@contextmanager
def in_a_moment() -> Iterator[None]:
    """Within seconds of CPU time and 400 MB."""
    started, peak = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert time.process_time() - started < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 400_000  # kilobytes


def refused(act: Callable[[], Any], match: str = ".") -> None:
    with in_a_moment(), pytest.raises(UserError, match=match) as raised:
        act()
    assert len(str(raised.value)) < _LONGEST_MESSAGE


READERS: dict[str, Callable[[Path], Any]] = {
    "load": raceway.load,
    "resume": raceway.resume,
    "evaluate": lambda run: raceway.evaluate(run, 1),
    "compare": raceway.compare,
    "export": raceway.export,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", ["config.json", "metrics.jsonl", "system.json", "best/policy.json", "outcome.json"])
def test_a_sparse_file_is_not_read(copied: Path, name: str, reader: str) -> None:
    (copied / name).touch()
    os.truncate(copied / name, SPARSE)
    said = Path(name).name
    with in_a_moment():
        try:
            READERS[reader](copied)  # it may not need the file
        except UserError as error:
            said = str(error)
    assert Path(name).name in said
    assert len(said) < _LONGEST_MESSAGE


@pytest.mark.parametrize("header", ["none", "longer than the file", "of other sizes", "of what is there"])
def test_sparse_arrays_are_not_read(copied: Path, header: str) -> None:
    for path in [*copied.glob("checkpoints/*.safetensors"), *copied.glob("best/*.safetensors")]:
        path.write_bytes(b"")
        os.truncate(path, SPARSE * 10)
        count = {"of other sizes": 7, "of what is there": (SPARSE * 10 - 8 - 128) // 4}.get(header, 0)
        told = {"params": {"dtype": "F32", "shape": [count], "data_offsets": [0, 4 * count]}}
        text = json.dumps(told).ljust(128).encode()
        with path.open("r+b") as file:
            if header == "longer than the file":
                file.write(struct.pack("<Q", 2**60))
            elif header != "none":
                file.write(struct.pack("<Q", len(text)) + text)
    refused(lambda: raceway.load(copied), r"policy-\d+\.safetensors (is damaged|has)")
    refused(lambda: raceway.resume(copied), r"None of the checkpoints|checksum")


SHAPES: list[list[int]] = [[10**4000] * 3000, [2**47] * 64, [1] * 65, [2**48], [-1]]


@pytest.mark.parametrize("shape", SHAPES, ids=["long", "large", "many axes", "long axis", "negative"])
def test_shapes_that_cannot_be_are_refused_before_they_are_multiplied(tmp_path: Path, shape: list[int]) -> None:
    text = json.dumps({"params": {"dtype": "F32", "shape": shape, "data_offsets": [0, 4]}}).encode()
    (tmp_path / "a.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(4))
    refused(lambda: read_arrays(tmp_path / "a.safetensors"), "its header cannot be read: .*(shape|length)")


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,) * 32, (2, 3)], ids=str)
def test_arrays_of_any_shape_are_read(tmp_path: Path, shape: tuple[int, ...]) -> None:
    write_arrays(tmp_path / "a.safetensors", {"a": np.ones(shape, np.float32)})
    assert read_arrays(tmp_path / "a.safetensors")["a"].shape == shape


def test_a_log_of_one_endless_line_is_not_read(copied: Path) -> None:
    (copied / "metrics.jsonl").write_bytes(b"1" * (3 << 20))
    refused(lambda: raceway.compare(copied), "a line in it has more than")
    (copied / "metrics.jsonl").write_bytes(b"")
    os.truncate(copied / "metrics.jsonl", SPARSE)
    with in_a_moment():
        assert last_row(copied / "metrics.jsonl") == {}


def changed(run: Path, **settings: Any) -> Path:
    config = json.loads((run / "config.json").read_text())
    for name, value in settings.items():
        group, _, rest = name.rpartition("__")
        (config[group] if group else config)[rest] = value
    (run / "config.json").write_text(json.dumps(config))
    return run


HUGE: list[dict[str, Any]] = [
    {"num_envs": 10**17, "group_size": 7},
    {"num_envs": 2**24 - 1, "group_size": 7},
    {"num_envs": 2**62},
    {"num_envs": 10**4000},
    {"env": "x" * 1_000_000},
    {"env": "x" * 5_000},
    {"network__gru": 10**7},
    {"network__gru": 50_000},
    {"network__hidden": [200_000, 200_000]},
    {"network__hidden": [8] * 100_000},
    {"ppo__n_steps": 2**30},
    {"ppo__n_steps": 10**400},
    {"ppo__n_epochs": 10**9},
    {"ppo__batch_size": 10**30},
    {"total_steps": 10**30},
    {"num_workers": 10**9},
    {"queue": 10**9},
    {"seed": 10**300},
    {"algo": "y" * 500_000},
    {"z" * 500_000: 1},
    {"ppo__learning_rate": "q" * 500_000},
    {"log__name": ["n"] * 100_000},
    {"schedule": {"s": ["t"] * 100_000}},
    {"evaluation__episodes": 10**14, "evaluation__num_envs": None},
    {"env_args": {"max_episode_steps": 2**70}},
    {"env_args": {"nonsense": "n" * 500_000}},
    {"env_args": {"n" * 500_000: 1}},
]


@pytest.mark.parametrize("settings", HUGE, ids=lambda settings: ",".join(name[:20] for name in settings))
def test_settings_of_a_folder_that_cannot_be_are_refused(copied: Path, settings: dict[str, Any]) -> None:
    changed(copied, **settings)
    for reader in ("resume", "evaluate"):
        refused(lambda reader=reader: READERS[reader](copied))  # type: ignore[misc]


def test_a_config_of_many_megabytes_is_not_read(copied: Path) -> None:
    (copied / "config.json").write_text('{"env": "CartPole-v1", "x": "' + "x" * (64 << 20) + '"}')
    refused(lambda: raceway.load(copied), r"config\.json has 67\.1 MB, where 1\.05 MB is the most")


SPACES: list[Any] = [
    {"kind": "box", "dtype": "float32", "shape": [2**40], "low": 0, "high": 1},
    {"kind": "box", "dtype": "float32", "shape": [2**12] * 40, "low": 0, "high": 1},
    {"kind": "box", "dtype": "float32", "shape": [-1], "low": 0, "high": 1},
    {"kind": "box", "dtype": "float32", "shape": [10**4000] * 3000, "low": 0, "high": 1},
    {"kind": "box", "dtype": "float32", "shape": [1] * 1_000_000, "low": 0, "high": 1},
    {"kind": "multi_binary", "shape": [2**40]},
    {"kind": "tuple", "parts": [{"kind": "box", "dtype": "uint8", "shape": [2**20], "low": 0, "high": 1}] * 1000},
    {"kind": "discrete", "n": 10**18, "start": 0},
    {"kind": "multi_discrete", "nvec": [10**18] * 10, "start": [0] * 10},
    {"kind": "q" * 1_000_000},
]


@pytest.mark.parametrize("space", SPACES, ids=lambda space: space["kind"][:20])
def test_spaces_of_a_policy_that_cannot_be_are_refused(copied: Path, space: Any) -> None:
    facts = json.loads((copied / "best/policy.json").read_text())
    (copied / "best/policy.json").write_text(json.dumps({**facts, "observation_space": space}))
    refused(lambda: raceway.load(copied, "best"))


def test_many_broken_checkpoints_are_not_all_told(copied: Path) -> None:
    for number in range(3000):
        (copied / f"checkpoints/checkpoint-{10**8 + number}.json").write_text("{}")
    refused(lambda: raceway.resume(copied), "None of the checkpoints .*And 7 more")


# --- the same on a command line


COMMANDS = [
    (["--num-envs", str(2**62)], "num_envs=4611686018427387904 is out of range"),
    (["--num-envs", "16777213", "--group-size", "7"], "cannot be split into groups of group_size=7"),
    (["--n-steps", str(2**30)], "n_steps=1073741824 must be a whole number from 1 to 16,777,216"),
    (["--n-steps", "16777216"], r"A round of n_steps=16777216 x num_envs=\d+.*of memory, and .* are available"),
    (["--hidden", "200000,200000"], "A network with 80,003,000,003 parameters .* would take 2.56 TB of memory"),
    (["--network.gru", "10000000"], "A network with .* parameters .*gru=10000000"),
    (["--total-steps", "1e30"], "total_steps=.* is out of range"),
    (["--learning-rate", "1e400"], "learning_rate=inf must be above 0, and finite|is not a number"),
    (["--env.max_episode_steps", str(2**70)], "max_episode_steps=1180591620717411303424 is out of range"),
    (["--env.nonsense", "1"], "takes no keyword argument 'nonsense'"),
]


@pytest.mark.parametrize(("options", "message"), COMMANDS, ids=lambda each: each[0] if isinstance(each, list) else "")
def test_an_absurd_value_is_one_message_and_exit_code_2(
    options: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with in_a_moment():
        assert main(["train", "CartPole-v1", *options]) == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert re.search(message, said), said
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("content", [None, "", "<mujoco", "<mujoco><worldbody><body/></worldbody></mujoco>", "\0" * 99])
def test_a_model_that_is_none_is_one_message(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "model.xml").write_text(content)
    assert main(["train", "HalfCheetah-v5", "--env.xml_file", str(tmp_path / "model.xml")]) == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert "model.xml" in said


def test_an_argument_that_a_folder_has_and_its_environment_not_is_one_message(
    copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed(copied, env_args={"gravity": 3.0})
    facts = json.loads((copied / "best/policy.json").read_text())
    del facts["run"]  # it would be refused for another reason
    (copied / "best/policy.json").write_text(json.dumps(facts))
    assert main(["eval", str(copied), "--episodes", "1"]) == 2
    said = capsys.readouterr().err
    assert "CartPole-v1 takes no keyword argument 'gravity'" in said
    assert "Traceback" not in said


def test_a_run_is_not_looked_for_in_a_whole_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if / had been named."""
    seen: list[str] = []
    walk = os.walk

    def counted(top: str | Path) -> Iterator[Any]:
        for each in walk(top):
            seen.append(each[0])
            yield each

    for number in range(50):
        (tmp_path / f"{number}/a/b/c/d").mkdir(parents=True)
    monkeypatch.setattr(os, "walk", counted)
    monkeypatch.setattr("raceway.training.folder._MOST_SEARCHED", 30)
    monkeypatch.setattr("raceway.report.runs._MOST_SEARCHED", 60)
    with pytest.raises(RunFolderError, match=f"{tmp_path} is not a run folder: it has no config.json"):
        raceway.load(tmp_path)
    assert len(seen) == 30
    assert not any(folder.endswith("d") for folder in seen), "not deeper than runs are"
    seen.clear()
    with pytest.raises(RunFolderError, match=f"{tmp_path} has more than 60 folders in it. Name the one"):
        raceway.compare(tmp_path)
    assert len(seen) == 61
