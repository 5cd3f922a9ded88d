"""The process lane: environments in worker processes, their results written in place in memory that all share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from time import monotonic
from typing import Any

import cloudpickle
import numpy as np

from raceway.envs.python.board import RESET, STEP, Board, size_of
from raceway.envs.python.crew import Crew, LostError, Recruit
from raceway.envs.python.faults import env_error, hung_error, lost_error
from raceway.envs.python.inline import one_each
from raceway.envs.python.leaves import fingerprint
from raceway.envs.python.pool import PoolSettings, PythonPool
from raceway.envs.python.restoring import Record
from raceway.envs.python.rows import Rows
from raceway.envs.python.stage import Notes
from raceway.loans import lend

_MOST_IN_A_ROW = 5
"""Restarts of a worker before it has finished anything."""


class ProcessPool(PythonPool):
    """Environments in worker processes, several in each."""

    lane = "process"

    def __init__(
        self, settings: PoolSettings, num_workers: int, worker_timeout: float | None = None, cpus: Sequence[int] = ()
    ) -> None:
        """`cpus`: those that workers are tied to, one each; none: they are not."""
        super().__init__(settings)
        self.num_workers = num_workers
        self._timeout_s = worker_timeout
        bounds = [worker * self.num_envs // num_workers for worker in range(num_workers + 1)]
        self.ranges = [range(first, end) for first, end in pairwise(bounds)]
        """Which environments each worker has."""
        self._home = np.repeat(np.arange(num_workers), [len(envs) for envs in self.ranges])
        self._runner: bytes | None = None
        self._where: list[Record] = []
        """Where every environment was when the last run ended."""
        self.restarts = 0
        """How many workers were started again."""
        self._in_a_row = [0] * num_workers
        self._is_broken: Exception | None = None
        recruits = []
        for worker, envs in enumerate(self.ranges):
            cpu = cpus[worker % len(cpus)] if cpus else None
            recruits.append(Recruit(settings.makers[envs.start : envs.stop], envs.start, settings.rules, cpu))
        self._crew = Crew(recruits, worker_timeout)
        try:
            self._set_up()
        except BaseException:
            self._crew.close()
            self.closed = True
            raise
        self._notice_slow_spaces()

    def _set_up(self) -> None:
        everyone = range(self.num_workers)
        try:
            told = self._crew.replies(everyone)
        except LostError as lost:
            raise self._error_of(lost) from None
        self._raise_faults()
        first = told[0]["description"]
        for worker, its in enumerate(told):
            description = its["description"]
            difference = its["difference"]
            for name in ("observation_space", "action_space"):
                if (space := getattr(description, name)) != getattr(first, name) and not difference:
                    env = self.ranges[worker].start
                    difference = f"environment {env} has the {name} {space}, environment 0 {getattr(first, name)}"
            if difference:
                raise ValueError(f"{self._settings.name}: {difference}. In one pool they must be equal.")
        self._describe(first)
        leaves = self._actions.leaves or []
        size = size_of(self.num_envs, self.num_workers, leaves)
        self._board_memory = self._crew.exchange.lease(size)
        self._board_memory[:] = 0
        self._board_place = self._place_of(self._board_memory)
        self._board = Board(self._crew.exchange, self._board_place, self.num_envs, self.num_workers, leaves)
        self._crew.beats = self._board.beats
        self._number = 0
        self._ask(everyone, "set_up", self._board_place, self.num_envs, self.num_workers, 0)

    def _place_of(self, memory: np.ndarray) -> int:
        place = self._crew.exchange.place_of(memory)
        assert place is not None
        return place

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
        self._require_whole()
        by_worker: dict[int, tuple[list[int], list[int | None]]] = {}
        for env, seed in zip(which, seeds, strict=True):
            envs, its = by_worker.setdefault(int(self._home[env]), ([], []))
            envs.append(env)
            its.append(seed)

        def ask(worker: int) -> None:
            self._crew.tell(worker, "reset", *by_worker[worker], options, rows.place)

        self._have_done(by_worker, ask, anew=True)
        return self._taken_notes(rows, which)

    def _step_all(self, actions: Any, rows: Rows, before: Rows) -> Notes:
        self._require_whole()
        board = self._board
        self._put_actions(actions, range(self.num_envs))
        board.tally.clear()
        board.tally.want(self.num_envs)
        self._number += 1
        number = self._number
        board.order[1], board.order[2] = rows.place, before.place
        board.order[0] = number
        ring = self._crew.exchange.ring_host
        for worker in range(self.num_workers):
            ring(worker + 1)
        done = board.done

        def again(worker: int) -> None:
            if self._actions.leaves is None:
                envs = self.ranges[worker]
                self._put_actions(actions[envs.start : envs.stop], envs)
            self._crew.tell(worker, "again", number - 1)

        self._get_through(
            lambda: bool((done == number).all()),
            lambda: np.flatnonzero(done.copy() != number).tolist(),
            again,
        )
        return self._taken_notes(rows, range(self.num_envs))

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
        for worker, envs in enumerate(self.ranges):
            self._crew.tell(worker, "seeds", seeds[envs.start : envs.stop])
        self._launch(np.arange(self.num_envs), RESET)

    def _start(self, actions: Any, which: np.ndarray) -> None:
        self._put_actions(actions, which)
        self._launch(which, STEP)

    def _launch(self, which: np.ndarray, what: int) -> None:
        self._require_whole()
        board = self._board
        board.order[1] = self._rows.place
        board.pending[which] = what
        for worker in np.unique(self._home[which]).tolist():
            self._wake(worker)

    def _wake(self, worker: int) -> None:
        self._board.sent[worker] += 1
        self._crew.exchange.ring_host(worker + 1)

    def _finished(self, count: int, timeout: float | None) -> tuple[np.ndarray, Notes]:
        self._require_whole()
        finished = self._board.finished
        self._board.tally.want(count)
        deadline = None if timeout is None else monotonic() + timeout
        is_done = self._get_through(
            lambda: int(np.count_nonzero(finished)) >= count or bool(self._crew.faults),
            self._flying_workers,
            self._wake,
            deadline,
        )
        ready = np.flatnonzero(finished.copy())  # more may be ready while this looks
        if not is_done:
            raise TimeoutError(f"{len(ready)} environments are ready after {timeout:g} s, a batch takes {count}.")
        if len(ready) > count:
            ready = np.sort(ready[np.argsort(finished[ready], kind="stable")[:count]])
        finished[ready] = 0
        self._board.tally.take(len(ready))
        return ready, self._taken_notes(self._rows, ready.tolist())

    def _flying_workers(self) -> list[int]:
        return np.unique(self._home[np.flatnonzero(self._in_flight & (self._board.finished == 0))]).tolist()

    def _drop_flying(self) -> None:
        if self._is_broken is None:
            self._get_through(lambda: not self._flying_workers(), self._flying_workers, self._wake)
        self._board.finished[:] = 0
        self._board.tally.clear()
        self._crew.notes.clear()
        self._crew.objects.clear()

    # Runs.

    def install(self, runner: Any) -> None:
        """Sends a runner to every worker, where `runner.open(envs, first)` is called."""
        self._runner = cloudpickle.dumps(runner)
        self._ask(range(self.num_workers), "install", self._runner)

    def run(self, args: tuple[Any, ...], progress: Sequence[Any]) -> list[Any]:
        """Has every worker call `runner.run(progress[worker], *args)`: what that returns.

        Arrays of `empty` are seen in place. A worker that is lost is started again, if that is the rule, its
        environments are brought to where they were when this began, and its part is done again.
        """
        self._require_ready("run()")
        self._require_whole()
        self._keep_rows()
        restarts = self._rules.restarts
        if restarts and not self._where:
            self._where = self._marks()
        self._crew.tell_all("args", args)

        def ask(worker: int) -> None:
            self._crew.tell(worker, "run", progress[worker], self._rows.place, restarts)

        def ask_again(worker: int) -> None:
            self._crew.tell(worker, "args", args)
            ask(worker)

        replies = self._have_done(range(self.num_workers), ask, ask_again)
        for envs, (_, faults, marks) in zip(self.ranges, replies, strict=True):
            self.faults[envs.start : envs.stop] += faults
            if restarts:
                self._where[envs.start : envs.stop] = marks
        return [after for after, _, _ in replies]

    # What goes wrong.

    def _have_done(
        self,
        workers: Iterable[int],
        ask: Callable[[int], None],
        ask_again: Callable[[int], None] | None = None,
        *,
        anew: bool = False,
    ) -> list[Any]:
        """Asks workers something; those that are lost before they answer are asked again when they are back."""
        asked = list(workers)
        for worker in asked:
            ask(worker)
        silent = self._crew.silent(asked)
        self._get_through(lambda: not silent(), silent, ask_again or ask, anew=anew)
        return self._crew.replies(asked)

    def _ask(self, workers: Iterable[int], *message: Any) -> list[Any]:
        self._require_whole()
        return self._have_done(workers, lambda worker: self._crew.tell(worker, *message))

    def _get_through(
        self,
        is_done: Callable[[], bool],
        busy: Callable[[], list[int]],
        redo: Callable[[int], None],
        deadline: float | None = None,
        *,
        anew: bool = False,
    ) -> bool:
        """Waits, and brings workers back that are lost on the way. `anew`: all episodes begin anyway."""
        crew = self._crew
        crew.rest()
        while True:
            try:
                if not crew.wait(is_done, busy, deadline):
                    return False
                break
            except LostError as lost:
                self._heal(lost, anew)
                redo(lost.worker)
            except BaseException:  # Ctrl-C: what the workers do now has no reader
                self._is_broken = RuntimeError("this pool was interrupted in the middle of a step. Make a new one.")
                raise
        if crew.faults:
            self._raise_faults()
        if self.restarts:
            self._in_a_row = [0] * self.num_workers
        return True

    def _heal(self, lost: LostError, anew: bool) -> None:
        """A new worker in the place of one that is lost, its environments where they were if that can be."""
        worker = lost.worker
        error = self._error_of(lost)
        self._in_a_row[worker] += 1
        if not self._rules.restarts or self._in_a_row[worker] > _MOST_IN_A_ROW:
            self._is_broken = error
            raise error
        self.restarts += 1
        crew, envs = self._crew, self.ranges[worker]
        try:
            crew.replace(worker)
            crew.replies([worker])
            self._raise_faults()
            board = self._board_place, self.num_envs, self.num_workers, self._number
            crew.ask([worker], "set_up", *board)
            if not anew:
                gone = self._restored(worker) if self._rules.episode_seeds else list(envs)
                crew.ask([worker], "lose", gone, str(error).partition(" Make a new pool")[0])
            if self._runner is not None:
                crew.ask([worker], "install", self._runner)
            self._raise_faults()
        except LostError as again:
            self._heal(again, anew)

    def _restored(self, worker: int) -> list[int]:
        """Those environments of a new worker that could not be brought to where they were."""
        envs = self.ranges[worker]
        rows = self._rows
        records = []
        for env in envs:
            if self._runner is not None and self._where:
                own = self._where[env]
            else:
                own = {"hash": fingerprint(rows.observation(env), self._form.leaves), "state": None, "obs": None}
            records.append({**self._log.record(env), **own})
        there = self._new_rows()
        lost = self._crew.ask([worker], "restore", records, there.place)[0]
        rows.take_over(there, np.array([env for env in envs if env not in lost], np.int64))
        return list(lost)

    def _error_of(self, lost: LostError) -> Exception:
        worker, name, board = lost.worker, self._settings.name, getattr(self, "_board", None)
        at = int(board.beats[worker, 1]) if board is not None and board.beats[worker, 0] else None
        if lost.is_hung:
            assert self._timeout_s is not None
            pid = self._crew.pid(worker)
            self._crew.kill(worker)
            return hung_error(name, worker, pid, at, self._timeout_s)
        return lost_error(name, worker, self.ranges[worker], lost.how, at)

    def _raise_faults(self) -> None:
        """Of several, that of the first environment."""
        if not self._crew.faults:
            return
        worker, fault = min(self._crew.faults, key=lambda each: each[1].env)
        for _, each in self._crew.faults:
            if each.env >= 0:
                self._is_reset[each.env] = self._in_flight[each.env] = False
                self._board.finished[each.env] = 0
        self._crew.faults.clear()
        self._crew.notes.clear()
        where = f"worker {worker} (process {self._crew.pid(worker)})"
        raise env_error(self._settings.name, fault, where, worker)

    def _require_whole(self) -> None:
        if self._is_broken is not None:
            raise type(self._is_broken)(*self._is_broken.args)
        if not self._crew.is_ours:
            raise RuntimeError("this pool was made before a fork; its workers are the parent's. Make it in the child.")

    def _taken_notes(self, rows: Rows, which: Iterable[int]) -> Notes:
        """What the workers said of some environments, in the order of these."""
        crew = self._crew
        if crew.objects:
            for env in [env for env in which if env in crew.objects]:
                rows.objects[env] = crew.objects.pop(env)
        if not crew.notes:
            return []
        wanted = set(which)
        taken = [note for note in crew.notes if note[0] in wanted]
        crew.notes = [note for note in crew.notes if note[0] not in wanted]
        return sorted(taken, key=lambda note: note[0])

    # The rest of it.

    def _marks(self) -> list[Record]:
        replies = self._ask(range(self.num_workers), "marks", self._rows.place)
        return [record for reply in replies for record in reply]

    def _restore(self, records: Sequence[Record], rows: Rows) -> list[int]:
        self._require_whole()

        def ask(worker: int) -> None:
            envs = self.ranges[worker]
            self._crew.tell(worker, "restore", records[envs.start : envs.stop], rows.place)

        self._where = []
        return [env for reply in self._have_done(range(self.num_workers), ask, anew=True) for env in reply]

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """A method or attribute of every environment."""
        self._require_open()
        replies = self._ask(range(self.num_workers), "call", name, args, kwargs)
        return tuple(result for reply in replies for result in reply)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """An attribute of every environment."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """An attribute of every environment: a list or tuple has one value for each."""
        self._require_open()
        each = one_each(values, self.num_envs)
        for worker, envs in enumerate(self.ranges):
            self._ask([worker], "set_attr", name, list(each[envs.start : envs.stop]))

    def render(self) -> tuple[Any, ...] | None:
        """A picture of each environment."""
        return self.call("render")

    @property
    def worker_pids(self) -> list[int]:
        """The processes."""
        return [self._crew.pid(worker) for worker in range(self.num_workers)]

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the workers. A step under way is waited for, two seconds at most."""
        if hasattr(self, "_crew"):
            self._crew.close()
