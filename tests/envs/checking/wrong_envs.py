"""Environments that are wrong, each in one way."""

from __future__ import annotations

import random
import time
from typing import Any

import numpy as np
from gymnasium import spaces

from tests.envs.checking.right_envs import Masked, Picture, Pushed, SavingWalk, Walk


class Looks(Walk):
    """What it looks like is what the subclass says."""

    seen: Any = None

    def look(self) -> Any:
        return self.seen


class Duck:
    """No gymnasium.Env."""

    observation_space = Walk.observation_space
    action_space = Walk.action_space
    reset = Walk.reset
    step = Walk.step


class OldGym(Duck):
    """As of the package gym."""

    __module__ = "gym.envs"


class NoSpace(Walk):
    action_space: Any = None


class OldReset(Walk):
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return super().reset(seed=seed)[0]


class OldStep(Walk):
    def step(self, action: Any) -> Any:
        obs, reward, terminated, _, info = super().step(action)
        return obs, reward, terminated, info


class SeedlessReset(Walk):
    def reset(self) -> Any:  # type: ignore[override]
        return super().reset()


class OptionlessReset(Walk):
    def reset(self, seed: int | None = None) -> Any:  # type: ignore[override]
        return super().reset(seed=seed)


class NoneReset(Walk):
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return None


class ThreeStep(Walk):
    def step(self, action: Any) -> Any:
        return super().step(action)[:3]


class TwoActions(Walk):
    def step(self, action: Any, more: Any) -> Any:  # type: ignore[override]
        return super().step(action)


class Returns(Walk):
    """One of what a step returns is another thing."""

    index = 0
    value: Any = None

    def step(self, action: Any) -> Any:
        result = list(super().step(action))
        result[self.index] = self.value
        return tuple(result)


class ListInfo(Returns):
    index, value = 4, []


class NanReward(Returns):
    index, value = 1, float("nan")


class ArrayReward(Returns):
    index, value = 1, np.ones(1)


class BoolReward(Returns):
    index, value = 1, True


class IntFlag(Returns):
    index, value = 3, 0


class NoneFlag(Returns):
    index, value = 2, None


class CloseRaises(Walk):
    def close(self) -> None:
        raise RuntimeError("not now")


class RaisesInReset(Walk):
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        raise FileNotFoundError("level.dat")


class RaisesLater(Walk):
    def step(self, action: Any) -> Any:
        if abs(self.place) > 2:
            raise ValueError("too far")
        return super().step(action)


class ShapeOff(Looks):
    seen = np.zeros(2, np.float32)


class KeysOff(Looks):
    observation_space = spaces.Dict({"a": spaces.Discrete(2)})
    seen = {"b": 0}  # noqa: RUF012


class PartsOff(Looks):
    observation_space = spaces.Tuple((spaces.Discrete(2), spaces.Discrete(2)))
    seen = (0,)


class Texts(Looks):
    seen = "nothing"


class Lists(Looks):
    seen = [0.5]  # noqa: RUF012


class WiderType(Looks):
    seen = np.full(1, 0.5)


class FloatBytes(Looks):
    observation_space = spaces.Box(0, 255, (1,), np.uint8)
    seen = np.full(1, 0.5, np.float32)


class NanObservation(Looks):
    seen = np.full(1, np.nan, np.float32)


class Outside(Looks):
    seen = np.full(1, 21, np.float32)


class OutOfRange(Looks):
    observation_space = spaces.Discrete(3)
    seen = 3


class Doubles(Looks):
    observation_space = spaces.Box(-1, 1, (1,), np.float64)
    seen = np.full(1, 0.5)


class Huge(Looks):
    observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)
    seen = np.full(1, 1e5, np.float32)


class SmallImage(Looks):
    observation_space = spaces.Box(0, 255, (20, 20, 3), np.uint8)
    seen = np.zeros((20, 20, 3), np.uint8)


class Variable(Looks):
    observation_space = spaces.Sequence(spaces.Discrete(3))
    seen = (1, 2)


class DictAction(Walk):
    action_space = spaces.Dict({"a": spaces.Discrete(2)})

    def step(self, action: Any) -> Any:
        return super().step(action["a"])


class Unbounded(Pushed):
    action_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)


class Strong(Pushed):
    observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)
    action_space = spaces.Box(-100, 100, (1,), np.float32)


class NoBounds(Pushed):
    def step(self, action: Any) -> Any:
        if abs(action[0]) >= 1:
            raise ValueError("on the edge")
        return super().step(action)


class WritesAction(Pushed):
    def step(self, action: Any) -> Any:
        action *= 0.5
        return super().step(action)


class SeedIgnored(Walk):
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset()
        self.place = float(np.random.default_rng().uniform(-1, 1))
        return self.look(), {}


class SeedConstant(Walk):
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return super().reset(seed=None if seed is None else 7)


class SeedKept(Walk):
    """Seeds a generator of its own, and not Gymnasium's."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        if seed is not None:
            self.own = np.random.default_rng(seed)
        self.np_random = self.own
        self.place = self.own.uniform(-1, 1)
        return self.look(), {}


class GlobalNumpy(Walk):
    def step(self, action: Any) -> Any:
        self.place += np.random.normal()
        return super().step(action)


class GlobalRandom(Walk):
    def step(self, action: Any) -> Any:
        self.place += random.random()
        return super().step(action)


class Clock(Walk):
    def step(self, action: Any) -> Any:
        self.place += time.perf_counter() % 1e-3
        return super().step(action)


class Leftover(Walk):
    drift = 0.0

    def step(self, action: Any) -> Any:
        self.drift += 1e-4
        self.place += self.drift
        return super().step(action)


class Hashed(Walk):
    def step(self, action: Any) -> Any:
        self.place += hash("wind") % 100 * 1e-4
        return super().step(action)


class Endless(Walk):
    def step(self, action: Any) -> Any:
        self.place = self.np_random.uniform(-1, 1)
        return self.look(), 0.0, False, False, {}


class Instant(Walk):
    def step(self, action: Any) -> Any:
        return self.look(), 0.0, True, False, {}


class Reused(Walk):
    def look(self) -> Any:
        if not hasattr(self, "array"):
            self.array = np.zeros(1, np.float32)
        self.array[0] = self.place
        return self.array


class OwnState(Walk):
    """Hands out the array that it computes with."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.state = np.array([self.place], np.float32)
        return self.state, {}

    def step(self, action: Any) -> Any:
        self.state = self.state + np.float32(action) - np.float32(0.4)
        return self.state, 0.0, bool(abs(self.state[0]) > 5), False, {}


class Forgets(SavingWalk):
    """Its state lacks something that step reads."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.speed = 0.0
        return super().reset(seed=seed)

    def step(self, action: Any) -> Any:
        self.speed += 0.01
        self.place += self.speed
        return super().step(action)


class ClockState(SavingWalk):
    """Its state is all that there is, but it reads a clock."""

    def step(self, action: Any) -> Any:
        self.place += time.perf_counter() % 1e-3
        return super().step(action)


class ObjectState(SavingWalk):
    def get_state(self) -> Any:
        return {"self": object()}


class StateRaises(SavingWalk):
    def get_state(self) -> Any:
        raise NotImplementedError("later")


class RenderRaises(Picture):
    def render(self) -> Any:
        raise OSError("no screen")


class RenderFloats(Picture):
    picture = np.zeros((8, 16, 3))


class NoFps(Picture):
    metadata: dict[str, Any] = {"render_modes": ["rgb_array"]}  # noqa: RUF012


class OtherMode(Picture):
    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__("human")


class NothingAllowed(Masked):
    def info(self) -> dict[str, Any]:
        return super().info() | {"action_mask": np.zeros(4, bool)}


class DictMask(Masked):
    def info(self) -> dict[str, Any]:
        return {"action_mask": {"all": super().info()["action_mask"]}}


class AddedMask(Masked):
    def info(self) -> dict[str, Any]:
        return {"action_mask": np.where(super().info()["action_mask"], 0.0, -np.inf)}


class MaskOnlyAtReset(Masked):
    def step(self, action: Any) -> Any:
        *rest, _ = super().step(action)
        return *rest, {}


class FullMaskAtReset(Masked):
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return super().reset(seed=seed)[0], {"action_mask": np.ones(4, np.int8)}

    def step(self, action: Any) -> Any:
        *rest, _ = super().step(self.allowed)
        return *rest, {}


class MaskOnlyInSteps(Masked):
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return super().reset(seed=seed)[0], {}

    def step(self, action: Any) -> Any:
        return super().step(self.allowed)


class ContinuousMask(Pushed):
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return super().reset(seed=seed)[0], {"action_mask": np.ones(1, bool)}
