"""How far a video is, said while it is drawn."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from raceway.report.words import clock, count

if TYPE_CHECKING:
    from rich.console import Console

_INTERVAL_S = 5.0


class DrawingProgress:
    """Says what is drawn: in a line at the bottom of a terminal, elsewhere in a plain line every few seconds.

    A thread of its own says it, so it goes on while a single picture takes long. It writes to the error output.
    """

    def __init__(
        self,
        name: str,
        episodes: int,
        *,
        quiet: bool = False,
        is_seen: bool = False,
        interval_s: float = _INTERVAL_S,
    ) -> None:
        """`is_seen`: the pictures are shown in a window as they are drawn, so no progress is printed."""
        self.doing = "starting"
        """What is done when no pictures are drawn."""
        self.frames = 0
        self.episode = 1
        self._name = name
        self._episodes = episodes
        self._is_quiet = quiet
        self._is_seen = is_seen
        self._terminal: Console | None = None
        self._interval_s = interval_s
        self._started = time.monotonic()
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def line(self) -> str:
        """How far it is, in one line."""
        parts = [f"{self._name}: {self.doing}"]
        if self.frames:
            parts.append(f"episode {self.episode} of {self._episodes}")
            parts.append(f"{count(self.frames)} frames")
        return ", ".join([*parts, clock(time.monotonic() - self._started)])

    def __enter__(self) -> DrawingProgress:
        if self._is_quiet or self._is_seen:
            return self
        say = self._say_now_and_then
        if sys.stderr.isatty():
            from rich.console import Console

            self._terminal = Console(file=sys.stderr, highlight=False)
            say = self._say_live
        self._thread = threading.Thread(target=say, args=(sys.stderr,), name="raceway.drawing", daemon=True)
        self._thread.start()
        return self

    def note(self, text: str) -> None:
        """Prints a line at once, unless quiet."""
        if self._terminal is not None:  # above the line at the bottom
            self._terminal.print(text, markup=False)
        elif not self._is_quiet:
            with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
                print(text, file=sys.stderr, flush=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()

    def _say_now_and_then(self, output: TextIO) -> None:
        while not self._is_over.wait(self._interval_s):
            try:
                print(self.line, file=output, flush=True)
            except (OSError, ValueError):  # nobody reads it any more
                return

    def _say_live(self, output: TextIO) -> None:
        from rich.live import Live
        from rich.text import Text

        with Live(console=self._terminal, auto_refresh=False, transient=True) as live:
            while not self._is_over.wait(0.2):
                live.update(Text(self.line, overflow="ellipsis", no_wrap=True), refresh=True)
