"""Python processes started afresh: they inherit nothing but what they are given, so no lock is torn by a fork."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

from raceway.local_code import shared_imports


class FreshProcess:
    """Runs a module that reads its payload from its input, after `adopt_imports`, and dies with this process."""

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        payload: bytes,
        *,
        fds: Sequence[int] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        command = [sys.executable, "-P", "-m", module, *arguments]
        # In a group of its own, Ctrl-C at the terminal does not reach it: what becomes of it is decided here.
        self._process = _started(
            lambda: subprocess.Popen(
                command, stdin=subprocess.PIPE, pass_fds=fds, process_group=0, env=environment and dict(environment)
            )
        )
        # What it is given can be larger than a pipe holds, and it reads only when it has come up.
        try:
            _start_thread(self._give, payload)
        except OSError:
            self.kill()
            raise

    def _give(self, payload: bytes) -> None:
        assert self._process.stdin is not None
        try:
            with self._process.stdin as pipe:
                pipe.write(shared_imports())
                pipe.write(payload)
        except BrokenPipeError:
            pass  # it has died, which is noticed and told elsewhere

    @property
    def pid(self) -> int:
        return self._process.pid

    def how_it_ended(self) -> str | None:
        """None while it lives; then how it ended, in words."""
        code = self._process.poll()
        if code is None:
            return None
        if code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            return f"process {self.pid} was killed by {name}"
        return f"process {self.pid} ended with exit code {code}"

    def wait(self, timeout_s: float) -> bool:
        """Whether it has ended by then."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """Ends it at once."""
        self._process.kill()
        self._process.wait()


_Start = Callable[[], subprocess.Popen[bytes]]
_waiting: SimpleQueue[tuple[_Start, Future[Any]]] | None = None
_lock = threading.Lock()


def _started(start: _Start) -> subprocess.Popen[bytes]:
    """Starts a process from a thread that lives as long as this process does.

    The kernel kills such a child when the thread that started it ends; the caller may be in one that ends early.
    """
    global _waiting
    with _lock:
        if _waiting is None:
            waiting: SimpleQueue[tuple[_Start, Future[Any]]] = SimpleQueue()
            _start_thread(_start_all, waiting)
            _waiting = waiting  # not before there is somebody who reads it
        future: Future[subprocess.Popen[bytes]] = Future()
        _waiting.put((start, future))
    try:
        return future.result()
    except BaseException:  # such as Ctrl-C
        future.add_done_callback(lambda done: None if done.exception() else done.result().kill())
        raise


def _start_thread(work: Callable[[Any], None], argument: Any) -> None:
    try:
        threading.Thread(target=work, args=(argument,), name=f"raceway{work.__name__}", daemon=True).start()
    except RuntimeError as error:  # there are as many threads as the system allows
        raise OSError(errno.EAGAIN, str(error)) from None


def _start_all(waiting: SimpleQueue[tuple[_Start, Future[Any]]]) -> None:
    while True:
        start, future = waiting.get()
        try:
            future.set_result(start())
        except BaseException as error:
            future.set_exception(error)
        del start, future


def _forget_starter() -> None:
    """Threads do not follow into a fork."""
    global _waiting, _lock
    _waiting, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget_starter)
