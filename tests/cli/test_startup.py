"""Ctrl-C while the `raceway` command is being imported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.envs.python.watching import wait_until

SLOW = """
import time
from pathlib import Path

Path("reached").touch()
time.sleep(100)
"""


def test_ctrl_c_during_imports_prints_one_line(tmp_path: Path) -> None:
    (tmp_path / "gymnasium.py").write_text(SLOW)
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
    assert (running.returncode, output, errors) == (130, "", "raceway: interrupted.\n")
