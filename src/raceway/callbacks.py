"""Callbacks for `raceway.train(..., callbacks=[...])`: the base class, ready-made ones, and schedules for them."""

from raceway.training.callbacks import Callback, Control, Round
from raceway.training.ready_callbacks import (
    Curriculum,
    EntropySchedule,
    LearningRateSchedule,
    StopAtReturn,
    cosine,
    linear,
    piecewise,
    steps,
)

__all__ = [
    "Callback",
    "Control",
    "Curriculum",
    "EntropySchedule",
    "LearningRateSchedule",
    "Round",
    "StopAtReturn",
    "cosine",
    "linear",
    "piecewise",
    "steps",
]
