"""`raceway check`."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Iterator
from typing import Any

import raceway


def check(parsed: argparse.Namespace) -> int:
    """Says what was found; 1 if training would break, or with --strict if anything could be better."""
    with _progress(is_shown=sys.stderr.isatty() and not parsed.json) as progress:
        found = raceway.check(
            parsed.env,
            env_args=parsed.env_args,
            lanes=not parsed.no_lanes,
            num_envs=parsed.num_envs,
            num_workers=parsed.num_workers,
            timeout_s=parsed.timeout,
            on_progress=progress,
        )
    if parsed.json:
        print(json.dumps(found.to_dict(), indent=2, allow_nan=False))
    else:
        from raceway.report.checked import show

        show(found)
    return 1 if found.problems or (parsed.strict and found.notes) else 0


@contextlib.contextmanager
def _progress(is_shown: bool) -> Iterator[Any]:
    """A line at the bottom of the terminal, which goes when all is done."""
    if not is_shown:
        yield None
        return
    from rich.console import Console as Terminal
    from rich.progress import BarColumn, Progress, TextColumn

    terminal = Terminal(stderr=True, highlight=False)
    with Progress(BarColumn(20), TextColumn("{task.description}"), console=terminal, transient=True) as bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda text, share: bar.update(task, description=text, completed=share)
