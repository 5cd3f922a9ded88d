"""Ctrl-C while the `raceway` command is being imported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.envs.python.watching import wait_until

SLOW = """
import time
from pathlib import Path

Path("reached").touch()
time.sleep(100)
"""
WRAPPED = """
import time
from pathlib import Path

try:
    Path("reached").touch()
    time.sleep(100)
except BaseException as error:
    raise ImportError("a module is half made") from error
"""


LOST = """
import time
from pathlib import Path

class Late:
    def __del__(self):
        Path("reached").touch()
        time.sleep(100)

Late()
raise ValueError("as if nothing had happened")
"""


@pytest.mark.parametrize("module", [SLOW, WRAPPED, LOST], ids=["interrupted", "another error", "lost"])
def test_ctrl_c_during_imports_prints_one_line(tmp_path: Path, module: str) -> None:
    (tmp_path / "gymnasium.py").write_text(module)
    command = str(Path(sys.executable).with_name("raceway"))
    running = subprocess.Popen(
        [command, "list", "envs"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until((tmp_path / "reached").exists, 60)
        running.send_signal(signal.SIGINT)
        output, errors = running.communicate(timeout=60)
    finally:
        running.kill()
    assert (running.returncode, output) == (130, "")
    assert errors.splitlines()[-1] == "raceway: interrupted."
    assert "Traceback" not in errors or module == LOST  # that which Python prints where it loses it
