"""The example of docs/checking.md is what a check says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import raceway
from benchmarks.checked_page import PAGE, block, renewed
from raceway.cli.options import take_env_arguments
from raceway.cli.parser import verbs
from raceway.envs.checking.findings import TOPICS


def before_speed(report: str) -> str:
    """What does not depend on the machine, which takes fewer steps if it is busy."""
    return re.sub(r"\d[\d,.]*", "#", report.partition("\nspeed\n")[0])


def test_the_report_on_the_page_is_the_one_that_its_environment_gets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = PAGE.read_text()
    (tmp_path / "drone.py").write_text(block(page, "python"))
    monkeypatch.syspath_prepend(tmp_path)
    report = raceway.check("drone:Drone", lanes=False)
    hint = "renew it on a quiet machine: python -m benchmarks.checked_page"
    assert before_speed(str(report)) == before_speed(block(page, "text")), f"docs/checking.md is out of date: {hint}"
    after = renewed(page, report)
    assert block(after, "text") == f"{report}\n"
    assert after.replace(block(after, "text"), block(page, "text")) == page
    assert [note.code for note in report.notes] == ["observation-float64", "global-generator", "state-lost"]


def test_the_commands_of_the_page_are_understood() -> None:
    commands = re.findall(r"^raceway (check .*)$", PAGE.read_text(), flags=re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        rest, _ = take_env_arguments(shlex.split(command, comments=True))
        assert verbs().parse(rest).env


def test_every_topic_is_on_the_page() -> None:
    named = set(re.findall(r"^\| (\w+) \|", PAGE.read_text(), flags=re.MULTILINE))
    assert named == {*TOPICS, "lanes"}
