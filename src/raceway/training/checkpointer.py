"""The checkpointer: has a snapshot of the running program written every so often, while everything else goes on."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from raceway.errors import RunFolderError
from raceway.graph import GraphError, Program, Snapshot
from raceway.training.checkpoints import Checkpoints
from raceway.training.folder import sync


class Checkpointer:
    """Writes checkpoints of a program, in a thread of its own. A disk that is full does not end the training."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        facts: Mapping[str, Any],
        interval_s: float,
        logs: tuple[Path, ...],
        on_written: Callable[[Path], None],
        on_trouble: Callable[[str], None],
    ) -> None:
        self._checkpoints = checkpoints
        self._facts = facts
        self._interval_s = interval_s
        self._logs = logs
        """Files that a snapshot says the length of: they must not be shorter when it is on disk."""
        self._on_written = on_written
        self._on_trouble = on_trouble
        self._is_over = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        """What a callback has raised: it ends the run, and is raised when that has ended."""
        self.last: int | None = None
        """The round of the last one that is on disk."""

    def watch(self, program: Program) -> Checkpointer:
        """Begins, to be used in a `with` statement around the program's run."""
        self._thread = threading.Thread(target=self._work, args=(program,), name="raceway.checkpoints", daemon=True)
        return self

    def write(self, snapshot: Snapshot) -> None:
        """Writes one now."""
        with self._lock:
            if self.last is not None and snapshot.round <= self.last:
                return
            try:
                for log in self._logs:
                    sync(log)
                path = self._checkpoints.write(snapshot, self._facts)
            except (RunFolderError, OSError) as error:
                self._on_trouble(f"No checkpoint of round {snapshot.round}, the last one stays: {error}")
                return
            self.last = snapshot.round
        self._on_written(path)

    def _work(self, program: Program) -> None:
        while not self._is_over.wait(self._interval_s):
            try:
                snapshot = program.snapshot()
                self.write(snapshot)
            except GraphError:  # it has ended meanwhile, or has not begun
                continue
            except BaseException as error:
                self._error = error
                with contextlib.suppress(GraphError):
                    program.stop()
                return

    def __enter__(self) -> Checkpointer:
        assert self._thread is not None
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        assert self._thread is not None
        self._thread.join()
        if self._error is not None and error is None:
            raise self._error
