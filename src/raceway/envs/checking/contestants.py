"""What takes turns in a measurement: bare loops, and pools of each lane."""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import batch_space

import raceway
from raceway.envs.bare import bare_loop
from raceway.envs.catalog import find_task
from raceway.envs.checking.loop import Loop, run_for
from raceway.envs.checking.notebook import Facts
from raceway.envs.checking.subject import Subject
from raceway.envs.checking.targets import Target

_BUSY_STEPS = 50
"""Of a millisecond each."""
_ROWS = 64
"""Different actions that each environment gets."""


class Contestant:
    """Something that steps environments."""

    name: str
    num_envs = 1
    num_workers = 1

    @abstractmethod
    def turn(self, seconds: float) -> float:
        """Steps a second, over about so many seconds."""

    def close(self) -> None:
        return


class BareLoop(Contestant):
    """One environment in this process, and nothing else."""

    name = "bare loop"

    def __init__(self, subject: Subject, facts: Facts) -> None:
        self._subject = subject
        env = subject.make()
        self._loop = Loop(env, subject.actions(env), facts)
        subject.call("reset", self._loop.begin)

    def turn(self, seconds: float) -> float:
        steps, before = self._loop.steps, self._loop.seconds
        run_for(self._subject, self._loop, seconds)
        return (self._loop.steps - steps) / (self._loop.seconds - before)


class NativeLoop(Contestant):
    """The native environments in a C++ loop on one thread."""

    name = "bare loop"

    def __init__(self, target: Target) -> None:
        self._env = target.env
        pool = raceway.make(target.env, 1, **target.args)
        task = find_task(target.env)
        self._args = {name: value for name, value in target.args.items() if name in task.kinds}
        self._actions = _actions(pool, 4096)
        pool.close()
        self._repeats = 1

    def turn(self, seconds: float) -> float:
        steps, taken = 0, 0.0
        while taken < seconds:
            actions = np.concatenate([self._actions] * self._repeats)
            part = bare_loop(self._env, 1, actions, num_threads=1, **self._args)
            taken, steps = taken + part, steps + len(actions)
            self._repeats = int(min(max(self._repeats * 0.1 / max(part, 1e-6), 1), 64))
        return steps / taken


class Pool(Contestant):
    """A pool of `raceway.make`, stepped as a whole."""

    def __init__(self, name: str, pool: Any) -> None:
        self.name = name
        self.num_envs = pool.num_envs
        self.num_workers = getattr(pool, "num_workers", 1)
        self._pool = pool
        self._actions = _actions(pool, _ROWS)
        self._index = 0
        self._start = getattr(pool.single_action_space, "start", 0)
        self._infos = pool.reset(seed=0)[1]

    def _next(self) -> Any:
        """A batch of actions, by the masks if there are any."""
        self._index += 1
        if not self._are_masked(self._infos):
            return self._actions[self._index % _ROWS]
        return self._start + np.argmax(np.stack(self._infos["action_mask"]), axis=1)

    def _are_masked(self, infos: dict[str, Any]) -> bool:
        return "action_mask" in infos and isinstance(self._pool.single_action_space, Discrete)

    def turn(self, seconds: float) -> float:
        steps, started = 0, time.perf_counter()
        while steps == 0 or time.perf_counter() - started < seconds:
            self._infos = self._pool.step(self._next())[4]
            steps += self.num_envs
        return steps / (time.perf_counter() - started)

    def close(self) -> None:
        self._pool.close()


class AsyncPool(Pool):
    """A pool whose environments are served as they are ready, some of them at a time."""

    def turn(self, seconds: float) -> float:
        """All begin together, and the clock stops when the last has come back."""
        size = self._pool.batch_size
        steps, started = 0, time.perf_counter()
        self._pool.send(self._next())
        while time.perf_counter() - started < seconds:
            self._infos = self._pool.recv()[4]
            ids = self._infos["env_id"]
            actions = self._next()
            self._pool.send(actions if self._are_masked(self._infos) else _rows_of(actions, ids), ids)
            steps += size
        masks: list[dict[str, Any]] = [self._pool.recv()[4] for _ in range(self.num_envs // size)]
        steps += self.num_envs
        if self._are_masked(masks[0]):
            order = np.argsort(np.concatenate([each["env_id"] for each in masks]))
            self._infos = {"action_mask": np.concatenate([np.stack(each["action_mask"]) for each in masks])[order]}
        return steps / (time.perf_counter() - started)


def cpus_to_be_had(cpus: int) -> float:
    """The share of the CPUs' time that threads get which would have all of it: below 1 if others are at work."""
    actions = np.zeros((_BUSY_STEPS, cpus), np.int64)
    used, started = time.process_time(), time.perf_counter()
    bare_loop("Busy-v0", cpus, actions, num_threads=cpus, step_us=1000.0)
    return min((time.process_time() - used) / ((time.perf_counter() - started) * cpus), 1.0)


def _actions(pool: VectorEnv, rows: int) -> Any:
    """Random actions, drawn beforehand: one batch for each of so many steps."""
    space = batch_space(pool.single_action_space, pool.num_envs)
    space.seed(0)
    drawn = [space.sample() for _ in range(rows)]
    return np.stack(drawn) if isinstance(drawn[0], np.ndarray) else drawn


def _rows_of(actions: Any, ids: np.ndarray) -> Any:
    if isinstance(actions, dict):
        return {key: _rows_of(part, ids) for key, part in actions.items()}
    if isinstance(actions, tuple):
        if actions and not isinstance(actions[0], (np.ndarray, dict, tuple)):
            return tuple(actions[i] for i in ids)
        return tuple(_rows_of(part, ids) for part in actions)
    return actions[ids]
