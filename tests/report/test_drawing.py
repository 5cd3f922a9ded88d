"""What is said while a video is drawn."""

from __future__ import annotations

import io
import os
import pty
import re
import sys
import time

import pytest

from raceway.report.drawing import DrawingProgress
from tests.envs.python.watching import wait_until


class Output(io.StringIO):
    """An error output that may be a terminal."""

    def __init__(self, fails: bool = False) -> None:
        super().__init__()
        self._fails = fails

    def write(self, text: str) -> int:
        if self._fails:
            raise BrokenPipeError
        return super().write(text)


def test_elsewhere_than_in_a_terminal_it_is_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    output = Output()
    monkeypatch.setattr(sys, "stderr", output)
    with DrawingProgress("Ant-v5", 3, interval_s=0.01) as progress:
        wait_until(lambda: "starting" in output.getvalue(), 60)
        progress.doing, progress.frames, progress.episode = "drawing", 1234, 2
        wait_until(lambda: "1,234 frames" in output.getvalue(), 60)
    lines = output.getvalue().splitlines()
    assert re.fullmatch(r"Ant-v5: starting, 0:\d\d", lines[0])
    assert re.fullmatch(r"Ant-v5: drawing, episode 2 of 3, 1,234 frames, 0:\d\d", lines[-1])


def test_what_is_quick_and_what_is_to_be_quiet_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    output = Output()
    monkeypatch.setattr(sys, "stderr", output)
    with DrawingProgress("Ant-v5", 1):
        pass
    with DrawingProgress("Ant-v5", 1, quiet=True, interval_s=0.001):
        time.sleep(0.05)
    assert output.getvalue() == ""


def test_a_reader_that_has_gone_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Output(fails=True))
    with DrawingProgress("Ant-v5", 1, interval_s=0.001):
        time.sleep(0.05)


def test_in_a_terminal_it_is_one_line_that_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    leader, follower = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    shown = ""
    with open(follower, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with DrawingProgress("Ant-v5", 3) as progress:
            progress.doing, progress.frames = "drawing", 7
            while "7 frames" not in shown:
                shown += os.read(leader, 65536).decode()
        shown += os.read(leader, 65536).decode()
    os.close(leader)
    assert "Ant-v5: drawing, episode 1 of 3, 7 frames" in shown
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")  # the cursor is there again
    assert "\x1b[2K" in shown[shown.rindex("7 frames") :]  # and the line is gone
