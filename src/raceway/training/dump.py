"""What went into an update that failed, for looking at it afterwards."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from raceway.files import write_whole
from raceway.training.chain import parts_of


def write_dump(directory: Path, round_: int, values: dict[str, Any]) -> Path:
    """Writes nested arrays to one file that `numpy.load` reads."""
    path = directory / f"round-{round_}.npz"
    arrays: dict[str, Any] = {name: np.asarray(part) for name, part in parts_of(values) if part is not None}
    content = io.BytesIO()
    np.savez(content, **arrays)
    write_whole(path, content.getvalue())
    return path
