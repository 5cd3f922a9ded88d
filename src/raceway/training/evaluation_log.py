"""The log of evaluations. The evaluator, a process of its own, may finish one after the last metrics are written."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path

from raceway.errors import RunFolderError
from raceway.files import open_to_append, opened_to_read, read_lines, write_whole
from raceway.report.metrics import parse_row

_MOST_LINES = 1_000_000


def append_evaluation(path: Path, steps: int, row: Mapping[str, float]) -> None:
    """Adds the metrics of an evaluation after `steps` environment steps of training."""
    with open_to_append(path) as file:
        # A writer that was killed in the middle of a line must not spoil the next one.
        file.write(_line(steps, row) if _ends_a_line(path) else b"\n" + _line(steps, row))


def _line(steps: int, row: Mapping[str, float]) -> bytes:
    finite = {name: value if math.isfinite(value) else None for name, value in row.items()}
    return json.dumps({"step": steps, **finite}, allow_nan=False).encode() + b"\n"


def _ends_a_line(path: Path) -> bool:
    with opened_to_read(path) as file:
        if not os.fstat(file.fileno()).st_size:
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def read_evaluations(path: Path) -> dict[int, dict[str, float]]:
    """Reads the log: metrics by steps of training, in order. Without a log there are none.

    Lines that are not whole are skipped. A resumed run may have evaluated a policy again: the last line counts.
    """
    if not os.path.lexists(path):
        return {}
    found: dict[int, dict[str, float]] = {}
    for number, (line, _) in enumerate(read_lines(path), 1):
        if number > _MOST_LINES:
            raise RunFolderError(f"{path} has more than {_MOST_LINES:,} lines, the most that are read.")
        try:
            row = parse_row(line)
        except ValueError:
            continue
        found[int(row.pop("step"))] = {
            name: math.nan if value is None else float(value)
            for name, value in row.items()
            if name.startswith("evaluation/")
        }
    return dict(sorted(found.items()))


def forget_evaluations(path: Path, after: int) -> None:
    """Removes what was evaluated after so many steps: a resumed run may have other policies there."""
    if not os.path.lexists(path):
        return
    kept = {steps: row for steps, row in read_evaluations(path).items() if steps <= after}
    write_whole(path, [_line(steps, row) for steps, row in kept.items()])
