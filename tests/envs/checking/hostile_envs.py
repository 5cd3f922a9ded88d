"""Environments that hang, end the process, print, or return what nobody can look at."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from typing import Any

import gymnasium
import numpy as np

from tests.envs.checking.right_envs import Picture, Walk
from tests.envs.checking.wrong_envs import Looks


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
