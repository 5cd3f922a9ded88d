"""What a check has found, for a terminal."""

from __future__ import annotations

import io
from collections.abc import Iterator

from rich.console import Console as Terminal
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from raceway.envs.checking.advice import duration
from raceway.envs.checking.findings import TOPICS, CheckReport, EnvSpeed, Finding
from raceway.report.words import count, number, percent

_WIDTH = 80
_MARKS = {"ok": ("✓", "green"), "note": ("!", "yellow"), "problem": ("✗", "red")}


def report(found: CheckReport) -> str:
    """As plain text, 80 columns wide."""
    written = io.StringIO()
    Terminal(file=written, width=_WIDTH, no_color=True, highlight=False).print(drawn(found))
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines())


def show(found: CheckReport) -> None:
    """To the terminal, in colour if it has any."""
    terminal = Terminal(highlight=False)
    if terminal.is_terminal:
        terminal.print(drawn(found), width=min(terminal.width, _WIDTH))
    else:
        print(report(found))


def drawn(found: CheckReport) -> RenderableType:
    parts: list[RenderableType] = [Text(found.name, style="bold")]
    for topic in TOPICS:
        of_topic = [finding for finding in found.findings if finding.topic == topic]
        if topic == "speed" and (of_topic or found.speed):
            parts += [_head(topic), *_speed(found), *map(_finding, of_topic)]
        elif of_topic:
            parts += [_head(topic), *map(_finding, of_topic)]
    if found.advice:
        parts += [_head("advice"), *(_item("-", "cyan", [Text(each)]) for each in found.advice)]
    return Group(*parts, Text(), Text(_sum(found), style="bold"))


def _head(name: str) -> Text:
    return Text(f"\n{name}", style="dim")


def _finding(finding: Finding) -> RenderableType:
    sign, style = _MARKS[finding.mark]
    lines: list[RenderableType] = [Text(finding.text)]
    if finding.fix:
        lines.append(Text(f"to change that: {finding.fix}", style="cyan"))
    if finding.details and finding.mark != "ok":
        lines.append(Padding(Text(finding.details, style="dim", overflow="fold"), (0, 0, 0, 2)))
    return _item(sign, style, lines)


def _item(sign: str, style: str, lines: list[RenderableType]) -> RenderableType:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=3)
    grid.add_column(ratio=1)
    grid.add_row(Text(f"  {sign}", style=style), Group(*lines))
    return grid


def _speed(found: CheckReport) -> Iterator[RenderableType]:
    if found.speed is not None:
        yield _item("", "", [Text(_one(found.speed))])
    if not found.lanes:
        return
    table = Table.grid(padding=(0, 3, 0, 0))
    table.add_column()
    for _ in range(4):
        table.add_column(justify="right")
    table.add_row(*(Text(each, style="dim") for each in ("lane", "envs", "workers", "steps/s", "of the limit")))
    for lane in found.lanes:
        share = f"{percent(lane.of_limit)} of {_rate(lane.limit)}"
        table.add_row(lane.name, str(lane.num_envs), str(lane.num_workers), _rate(lane.steps_per_second), share)
    yield Padding(table, (1, 0, 0, 4))
    yield Padding(Text(f"The limit is a bare loop on each of {found.cpus} CPUs.", style="dim"), (0, 0, 0, 4))


def _rate(steps_per_second: float) -> str:
    return count(steps_per_second) if steps_per_second >= 100 else number(steps_per_second)


def _one(speed: EnvSpeed) -> str:
    text = f"one environment: {duration(speed.step_s)} a step, {_rate(speed.steps_per_second)} steps/s"
    if speed.reset_s > 0:
        text += f"; {duration(speed.reset_s)} a reset"
    if speed.wrapper_share >= 0.02:
        text += f"; wrappers are {percent(speed.wrapper_share)} of a step"
    return text


def _sum(found: CheckReport) -> str:
    problems, notes = len(found.problems), len(found.notes)
    if problems:
        return f"{problems} thing{'s' * (problems > 1)} must be put right before training works (✗)."
    if notes:
        return f"Training works. {notes} thing{'s' * (notes > 1)} could be better (!)."
    return "All is well."
