"""What a pool of Python environments is made of, and what its environments say about themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gymnasium import Space
from gymnasium.envs.registration import EnvSpec

from raceway.envs.python.stage import Maker, Rules


@dataclass(frozen=True)
class PoolSettings:
    """What a pool of Python environments is made of."""

    name: str
    makers: Sequence[Maker]
    rules: Rules
    spec: EnvSpec | None = None
    batch_size: int | None = None
    seed: int | Sequence[int | None] | None = None
    record_episodes: bool = False
    copy: bool = True
    writes_log: bool = True
    """False: somebody else writes down what is done in its episodes."""


@dataclass(frozen=True)
class Description:
    """What an environment says about itself."""

    observation_space: Space
    action_space: Space
    metadata: dict[str, Any]
    render_mode: str | None
