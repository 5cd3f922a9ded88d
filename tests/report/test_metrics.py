"""Metrics on disk."""

from __future__ import annotations

import json
import math
import os
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tensorboardX.proto.event_pb2 import Event

from raceway.errors import MissingPackageError, RunFolderError
from raceway.report.metrics import MetricsLog, read_rows


def lines(directory: Path) -> list[dict[str, Any]]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    text = (directory / "metrics.jsonl").read_text()
    return [json.loads(line, parse_constant=refuse) for line in text.splitlines()]


def events(directory: Path) -> list[Any]:
    """The records of all event files: a length, its checksum, the event, its checksum."""
    found = []
    for file in sorted((directory / "tensorboard").iterdir()):
        data = file.read_bytes()
        while data:
            (length,) = struct.unpack("<Q", data[:8])
            found.append(Event.FromString(data[12 : 12 + length]))
            data = data[16 + length :]
    return found


def test_every_write_is_a_line_at_once(tmp_path: Path) -> None:
    with MetricsLog(tmp_path, tensorboard=False) as log:
        log.write(128, {"train/entropy": 0.5, "episode/return": 20})
        first = lines(tmp_path)[0]
        assert (first["step"], first["train/entropy"], first["episode/return"]) == (128, 0.5, 20.0)
        assert first["time"] == pytest.approx(time.time(), abs=60)
        log.write(256, {"train/entropy": 0.25})
        assert [line["step"] for line in lines(tmp_path)] == [128, 256]


def test_what_is_not_finite_is_null_and_the_line_stays_json(tmp_path: Path) -> None:
    with MetricsLog(tmp_path, tensorboard=False) as log:
        log.write(1, {"a": math.nan, "b": math.inf, "c": -math.inf, "d": 1.0})
    line = lines(tmp_path)[0]
    assert [line[name] for name in "abcd"] == [None, None, None, 1.0]


def test_tensorboard_has_the_same_values_at_the_same_steps(tmp_path: Path) -> None:
    with MetricsLog(tmp_path) as log:
        for step in (10, 20, 30):
            log.write(step, {"train/entropy": step / 8, "train/approx_kl": step / 16})
    written = {
        (event.step, value.tag): value.simple_value for event in events(tmp_path) for value in event.summary.value
    }
    expected = {
        (s, f"train/{name}"): s / part for s in (10, 20, 30) for name, part in (("entropy", 8), ("approx_kl", 16))
    }
    assert written == expected


def test_a_log_that_is_opened_again_goes_on(tmp_path: Path) -> None:
    for step in (1, 2):
        with MetricsLog(tmp_path, tensorboard=False) as log:
            log.write(step, {"a": 0.0})
    assert [line["step"] for line in lines(tmp_path)] == [1, 2]


@pytest.mark.filterwarnings("error")
def test_earlier_values_that_are_not_finite_are_missing_in_tensorboard_too(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "time": 1e400, "a": 1e400, "b": NaN, "c": 2.0}\n')
    with MetricsLog(tmp_path) as log:
        log.write(2, {"a": 1.0})
    assert log.troubles == []
    values = {(each.step, value.tag): value.simple_value for each in events(tmp_path) for value in each.summary.value}
    assert {place for place, value in values.items() if math.isnan(value)} == {(1, "a"), (1, "b")}
    assert (values[1, "c"], values[2, "a"]) == (2.0, 1.0)


@pytest.mark.parametrize("line", ['{"step": 1e400}', '{"step": 1, "a": "high"}', "[]", "{"])
def test_a_damaged_line_before_a_run_goes_on_is_named(line: str, tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text(f'{{"step": 1}}\n{line}\n')
    with pytest.raises(RunFolderError, match=r"metrics\.jsonl, line 2 is damaged: "):
        MetricsLog(tmp_path)


def test_a_closed_log_says_so_and_closes_again(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path, tensorboard=False)
    log.close()
    log.close()
    with pytest.raises(ValueError, match="closed"):
        log.write(1, {})


def test_a_value_that_is_no_number_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with MetricsLog(tmp_path, tensorboard=False) as log:
        with pytest.raises((TypeError, ValueError)):
            log.write(1, {"good": 1.0, "bad": "high"})  # type: ignore[dict-item]
        log.write(2, {"good": 1.0})
    assert [line["step"] for line in lines(tmp_path)] == [2]


def test_wandb_that_is_not_installed_is_named_with_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'raceway\[wandb\]'"):
        MetricsLog(tmp_path, wandb_project="mine")


@pytest.mark.parametrize("what", ["file", "pipe", "link"])
def test_a_folder_that_tensorboard_cannot_have_is_told_at_the_end_and_loses_no_line(tmp_path: Path, what: str) -> None:
    path = tmp_path / "tensorboard"
    if what == "file":
        path.write_text("a file where the folder should be")
    elif what == "pipe":
        os.mkfifo(path)  # nothing waits for a writer
    else:
        path.symlink_to(tmp_path)
    log = MetricsLog(tmp_path)
    log.write(1, {"a": 1.0})
    log.close()
    assert len(log.troubles) == 1
    assert log.troubles[0].startswith("TensorBoard gets no metrics any more")
    assert [line["step"] for line in lines(tmp_path)] == [1]


def test_thirty_values_take_a_fraction_of_a_millisecond(tmp_path: Path) -> None:
    values = {f"train/metric_{i}": i / 7 for i in range(30)}
    with MetricsLog(tmp_path) as log:
        log.write(0, values)
        time.sleep(1.0)  # TensorBoard is imported meanwhile
        took = []
        for step in range(200):
            start = time.perf_counter()
            log.write(step, values)
            took.append(time.perf_counter() - start)
            time.sleep(0.001)
    assert sorted(took)[100] < 0.5e-3  # 0.13 ms where it was measured; other programs may be about


def test_importing_it_brings_in_neither_tensorboard_nor_wandb() -> None:
    script = "import sys, raceway.report.metrics; print({'tensorboardX', 'wandb', 'jax', 'rich'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "set()"


def test_rows_without_end_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raceway.report.metrics._MOST_ROWS", 1000)
    (tmp_path / "metrics.jsonl").write_text('{"step":1}\n' * 1000)
    assert len(read_rows(tmp_path / "metrics.jsonl")) == 1000
    (tmp_path / "metrics.jsonl").write_text('{"step":1}\n' * 1001)
    with pytest.raises(RunFolderError, match="has more than 1,000 rows, the most that are read"):
        read_rows(tmp_path / "metrics.jsonl")
