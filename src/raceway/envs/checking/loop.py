"""A bare loop over one environment: nothing but its own code."""

from __future__ import annotations

import itertools
import resource
import time
from collections.abc import Iterator
from typing import Any

from raceway.envs.checking.notebook import Facts
from raceway.envs.checking.subject import Actions, Subject

_CHUNK_S = 0.02


class Loop:
    """Steps, with a reset when an episode ends, and what they took."""

    def __init__(self, env: Any, actions: Actions, facts: Facts, limit: int | None = None) -> None:
        """`limit`: steps after which it is reset in any case."""
        self._env = env
        self._actions = actions
        self._drawn: Iterator[Any] | None = None if facts.has_masks else itertools.cycle(actions.drawn)
        self._limit = limit or 1 << 62
        self._length = 0
        self._info: dict[str, Any] = {}
        self.steps = self.resets = 0
        self.seconds = self.reset_s = self.cpu_s = 0.0
        self._switches = 0

    def begin(self) -> None:
        _, self._info = self._env.reset(seed=0)
        self._length = 0

    def run(self, count: int) -> None:
        """So many steps more."""
        step, reset, limit, length = self._env.step, self._env.reset, self._limit, self._length
        actions = self._allowed(count) if self._drawn is None else itertools.islice(self._drawn, count)
        switches, cpu, started = _waits(), time.process_time(), time.perf_counter()
        for action in actions:
            _, _, terminated, truncated, self._info = step(action)
            length += 1
            if terminated or truncated or length >= limit:
                before = time.perf_counter()
                _, self._info = reset()
                self.reset_s += time.perf_counter() - before
                self.resets += 1
                length = 0
        self.seconds += time.perf_counter() - started
        self.cpu_s += time.process_time() - cpu
        self._switches += _waits() - switches
        self.steps += count
        self._length = length

    def _allowed(self, count: int) -> Iterator[Any]:
        """Those that the info before allows."""
        for index in range(self.steps, self.steps + count):
            yield self._actions.at(index, self._info)

    @property
    def step_s(self) -> float:
        """What a step takes, without resets."""
        return (self.seconds - self.reset_s) / self.steps

    @property
    def cpu_share(self) -> float:
        """Of its time: the share in which it computes. To be kept from it by other programs is not to wait."""
        gives_way = self._switches >= self.steps / 2
        return min(self.cpu_s / self.seconds, 1.0) if gives_way else 1.0


def _waits() -> int:
    """How often this process has given the CPU away by itself."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw


def run_for(subject: Subject, loop: Loop, seconds: float) -> None:
    """In short turns, so that it can be seen that it goes on; one step at least."""
    end = time.perf_counter() + seconds
    count = 1
    while True:
        subject.call("step", loop.run, count)
        if time.perf_counter() >= end:
            return
        count = int(min(max(_CHUNK_S / max(loop.seconds / loop.steps, 1e-8), 1), 4096))
