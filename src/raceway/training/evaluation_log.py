"""The log of evaluations. The evaluator, a process of its own, may finish one after the last metrics are written."""

from __future__ import annotations

import json
from pathlib import Path

from raceway.errors import RunFolderError
from raceway.files import open_to_append, read_lines
from raceway.training.config import plain
from raceway.training.evaluation import Evaluation


def append_evaluation(path: Path, evaluation: Evaluation) -> None:
    """Adds one line to the log."""
    with open_to_append(path) as file:
        file.write((json.dumps(plain(evaluation.to_dict())) + "\n").encode())


def read_evaluations(path: Path) -> list[Evaluation]:
    """Reads the log, one evaluation for each policy, by their number of updates. Without a log there are none.

    An incomplete last line is skipped: its writer was killed. A resumed run may have evaluated a policy again.
    """
    if not path.exists():
        return []
    found: dict[int, Evaluation] = {}
    for line, is_whole in read_lines(path):
        try:
            each = Evaluation.of(json.loads(line))
            found[each.version] = each
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
            if is_whole:
                raise RunFolderError(f"{path} is damaged: it has a line that is not an evaluation.") from None
    return [found[version] for version in sorted(found)]
