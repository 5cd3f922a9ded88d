"""Environments that do as they are told, so that a pool's way with them can be compared with Gymnasium's."""

from __future__ import annotations

import copy
import functools
import time
import zlib
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

Step = tuple[Any, Any, bool, bool, dict[str, Any]]

SMALL_BOX = spaces.Box(-1, 1, (3,), np.float32)

OBSERVATIONS: dict[str, spaces.Space] = {
    "box": SMALL_BOX,
    "box-float64-matrix": spaces.Box(-np.inf, np.inf, (2, 3), np.float64),
    "box-scalar": spaces.Box(-2, 2, (), np.float32),
    "box-empty": spaces.Box(-2, 2, (0,), np.float32),
    "box-int16": spaces.Box(-300, 300, (2,), np.int16),
    "image": spaces.Box(0, 255, (12, 10, 3), np.uint8),
    "discrete": spaces.Discrete(7),
    "discrete-from-minus-3": spaces.Discrete(7, start=-3),
    "multi-discrete": spaces.MultiDiscrete([3, 5]),
    "multi-discrete-matrix": spaces.MultiDiscrete(np.array([[3, 5], [2, 2]])),
    "multi-binary": spaces.MultiBinary(5),
    "multi-binary-matrix": spaces.MultiBinary((2, 3)),
    "dict": spaces.Dict({"near": SMALL_BOX, "count": spaces.Discrete(4)}),
    "tuple": spaces.Tuple((spaces.Discrete(3), SMALL_BOX, spaces.MultiBinary(2))),
    "nested": spaces.Dict(
        {
            "b": spaces.Tuple((spaces.Dict({"z": spaces.Discrete(3), "a": SMALL_BOX}), spaces.MultiBinary(3))),
            "a": spaces.Box(0, 255, (4, 4, 1), np.uint8),
        }
    ),
    "dict-of-nothing": spaces.Dict({}),
    "tuple-of-nothing-beside": spaces.Tuple((spaces.Tuple(()), SMALL_BOX)),
}
"""Spaces whose samples have one shape: these go through shared memory."""

ACTIONS: dict[str, spaces.Space] = {
    "discrete": spaces.Discrete(5),
    "discrete-from-10": spaces.Discrete(5, start=10),
    "box": spaces.Box(-1, 1, (2,), np.float32),
    "box-float64": spaces.Box(-np.inf, np.inf, (2, 2), np.float64),
    "box-int32": spaces.Box(-9, 9, (3,), np.int32),
    "multi-discrete": spaces.MultiDiscrete([3, 4]),
    "multi-binary": spaces.MultiBinary(3),
    "dict": spaces.Dict({"go": spaces.Discrete(3), "by": spaces.Box(-1, 1, (2,), np.float32)}),
    "tuple": spaces.Tuple((spaces.Discrete(3), spaces.MultiBinary(2))),
    "nested": spaces.Tuple((spaces.Dict({"a": spaces.Discrete(2), "b": spaces.MultiDiscrete([2, 2])}), SMALL_BOX)),
}

VARIABLE: dict[str, spaces.Space] = {
    "text": spaces.Text(8),
    "sequence": spaces.Sequence(spaces.Discrete(4)),
    "sequence-of-boxes": spaces.Sequence(SMALL_BOX, stack=True),
    "graph": spaces.Graph(node_space=spaces.Box(-1, 1, (2,)), edge_space=spaces.Discrete(3)),
    "dict-with-sequence": spaces.Dict({"all": spaces.Sequence(SMALL_BOX), "one": SMALL_BOX}),
    "one-of": spaces.OneOf((spaces.Discrete(3), SMALL_BOX)),
}
"""Spaces whose samples vary in shape."""


def digest(action: Any) -> int:
    """A number that tells two actions apart, their types and shapes too."""
    if isinstance(action, dict):
        return zlib.crc32(repr([(name, digest(each)) for name, each in action.items()]).encode())
    if isinstance(action, (tuple, list)):
        return zlib.crc32(repr([digest(each) for each in action]).encode(), len(action))
    array = np.asarray(action)
    return zlib.crc32(array.tobytes(), zlib.crc32(f"{array.dtype} {array.shape} {type(action).__name__}".encode()))


class Note:
    """An object in an info that is no array."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Note) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


class Scripted(gymnasium.Env):
    """Draws everything from its seed and its actions: observations, rewards, ends, and infos of every kind.

    Args:
        observation: the space that observations are drawn from.
        action: the space of actions; a reward tells which action came.
        longest: no episode takes more steps.
        tells: whether there are infos.
        wait_s: the longest time that a step takes.
    """

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 (Gymnasium's way)

    def __init__(
        self,
        observation: spaces.Space = SMALL_BOX,
        action: spaces.Space = ACTIONS["discrete"],
        longest: int = 6,
        tells: bool = True,
        wait_s: float = 0.0,
        render_mode: str | None = None,
    ) -> None:
        self.observation_space = observation
        self.action_space = action
        self.longest = longest
        self.tells = tells
        self.wait_s = wait_s
        self.render_mode = render_mode
        self.is_closed = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.left = int(self.np_random.integers(1, self.longest + 1))
        self.steps = 0
        info = self._info() if self.tells else {}
        if options:
            info["options"] = repr(sorted(options.items()))
        return self._observe(), info

    def step(self, action: Any) -> Step:
        if self.wait_s:
            time.sleep(float(np.random.default_rng().uniform(0, self.wait_s)))
        assert self.left > 0, "stepped after the end"
        self.left -= 1
        self.steps += 1
        kind = int(self.np_random.integers(3)) if self.left == 0 else 3
        reward = digest(action) / 2**16 + self.steps
        return self._observe(), reward, kind in (0, 2), kind in (1, 2), self._info() if self.tells else {}

    def render(self) -> np.ndarray:
        return np.full((2, 2, 3), self.left, np.uint8)

    def close(self) -> None:
        self.is_closed = True

    def _observe(self) -> Any:
        self.observation_space.seed(int(self.np_random.integers(2**31)))
        return self.observation_space.sample()

    def _info(self) -> dict[str, Any]:
        """Some of many kinds: numbers whose types differ between environments, arrays, objects, dicts in dicts."""
        draw = self.np_random
        kinds = {
            "number": float(draw.normal()) if draw.random() < 0.5 else int(draw.integers(9)),
            "flag": bool(draw.random() < 0.5),
            "array": draw.normal(size=2).astype(np.float32),
            "precise": np.float64(draw.normal()),
            "words": "x" * int(draw.integers(4)),
            "note": Note(str(draw.integers(3))),
            "nothing": None,
            "many": list(range(int(draw.integers(3)))),
            "deep": {"depth": {"left": self.left}, "n": np.int32(draw.integers(5))},
        }
        return {name: value for name, value in kinds.items() if draw.random() < 0.3}


class Counting(gymnasium.Env):
    """Counts: its observation is [number, episode, steps], so that each is known for what it is wherever it turns up.

    An action is how many milliseconds a step takes.
    """

    observation_space = spaces.Box(-1, np.inf, (3,), np.float64)
    action_space = spaces.Discrete(2_000)

    def __init__(self, number: int = 0, length: int = 1_000_000) -> None:
        self.number = number
        self.length = length
        self.episode = -1

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.episode += 1
        self.steps = 0
        return self._observe(), {}

    def step(self, action: Any) -> Step:
        if action:
            time.sleep(int(action) / 1000)
        self.steps += 1
        return self._observe(), float(self.steps), self.steps >= self.length, False, {}

    def _observe(self) -> np.ndarray:
        return np.array([self.number, self.episode, self.steps], np.float64)


Maker = Callable[[], gymnasium.Env]


def maker(**kwargs: Any) -> Maker:
    """Makes a scripted environment with spaces of its own."""
    return functools.partial(_scripted, kwargs)


def _scripted(kwargs: dict[str, Any]) -> Scripted:
    return Scripted(**copy.deepcopy(kwargs))
