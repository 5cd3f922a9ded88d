"""`raceway train --seeds`, `raceway plot` and `raceway compare`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from raceway.cli import main
from raceway.cli.train import take_options
from tests.report.logged import line, log_run

COMMAND = str(Path(sys.executable).with_name("raceway"))


def test_options_of_several_runs_are_taken_out_in_any_spelling() -> None:
    rest, found = take_options(
        ["A", "--seeds", "5", "--gamma", "0.9", "--jobs=2", "--env.seeds", "3"], ("seeds", "jobs")
    )
    assert rest == ["A", "--gamma", "0.9", "--env.seeds", "3"]
    assert found == {"seeds": "5", "jobs": "2"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--seeds"], "--seeds needs a value"),
        (["--seeds", "--gamma", "0.9"], "--seeds needs a value"),
        (["--seeds", "2", "--seeds=3"], "--seeds is given twice"),
        (["--seeds", "many"], "--seeds many: give how many (5), or a list (1,2,5)"),
        (["--seeds", "1,two"], "--seeds two: give"),
        (["--seeds", "0"], "seeds=0: give how many"),
        (["--seeds", "1,1"], "the same run twice"),
        (["--seeds", "1,2", "--seed", "3"], "With a list of seeds, leave it out"),
        (["--jobs", "2"], "--jobs is how many of several --seeds"),
        (["--seeds", "2", "--jobs", "0"], "jobs=0 is out of range"),
        (["--seeds", "2", "--jobs", "two"], "--jobs two: give a whole number"),
        (["--seeds", "2", "--gamma", "2"], "gamma=2.0 must be from 0 to 1"),
    ],
)
def test_what_the_user_can_put_right_is_told_before_anything_starts(
    options: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", "CartPole-v1", *options]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_the_help_of_train_has_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "CartPole-v1", "--help"]) == 0
    said = capsys.readouterr().out
    assert "--seeds" in said
    assert "--jobs" in said


def wait_for(*files: Path, timeout_s: float = 120) -> None:
    deadline = time.monotonic() + timeout_s
    while not all(file.exists() and file.stat().st_size for file in files):
        assert time.monotonic() < deadline, f"no {files}"
        time.sleep(0.05)


def processes_of(folder: Path) -> list[int]:
    """Processes at work in a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and Path(os.readlink(entry / "cwd")) == folder:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_seeds_that_were_stopped_go_on_by_the_same_command_and_end_with_table_and_plot(tmp_path: Path) -> None:
    steps = ["--total-steps", "100000", "--no-evaluation.enabled"]
    command = [COMMAND, "train", "CartPole-v1", "--seeds", "2", "--jobs", "1", "--log.name", "x", *steps]
    runs = tmp_path / "runs/CartPole-v1"
    first = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(runs / "x-seed2/metrics.jsonl")
    first.send_signal(signal.SIGTERM)
    said, errors = first.communicate(timeout=60)
    assert (first.returncode, errors) == (143, "")
    assert "To go on with them: the same command." in said
    assert (runs / "x-seed1/outcome.json").exists()
    assert not (runs / "x-seed2/outcome.json").exists()
    before = (runs / "x-seed1/outcome.json").stat().st_mtime_ns
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.startswith("finished already: seed 1\n")
    assert "goes on after" in again.stdout
    assert (runs / "x-seed1/outcome.json").stat().st_mtime_ns == before
    *_, last = again.stdout.splitlines()
    assert last == "raceway plot 'runs/CartPole-v1/x-seed*'"
    assert "ppo              2  100,352" in again.stdout
    drawn = subprocess.run(
        [COMMAND, "plot", str(runs / "x-seed*")], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (drawn.returncode, drawn.stdout, drawn.stderr) == (0, "returns.png\nreturns.svg\n", "")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_however_it_ends_none_of_its_runs_stays_behind(number: signal.Signals, code: int, tmp_path: Path) -> None:
    command = [
        COMMAND,
        "train",
        "CartPole-v1",
        "--seeds",
        "3",
        "--jobs",
        "2",
        "--log.name",
        "x",
        "--total-steps",
        "5e6",
    ]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    runs = tmp_path / "runs/CartPole-v1"
    wait_for(runs / "x-seed1/metrics.jsonl", runs / "x-seed2/metrics.jsonl")
    process.send_signal(number)
    said, errors = process.communicate(timeout=60)
    assert process.returncode == code
    deadline = time.monotonic() + 10
    while processes_of(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes_of(tmp_path) == []
    assert not (runs / "x-seed3").exists()
    if number == signal.SIGINT:
        assert errors == "raceway: interrupted.\n"
        assert "seed 1  stopped: " in said
        for seed in (1, 2):
            assert list((runs / f"x-seed{seed}").glob("checkpoints/*.json"))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for seed in (1, 2, 3):
        log_run(tmp_path / f"runs/{seed}", line(float(seed)), [(1000, 7.0)], seed=seed)
    return tmp_path / "runs"


def test_compare_prints_a_table_markdown_or_json(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(runs)]) == 0
    assert capsys.readouterr().out.startswith("CartPole-v1  seeds  steps")
    assert main(["compare", str(runs), "--markdown", "--at", "500"]) == 0
    assert capsys.readouterr().out.startswith("| environment | group | seeds |")
    assert main(["compare", f"mine={runs}", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["label"], row["final_return"]["value"]) == ("mine", 2000.0)


def test_what_is_left_out_is_told_beside_the_output(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (runs / "3/metrics.jsonl").unlink()
    assert main(["compare", str(runs)]) == 0
    assert capsys.readouterr().err == f"raceway: {runs / '3'} is left out: it has no metrics yet.\n"


def test_plot_writes_where_it_is_told(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "a.svg"
    assert main(["plot", str(runs), "--out", str(out), "--x", "steps", "--metric", "evaluation/return"]) == 0
    assert capsys.readouterr().out == f"{out}\n"
    assert "evaluation return" in out.read_text()


@pytest.mark.parametrize("verb", ["plot", "compare"])
def test_folders_without_runs_and_damaged_files_are_user_errors(
    verb: str, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([verb, "nowhere"]) == 2
    assert capsys.readouterr().err.startswith("raceway: There is no nowhere")
    (runs / "2/metrics.jsonl").write_text('{"step": 1}\nrubbish\n{"step": 2}\n')
    assert main([verb, str(runs)]) == 2
    assert "metrics.jsonl, line 2 is damaged" in capsys.readouterr().err
