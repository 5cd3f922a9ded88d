"""Random generators that all code of a process shares: who draws from them depends on everybody else."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from raceway.envs.checking.values import digest


@contextlib.contextmanager
def used_generators() -> Iterator[list[str]]:
    """The names of those that were drawn from, or seeded, within the block; told at its end."""
    used: list[str] = []
    before = _states()
    try:
        yield used
    finally:
        after = _states()
        used += [name for name, state in after.items() if name in before and before[name] != state]


def scramble(seed: int) -> None:
    """Sets them to something else."""
    random.seed(seed)
    np.random.seed(seed)


def _states() -> dict[str, bytes]:
    known: dict[str, Callable[[], Any]] = {
        "the module random": random.getstate,
        "np.random": lambda: np.random.get_state(legacy=False),
    }
    torch = sys.modules.get("torch")
    if torch is not None:
        known["torch"] = lambda: torch.get_rng_state().numpy()
    return {name: digest(state()) for name, state in known.items()}
