"""Make targets: what was interrupted is begun again, whatever it left behind."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

_HERE = Path(__file__).parent.parent
# Stands for every program of the virtual environment: it notes what it was called with, and is "interrupted" once.
_PROGRAM = """#!/bin/sh
echo "$(basename "$0") $*" >> calls
case "$*" in
  *-B*) for each in "$@"; do case "$each" in build/*) mkdir -p "$each";; esac; done;;
  *--build*) [ -e was_interrupted ] || { touch was_interrupted; exit 130; };;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose virtual environment is ready, with programs that do nothing."""
    shutil.copy(_HERE / "Makefile", tmp_path)
    for name in ("pyproject.toml", "constraints.txt", "CMakeLists.txt"):
        (tmp_path / name).touch()
    (tmp_path / "core").mkdir()
    programs = tmp_path / ".venv/bin"
    programs.mkdir(parents=True)
    for name in ("cmake", "ctest", "python"):
        (programs / name).write_text(_PROGRAM)
        (programs / name).chmod(stat.S_IRWXU)
    (tmp_path / ".venv/.made").touch()
    (tmp_path / ".venv/.ready").touch()
    return tmp_path


def run_make(checkout: Path, target: str) -> tuple[int, list[str]]:
    """Its exit code, and the calls of programs."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    (checkout / "calls").unlink(missing_ok=True)
    done = subprocess.run(["make", target], cwd=checkout, env=environment, capture_output=True, check=False)
    return done.returncode, (checkout / "calls").read_text().splitlines()


def test_a_build_of_the_cpp_tests_that_was_interrupted_is_built_by_the_next_make_test(checkout: Path) -> None:
    code, calls = run_make(checkout, "test")
    assert code != 0
    assert not any(call.startswith("ctest") for call in calls)
    code, calls = run_make(checkout, "test")
    assert code == 0
    built = [place for place, call in enumerate(calls) if call.startswith("cmake --build")]
    tested = [place for place, call in enumerate(calls) if call.startswith("ctest")]
    assert len(built) == len(tested) == 1
    assert built < tested


def test_what_is_built_is_not_built_again(checkout: Path) -> None:
    (checkout / "was_interrupted").touch()
    assert run_make(checkout, "test")[0] == 0
    code, calls = run_make(checkout, "test")
    assert code == 0
    assert not any(call.startswith("cmake") for call in calls)


@pytest.mark.parametrize("also_gone", [".venv/.ready", "calls"])
def test_a_virtual_environment_that_was_interrupted_is_made_again(checkout: Path, also_gone: str) -> None:
    """`python -m venv` makes bin/python first and pip last."""
    (checkout / ".venv/.made").unlink()
    (checkout / also_gone).unlink(missing_ok=True)
    environment = {**os.environ, "PYTHON": "python3"}
    planned = subprocess.run(
        ["make", "-n", "test"], cwd=checkout, env=environment, capture_output=True, text=True, check=True
    )
    assert "-m venv --clear .venv" in planned.stdout
    assert "pip --disable-pip-version-check --quiet install -c constraints.txt --no-build-isolation" in planned.stdout
