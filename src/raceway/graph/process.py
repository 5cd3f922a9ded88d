"""Worker processes, seen from the process that starts them."""

from __future__ import annotations

import os

from raceway.interpreter import FreshProcess


class WorkerProcess(FreshProcess):
    """Runs some of the reactors; it inherits the exchange's memory."""

    def __init__(self, host: int, exchange: int, payload: bytes) -> None:
        arguments = [str(exchange), str(host), str(os.getpid())]
        super().__init__("raceway.graph.worker", arguments, payload, fds=[exchange])
