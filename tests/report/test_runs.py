"""Finding runs and reading what they logged."""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raceway.errors import RunFolderError
from raceway.report.metrics import read_rows
from raceway.report.runs import LoggedRun, find_runs
from tests.report.logged import log_run

ROW = b'{"step": 1, "time": 1.0, "episode/return": 2.0}\n'


def names(runs: list[LoggedRun]) -> list[str]:
    return [run.path.name for run in runs]


def test_a_run_a_folder_a_pattern_and_a_result_each_mean_their_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for env, name in (("A-v0", "x-seed1"), ("A-v0", "x-seed2"), ("B-v0", "y")):
        log_run(Path("runs", env, name), env=env)
    log_run(Path("runs/B-v0/y/copy"))  # within a run: somebody's own
    assert names(find_runs("runs/A-v0/x-seed1")) == ["x-seed1"]
    assert names(find_runs(Path("runs/A-v0"))) == ["x-seed1", "x-seed2"]
    assert names(find_runs("runs")) == ["x-seed1", "x-seed2", "y"]
    assert names(find_runs("runs/*/x-*2")) == ["x-seed2"]
    assert names(find_runs("runs/*")) == ["x-seed1", "x-seed2", "y"]
    assert names(find_runs(SimpleNamespace(directory=Path("runs/B-v0/y")))) == ["y"]
    assert names(find_runs(["runs/B-v0", "runs/A-v0/x-seed2", "./runs/B-v0/y"])) == ["y", "x-seed2"]


def test_labels_come_with_the_name_or_in_a_dict_and_a_folder_may_have_an_equals_sign(tmp_path: Path) -> None:
    log_run(tmp_path / "lr=3")
    assert [run.label for run in find_runs(f"mine={tmp_path}")] == ["mine"]
    assert [run.label for run in find_runs({"mine": tmp_path})] == ["mine"]
    assert [run.label for run in find_runs(str(tmp_path / "lr=3"))] == [None]


def test_what_is_no_run_is_refused_with_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="There is no "):
        find_runs(tmp_path / "none*")
    with pytest.raises(RunFolderError, match=r"no config\.json"):
        find_runs(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(RunFolderError, match="it is a file"):
        find_runs(tmp_path / "file")
    with pytest.raises(RunFolderError, match="is no run"):
        find_runs(3)


@pytest.mark.parametrize("content", ["", "[]", "{", "3", '{"algo": "ppo"}', '{"env": 3}', '{"env": "A", "seed": []}'])
def test_settings_that_are_damaged_are_told_or_do_no_harm(content: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(content)
    if "seed" in content:
        assert find_runs(tmp_path)[0].seed is None
    else:
        with pytest.raises(RunFolderError, match=r"config\.json"):
            find_runs(tmp_path)


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    for torn in (b'{"step": 2, "ti', b"\0\0\0\0", b'{"step"', b"\xff\xfe"):
        file.write_bytes(ROW + torn)
        assert [row["step"] for row in read_rows(file)] == [1]
    file.write_bytes(ROW + ROW.rstrip(b"\n").replace(b'"step": 1', b'"step": 2'))  # whole, but for its newline
    assert [row["step"] for row in read_rows(file)] == [1, 2]
    file.write_bytes(b"")
    assert read_rows(file) == []
    assert read_rows(tmp_path / "none") == []


@pytest.mark.parametrize(
    "line",
    [
        b'{"step": 2, "ti\n',
        b"\0\0\0\0\n",
        b"\xff\xfe\n",
        b"\n",
        b"[]\n",
        b"{}\n",
        b'{"step": null}\n',
        b'{"step": "2"}\n',
        b'{"step": true}\n',
        b'{"step": 2, "episode/return": "high"}\n',
        b'{"step": 2, "episode/return": [1]}\n',
        b'{"step": ' + b"9" * 400 + b"}\n",
        b'{"step": 1e400, "episode/return": 1}\n',
        b'{"step": NaN}\n',
        b'{"step": -1}\n',
        b"[" * 100_000 + b"\n",
    ],
)
def test_a_damaged_line_is_named_with_its_file_and_number(line: bytes, tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    file.write_bytes(ROW + line + ROW)
    with pytest.raises(RunFolderError, match=r"metrics\.jsonl, line 2 is damaged"):
        read_rows(file)


@given(st.binary(max_size=200), st.integers(0, 140))
def test_whatever_is_in_the_file_it_is_read_or_refused(junk: bytes, place: int) -> None:
    content = ROW * 3
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "metrics.jsonl")
        file.write_bytes(content[:place] + junk + content[place:])
        try:
            rows = read_rows(file)
        except RunFolderError:
            return
        assert all(0 <= row["step"] < 2**63 for row in rows)
        values = [value for row in rows for value in row.values() if value is not None]
        assert all(math.isfinite(value) for value in values)


def test_what_is_not_finite_or_missing_is_left_out_and_the_later_of_two_counts(tmp_path: Path) -> None:
    log_run(tmp_path / "run")
    rows = [
        {"step": 300, "m": 3.0},
        {"step": 100, "m": 1.0},
        {"step": 200, "m": None},
        {"step": 250},
        {"step": 100, "m": 1.5},
        {"step": 400, "m": float("inf")},
        {"step": 500, "m": 10**400},
    ]
    (tmp_path / "run/metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with (tmp_path / "run/metrics.jsonl").open("a") as file:
        file.write('{"step": 600, "m": 1e400}\n{"step": 700, "m": -1e400}\n{"step": 800, "m": NaN}\n')
    found = find_runs(tmp_path)[0].series("m")
    assert (found.steps.tolist(), found.values.tolist()) == ([100, 300], [1.5, 3.0])


def test_seconds_of_rows_that_do_not_tell_them_are_those_of_the_step(tmp_path: Path) -> None:
    run = find_runs(log_run(tmp_path / "run", [(100, 1.0, 0.0), (200, 3.0, 0.0)], [(150, 9.0), (200, 9.0)]))[0]
    assert run.seconds_at(np.array([0, 50, 150, 200, 900])).tolist() == [0.0, 0.5, 2.0, 3.0, 3.0]
    assert (run.steps, run.seconds) == (200, 3.0)
