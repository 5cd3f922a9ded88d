"""The inline lane: environments in the calling thread, where a breakpoint stops them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from raceway.envs.python.faults import env_error
from raceway.envs.python.pool import PythonPool
from raceway.envs.python.restoring import Record, mark, restore
from raceway.envs.python.rows import Rows
from raceway.envs.python.settings import Description, PoolSettings
from raceway.envs.python.stage import FaultError, Notes, Stage


class InlinePool(PythonPool):
    """Environments that are stepped one after the other by whoever calls."""

    lane = "inline"
    num_workers = 1

    def __init__(
        self, settings: PoolSettings, first: int = 0, stage: Stage | None = None, worker: int | None = None
    ) -> None:
        """`first`: the number of the first one, for messages. `stage`: where they are, if they have been made.

        `worker`: the number of the worker process that this is in.
        """
        super().__init__(settings)
        self._worker = worker
        if stage is None:
            try:
                stage = Stage(settings.makers, first, settings.rules)
            except FaultError as error:
                raise env_error(settings.name, error.fault) from error.__cause__
        self._stage = stage
        if found := self._stage.differing():
            self._stage.close()
            raise ValueError(f"{settings.name}: {found}. In one pool they must be equal.")
        self._runner: Any = None
        self._all = list(range(self.num_envs))
        self._ready: deque[tuple[int, Notes]] = deque()
        self._failed: deque[FaultError] = deque()
        self._describe(describe(self._stage))

    @property
    def ranges(self) -> list[range]:
        """Which environments each worker has."""
        return [range(self.num_envs)]

    @property
    def envs(self) -> list[Any]:
        """The environments themselves."""
        return self._stage.envs

    def empty(self, shape: Sequence[int], dtype: Any) -> np.ndarray:
        """Memory for what a run writes."""
        return np.empty(shape, dtype)

    def install(self, runner: Any) -> None:
        """Has `runner.open(self, first)` called; then `run` calls `runner.run`."""
        self._runner = runner
        runner.open(self, self._stage.first)

    def run(self, args: tuple[Any, ...], progress: Sequence[Any]) -> list[Any]:
        """The runner's next progress, after `runner.run(progress, *args)`."""
        self._require_open()
        (before,) = progress
        return [self._runner.run(before, *args)]

    @property
    def rows(self) -> Rows:
        """What the last step gave."""
        return self._rows

    def go_on_from(self, rows: Rows) -> None:
        """Takes these for the last observations of its environments."""
        own = self._new_rows()
        own.take_over(rows, np.arange(self.num_envs))
        self._rows = own
        self._has_begun(np.arange(self.num_envs))

    def record(self, actions: Any, ended: np.ndarray) -> None:
        """A run's steps were taken here, and are written down already."""

    def _new_rows(self) -> Rows:
        return self._form.new()

    def _tried(self, do: Callable[..., Notes], *args: Any) -> Notes:
        try:
            return do(*args)
        except FaultError as error:
            self._fail(error)

    def _fail(self, error: FaultError) -> NoReturn:
        index = error.fault.env - self._stage.first
        self._is_reset[index] = self._is_steady = False
        raise env_error(self._settings.name, error.fault, self._worker, os.getpid()) from error.__cause__

    def _reset_some(
        self, which: list[int], seeds: list[int | None], options: dict[str, Any] | None, rows: Rows
    ) -> Notes:
        return self._tried(self._stage.reset, which, seeds, options, rows)

    def _step_all(self, actions: Any, rows: Rows, before: Rows) -> Notes:
        return self._tried(self._stage.step, self._all, self._actions.each(actions), rows, before)

    def _start_reset(self, seeds: list[int | None]) -> None:
        for env, seed in enumerate(seeds):
            self._do(env, partial(self._stage.reset, [env], [seed], None, self._rows))

    def _start(self, actions: Any, which: np.ndarray) -> None:
        rows = self._rows
        for env, action in zip(which.tolist(), self._actions.each(actions), strict=True):
            self._do(env, partial(self._stage.step, [env], [action], rows, rows))

    def _do(self, env: int, do: Callable[[], Notes]) -> None:
        try:
            self._ready.append((env, do()))
        except FaultError as error:
            self._failed.append(error)

    def _finished(self, count: int, timeout: float | None) -> tuple[np.ndarray, Notes]:
        if self._failed:
            error = self._failed.popleft()
            self._in_flight[error.fault.env - self._stage.first] = False
            self._fail(error)
        if len(self._ready) < count:  # nothing happens while this waits
            raise TimeoutError(f"{len(self._ready)} environments are ready, a batch takes {count}.")
        taken = sorted((self._ready.popleft() for _ in range(count)), key=lambda each: each[0])
        return np.array([env for env, _ in taken]), [note for _, notes in taken for note in notes]

    def _drop_flying(self) -> None:
        self._ready.clear()
        self._failed.clear()

    def _marks(self) -> list[Record]:
        return [mark(self._stage, index, self._rows) for index in range(self.num_envs)]

    def _restore(self, records: Sequence[Record], rows: Rows) -> list[int]:
        return [
            index
            for index, record in enumerate(records)
            if not restore(self._stage, index, record, self.single_action_space, rows)
        ]

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """A method or attribute of every environment."""
        self._require_open()
        return tuple(called(env, name, args, kwargs) for env in self._stage.envs)

    def set_attr(self, name: str, values: Any) -> None:
        """An attribute of every environment: a list or tuple has one value for each."""
        self._require_open()
        for env, value in zip(self._stage.envs, one_each(values, self.num_envs), strict=True):
            env.set_wrapper_attr(name, value)

    def close_extras(self, **kwargs: Any) -> None:
        """Closes every environment."""
        self._is_steady = False
        if hasattr(self, "_stage"):
            self._stage.close()


def describe(stage: Stage) -> Description:
    """What the first environment says about itself."""
    env = stage.envs[0]
    return Description(env.observation_space, env.action_space, dict(env.metadata), env.render_mode)


def called(env: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method's result, or an attribute."""
    found = env.get_wrapper_attr(name)
    return found(*args, **kwargs) if callable(found) else found


def one_each(values: Any, count: int) -> Sequence[Any]:
    """A value for each environment."""
    if not isinstance(values, (list, tuple)):
        return [values] * count
    if len(values) != count:
        raise ValueError(f"{len(values)} values for {count} environments. Give one for each, or one for all.")
    return values
