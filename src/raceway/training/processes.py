"""Several training runs at once, each in a fresh process of its own, started and stopped from here."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import IO

from raceway.local_code import shared_imports

_POLL_S = 0.1
_LAST_LINES = 8
_LAST_BYTES = 1 << 16
# A terminal that is closed: the runs shall save themselves.
_PASSED_ON = {signal.SIGINT: signal.SIGINT, signal.SIGTERM: signal.SIGTERM, signal.SIGHUP: signal.SIGTERM}


@dataclass(frozen=True)
class Ending:
    """How a process ended."""

    code: int
    last_words: str
    """The last lines that it wrote; empty if they went to the terminal."""

    @property
    def is_good(self) -> bool:
        return self.code == 0

    @property
    def words(self) -> str:
        if self.code >= 0:
            return f"exit code {self.code}"
        known = {each.value: each.name for each in signal.Signals}
        return f"killed by {known.get(-self.code, f'signal {-self.code}')}"


class TrainingProcess:
    """Trains once, as told by `payload`, a pickled `(env, settings)` for `raceway.train`."""

    def __init__(self, payload: bytes, *, is_heard: bool) -> None:
        self._output: IO[bytes] | None = None if is_heard else tempfile.TemporaryFile()  # noqa: SIM115 (closed below)
        environment = dict(os.environ)
        if not is_heard:  # it has neighbours, who need memory too
            environment.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        with tempfile.TemporaryFile() as told:
            told.write(shared_imports() + payload)
            told.seek(0)
            # In a group of its own, Ctrl-C at the terminal does not reach it twice: it is passed on from here.
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "raceway.cli.seed", str(os.getpid())],
                stdin=told,
                stdout=self._output,
                stderr=self._output,
                env=environment,
                process_group=0,
            )

    def ending(self) -> Ending | None:
        """How it ended; None: it goes on."""
        code = self._process.poll()
        return None if code is None else Ending(code, self._last_words())

    def _last_words(self) -> str:
        if self._output is None:
            return ""
        self._output.seek(max(0, self._output.seek(0, os.SEEK_END) - _LAST_BYTES))
        lines = self._output.read(_LAST_BYTES).decode(errors="replace").splitlines()
        return "\n".join([line for line in lines if line.strip()][-_LAST_LINES:])

    def tell(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def close(self) -> None:
        """Ends it if it has not ended."""
        if self._process.poll() is None:
            self._process.terminate()
        self._process.wait()
        if self._output is not None:
            self._output.close()


def run_all(
    payloads: Sequence[bytes],
    at_once: int,
    *,
    on_start: Callable[[int], None],
    on_end: Callable[[int, Ending, bool], None],
    on_wait: Callable[[], None],
) -> signal.Signals | None:
    """Runs a process for each payload, so many at once, in order. If that is one, it has the terminal to itself.

    `on_start` hears the payload's place, `on_end` that, how it ended and whether all were asked to.

    A signal that asks this process to end is passed on to all, no more are started, and when the last has ended, the
    signal is returned.
    """
    waiting = list(range(len(payloads)))
    running: dict[int, TrainingProcess] = {}
    with contextlib.ExitStack() as stack, _signals() as heard:
        passed_on = 0
        while running or (waiting and not heard):
            while waiting and not heard and len(running) < at_once:
                index = waiting.pop(0)
                on_start(index)
                running[index] = TrainingProcess(payloads[index], is_heard=at_once == 1)
                stack.callback(running[index].close)
            for number in heard[passed_on:]:
                passed_on += 1
                for process in running.values():
                    process.tell(_PASSED_ON[number])
            for index, process in list(running.items()):
                if (ending := process.ending()) is not None:
                    del running[index]
                    on_end(index, ending, bool(heard))
            on_wait()
            time.sleep(_POLL_S)
        return heard[0] if heard else None


@contextlib.contextmanager
def _signals() -> Iterator[list[signal.Signals]]:
    """The signals that ask this process to end, as they come, but for those that others take care of."""
    heard: list[signal.Signals] = []

    def hear(number: int, frame: FrameType | None) -> None:
        heard.append(signal.Signals(number))

    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in _PASSED_ON:
            if number == signal.SIGINT or signal.getsignal(number) == signal.SIG_DFL:
                before[number] = signal.signal(number, hear)
    try:
        yield heard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
