"""What `reset` and `step` return, held against Gymnasium's contract."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from raceway.envs.checking.values import kind_of, shown

_RESET = "return observation, info"
_STEP = "return observation, reward, terminated, truncated, info"
_OLD = (
    "port it to Gymnasium (https://gymnasium.farama.org/introduction/migration_guide), or wrap it by the package "
    "shimmy: gymnasium.make('GymV21Environment-v0', env=...)"
)


class WrongReturnError(Exception):
    """Something was returned that nobody can use."""

    def __init__(self, code: str, text: str, fix: str) -> None:
        super().__init__(text)
        self.code, self.text, self.fix = code, text, fix


@dataclass(frozen=True)
class Step:
    """What a step returned."""

    obs: Any
    reward: Any
    terminated: bool
    truncated: bool
    info: dict[str, Any]
    oddities: tuple[tuple[str, str, str], ...] = ()
    """What works but is not by the book: (code, text, fix)."""

    @property
    def is_end(self) -> bool:
        return self.terminated or self.truncated


def read_reset(result: Any) -> tuple[Any, dict[str, Any]]:
    """Observation and info, or why they are none."""
    if result is None:
        raise WrongReturnError("reset-returns", "reset returns None.", _RESET)
    if not isinstance(result, tuple) or len(result) != 2:
        if not isinstance(result, tuple):
            raise WrongReturnError(
                "old-api", f"reset returns the observation alone ({kind_of(result)}): Gym's API before 0.26.", _OLD
            )
        raise WrongReturnError("reset-returns", f"reset returns {kind_of(result)}, not of 2.", _RESET)
    obs, info = result
    if not isinstance(info, dict):
        raise WrongReturnError(
            "info-kind", f"reset returns as its info {shown(info)}, which is not a dict.", f"{_RESET}: {{}} if empty"
        )
    return obs, info


def read_step(result: Any) -> Step:
    """A step, or why it is none."""
    if isinstance(result, tuple) and len(result) == 4:
        raise WrongReturnError("old-api", "step returns 4 values (one done): Gym's API before 0.26.", _OLD)
    if not isinstance(result, tuple) or len(result) != 5:
        raise WrongReturnError("step-returns", f"step returns {kind_of(result)}, not a tuple of 5.", _STEP)
    obs, reward, terminated, truncated, info = result
    if not isinstance(info, dict):
        raise WrongReturnError(
            "info-kind", f"step returns as its info {shown(info)}, which is not a dict.", f"{_STEP}: {{}} if empty"
        )
    oddities = [*_reward(reward), *_flag("terminated", terminated), *_flag("truncated", truncated)]
    return Step(obs, reward, bool(terminated), bool(truncated), info, tuple(oddities))


def _reward(reward: Any) -> list[tuple[str, str, str]]:
    fix = "return float(reward)"
    if isinstance(reward, (bool, np.bool_)):
        return [("reward-kind", f"The reward is a bool ({reward}).", fix)]
    if isinstance(reward, np.ndarray) and reward.ndim > 0:
        raise WrongReturnError("reward-kind", f"The reward is {kind_of(reward)}, not a number.", fix)
    try:
        number = float(reward)
    except (TypeError, ValueError, OverflowError):
        raise WrongReturnError("reward-kind", f"The reward is {shown(reward)}, not a number.", fix) from None
    if not np.isfinite(number):
        raise WrongReturnError(
            "reward-not-finite",
            f"The reward is {number}: one such number spoils a whole update.",
            "find out where it comes from (a division by zero, a simulation that diverged) and end the episode there",
        )
    return []


def _flag(name: str, value: Any) -> list[tuple[str, str, str]]:
    if isinstance(value, (bool, np.bool_)):
        return []
    if isinstance(value, (int, float, np.integer, np.floating)) and value in (0, 1):
        return [("flag-kind", f"{name} is {shown(value)}, a {type(value).__name__}.", f"return bool({name})")]
    raise WrongReturnError(
        "flag-kind", f"{name} is {shown(value)} ({kind_of(value)}), not a bool.", f"return bool({name})"
    )
