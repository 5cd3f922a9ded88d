"""What went into an update that failed, for looking at it afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from raceway.training.chain import parts_of


def write_dump(directory: Path, round_: int, values: dict[str, Any]) -> Path:
    """Writes nested arrays to one file that `numpy.load` reads."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"round-{round_}.npz"
    arrays: dict[str, Any] = {name: np.asarray(part) for name, part in parts_of(values) if part is not None}
    np.savez(path, **arrays)
    return path
