"""Fresh processes, where the system has no thread left to start them from."""

from __future__ import annotations

import threading

import pytest

from raceway import interpreter
from raceway.interpreter import FreshProcess


@pytest.mark.parametrize(
    "fails_at", [0, 1], ids=["the thread that starts processes", "the thread that gives the payload"]
)
def test_a_thread_that_cannot_be_started_is_an_error_and_the_next_process_starts(
    fails_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    start = threading.Thread.start

    def fail_once(thread: threading.Thread) -> None:
        started.append(thread.name)
        if len(started) == fails_at + 1:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(interpreter, "_waiting", None)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fail_once)
        with pytest.raises(OSError, match="can't start new thread"):
            FreshProcess("json.tool", ["--help"], b"")
    process = FreshProcess("json.tool", ["--help"], b"")
    assert process.wait(30.0)
    assert process.how_it_ended() == f"process {process.pid} ended with exit code 0"
