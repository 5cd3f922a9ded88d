"""Environments that are wrong, each in one way, and some that are right."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import sys
import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Walk(gymnasium.Env):
    """A right one: a random walk that ends at 5."""

    observation_space: spaces.Space = spaces.Box(-20, 20, (1,), np.float32)
    action_space: spaces.Space = spaces.Discrete(2)
    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.place = self.np_random.uniform(-1, 1)
        return self.look(), {}

    def step(self, action: Any) -> Any:
        self.place += float(action) - 0.5 + 0.1 * self.np_random.normal()
        return self.look(), -abs(self.place), bool(abs(self.place) > 5), False, {}

    def look(self) -> Any:
        return np.array([self.place], np.float32)


class SavingWalk(Walk):
    """A right one that can tell its state."""

    def get_state(self) -> Any:
        return {"place": self.place}

    def set_state(self, state: Any) -> None:
        self.place = state["place"]


class Nest(Walk):
    """A right one with nested observations."""

    observation_space = spaces.Dict(
        {
            "camera": spaces.Box(0, 255, (64, 64, 3), np.uint8),
            "rest": spaces.Tuple((spaces.Discrete(3, start=1), spaces.MultiBinary(2))),
        }
    )
    action_space = spaces.MultiDiscrete([2, 3])

    def step(self, action: Any) -> Any:
        return super().step(action[0])

    def look(self) -> Any:
        camera = np.full((64, 64, 3), int(abs(self.place) * 10), np.uint8)
        return {"camera": camera, "rest": (np.int64(2), np.array([0, 1], np.int8))}


class Masked(Walk):
    """A right one that takes only what its mask allows."""

    action_space = spaces.Discrete(4, start=2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        obs, _ = super().reset(seed=seed)
        return obs, self.info()

    def info(self) -> dict[str, Any]:
        self.allowed = 2 + int(self.place > 0)
        return {"action_mask": np.array([self.allowed == 2, self.allowed == 3, False, False], np.int8)}

    def step(self, action: Any) -> Any:
        assert action == self.allowed
        *rest, _ = super().step(action - 2)
        return *rest, self.info()


class Picture(Walk):
    """A right one that can be drawn."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012
    picture: Any = np.zeros((8, 16, 3), np.uint8)

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode

    def render(self) -> Any:
        return self.picture


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


class Pushed(Walk):
    action_space: spaces.Space = spaces.Box(-1, 1, (1,), np.float32)

    def step(self, action: Any) -> Any:
        return super().step(action[0])


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


class SlowStart(Walk):
    """Its first step takes long, as where something is compiled."""

    def step(self, action: Any) -> Any:
        if not hasattr(self, "is_warm"):
            time.sleep(0.3)
            self.is_warm = True
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


class SharesState(SavingWalk):
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.trail = np.zeros(1)
        return super().reset(seed=seed)

    def step(self, action: Any) -> Any:
        self.trail += 1
        return super().step(action)

    def get_state(self) -> Any:
        return {"place": self.place, "trail": self.trail}


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


class Hangs(Walk):
    def step(self, action: Any) -> Any:
        while True:
            time.sleep(1)


class Spins(Walk):
    """Hangs without ever letting go of the interpreter's lock."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        ctypes.PyDLL(None).sleep(1000)


class Exits(Walk):
    def step(self, action: Any) -> Any:
        sys.exit("done")


class Vanishes(Walk):
    def step(self, action: Any) -> Any:
        os._exit(3)


class KillsItself(Walk):
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)


class DiesAfterEnd(Walk):
    is_over = False

    def step(self, action: Any) -> Any:
        if self.is_over:
            os.kill(os.getpid(), signal.SIGSEGV)
        result = super().step(action)
        self.is_over = result[2]
        return result

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.is_over = False
        return super().reset(seed=seed)


class ExitsAfterEnd(DiesAfterEnd):
    def step(self, action: Any) -> Any:
        if self.is_over:
            sys.exit()
        return super().step(action)


class SpoiledByEnd(DiesAfterEnd):
    """What a step too many leaves behind stays."""

    spoiled = 0.0

    def step(self, action: Any) -> Any:
        self.spoiled += self.is_over
        self.is_over = False
        return super().step(action)

    def look(self) -> Any:
        return super().look() + np.float32(self.spoiled)


class DiesEarly(Walk):
    def step(self, action: Any) -> Any:
        if not hasattr(self, "place"):
            os._exit(7)
        return super().step(action)


class ExitsEarly(Walk):
    def step(self, action: Any) -> Any:
        if not hasattr(self, "place"):
            sys.exit(7)
        return super().step(action)


class DiesWhenDrawn(Picture):
    def render(self) -> Any:
        os.abort()


class Chatters(Walk):
    def step(self, action: Any) -> Any:
        print("step", action)
        os.write(2, b"x" * 1000)
        return super().step(action)


class Hostile:
    """Whatever it is asked, it lies or raises."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("no")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    __hash__ = None  # type: ignore[assignment]


class Garbage(Looks):
    seen = Hostile()


class Trap(dict):
    """Looks like a dict, and is none."""

    def values(self) -> Any:
        raise RuntimeError("no")

    def items(self) -> Any:
        raise RuntimeError("no")


class Trapped(Looks):
    seen = Trap()


class ReadsInput(Walk):
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        input("level? ")


class Slow(Walk):
    """A step takes long, and waits, as for a simulator elsewhere."""

    def step(self, action: Any) -> Any:
        time.sleep(0.05)
        return super().step(action)


def broken_maker() -> gymnasium.Env:
    raise ImportError("no simulator here")


def number() -> int:
    return 3


class OnlyHere(Walk):
    """Refuses to be stepped by a worker of the process lane."""

    def step(self, action: Any) -> Any:
        if "raceway.envs.python.worker" in " ".join(sys.orig_argv):
            raise RuntimeError("may not be in a worker")
        return super().step(action)
