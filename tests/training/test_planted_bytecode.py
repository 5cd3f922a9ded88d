"""Code that is asked for by name is compiled from the source that is there, not taken from a file in `__pycache__`."""

from __future__ import annotations

import importlib.util
import os
import py_compile
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from py_compile import PycInvalidationMode

import pytest

from raceway import local_code

REAL, PLANTED = 'SAYS = "source!"\n', 'SAYS = "planted"\n'
MODES = [PycInvalidationMode.UNCHECKED_HASH, PycInvalidationMode.TIMESTAMP]


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Path]:
    """The folder that commands are given in."""
    before = set(sys.modules)
    local_code.look_in(str(tmp_path))
    yield tmp_path
    local_code.look_in(None)
    for name in set(sys.modules) - before:
        if "_of_bytecode" in name:
            del sys.modules[name]


def plant(file: Path, mode: PycInvalidationMode) -> None:
    """A source, and beside it a compiled file of another one that looks as if it were made from this one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(PLANTED)
    os.utime(file, (10**9, 10**9))
    py_compile.compile(str(file), importlib.util.cache_from_source(file), doraise=True, invalidation_mode=mode)
    file.write_text(REAL)
    os.utime(file, (10**9, 10**9))


def python(folder: Path, program: str, given: bytes = b"") -> str:
    run = [sys.executable, "-P", "-c", program]
    return subprocess.run(run, cwd=folder, input=given, capture_output=True, check=True).stdout.decode().strip()


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_python_itself_would_believe_it(tmp_path: Path, mode: PycInvalidationMode) -> None:
    plant(tmp_path / "task.py", mode)
    assert python(tmp_path, "import sys; sys.path.insert(0, '.'); import task; print(task.SAYS)") == "planted"


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
@pytest.mark.parametrize("is_on_path", [False, True], ids=["beside", "on_path"])
def test_the_source_counts(
    here: Path, mode: PycInvalidationMode, is_on_path: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_on_path:
        monkeypatch.syspath_prepend(here)
    name = f"of_{mode.name.lower()}_{is_on_path}_of_bytecode"
    for file in (here / f"{name}.py", here / f"p_{name}/__init__.py", here / f"p_{name}/inner.py"):
        plant(file, mode)
    assert local_code.import_named(name).SAYS == "source!"
    assert local_code.import_named(f"p_{name}.inner").SAYS == "source!"
    assert sys.modules[f"p_{name}"].SAYS == "source!"


def test_it_counts_in_other_processes_too(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(here)
    plant(here / "sent_of_bytecode.py", PycInvalidationMode.UNCHECKED_HASH)
    local_code.import_named("sent_of_bytecode")
    program = (
        "import sys; from raceway.local_code import adopt_imports; adopt_imports(sys.stdin.buffer); "
        "import sent_of_bytecode; print(sent_of_bytecode.SAYS)"
    )
    assert python(here, program, local_code.shared_imports()) == "source!"
