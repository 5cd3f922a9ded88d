"""Names what the result of a run depends on: a record under other settings is out of date."""

from __future__ import annotations

import functools
import hashlib
import json
from typing import Any

from benchmarks.learning.sb3_zoo import ZOO
from benchmarks.learning.study import Job


def digest_of(job: Job, episodes: int = 0) -> str:
    """Digest of the resolved settings, the seed and the number of steps included; and of how it is evaluated."""
    text = _settings_of(job.task.env, job.setting.trainer, json.dumps(job.options, sort_keys=True, default=list))
    told = f"{text} {episodes}" if episodes else text
    return hashlib.sha256(told.encode()).hexdigest()[:12]


@functools.cache
def _settings_of(env: str, trainer: str, options: str) -> str:
    given: dict[str, Any] = json.loads(options)
    if trainer == "sb3":
        told: Any = [ZOO[env], given["total_steps"], given["seed"]]
    else:
        from raceway.training.identity import deciding_settings
        from raceway.training.resolve import resolve

        told = deciding_settings(resolve(env, **given))
    return json.dumps(told, sort_keys=True, default=str)
