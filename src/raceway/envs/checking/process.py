"""The process in which an environment is examined, as seen from outside: whatever the environment does, this lives."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import IO, Any

from raceway.envs.checking.board import Board

_POLL_S = 0.05
_START_S = 60.0
_KEPT = 4000


@dataclass(frozen=True)
class Lost:
    """The process is gone, or had to be killed."""

    call: str
    """Where it was."""
    hung_s: float | None = None
    """How long it was given; None: it went by itself."""
    code: int = 0
    """Its exit code; below zero the signal that killed it."""
    last_words: str = ""

    @property
    def text(self) -> str:
        where = "while it was examined" if self.call == "between" else f"in {self.call}"
        if self.hung_s is not None:
            return f"It hangs {where}: nothing came back within {self.hung_s:g} s."
        if self.code < 0:
            known = {each.value: each.name for each in signal.Signals}
            return f"It ended the process {where}: killed by {known.get(-self.code, f'signal {-self.code}')}."
        return f"It ended the process {where}, with exit code {self.code}."


class Printed:
    """What a process writes to one of its outputs. Read all the time, so that it never waits for a reader."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self.lines = 0
        self.first = b""
        self.last = b""
        self._pipe = pipe
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while chunk := os.read(self._pipe.fileno(), 1 << 16):
                self.first = (self.first + chunk)[:_KEPT] if len(self.first) < _KEPT else self.first
                self.last = (self.last + chunk)[-_KEPT:]
                self.lines += chunk.count(b"\n")

    def finish(self) -> None:
        """Waits for the rest, but not for a grandchild that holds the pipe open."""
        self._thread.join(0.5)


class Examination:
    """A fresh Python process that runs probes. Used in a `with`, at whose end it is gone with all that it started."""

    def __init__(self, payload: bytes, timeout_s: float, hash_seed: int) -> None:
        self._timeout_s = timeout_s
        self._board = Board()
        reading, writing = os.pipe()
        environment = {"PYTHONHASHSEED": str(hash_seed)} | dict(os.environ)
        # Not by -m: runpy warns of a module that its own package has imported.
        command = [sys.executable, "-P", "-c", "from raceway.envs.checking.worker import main; main()"]
        # In a group of its own, Ctrl-C does not reach it, and all that it starts can be ended with it.
        self._process = subprocess.Popen(
            [*command, str(os.getpid()), str(self._board.descriptor), str(writing)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[self._board.descriptor, writing],
            process_group=0,
            env=environment,
        )
        os.close(writing)
        self._pipe = Connection(reading, writable=False)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self.output = Printed(self._process.stdout)
        self.errors = Printed(self._process.stderr)
        threading.Thread(target=self._give, args=(self._process.stdin, payload), daemon=True).start()
        self._seen = -1, time.monotonic()

    @staticmethod
    def _give(pipe: IO[bytes], payload: bytes) -> None:
        with contextlib.suppress(OSError), pipe:
            pipe.write(payload)

    def next(self) -> tuple[Any, ...] | Lost:
        """What it tells next, or how it was lost."""
        while True:
            try:
                if self._pipe.poll(_POLL_S):
                    return self._pipe.recv()
            except (EOFError, OSError):
                return self._ended()
            except Exception:  # what it sent was no message
                return self._ended()
            if self._is_stuck():
                call = self._board.call
                self.kill()
                return Lost(call, hung_s=self._timeout_s, last_words=self._last_words())

    def _is_stuck(self) -> bool:
        count, now = self._board.count, time.monotonic()
        if count != self._seen[0]:
            self._seen = count, now
        return now - self._seen[1] > (self._timeout_s if count else max(_START_S, self._timeout_s))

    def _ended(self) -> Lost:
        """It has closed its end of the pipe: it has ended, or nearly so."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(2.0)
        call = self._board.call
        if self._process.returncode is None:
            self.kill()
        return Lost(call, code=self._process.returncode, last_words=self._last_words())

    def _last_words(self) -> str:
        self.errors.finish()
        text = self.errors.last.decode(errors="replace")
        lines = [line for line in text.splitlines() if "raceway check" not in line]  # which is what is running
        return "\n".join("".join(c for c in line if c.isprintable()) for line in lines[-6:] if line.strip())

    def kill(self) -> None:
        """It, and what it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def __enter__(self) -> Examination:
        return self

    def __exit__(self, *exception: object) -> None:
        self.kill()
        self.output.finish()
        self._pipe.close()
        self._board.close()
        for pipe, printed in ((self._process.stdout, self.output), (self._process.stderr, self.errors)):
            printed.finish()
            if pipe is not None and not printed._thread.is_alive():
                pipe.close()
