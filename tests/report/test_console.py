"""What a run says in a terminal, and anywhere else."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator

import pytest

from raceway.report.console import Console, Status
from raceway.report.status import line_of

STATUS = Status(
    steps=540_672,
    total_steps=1_000_000,
    seconds=83.0,
    steps_per_second=6512.4,
    return_mean=1834.2,
    length_mean=1000.0,
    episodes=540,
    evaluation=1950.0,
    best=2010.0,
    collect=0.62,
    learn=0.97,
    wait=0.01,
    verdict="Learner-bound: collecting waits 38% of the time. Fewer epochs or larger minibatches would help.",
)


def test_a_line_has_it_all() -> None:
    assert line_of(STATUS) == (
        " 54%  540,672 steps | 6,512 steps/s | 1:11 left | return 1,834, length 1,000 | "
        "evaluation 1,950, best 2,010 | collect 62% learn 97% wait 1%"
    )


def test_a_line_leaves_out_what_is_not_known_yet() -> None:
    assert line_of(Status(0, 1000, 0.0, 0.0)) == "  0%  0 steps | 0 steps/s | ? left"


def test_into_a_file_goes_a_line_at_intervals_and_one_at_the_end() -> None:
    file = io.StringIO()
    console = Console("CartPole-v1", "seed 1", interval_s=0.2, file=file)
    console.start()
    for steps in range(1, 11):
        console.update(Status(steps, 10, 0.0, 1.0))
        time.sleep(0.05)
    console.finish({"run folder": "runs/x"})
    said = file.getvalue().splitlines()
    assert said[0] == "CartPole-v1  seed 1"
    assert 1 <= len(said[1:-2]) <= 3
    assert said[-2].startswith("100%  10 steps")
    assert said[-1] == "run folder  runs/x"
    assert "\x1b" not in file.getvalue()


def test_quiet_says_nothing() -> None:
    file = io.StringIO()
    with Console("CartPole-v1", quiet=True, interval_s=1e-9, file=file) as console:
        console.update(STATUS)
        console.note("hello")
    assert file.getvalue() == ""


def test_a_reader_that_is_gone_does_not_stop_training() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as file:
        with Console("CartPole-v1", interval_s=1e-9, file=file) as console:
            console.update(STATUS)
        with contextlib.suppress(BrokenPipeError):
            file.flush()
        os.dup2(os.open(os.devnull, os.O_WRONLY), writing)  # for what is left to flush


def test_updates_before_start_and_after_finish_are_nothing() -> None:
    file = io.StringIO()
    console = Console("CartPole-v1", file=file)
    console.update(STATUS)
    console.finish()
    assert file.getvalue() == ""
    console.start()
    console.finish("the end")
    console.finish("again")
    console.update(STATUS)
    assert file.getvalue().splitlines() == ["CartPole-v1", "the end"]


SCRIPT = """
    import signal, sys, time
    from raceway.report.console import Console, Status
    from tests.report.test_console import STATUS
    console = Console("HalfCheetah-v5", "ppo, seed 1")
    with console:
        time.sleep(0.2)
        console.update(STATUS)
        console.note("a note [that] stays")
        {middle}
    print("after")
"""

SHOW_CURSOR, HIDE_CURSOR = "\x1b[?25h", "\x1b[?25l"


@contextlib.contextmanager
def in_terminal(middle: str, columns: int = 80) -> Iterator[tuple[subprocess.Popen, int]]:
    """The script in a terminal of its own."""
    leader, follower = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns), "LINES": "30", "PYTHONPATH": os.getcwd()}
    code = textwrap.dedent(SCRIPT).format(middle=middle)
    process = subprocess.Popen([sys.executable, "-c", code], stdin=follower, stdout=follower, stderr=follower, env=env)
    os.close(follower)
    try:
        yield process, leader
    finally:
        process.kill()
        process.wait()
        os.close(leader)


def read_all(leader: int, until: str | None = None) -> str:
    """What the terminal shows: to the end, or until something appears."""
    text = ""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (until is None or until not in text):
        ready, _, _ = select.select([leader], [], [], 1.0)
        try:
            part = os.read(leader, 65536) if ready else b""
        except OSError:  # the other end is gone
            return text
        text += part.decode(errors="replace")
    return text


def plain(text: str) -> list[str]:
    """Without colours and cursor movements."""
    return [line.rstrip() for line in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).replace("\r", "\n").split("\n")]


def test_a_terminal_shows_everything_within_its_width_and_gets_its_cursor_back() -> None:
    with in_terminal("time.sleep(1.2)") as (process, leader):
        shown = read_all(leader)
        assert process.wait(timeout=30) == 0
    lines = plain(shown)
    assert max(map(len, lines)) <= 80
    for wanted in (
        "54% of 1,000,000 steps",
        "about 1:11 left",
        "6,512 steps/s",
        "1,834",
        "best 2,010",
        "collect",
        "62%",
    ):
        assert any(wanted in line for line in lines), wanted
    assert any("getting ready" in line for line in lines)
    assert "a note [that] stays" in lines
    assert any(line.startswith("Learner-bound: collecting waits 38%") for line in lines)
    assert shown.rindex(SHOW_CURSOR) > shown.rindex(HIDE_CURSOR)
    assert lines.index("after") > max(i for i, line in enumerate(lines) if "54%" in line)


@pytest.mark.parametrize("middle", ["time.sleep(30)", "raise KeyboardInterrupt", "sys.exit(3)"])
def test_the_cursor_comes_back_however_it_ends(middle: str) -> None:
    with in_terminal(middle) as (process, leader):
        shown = read_all(leader, "54%")
        if "sleep" in middle:
            process.send_signal(signal.SIGINT)
        shown += read_all(leader)
        assert process.wait(timeout=30) != 0
    assert shown.rindex(SHOW_CURSOR) > shown.rindex(HIDE_CURSOR)


def test_a_narrow_terminal_is_no_trouble() -> None:
    with in_terminal("time.sleep(0.7)", columns=40) as (process, leader):
        shown = read_all(leader)
        assert process.wait(timeout=30) == 0
    assert max(map(len, plain(shown))) <= 40


def test_a_panel_that_hears_nothing_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from raceway.report.panel import Panel

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    panel = Panel("CartPole-v1", "", Terminal())
    panel.start()
    panel.update(STATUS)
    now = time.monotonic()
    monkeypatch.setattr("raceway.report.panel.time.monotonic", lambda: now + 42.0)
    drawn = io.StringIO()
    from rich.console import Console as Rich

    Rich(file=drawn, width=80).print(panel._draw())
    panel.finish([])
    assert "no news for 0:42" in drawn.getvalue()
