"""What the files of a run say is shown short, and without anything that a terminal would obey."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from raceway.cli import main
from raceway.files import MOST_TEXT
from tests.report.logged import log_run

ESCAPE = "\x1b]0;title\x07\x1b[2J"
COMMAND = [sys.executable, "-P", "-c", "import sys; from raceway.cli import main; sys.exit(main())"]


def said(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    text = captured.out + captured.err
    assert all(each.isprintable() or each == "\n" for each in text)
    assert len(text) < 20_000
    return text


@pytest.mark.parametrize("format_", [[], ["--markdown"], ["--json"]])
def test_a_comparison_shows_no_escapes_of_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], format_: list[str]
) -> None:
    long = ESCAPE + "x" * 500_000
    log_run(tmp_path / "a", env=f"Cart{ESCAPE}Pole", algo=long)
    log_run(tmp_path / "b", env=f"Cart{ESCAPE}Pole", algo="ppo", schedule=long)
    log_run(tmp_path / "c", env=f"Cart{ESCAPE}Pole", algo="ppo", ppo={f"gamma{ESCAPE}": long})
    log_run(tmp_path / f"d{ESCAPE.replace('/', '')}", points=())
    assert main(["compare", str(tmp_path), *format_]) == 0
    assert "Cart" in said(capsys)


def test_an_environment_longer_than_any_name_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log_run(tmp_path / "a", env="x" * 5000)
    assert main(["compare", str(tmp_path)]) == 2
    assert "its env is longer than any name, 4,096 characters at most" in said(capsys)


def test_a_comparison_of_an_environment_without_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log_run(tmp_path / "a", env="", algo=" ")
    assert main(["compare", str(tmp_path)]) == 0
    assert "seeds" in said(capsys)


def test_metrics_that_there_are_are_told_within_bounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = log_run(tmp_path / "a") / "metrics.jsonl"
    names = [f"a{ESCAPE}", "b" * 100_000, *(f"metric/{index:05}" for index in range(5000))]
    path.write_text(json.dumps({"step": 1, **dict.fromkeys(names, 1.0)}) + "\n")
    assert main(["plot", str(tmp_path), "--metric", "nope", "--out", str(tmp_path)]) == 2
    assert " and 4,952 more." in said(capsys)


def test_an_error_shows_no_escapes_of_a_folders_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / f"a{ESCAPE}"
    folder.mkdir()
    assert main(["eval", str(folder)]) == 2
    assert "is not a run folder" in said(capsys)


def test_mermaid_text_is_printed_without_escapes_and_within_bounds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = log_run(tmp_path / "a")
    (folder / "graph.mmd").write_bytes(f"flowchart\n  {ESCAPE} a --> b\n".encode() + b"\xff\n")
    assert main(["graph", str(folder), "--mermaid"]) == 0
    assert said(capsys).startswith("flowchart\n  ?]0;title??[2J a --> b\n")
    os.truncate(folder / "graph.mmd", MOST_TEXT + 1)
    assert main(["graph", str(folder), "--mermaid"]) == 2
    assert "is the most that is read" in said(capsys)


def test_a_plot_does_not_obey_a_matplotlibrc_of_the_current_folder(tmp_path: Path) -> None:
    log_run(tmp_path / "run")
    os.mkfifo(tmp_path / "matplotlibrc")  # reading it would take for ever
    done = subprocess.run([*COMMAND, "plot", "run"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "returns.png\nreturns.svg\n"), done.stderr


def test_a_plot_obeys_the_matplotlibrc_that_the_user_names(tmp_path: Path) -> None:
    log_run(tmp_path / "run")
    (tmp_path / "matplotlibrc").write_text("svg.id: the folder's\nfigure.facecolor: 111111\n")
    (tmp_path / "mine").write_text("figure.facecolor: 123456\n")
    environment = {**os.environ, "MATPLOTLIBRC": "mine"}
    subprocess.run([*COMMAND, "plot", "run", "--out", "a.svg"], cwd=tmp_path, env=environment, check=True)
    assert "#123456" in (tmp_path / "a.svg").read_text()


def test_a_finished_run_shows_no_escapes_of_its_outcome_and_quotes_what_is_to_be_pasted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = ["--log.directory", str(tmp_path), "--log.name", "run"]
    small = "--no-preset --num-envs 4 --n-steps 8 --total-steps 64 --batch-size 16 --evaluation.no-enabled"
    assert main(["train", "Pendulum-v1", *small.split(), *log]) == 0
    capsys.readouterr()
    run = tmp_path / "Pendulum-v1/run"
    told = json.loads((run / "outcome.json").read_text())
    told |= {"stopped": f"stopped{ESCAPE}", "env_args": {"g; touch harm #": 1.0}}
    (run / "outcome.json").write_text(json.dumps(told))
    assert main(["resume", str(run)]) == 0
    text = said(capsys)
    assert "stopped?]0;title??[2J" in text
    assert "'--env.g; touch harm #' 1.0" in text
