"""Ctrl-C and SIGTERM while `raceway play` writes a video: at its start, while it draws, while ffmpeg ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import imageio_ffmpeg
import pytest

from tests.envs.python.watching import is_alive, wait_until

# A test that runs in the background ignores Ctrl-C, and so would what it starts.
MAIN = """if True:
    import signal, sys
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from raceway.cli import main
    sys.exit(main(sys.argv[1:]))
"""
ENV = """
import os, time
from pathlib import Path
from tests.training.drawing import Drawn

if os.environ["WHEN"] == "startup":
    Path("reached").touch()
    time.sleep(100)

class Slow(Drawn):
    def step(self, action):
        if os.environ["WHEN"] == "drawing":
            Path("reached").touch()
            time.sleep(0.01)
        return super().step(action)
"""
# ffmpeg, which then takes its time to end.
FFMPEG = """#!/bin/sh
echo $$ > ffmpeg.pid
{program} "$@"
if [ "$WHEN" = encoding ]; then touch reached; sleep 100 & echo $! > sleep.pid; wait; fi
"""


@pytest.mark.parametrize("when", ["startup", "drawing", "encoding"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["TERM", "INT"])
def test_nothing_is_left_and_the_exit_code_tells(number: int, code: int, when: str, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(ENV)
    program = tmp_path / "ffmpeg.sh"
    program.write_text(FFMPEG.format(program=imageio_ffmpeg.get_ffmpeg_exe()))
    program.chmod(0o755)
    length = "100000" if when == "drawing" else "5"
    line = [sys.executable, "-c", MAIN, "play", "--agent", "random", "slow:Slow", "--env.length", length]
    env = {**os.environ, "WHEN": when, "IMAGEIO_FFMPEG_EXE": str(program)}
    env["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[2]), str(tmp_path)])
    process = subprocess.Popen(
        [*line, "--video", "out/a.mp4"],
        cwd=tmp_path,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until((tmp_path / "reached").exists, 60)
    if when == "drawing":
        wait_until(lambda: any(file.read_text() for file in tmp_path.glob("ffmpeg.pid")), 60)
        assert len(list(tmp_path.glob("out/.*.part.mp4"))) == 1
    process.send_signal(number)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    assert out == ""
    assert "Traceback" not in errors
    assert list(tmp_path.glob("out/*")) == []
    pids = [int(file.read_text()) for file in tmp_path.glob("*.pid")]
    assert len(pids) == {"startup": 0, "drawing": 1, "encoding": 2}[when]
    wait_until(lambda: not any(map(is_alive, pids)), 60)
