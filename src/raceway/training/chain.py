"""The hash chain: one line per update, over what went in and what came out.

Two runs that agree on a line agree on every bit of every rollout and of all parameters up to it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from raceway.algos.rollout import Rollout

BEGINNING = "0" * 64


def link(before: str, rollout: Rollout, params: np.ndarray) -> str:
    """The chain's next digest, in hexadecimal digits."""
    digest = hashlib.sha256(before.encode())
    for name, part in parts_of({"rollout": rollout, "params": params}):
        if isinstance(part, np.ndarray):
            digest.update(f"{name} {part.dtype.str} {part.shape}\n".encode())
            digest.update(np.ascontiguousarray(part).data.cast("B"))
        else:
            digest.update(f"{name} {part}\n".encode())
    return digest.hexdigest()


def parts_of(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The arrays and numbers of nested dicts, tuples and dataclasses, by names with dots."""
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, tuple):
        inner = list(enumerate(value))
    elif is_dataclass(value):
        inner = [(field.name, getattr(value, field.name)) for field in fields(value)]
    else:
        yield name, value
        return
    for key, part in inner:
        yield from parts_of(part, f"{name}.{key}" if name else str(key))
