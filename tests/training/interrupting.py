"""Runs that are interrupted on their way, as by Ctrl-C."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

import raceway

SMALL: dict[str, Any] = {
    "num_envs": 4, "n_steps": 8, "batch_size": 16, "n_epochs": 2, "hidden": (8, 8), "preset": False,
    "total_steps": 4 * 8 * 40, "evaluation": {"enabled": False}, "checkpoint": {"interval_s": 0.01},
}  # fmt: skip


def train(directory: Path, env: Any = "CartPole-v1", name: str = "run", **settings: Any) -> Any:
    log = {"directory": str(directory), "name": name, "quiet": True}
    return raceway.train(env, **{**SMALL, "log": log, **settings})


class StopAt(raceway.Callback):
    """Interrupts the run as Ctrl-C would, at a round."""

    def __init__(self, round_: int) -> None:
        self.round = round_

    def on_round(self, told: Any, control: Any) -> None:
        if told.round == self.round:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)


def interrupted(directory: Path, env: Any = "CartPole-v1", round_: int = 12, **settings: Any) -> Path:
    """A run that Ctrl-C has ended on its way."""
    with pytest.raises(KeyboardInterrupt):
        train(directory, env, callbacks=[StopAt(round_)], **settings)
    (run,) = next(directory.iterdir()).iterdir()
    return run
