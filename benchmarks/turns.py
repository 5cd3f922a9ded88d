"""The line protocol between a measurement and its contestants, both ends of it.

A contestant is a process. It sets itself up, writes `{"ready": true, ...}` with facts about itself, and then answers
every `{"turn": steps}` line with `{"steps": n, "seconds": s, "rss_bytes": b}`. Between turns it is blocked reading its
standard input, so it costs the others nothing; one that has processes which never rest is stopped between turns. One
that takes long to start can be given several settings, one after the other: it answers every `{"setting": ...}` line
when it is ready for that. This file needs nothing but the standard library: it also runs inside the peers' virtual
environments.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

Turn = Callable[[int], tuple[int, float]]
"""Runs at least that many environment steps; gives the steps taken and the seconds that they took."""

SetUp = Callable[[dict[str, Any]], tuple[Turn, dict[str, Any]]]
"""Makes ready for a setting; gives its turns, and facts about itself."""

_POLL_S = 0.2
_GRACE_S = 5.0
# After a stop: what has become overdue in the meantime is not to fall into the turn.
_SETTLE_S = 0.05
_TAIL_BYTES = 4000


class ContestantError(RuntimeError):
    """A contestant died, hung or answered something that is not an answer."""


@dataclass(frozen=True)
class Contestant:
    """Who takes part: a name, the interpreter that has its libraries, and the arguments that start it."""

    name: str
    interpreter: str
    argv: tuple[str, ...]
    restless: bool = False
    """Its processes are stopped between turns: it has some that work even when nobody asks."""


@dataclass(frozen=True)
class TurnResult:
    """What one turn gave: environment steps, the seconds they took, and the resident memory afterwards."""

    steps: int
    seconds: float
    rss_bytes: int

    @property
    def rate(self) -> float:
        """Environment steps per second."""
        return self.steps / self.seconds


def serve(set_up: Callable[[], tuple[Turn, dict[str, Any]]]) -> None:
    """The contestant's end: set up, say ready, then run one timed turn per line until the input ends."""
    replies = _take_stdout()
    turn, facts = set_up()
    _write_line(replies, {"ready": True, **facts})
    for line in sys.stdin.buffer:
        steps, seconds = turn(int(json.loads(line)["turn"]))
        _write_line(replies, {"steps": steps, "seconds": seconds, "rss_bytes": resident_bytes()})


def serve_settings(set_up: SetUp) -> None:
    """The contestant's end, for one that is given its settings one after the other."""
    replies = _take_stdout()
    _write_line(replies, {"ready": True})
    turn: Turn | None = None
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "setting" in message:
            turn, facts = set_up(message["setting"])
            _write_line(replies, {"ready": True, **facts})
        elif turn is not None:
            steps, seconds = turn(int(message["turn"]))
            _write_line(replies, {"steps": steps, "seconds": seconds, "rss_bytes": resident_bytes()})


def session_processes(leader: int) -> Iterator[int]:
    """The processes of a session, those of other process groups included."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                # After the name, which can hold anything: state, parent, group, session.
                session = (folder / "stat").read_text().rpartition(")")[2].split()[3]
                if int(session) == leader:
                    yield int(folder.name)


def kill_session(leader: int) -> None:
    """Ends a session by force."""
    for process in session_processes(leader):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _start_guard(leader: int) -> subprocess.Popen[bytes]:
    """Somebody who ends a session when this process ends: those who are stopped cannot notice that."""
    program = f"import sys; from benchmarks.turns import kill_session; sys.stdin.read(); kill_session({leader})"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    return subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, env=environment, start_new_session=True
    )


def resident_bytes() -> int:
    """This process' resident memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _take_stdout() -> BinaryIO:
    """Moves the real standard output aside and points descriptor 1 at standard error.

    Libraries, native ones included, print what they like: none of it may end up between two answers.
    """
    sys.stdout.flush()
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return replies


def _write_line(stream: BinaryIO, message: dict[str, Any]) -> None:
    stream.write(json.dumps(message).encode() + b"\n")
    stream.flush()


class ContestantProcess:
    """The measurement's end: a started contestant that can be given turns. Every wait has a deadline."""

    def __init__(self, contestant: Contestant, *, ready_timeout_s: float = 120.0, turn_timeout_s: float = 60.0) -> None:
        self.name = contestant.name
        self._ready_timeout_s = ready_timeout_s
        self._turn_timeout_s = turn_timeout_s
        self._restless = contestant.restless
        self._unread = b""
        self._healthy = True
        # A file, not a pipe: nobody has to read it while the contestant works, and it never fills up.
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (closed by close)
        self._process = self._start([contestant.interpreter, *contestant.argv])
        self._guard = _start_guard(self._process.pid) if contestant.restless else None
        try:
            self.facts = self._answer("get ready", ready_timeout_s, ("ready",))
            self._rest()
        except BaseException:
            self.close()
            raise
        self.facts.pop("ready")

    def set_up(self, setting: dict[str, Any]) -> None:
        """Gives a contestant that serves settings another one."""
        self._wake()
        self._send({"setting": setting})
        self.facts = self._answer(f"get ready for {setting}", self._ready_timeout_s, ("ready",))
        self.facts.pop("ready")
        self._rest()

    def turn(self, steps: int) -> TurnResult:
        """Lets the contestant run `steps` environment steps, or the next larger number that it can."""
        self._wake()
        self._send({"turn": steps})
        task = f"finish a turn of {steps} steps"
        answer = self._answer(task, self._turn_timeout_s, ("steps", "seconds", "rss_bytes"))
        self._rest()
        if answer["steps"] <= 0 or answer["seconds"] <= 0:
            raise self._error(f"answered a turn with {answer}: both must be positive")
        return TurnResult(int(answer["steps"]), float(answer["seconds"]), int(answer["rss_bytes"]))

    def close(self) -> None:
        """Ends the contestant: end of input first, its whole session by force after that."""
        stdin, stdout = self._pipes()
        self._signal(signal.SIGCONT)
        with contextlib.suppress(BrokenPipeError):
            stdin.close()
        deadline = time.monotonic() + (_GRACE_S if self._healthy else 0.0)
        while not self._exited() and time.monotonic() < deadline:
            time.sleep(0.01)
        # The leader is not reaped yet, so the session's id is still its own. Its workers may have outlived it.
        kill_session(self._process.pid)
        if self._guard is not None:
            self._guard.communicate()
        self._process.wait()
        stdout.close()
        self._stderr.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _rest(self) -> None:
        if self._restless:
            self._signal(signal.SIGSTOP)

    def _wake(self) -> None:
        if self._restless:
            self._signal(signal.SIGCONT)
            time.sleep(_SETTLE_S)

    def _signal(self, number: signal.Signals) -> None:
        for process in session_processes(self._process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)

    def _start(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            self._stderr.close()
            raise ContestantError(f"Contestant '{self.name}' could not be started: {error}.") from error

    def _pipes(self) -> tuple[Any, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        return self._process.stdin, self._process.stdout

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._pipes()[0].write(json.dumps(message).encode() + b"\n")
        except BrokenPipeError:
            raise self._error("is gone") from None

    def _answer(self, task: str, timeout_s: float, keys: tuple[str, ...]) -> dict[str, Any]:
        """The next line, read as an answer that has these keys."""
        line = self._line(task, timeout_s)
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict) or any(key not in answer for key in keys):
            raise self._error(f"was to {task} and wrote {line[:200]!r}: an answer has the keys {', '.join(keys)}")
        return answer

    def _line(self, task: str, timeout_s: float) -> bytes:
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._unread:
            # Looked up before reading: what it wrote before it ended is then still read below.
            exited = self._exited()
            if chunk := self._read_some():
                self._unread += chunk
            elif exited:
                raise self._error(f"died while it was to {task}")
            elif time.monotonic() > deadline:
                raise self._error(f"did not {task} within {timeout_s:g} s")
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _read_some(self) -> bytes:
        """What there is to read, within a moment. The end of the pipe is no sign: its workers may hold it open."""
        descriptor = self._pipes()[1].fileno()
        readable, _, _ = select.select([descriptor], [], [], _POLL_S)
        chunk = os.read(descriptor, 65536) if readable else b""
        if readable and not chunk:
            time.sleep(0.01)  # closed, but not yet ended: do not spin until the deadline
        return chunk

    def _exited(self) -> bool:
        """Whether the process has ended, without reaping it."""
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _error(self, what: str) -> ContestantError:
        self._healthy = False  # it will not leave when asked: close() does not wait for it
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - _TAIL_BYTES))
        tail = self._stderr.read().decode(errors="replace").strip() or "(nothing)"
        return ContestantError(f"Contestant '{self.name}' {what}. The end of its standard error:\n{tail}")
