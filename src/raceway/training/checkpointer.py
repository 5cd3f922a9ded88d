"""The checkpointer: has a snapshot of the running program written every so often, while everything else goes on."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from raceway.errors import RunFolderError
from raceway.files import sync
from raceway.graph import GraphError, Program, Snapshot
from raceway.training.checkpoints import Checkpoints
from raceway.training.rescue import Rescue

_LOOKS_EVERY_S = 0.05


class Checkpointer:
    """Writes checkpoints of a program, in a thread of its own. A disk that is full does not end the training."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        rescue: Rescue,
        facts: Mapping[str, Any],
        interval_s: float,
        logs: tuple[Path, ...],
        on_written: Callable[[Path], None],
        on_trouble: Callable[[str], None],
    ) -> None:
        self._checkpoints = checkpoints
        self._checkpoints.home = rescue.known
        self._rescue = rescue
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
        """What ended the thread, such as an error of a callback: it ends the run, and is raised when that has ended."""
        self.last: int | None = None
        """The round of the last one that is on disk."""

    def watch(self, program: Program) -> Checkpointer:
        """Begins, to be used in a `with` statement around the program's run."""
        self._thread = threading.Thread(target=self._work, args=(program,), name="raceway.checkpoints", daemon=True)
        return self

    def write(self, snapshot: Snapshot) -> None:
        """Writes one now."""
        with self._lock:
            try:
                path = self._write(snapshot)
            except (RunFolderError, OSError) as error:
                self._on_trouble(f"No checkpoint of round {snapshot.round}, the last one stays: {error}")
                return
        if path is not None:
            self._on_written(path)

    def _write(self, snapshot: Snapshot) -> Path | None:
        """Where it is now; None if there is a newer one."""
        place = self._place()
        if self.last is not None and snapshot.round <= self.last:
            return None
        try:
            path = place.write(snapshot, self._facts)
        except (RunFolderError, OSError):
            if place.home is None or not self._rescue.look():
                raise
            path = self._place().write(snapshot, self._facts)  # the folder was lost meanwhile
        self.last = snapshot.round
        return path

    def _place(self) -> Checkpoints:
        """Where a checkpoint goes: into the run's folder, with the logs that it belongs to, or where it is saved."""
        folder = self._rescue.folder
        if folder.checkpoints != self._checkpoints.directory:
            self._checkpoints = Checkpoints(folder.checkpoints, self._checkpoints.keep)
            self._logs = (folder.chain, folder.metrics)
            self.last = None
        self._rescue.save_logs()
        for log in self._logs:
            sync(log)
        return self._checkpoints

    def _work(self, program: Program) -> None:
        try:
            while not self._is_over.wait(self._interval_s):
                with contextlib.suppress(GraphError):  # it has ended meanwhile, or has not begun
                    self.write(program.snapshot())
        except BaseException as error:  # a run must not go on without checkpoints as if there were some
            self._error = error
            while not self._is_over.wait(_LOOKS_EVERY_S):  # the program may not have begun yet
                with contextlib.suppress(GraphError):
                    program.stop()

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
