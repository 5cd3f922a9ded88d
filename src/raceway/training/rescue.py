"""A run whose folder, or a log in it, is deleted, moved or replaced while it trains: noticed, and saved elsewhere."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from raceway.errors import RunFolderError
from raceway.files import (
    MOST_SETTINGS,
    KnownFolder,
    open_to_append,
    opened_to_read,
    pieces,
    read_whole,
    write_whole,
)
from raceway.training.folder import RunFolder, new_directory

_LOOKS_EVERY_S = 1.0


class Rescue:
    """Keeps an eye on a run's folder, and on what it takes to make another one from which the run goes on."""

    def __init__(self, folder: RunFolder, on_trouble: Callable[[str], None]) -> None:
        self._folder = folder
        self._on_trouble = on_trouble
        self._lock = threading.Lock()
        self._looked_at = time.monotonic()
        self._saved: RunFolder | None = None
        self.why = ""
        """What became of the folder; empty while it is there."""
        self.known = KnownFolder(folder.path)
        self._settings = {
            path.name: read_whole(path, MOST_SETTINGS) for path in (folder.config, folder.system) if path.is_file()
        }
        # Open, they can be read even when they have no name any more.
        self._logs: dict[str, int] = {}
        for path in (folder.chain, folder.metrics):
            open_to_append(path).close()
            with opened_to_read(path) as file:
                self._logs[path.name] = os.dup(file.fileno())

    def has_to_stop(self) -> bool:
        """Whether the folder is gone. Cheap: it is looked at once a second."""
        now = time.monotonic()
        if now - self._looked_at >= _LOOKS_EVERY_S:
            self._looked_at = now
            self.look()
        return bool(self.why)

    def look(self) -> bool:
        """Looks at the folder now. Returns whether it is gone."""
        if not self.why:
            self.why = self.known.what_happened() or self._what_happened_to_logs()
        return bool(self.why)

    def _what_happened_to_logs(self) -> str:
        """Why what is written to the logs is lost, in words; empty if it is not, or if nobody can tell."""
        for name, handle in self._logs.items():
            path, ours = self._folder.path / name, os.fstat(handle)
            try:
                there = os.lstat(path)
            except FileNotFoundError:
                return f"{path} was deleted or moved while the run was writing to it"
            except OSError:
                continue
            if (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino):
                return f"{path} was replaced by another file while the run was writing to it"
        return ""

    @property
    def folder(self) -> RunFolder:
        """Where to write now: the run's folder, or if that is gone, another one, made when this is asked first."""
        with self._lock:
            if not self.look():
                return self._folder
            if self._saved is None:
                self._saved = RunFolder(new_directory(self._place(), f"{self._folder.path.name}-saved"))
                self._on_trouble(f"{self.why}. The run stops, and is saved in {self._saved.path}")
                self._write_settings_and_logs(self._saved)
            return self._saved

    def save_logs(self) -> None:
        """Brings the hash chain and the metrics of the other folder, if there is one, up to date."""
        with self._lock:
            if self._saved is not None:
                self._write_settings_and_logs(self._saved)

    def _write_settings_and_logs(self, saved: RunFolder) -> None:
        for name, handle in self._logs.items():
            write_whole(saved.path / name, pieces(handle))
        for name, content in self._settings.items():
            write_whole(saved.path / name, content)

    def _place(self) -> Path:
        """Beside the folder, or where the user is, or where anybody may write."""
        for place in (self._folder.path.parent, Path(), Path(tempfile.gettempdir())):
            if place.is_dir() and os.access(place, os.W_OK | os.X_OK):
                return place
        raise RunFolderError(f"{self.why}, and there is no folder that it could be saved in.")

    def __enter__(self) -> Rescue:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for handle in self._logs.values():
            os.close(handle)
        self._logs.clear()
