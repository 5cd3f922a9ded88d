"""Worker processes, seen from the process that starts them."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading


class WorkerProcess:
    """A fresh Python process: it inherits nothing but the exchange's memory, so no lock is torn by a fork."""

    def __init__(self, host: int, exchange: int, payload: bytes) -> None:
        command = [sys.executable, "-P", "-m", "raceway.graph.worker", str(exchange), str(host), str(os.getpid())]
        # In a group of its own, Ctrl-C at the terminal does not reach it: what becomes of it is decided here.
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[exchange], process_group=0)
        # What it is given can be larger than a pipe holds, and it reads only when it has come up.
        self._writer = threading.Thread(target=self._give, args=(payload,), daemon=True)
        self._writer.start()

    def _give(self, payload: bytes) -> None:
        assert self._process.stdin is not None
        try:
            with self._process.stdin as pipe:
                pipe.write(pickle.dumps(sys.path))
                pipe.write(payload)
        except BrokenPipeError:
            pass  # it has died, which is noticed and told elsewhere

    @property
    def pid(self) -> int:
        return self._process.pid

    def how_it_ended(self) -> str | None:
        code = self._process.poll()
        if code is None:
            return None
        if code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            return f"process {self.pid} was killed by {name}"
        return f"process {self.pid} ended with exit code {code}"

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
