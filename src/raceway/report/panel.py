"""The console of a run in a terminal: a few lines at its bottom, redrawn in place."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import IO, Any

from rich.console import Console as Terminal
from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from raceway.report.status import Status
from raceway.report.words import clock, count, number, percent

_REDRAWS_PER_SECOND = 2.0
_LABEL = 12
_BAR = 40
_SHORT_BAR = 8


class Panel:
    """Shows the newest status, twice a second.

    A thread of rich's redraws it, whatever the pace of the run: it costs the run nothing, and that the clock goes on
    shows that the program lives.
    """

    def __init__(self, title: str, subtitle: str, file: IO[str]) -> None:
        self._title, self._subtitle = title, subtitle
        self._status: Status | None = None
        self._started = self._updated = time.monotonic()
        self._terminal = Terminal(file=file, highlight=False)
        self._live = Live(
            console=self._terminal,
            get_renderable=self._draw,
            refresh_per_second=_REDRAWS_PER_SECOND,
            vertical_overflow="crop",
        )

    def start(self) -> None:
        self._started = time.monotonic()
        self._live.start(refresh=True)

    def update(self, status: Status) -> None:
        self._status, self._updated = status, time.monotonic()

    def note(self, text: str) -> None:
        self._terminal.print(text, markup=False)

    def finish(self, lines: Sequence[str]) -> None:
        self._live.stop()  # draws once more, and shows the cursor again
        for line in ["", *lines] if lines else []:
            self._terminal.print(line, markup=False, soft_wrap=True)

    def _draw(self) -> Group:
        parts = self._head()
        status = self._status
        if status is None:
            waited = clock(time.monotonic() - self._started)
            return Group(*parts, Text(f"getting ready: making environments, compiling ({waited})", style="dim"))
        silence_s = time.monotonic() - self._updated if self._live.is_started and not status.is_over else 0.0
        return Group(*parts, *_body(status, silence_s))

    def _head(self) -> list[RenderableType]:
        """What is trained, in one line if it fits, else in two."""
        both = f"{self._title}  {self._subtitle}"
        if not both.strip():
            return [Text()]
        end = "  " if len(both) <= self._terminal.width else "\n"
        return [Text(), Text.assemble((self._title, "bold"), end, (self._subtitle, "dim"), overflow="fold")]


def _body(status: Status, silence_s: float) -> list[RenderableType]:
    parts = [_progress(status), _facts(status, silence_s)]
    if status.collect is not None:
        parts.append(_shares(status))
    if status.verdict:
        parts.append(Text(status.verdict, style="italic"))
    return parts


def _progress(status: Status) -> RenderableType:
    line = Table.grid(padding=(0, 1))
    line.add_row(
        ProgressBar(total=1.0, completed=status.share, width=_BAR),
        Text(f"{percent(status.share)} of {count(status.total_steps)} steps"),
    )
    return line


def _facts(status: Status, silence_s: float) -> RenderableType:
    left = "done" if status.is_over else f"about {clock(status.left_s)} left"
    if silence_s > 5:
        left = f"no news for {clock(silence_s)}"
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=_LABEL - 2, style="dim")
    table.add_column(width=16, no_wrap=True)
    table.add_column(style="dim", no_wrap=True, overflow="ellipsis")
    table.add_row("time", clock(status.seconds + silence_s), left)
    table.add_row("speed", f"{count(status.steps_per_second)} steps/s", f"{count(status.steps)} steps so far")
    lengths = f"episodes of {number(status.length_mean)} steps, {count(status.episodes)} so far"
    table.add_row("return", number(status.return_mean), lengths if status.episodes else "no episode has ended yet")
    best = "none yet" if status.evaluation is None else f"best {number(status.best)}"
    table.add_row("evaluation", number(status.evaluation), best)
    return table


def _shares(status: Status) -> RenderableType:
    """Where the time goes, as short bars."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=_LABEL - 1)
    row: list[Any] = [Text("time for", style="dim")]
    for name, share, style in (
        ("collect", status.collect, "cyan"),
        ("learn", status.learn, "magenta"),
        ("wait", status.wait, "yellow"),
    ):
        done = min(max(share or 0.0, 0.0), 1.0)
        bar = ProgressBar(total=1.0, completed=done, width=_SHORT_BAR, complete_style=style, finished_style=style)
        row += [Text(name), bar, Text(f"{percent(share):<5}")]
    grid.add_row(*row)
    return grid
