"""The raceway command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import raceway
from raceway.cli import main


def test_list_envs_names_what_make_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "envs"]) == 0
    names = capsys.readouterr().out.split()
    assert names == raceway.list_envs()
    assert {"CartPole-v1", "Taxi-v3", "Pendulum-v1"} <= set(names)


def test_the_installed_command_says_its_version() -> None:
    command = Path(sys.executable).with_name("raceway")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == f"raceway {raceway.__version__}"


def test_a_reader_that_has_had_enough_is_no_error() -> None:
    command = Path(sys.executable).with_name("raceway")
    for _ in range(5):
        listing = subprocess.Popen([command, "list", "envs"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert listing.stdout is not None
        listing.stdout.close()
        _, errors = listing.communicate(timeout=30)
        assert (listing.returncode, errors) == (0, b"")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lst"], "invalid choice: 'lst'"),
        (["list", "agents"], "invalid choice: 'agents'"),
        (["list"], "what"),
        ([], "verb"),
    ],
)
def test_an_unknown_or_missing_verb_is_refused_with_what_there_is(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert "usage: raceway" in errors
