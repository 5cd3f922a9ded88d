"""The process lane: environments in worker processes, their results written in place in memory that all share."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Sequence
from functools import partial
from time import monotonic
from typing import Any

import cloudpickle
import numpy as np

from raceway.envs.python.board import RESET, STEP
from raceway.envs.python.calls import one_at_a_time
from raceway.envs.python.crewed import CrewedPool
from raceway.envs.python.inline import one_each
from raceway.envs.python.restoring import Record
from raceway.envs.python.rows import Rows
from raceway.envs.python.stage import Notes
from raceway.loans import lend

_ANY = -(1 << 60)
_QUICK_S = 0.05
"""A step that takes longer than this can bear a closer look at the workers."""


class ProcessPool(CrewedPool):
    """Environments in worker processes, several in each."""

    lane = "process"

    # Rows and other memory that workers see.

    def _new_rows(self) -> Rows:
        memory = self._crew.exchange.lease(max(1, self._form.size))
        rows = self._form.over(memory)
        rows.place = self._place_of(memory)
        return rows

    def empty(self, shape: Sequence[int], dtype: Any) -> np.ndarray:
        """Memory for what a run writes, used again when the last array over it is gone."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        return np.ndarray(shape, dtype, lend(self._crew.exchange.lease(max(1, size))))

    # Steps and resets.

    def _reset_some(
        self, which: list[int], seeds: list[int | None], options: dict[str, Any] | None, rows: Rows
    ) -> Notes:
        by_worker: dict[int, tuple[list[int], list[int | None]]] = {}
        for env, seed in zip(which, seeds, strict=True):
            envs, its = by_worker.setdefault(int(self._home[env]), ([], []))
            envs.append(env)
            its.append(seed)

        self._where = []

        def ask(worker: int) -> None:
            self._crew.tell(worker, "reset", *by_worker[worker], options, rows.place)

        self._have_done(by_worker, ask, anew=which)
        return self._taken_notes(rows, which, options)

    def _step_all(self, actions: Any, rows: Rows, before: Rows) -> Notes:
        crew, orders = self._crew, self._orders
        if not crew.is_ours:
            self._require_open()
        given = actions[0] if len(actions) == 1 and orders.takes(actions[0]) else None
        if given is None:
            self._put_actions(actions, range(self.num_envs))
        self._where = []
        self._number += 1
        is_told = orders.step(given, self._number, rows.place, before.place, crew.patience, _QUICK_S)
        if is_told is False:
            return []
        return self._carried_out(is_told, actions, rows)

    def _carried_out(self, is_told: bool | None, actions: Any, rows: Rows) -> Notes:
        """An order that is not carried out yet, or of which a worker has something to say."""
        if is_told is None:
            number, done = self._number, self._board.done
            self._get_through(
                lambda: self._board.tally.done > _ANY and bool((done == number).all()),
                lambda: np.flatnonzero(done.copy() != number).tolist(),
                partial(self._step_again, actions),
            )
        else:
            self._crew.receive()
            self._raise_faults()
        return self._taken_notes(rows, range(self.num_envs))

    def _step_again(self, actions: Any, worker: int) -> None:
        """By a worker that is new."""
        if self._actions.leaves is None:
            envs = self.ranges[worker]
            self._put_actions(actions[envs.start : envs.stop], envs)
        self._crew.tell(worker, "again", self._number - 1)

    def _put_actions(self, actions: Any, which: Iterable[int]) -> None:
        if self._actions.leaves is None:
            by_worker: dict[int, dict[int, Any]] = {}
            for env, action in zip(which, actions, strict=True):
                by_worker.setdefault(int(self._home[env]), {})[env] = action
            for worker, its in by_worker.items():
                self._crew.tell(worker, "actions", its)
        else:
            where: Any = ... if isinstance(which, range) else which
            for target, leaf in zip(self._board.actions, actions, strict=True):
                target[where] = leaf

    # Some at a time.

    def _start_reset(self, seeds: list[int | None]) -> None:
        self._async_seeds = seeds
        for worker in range(self.num_workers):
            self._send_seeds(worker)
        self._launch(np.arange(self.num_envs), RESET)

    def _send_seeds(self, worker: int) -> None:
        envs = self.ranges[worker]
        self._crew.tell(worker, "seeds", self._async_seeds[envs.start : envs.stop])

    def _start(self, actions: Any, which: np.ndarray) -> None:
        self._put_actions(actions, which)
        self._launch(which, STEP)

    def _launch(self, which: np.ndarray, what: int) -> None:
        board = self._board
        board.places[0] = self._rows.place
        board.pending[which] = what
        homes = self._home[which]
        for worker in set(homes.tolist()):
            self._wake(worker)

    def _wake_successor(self, worker: int) -> None:
        if self._async_seeds:
            self._send_seeds(worker)
        envs = slice(self.ranges[worker].start, self.ranges[worker].stop)
        left = self._in_flight[envs] & (self._board.finished[envs] == 0)
        self._board.pending[envs] = np.where(left, np.where(self._is_resetting[envs], RESET, STEP), 0)
        self._wake(worker)

    def _wake(self, worker: int) -> None:
        self._board.sent[worker] += 1
        self._crew.exchange.ring_host(worker + 1)

    def _finished(self, count: int, timeout: float | None) -> tuple[np.ndarray, Notes]:
        finished = self._board.finished
        # One that was killed may have finished without counting it: then any that finishes wakes this.
        self._board.tally.want(count if self.restarts == 0 else _ANY)
        deadline = None if timeout is None else monotonic() + timeout
        is_done = self._get_through(
            lambda: self._has_finished(count) or bool(self._crew.faults),
            self._flying_workers,
            self._wake_successor,
            deadline,
        )
        self._have_taken_back(self._rows)  # before any is taken: it may raise
        ready = np.flatnonzero(finished.copy())  # more may be ready while this looks
        if not is_done:
            raise TimeoutError(f"{len(ready)} environments are ready after {timeout:g} s, a batch takes {count}.")
        if len(ready) > count:
            ready = np.sort(ready[np.argsort(finished[ready], kind="stable")[:count]])
        finished[ready] = 0
        self._board.tally.take(len(ready))
        return ready, self._taken_notes(self._rows, ready.tolist())

    def _has_finished(self, count: int) -> bool:
        # Reading the tally first makes sure that what was written before it is seen. It may be a little off.
        return self._board.tally.done > _ANY and int(np.count_nonzero(self._board.finished)) >= count

    def _flying_workers(self) -> list[int]:
        flying = self._in_flight & (self._board.finished == 0)
        flying[[fault.env for _, fault in self._crew.faults if fault.env >= 0]] = False
        return np.unique(self._home[np.flatnonzero(flying)]).tolist()

    def _drop_flying(self) -> None:
        with contextlib.suppress(Exception):  # of what is dropped
            self._get_through(lambda: not self._flying_workers(), self._flying_workers, self._wake_successor)
        self._require_open()
        self._drop_finished()

    # Runs.

    @one_at_a_time
    def install(self, runner: Any) -> None:
        """Sends a runner to every worker, where `runner.open(envs, first)` is called."""
        self._runner = cloudpickle.dumps(runner)
        self._ask_all("install", self._runner)

    @one_at_a_time
    def run(self, args: tuple[Any, ...], progress: Sequence[Any]) -> list[Any]:
        """Has every worker call `runner.run(progress[worker], *args)`: what that returns.

        Arrays of `empty` are seen in place. A worker that is lost is started again, if that is the rule, its
        environments are brought to where they were when this began, and its part is done again.
        """
        self._require_ready("run()")
        self._keep_rows()
        restarts = self._rules.restarts
        if restarts and not self._where:
            self._where = self._marks()
        everyone = range(self.num_workers)
        self._crew.lend(everyone, "args", args)

        def ask(worker: int) -> None:
            self._crew.tell(worker, "run", progress[worker], self._rows.place, restarts)

        def ask_again(worker: int) -> None:
            self._crew.lend([worker], "args", args)
            ask(worker)

        replies = self._have_done(everyone, ask, ask_again)
        for envs, (_, faults, marks) in zip(self.ranges, replies, strict=True):
            self.faults[envs.start : envs.stop] += faults
            if restarts:
                self._where[envs.start : envs.stop] = marks
        return [after for after, _, _ in replies]

    # The rest of it.

    def _marks(self) -> list[Record]:
        replies = self._ask_all("marks", self._rows.place)
        return [record for reply in replies for record in reply]

    def _restore(self, records: Sequence[Record], rows: Rows) -> list[int]:

        def ask(worker: int) -> None:
            envs = self.ranges[worker]
            self._crew.tell(worker, "restore", {env: records[env] for env in envs}, rows.place)

        self._where = []
        return [
            env for reply in self._have_done(range(self.num_workers), ask, anew=range(self.num_envs)) for env in reply
        ]

    @one_at_a_time
    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """A method or attribute of every environment."""
        self._require_open()
        replies = self._ask_all("call", name, args, kwargs)
        return tuple(result for reply in replies for result in reply)

    @one_at_a_time
    def set_attr(self, name: str, values: Any) -> None:
        """An attribute of every environment: a list or tuple has one value for each."""
        self._require_open()
        each = one_each(values, self.num_envs)
        self._ask_all("set_attr", name, list(each))

    @property
    def worker_pids(self) -> list[int]:
        """The processes."""
        return [self._crew.pid(worker) for worker in range(self.num_workers)]

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the workers. A step under way is waited for, two seconds at most."""
        self._is_steady = False
        if hasattr(self, "_crew"):
            self._crew.close()
