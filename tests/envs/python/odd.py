"""Environments with habits that pools are easily wrong about."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from tests.envs.python.scripted import Counting, Step


class UnreadableError(Exception):
    """Can be pickled, but not made again from that."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a} {b}")


class Telling(Counting):
    """Its infos are odd: a key `fault` of its own, and by choice what cannot be read elsewhere."""

    action_space = spaces.Discrete(2)
    garbles = False

    def step(self, action: Any) -> Step:
        obs, reward, terminated, truncated, _ = super().step(0)
        info = {"fault": self.steps % 2 == 0, **({"error": UnreadableError(1, 2)} if self.garbles else {})}
        return obs, reward, terminated, truncated, info

    def told(self) -> Any:
        return UnreadableError(3, 4)


class Keeping(Counting):
    """Keeps the arrays that it is given, and writes to them."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        obs, info = super().reset(seed=seed)
        if options:
            options["array"] += 1
            info["array"] = options["array"]
        return obs, info

    def grown(self, name: str) -> np.ndarray:
        array: np.ndarray = getattr(self, name)
        array += 1
        return array.copy()


class InPlace(gymnasium.Env):
    """Steps by writing to its only array, which it gives away and takes over as it is.

    Args:
        drifts: whether it cannot be played again.
    """

    observation_space: spaces.Space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space: spaces.Space = spaces.Box(-1, 1, (2,), np.float32)

    def __init__(self, drifts: bool = False) -> None:
        self.drifts = drifts

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.place = np.zeros(2) if not self.drifts else np.random.default_rng().random(2)
        return self.place.copy(), {}

    def step(self, action: Any) -> Step:
        self.place += 1
        return self.place.copy(), 1.0, False, False, {}

    def get_state(self) -> dict[str, Any]:
        return {"place": self.place}

    def set_state(self, state: dict[str, Any]) -> None:
        self.place = state["place"]


class Listing(gymnasium.Env):
    """Observations that have no fixed shape. An action of 1 kills the process."""

    observation_space = spaces.Sequence(spaces.Discrete(9))
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.seen = [0]
        return tuple(self.seen), {}

    def step(self, action: Any) -> Step:
        if action:
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(5)
        self.seen.append(len(self.seen))
        return tuple(self.seen), 1.0, False, False, {}


class Unsteady(Counting):
    """Every third reset fails, whatever environment it is of. Episodes have one step.

    Args:
        file: where resets are counted.
    """

    def __init__(self, file: str) -> None:
        super().__init__(length=1)
        self.file = Path(file)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        count = len(self.file.read_text()) if self.file.exists() else 0
        self.file.write_text("." * (count + 1))
        if count % 3 == 2:
            raise ConnectionError("not now")
        return super().reset(seed=seed)


class Unwilling(Counting):
    """Cannot be reset, but in one process.

    Args:
        home: that one.
    """

    action_space = spaces.Discrete(2)

    def __init__(self, home: int) -> None:
        super().__init__()
        self.home = home

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        if os.getpid() != self.home:
            raise ConnectionError("not here")
        return super().reset(seed=seed)


class Interrupting(Counting):
    """Presses Ctrl-C in the program that has the pool: in a step by an action of 1, or when it is made.

    Args:
        trouble: a file that says what happens when it is made: "interrupt" or "exit"; nothing if there is none.
    """

    def __init__(self, number: int = 0, trouble: str = "") -> None:
        super().__init__(number)
        what = Path(trouble).read_text() if Path(trouble).is_file() else ""
        if what == "interrupt":
            Path(trouble).write_text("")  # once is enough
            self._press()
        elif what == "exit":
            os._exit(3)

    def step(self, action: Any) -> Step:
        obs, reward, terminated, truncated, info = super().step(0)
        if action:
            self._press()
            info["pressed"] = self.number
        return obs, reward, terminated, truncated, info

    def _press(self) -> None:
        os.kill(os.getppid(), signal.SIGINT)
        time.sleep(0.02)
