"""What a run says while it goes on: a calm panel in a terminal, a line now and then anywhere else."""

from __future__ import annotations

import atexit
import contextlib
import math
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import IO, Protocol

from raceway.messages import plain
from raceway.report.status import Status, line_of

__all__ = ["Console", "Status"]

_LABEL = 12


class Console:
    """Shows the newest status. Any thread may call any method.

    Control characters are replaced: what is said may come from a file that somebody else wrote.
    """

    def __init__(
        self,
        title: str = "",
        subtitle: str = "",
        *,
        interval_s: float = 10.0,
        quiet: bool = False,
        file: IO[str] | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._is_open = False
        self._face = _face(plain(title), plain(subtitle), interval_s, quiet, sys.stdout if file is None else file)

    def start(self) -> None:
        """Begins to show; until the first status, that there is none yet."""
        with self._lock:
            if not self._is_open:
                self._is_open = True
                atexit.register(self.finish)  # the terminal is put right even if nobody gets to do it
                self._face.start()

    def update(self, status: Status) -> None:
        """Cheap: what is shown is drawn at its own pace."""
        with self._lock:
            if self._is_open:
                self._face.update(status)

    def note(self, text: str) -> None:
        """A line that stays, such as where a video went."""
        with self._lock:
            if self._is_open:
                self._face.note(plain(text))

    def trouble(self, text: str) -> None:
        """A line that must be seen: on standard error, where nothing else is said."""
        if isinstance(self._face, _Silence):
            print(f"raceway: {plain(text)}", file=sys.stderr, flush=True)
        else:
            self.note(text)

    def finish(self, summary: Mapping[str, str] | str = "") -> None:
        """Shows the last status and below it the summary: text, or facts by name. May be called again."""
        with self._lock:
            if not self._is_open:
                return
            self._is_open = False
            atexit.unregister(self.finish)
            self._face.finish(_lines_of(summary))

    def __enter__(self) -> Console:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish()


def _lines_of(summary: Mapping[str, str] | str) -> list[str]:
    if isinstance(summary, str):
        return plain(summary).splitlines()
    return [plain(f"{name:<{_LABEL}}{value}") for name, value in summary.items()]


class _Face(Protocol):
    """One way to show it."""

    def start(self) -> None: ...

    def update(self, status: Status) -> None: ...

    def note(self, text: str) -> None: ...

    def finish(self, lines: Sequence[str]) -> None: ...


def _face(title: str, subtitle: str, interval_s: float, quiet: bool, file: IO[str]) -> _Face:
    if quiet:
        return _Silence()
    if not file.isatty():
        return _Lines(title, subtitle, file, interval_s)
    from raceway.report.panel import Panel  # rich comes with it

    return Panel(title, subtitle, file)


class _Silence:
    """For those who want nothing said."""

    def start(self) -> None: ...

    def update(self, status: Status) -> None: ...

    def note(self, text: str) -> None: ...

    def finish(self, lines: Sequence[str]) -> None: ...


class _Lines:
    """One plain line at intervals, for files and pipes."""

    def __init__(self, title: str, subtitle: str, file: IO[str], interval_s: float) -> None:
        self._header = f"{title}  {subtitle}".strip()
        self._file, self._interval_s = file, interval_s
        self._said_at = -math.inf
        self._unsaid: Status | None = None
        self._verdict = ""

    def start(self) -> None:
        if self._header:
            self._say(self._header)
        self._said_at = time.monotonic()

    def update(self, status: Status) -> None:
        self._unsaid, self._verdict = status, status.verdict
        if time.monotonic() - self._said_at >= self._interval_s:
            self._said_at = time.monotonic()
            self._say(line_of(status))
            self._unsaid = None

    def note(self, text: str) -> None:
        self._say(text)

    def finish(self, lines: Sequence[str]) -> None:
        if self._unsaid is not None:
            self._say(line_of(self._unsaid))
        for line in [self._verdict, *lines]:
            if line:
                self._say(line)

    def _say(self, text: str) -> None:
        # Nobody reads it any more? That is no reason to stop training.
        with contextlib.suppress(BrokenPipeError, ValueError):
            print(text, file=self._file, flush=True)
