"""The studies whose data is in benchmarks/results/learning."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.learning.study import Setting, Study, Task

SERIAL = Setting("serial", {"schedule": "serial"})
CONCURRENT = Setting("concurrent", {"schedule": "concurrent"})
ASYNC = Setting("async", {"schedule": "async"}, alone=True)

_SCHEDULES = Study(
    "schedules",
    "Does the concurrent schedule learn as much per step as the serial one?",
    tasks=[
        Task("HalfCheetah-v5", 500_000),
        Task("Hopper-v5", 500_000),
        Task("Walker2d-v5", 500_000),
        Task("Swimmer-v5", 500_000),
        Task("Acrobot-v1", 300_000),
        Task("LunarLander-v3", 500_000),
    ],
    settings=[SERIAL, CONCURRENT, ASYNC],
    seeds=range(11, 16),
    speed_steps=100_000,
)

STUDIES: Mapping[str, Study] = {study.name: study for study in (_SCHEDULES,)}
