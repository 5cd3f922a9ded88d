"""Environments so small that it is known what must be learned from them, and ones that are hard to collect from.

They stand apart from the tests because every worker imports this file, and should not have to import JAX with it.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from tests.once import is_first


class Probe(gymnasium.Env[np.ndarray, Any]):
    """A sign to see, two actions, episodes of fixed length. Reward by `rule(sign, action, step)`, at most."""

    def __init__(self, rule: str, length: int = 1) -> None:
        self.observation_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.action_space = spaces.Discrete(2)
        self.rule = rule
        self.length = length

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        self.sign = self._sign()
        return np.array([self.sign], np.float32), {}

    def _sign(self) -> float:
        if self.rule in ("constant", "action"):
            return 0.0
        if self.rule == "two steps":
            return -1.0 if self.steps == 0 else 1.0
        return 1.0 if self.np_random.random() < 0.5 else -1.0

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        reward = {
            "constant": 1.0,
            "observation": self.sign,
            "two steps": float(self.steps == 1),
            "action": 1.0 if action == 1 else -1.0,
            "both": 1.0 if (action == 1) == (self.sign > 0) else -1.0,
        }[self.rule]
        self.steps += 1
        self.sign = self._sign()
        ended = self.steps >= (2 if self.rule == "two steps" else self.length)
        return np.array([self.sign], np.float32), reward, ended, False, {}


class Forever(gymnasium.Env[np.ndarray, Any]):
    """Pays 1 a step and never ends; it is cut off after a few. Its value is 1 / (1 - gamma), if that is understood."""

    observation_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, limit: int = 5) -> None:
        self.limit = limit

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        return np.zeros(1, np.float32), 1.0, False, self.steps >= self.limit, {}


class Unsteady(Probe):
    """Takes its time, never the same: what it gives is decided by its seed and actions alone."""

    def __init__(self, most_s: float = 0.002) -> None:
        super().__init__("both", length=7)
        self.most_s = most_s

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        time.sleep(random.SystemRandom().random() * self.most_s)
        return super().step(action)


class Choices(gymnasium.Env[Any, Any]):
    """Whole numbers that do not count from zero, and nothing that only JAX could read."""

    def __init__(self, masks_late: bool = False) -> None:
        self.observation_space = spaces.Discrete(3, start=5)
        self.action_space = spaces.MultiBinary(4)
        self.masks_late = masks_late

    def _info(self) -> dict[str, Any]:
        return {"action_mask": np.array([1, self.steps % 2, 1, 0], np.int8)}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        return 5, {} if self.masks_late else self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if not self.masks_late:
            assert not (action & (self._info()["action_mask"] == 0)).any(), f"a part of {action} is masked"
        self.steps += 1
        return 5 + self.steps % 3, 1.0, False, self.steps % 5 == 0, self._info()


class Everything(gymnasium.Env[Any, Any]):
    """Nested observations of every kind, infos to log, masks if its actions are discrete."""

    def __init__(self, action: str = "discrete") -> None:
        self.observation_space = spaces.Dict(
            {
                "vector": spaces.Box(-1.0, 1.0, (3,), np.float64),
                "inner": spaces.Dict({"choice": spaces.Discrete(4), "flags": spaces.MultiBinary(3)}),
                "pair": spaces.Tuple([spaces.MultiDiscrete([2, 3]), spaces.Box(0, 255, (2, 2), np.uint8)]),
            }
        )
        self.action_space = {
            "discrete": spaces.Discrete(3, start=1),
            "multi_discrete": spaces.MultiDiscrete([2, 3]),
            "multi_binary": spaces.MultiBinary(4),
            "box": spaces.Box(-0.5, 2.0, (2, 2), np.float32),
        }[action]

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = {"height": self.steps / 10.0}
        if isinstance(self.action_space, spaces.Discrete):
            info["action_mask"] = np.array([1, self.steps % 2, 1], np.int8)
        elif isinstance(self.action_space, spaces.MultiBinary):
            info["action_mask"] = np.array([1, self.steps % 2, 1, 0], np.int8)
        return info

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.steps = 0
        return self.observation_space.sample(), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        if isinstance(self.action_space, spaces.Discrete):
            assert self._info()["action_mask"][int(action) - 1], f"action {action} is masked"
        elif isinstance(self.action_space, spaces.MultiBinary):
            assert not (action & (self._info()["action_mask"] == 0)).any(), f"a part of {action} is masked"
        self.steps += 1
        return self.observation_space.sample(), 1.0, self.steps >= 6, self.steps % 5 == 0, self._info()


class Recall(gymnasium.Env[np.ndarray, Any]):
    """A sign that only the first observation shows; after `delay` steps of nothing the action has to match it."""

    observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, delay: int = 3) -> None:
        self.delay = delay

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        self.sign = 1.0 if self.np_random.random() < 0.5 else -1.0
        return np.array([self.sign, 0.0], np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        is_last = self.steps > self.delay
        reward = (1.0 if (action == 1) == (self.sign > 0) else -1.0) if is_last else 0.0
        asks = float(self.steps == self.delay)
        return np.array([0.0, asks], np.float32), reward, is_last, False, {}


class Staircase(gymnasium.Env[np.ndarray, Any]):
    """Shows how many steps of 0.1 were taken, and is cut off after a few."""

    observation_space = spaces.Box(0.0, 10.0, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        return np.array([self.steps * 0.1], np.float32), 1.0, False, self.steps >= self.limit, {}


class Walk(gymnasium.Env[np.ndarray, Any]):
    """A walk by dice that ends when it has gone astray, or takes too long. It cannot be saved, only walked again."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = spaces.Discrete(3, start=-1)

    def __init__(self, limit: int = 30) -> None:
        self.limit = limit

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.place, self.steps = float(self.np_random.normal()), 0
        return self._seen(), {}

    def _seen(self) -> np.ndarray:
        return np.array([self.place, self.steps / self.limit])

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        self.place += float(action) + float(self.np_random.normal())
        info = {"place": self.place}
        return self._seen(), -abs(self.place), abs(self.place) > 6, self.steps >= self.limit, info


class SavedWalk(Walk):
    """The same, and it can be saved."""

    def get_state(self) -> Any:
        return {"place": self.place, "steps": self.steps}

    def set_state(self, state: Any) -> None:
        self.place, self.steps = float(state["place"]), int(state["steps"])


class ChanceWalk(Walk):
    """Depends on more than its seed: walked again, it goes elsewhere."""

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.place += random.SystemRandom().random() / 10
        return super().step(action)


class MaskedWalk(Walk):
    """Not to the side where it has gone too far already."""

    def _mask(self) -> dict[str, Any]:
        return {"action_mask": np.array([self.place > -2, 1, self.place < 2], np.int8)}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        return super().reset(seed=seed)[0], self._mask()

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        assert self._mask()["action_mask"][int(action) + 1], f"action {action} is masked"
        return *super().step(action)[:4], self._mask()


class Seen(gymnasium.Env[Any, Any]):
    """Nested observations that the native kernel reads, and continuous actions."""

    observation_space = spaces.Dict(
        {"pair": spaces.Tuple([spaces.Box(-1, 1, (2,), np.float32), spaces.Box(-1, 1, (1, 2), np.float64)])}
    )
    action_space = spaces.Box(-0.5, 2.0, (2, 2), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        return self._seen(), {}

    def _seen(self) -> Any:
        return {"pair": (self.np_random.random(2, np.float32), self.np_random.random((1, 2)))}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        self.steps += 1
        return self._seen(), float(action.sum()), False, self.steps == 5, {"steps": self.steps}


class Deadly(Walk):
    """Kills its process, once, in a step of its choice."""

    def __init__(self, mark: str, after: int) -> None:
        super().__init__()
        self.mark, self.left = Path(mark), after

    def step(self, action: Any) -> Any:
        self.left -= 1
        if self.left == 0 and is_first(self.mark):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().step(action)


class Loose(Walk):
    """Raises now and then."""

    def step(self, action: Any) -> Any:
        if self.np_random.random() < 0.02:
            raise RuntimeError("the cable is loose")
        return super().step(action)


class Stuck(Walk):
    """Does not come back from a step."""

    def step(self, action: Any) -> Any:
        if self.steps == 7:
            signal.pause()
        return super().step(action)


class Imports(Walk):
    """Tells what its process has imported."""

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, _ = super().step(action)
        heavy = [name for name in ("jax", "jaxlib", "optax") if name in sys.modules]
        return obs, reward, terminated, truncated, {"heavy": len(heavy), "policy": "raceway._core" in sys.modules}


def limited(kind: Any) -> gymnasium.Env:
    """Cut off after twenty steps."""
    return gymnasium.wrappers.TimeLimit(kind(), 20)
