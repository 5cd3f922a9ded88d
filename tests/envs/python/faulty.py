"""An environment in which everything can go wrong, on demand."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from tests.once import is_first

FAULTS = (
    "none",
    "raise",
    "raise what cannot be pickled",
    "exit",
    "interrupt",
    "os._exit",
    "kill",
    "stop",
    "hang",
    "hang deaf",
    "wrong shape",
    "wrong dtype",
    "no observation",
    "not a number",
    "no reward",
    "no info",
    "four values",
    "print",
    "fork",
    "wait",
)


def fault(name: str) -> int:
    """The action that makes a step of `Faulty` go wrong in this way."""
    return FAULTS.index(name)


def actions(num_envs: int, env: int | None = None, name: str = "none") -> np.ndarray:
    """Actions by which nothing goes wrong but in one environment."""
    chosen = np.zeros(num_envs, int)
    if env is not None:
        chosen[env] = fault(name)
    return chosen


class LockedUpError(Exception):
    """Cannot leave its process: it has a lock inside."""

    def __init__(self) -> None:
        super().__init__("locked up")
        self.lock = threading.Lock()


class Faulty(gymnasium.Env):
    """Counts its steps: observation [number, episode, steps]. An action is what goes wrong.

    Args:
        number: which one it is.
        constructor: what goes wrong when it is made ("raise", "kill", "hang"), if `once` is no file yet.
        close_: what goes wrong when it is closed.
        once: a file that is made with the first fault of the constructor or of a reset; with it there is none.
        length: steps in an episode.
    """

    observation_space = spaces.Box(-1, np.inf, (3,), np.float32)
    action_space = spaces.Discrete(len(FAULTS))

    def __init__(
        self,
        number: int = 0,
        constructor: str = "none",
        close_: str = "none",
        once: str | None = None,
        length: int = 1000,
    ) -> None:
        self.number = number
        self.close_ = close_
        self.once = Path(once) if once else None
        self.length = length
        self.episode = -1
        self._fail(constructor)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if options and options["env"] == self.number:
            self._fail(options["fault"])
        self.episode += 1
        self.steps = 0
        return self._observe(), {"pid": os.getpid()}

    def step(self, action: Any) -> Any:
        name = FAULTS[int(action)]
        if name == "four values":
            return self._observe(), 0.0, False, {}
        result = _wrong_result(name, self)
        if result is None:
            self.steps += 1
            result = self._observe(), 1.0, self.steps >= self.length, False, {"pid": os.getpid()}
            self._fault(name)
        return result

    def close(self) -> None:
        self._fault(self.close_)

    def _observe(self) -> np.ndarray:
        return np.array([self.number, self.episode, self.steps], np.float32)

    def _fail(self, name: str) -> None:
        if name == "none" or (self.once and not is_first(self.once)):
            return
        self._fault(name)

    def _fault(self, name: str) -> None:
        if name == "raise":
            raise ZeroDivisionError(f"environment number {self.number} divides by zero")
        if name == "raise what cannot be pickled":
            raise LockedUpError
        if name == "exit":
            sys.exit(3)
        if name == "interrupt":
            raise KeyboardInterrupt
        if name == "os._exit":
            os._exit(7)
        _signal_or_wait(name)


def _signal_or_wait(name: str) -> None:
    if name == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(5)
    elif name == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif name == "hang":
        time.sleep(60)
    elif name == "hang deaf":
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_IGN)
        time.sleep(60)
    elif name == "wait":
        time.sleep(0.4)
    elif name == "print":
        print("out " * 50_000, flush=True)
        print("err " * 50_000, file=sys.stderr, flush=True)
    elif name == "fork":
        if os.fork() == 0:
            time.sleep(4)
            os._exit(0)
        subprocess.Popen(["sleep", "4"])


def _wrong_result(name: str, env: Faulty) -> Any:
    good = env._observe()
    wrong: dict[str, Any] = {
        "wrong shape": (good[:2], 1.0, False, False, {}),
        "wrong dtype": (good.astype(str), 1.0, False, False, {}),
        "no observation": (None, 1.0, False, False, {}),
        "no reward": (good, None, False, False, {}),
        "no info": (good, 1.0, False, False, None),
    }
    if name == "not a number":
        env.steps += 1
        return env._observe(), float("nan"), False, False, {"pid": os.getpid()}
    return wrong.get(name)


NUMBERED = [{"number": env} for env in range(4)]


@contextmanager
def faulty(**settings: Any) -> Iterator[Any]:
    """Four such environments in two workers: 0 and 1 in the first, 2 and 3 in the second."""
    import raceway

    own = settings.pop("own", [{}] * 4)
    given: dict[str, Any] = {"lane": "process", "num_workers": 2} | settings
    pool = raceway.make(Faulty, 4, env_kwargs=[a | b for a, b in zip(NUMBERED, own, strict=True)], **given)
    try:
        yield pool
    finally:
        pool.close()


def worker_pids(infos: dict[str, Any]) -> list[int]:
    """Who runs each environment, by the infos of a reset or step."""
    return infos["pid"].tolist()
