"""The environment that is examined: every call of its code is watched, and how it fails is known."""

from __future__ import annotations

import copy
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from raceway.envs.checking.board import Board
from raceway.envs.checking.masks import Masks
from raceway.envs.checking.returns import Step, read_reset, read_step
from raceway.envs.checking.values import digest, shown

_LAST_CALLS = 4
_NUM_ACTIONS = 256


class EnvBrokeError(Exception):
    """A call of the environment's code raised."""

    def __init__(self, call: str, error: BaseException) -> None:
        super().__init__(call)
        self.call = call
        self.error = error

    @property
    def name(self) -> str:
        """The method: make, reset, step, ..."""
        return self.call.partition(" ")[0]

    @property
    def text(self) -> str:
        if isinstance(self.error, SystemExit):
            return f"{self.call} calls sys.exit({shown(self.error.code) if self.error.code is not None else ''})."
        return f"{self.call} raises {type(self.error).__name__}: {shown(_message(self.error), 200)}."

    @property
    def details(self) -> str:
        """Where it was raised: the innermost calls, from the environment's own code on."""
        frames = [
            frame
            for frame in traceback.extract_tb(self.error.__traceback__)
            if frame.filename != __file__ and not frame.filename.startswith("<frozen")
        ]
        return "\n".join(f"{_place(frame)}: {frame.line or ''}" for frame in frames[-_LAST_CALLS:])


def _place(frame: traceback.FrameSummary) -> str:
    """`mine/env.py:17 in step`."""
    path = Path(frame.filename)
    if "site-packages" in path.parts:
        short = Path(*path.parts[path.parts.index("site-packages") + 1 :])
    else:
        short = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else Path(*path.parts[-2:])
    return f"{short}:{frame.lineno} in {frame.name}"


def _message(error: BaseException) -> Any:
    return error.args[0] if len(error.args) == 1 else error.args


class Subject:
    """Makes environments and calls them."""

    def __init__(self, make: Callable[[], Any], board: Board) -> None:
        self._make = make
        self._board = board
        self._steps = 0
        self.step_times: list[float] = []
        """Seconds that each step took."""

    def call(self, name: str, act: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Calls the environment's code. Whatever it raises becomes an EnvBrokeError."""
        self._board.enter(name, self._steps)
        try:
            return act(*args, **kwargs)
        except MemoryError:
            raise
        except BaseException as error:
            raise EnvBrokeError(f"step {self._steps}" if name == "step" else name, error) from error
        finally:
            self._board.leave()

    def make(self) -> Any:
        return self.call("make", self._make)

    def raw_reset(self, env: Any, **kwargs: Any) -> Any:
        self._steps = 0
        return self.call("reset", env.reset, **kwargs)

    def raw_step(self, env: Any, action: Any) -> Any:
        self._steps += 1
        started = time.perf_counter()
        result = self.call("step", env.step, action)
        self.step_times.append(time.perf_counter() - started)
        return result

    def reset(self, env: Any, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        return read_reset(self.raw_reset(env, seed=seed))

    def step(self, env: Any, action: Any) -> Step:
        return read_step(self.raw_step(env, action))

    def close(self, env: Any) -> None:
        self.call("close", env.close)

    def alive(self, call: str = "between") -> None:
        """For code of ours that takes long: it is not the environment that hangs."""
        self._board.enter(call)

    def of(self, make: Callable[[], Any]) -> Subject:
        """Another environment, watched by the same."""
        return Subject(make, self._board)

    def changed(self, change: Callable[[Any], Any]) -> Subject:
        """The same environment, each one changed after it was made."""
        return self.of(lambda: change(self._make()))

    def actions(self, env: gymnasium.Env) -> Actions:
        """The same ones every time, drawn anew: environments may write into them."""
        drawn = self.call("sample", _sampled, env.action_space)
        return Actions(drawn, int(getattr(env.action_space, "start", 0)) if isinstance(drawn[0], np.integer) else 0)

    def steps(
        self,
        env: gymnasium.Env,
        *,
        seed: int | None,
        most: int,
        seconds: float = 1e9,
        least: int = 2,
        masks: Masks | None = None,
    ) -> Iterator[tuple[Any, Step | None]]:
        """Episodes one after the other, by random actions: (observation, None) for a reset, (action, step) for a step.

        At most so many steps, and no more after so many seconds but the `least`. `masks` are looked at if given.
        """
        masks = masks or Masks(None)
        actions = self.actions(env)
        end = time.monotonic() + seconds
        obs, info = self.reset(env, seed)
        masks.after_reset(info)
        yield obs, None
        for index in range(most):
            if index >= least and time.monotonic() > end:
                return
            action = actions.at(index, info)
            step = self.step(env, action)
            info = step.info
            masks.after_step(info, step.is_end)
            yield action, step
            if step.is_end:
                obs, info = self.reset(env)
                masks.after_reset(info)
                yield obs, None

    def trace(self, env: gymnasium.Env, *, seed: int, most: int, seconds: float = 1e9) -> list[bytes]:
        """A hash for each reset and step of such episodes."""
        found = []
        for index, (given, step) in enumerate(self.steps(env, seed=seed, most=most, seconds=seconds)):
            found.append(
                digest(given) if step is None else digest(step.obs, float(step.reward), step.terminated, step.truncated)
            )
            if index % 256 == 0:
                self.alive()
        return found


class Actions:
    """Random actions, the same in every process."""

    def __init__(self, drawn: list[Any], start: int = 0) -> None:
        self.drawn = drawn
        self._start = start

    def at(self, index: int, info: dict[str, Any]) -> Any:
        """The action of a step; one that is allowed, if the info before says which are."""
        action = self.drawn[index % len(self.drawn)]
        mask = info.get("action_mask")
        if mask is None or not isinstance(action, (int, np.integer)):
            return action
        allowed = np.flatnonzero(np.asarray(mask))
        return type(action)(self._start + allowed[index * 7919 % len(allowed)]) if len(allowed) else action


def _sampled(space: gymnasium.Space) -> list[Any]:
    space = copy.deepcopy(space)
    space.seed(0)
    return [space.sample() for _ in range(_NUM_ACTIONS)]


def layers(env: Any) -> Iterator[Any]:
    """From the outermost wrapper to the environment itself."""
    yield env
    while isinstance(env, gymnasium.Wrapper):
        env = env.env
        yield env
