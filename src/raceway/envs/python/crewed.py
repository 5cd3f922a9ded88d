"""A pool whose environments are in worker processes: how it speaks with them, and what it does when one is lost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded

from raceway._core import Orders
from raceway.envs.python.board import Board, size_of
from raceway.envs.python.crew import Crew, LostError, Recruit
from raceway.envs.python.faults import env_error, hung_error, lost_error
from raceway.envs.python.leaves import fingerprint, only_leaf, warn_of_pickling
from raceway.envs.python.pool import PythonPool
from raceway.envs.python.restoring import Record
from raceway.envs.python.rows import Rows
from raceway.envs.python.settings import PoolSettings
from raceway.envs.python.stage import Notes, difference

_MOST_IN_A_ROW = 5
"""Restarts of a worker before it has finished anything."""


class CrewedPool(PythonPool):
    """Several environments in each worker, which is started again when it is lost, if that is wanted."""

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
        self._async_seeds: list[int | None] = []
        """Of the last `async_reset`."""
        self._where: list[Record] = []
        """Where every environment was when the last run ended."""
        self.restarts = 0
        """How many workers were started again."""
        self._in_a_row = [0] * num_workers
        self._is_broken: Exception | None = None
        """Why it can do nothing any more."""
        self._is_interrupted = False
        recruits = []
        for worker, envs in enumerate(self.ranges):
            cpu = cpus[worker % len(cpus)] if cpus else None
            recruits.append(
                Recruit(settings.name, settings.makers[envs.start : envs.stop], envs.start, settings.rules, cpu)
            )
        self._crew = Crew(recruits, worker_timeout)
        try:
            self._set_up()
        except BaseException:
            self._crew.close()
            self.closed = True
            raise
        for what, leaves, space in (
            ("observations", self._form.leaves, self.single_observation_space),
            ("actions", self._actions.leaves, self.single_action_space),
        ):
            if leaves is None:
                warn_of_pickling(settings.name, what, space)

    def _set_up(self) -> None:
        everyone = range(self.num_workers)
        try:
            told = self._crew.replies(everyone)
        except LostError as lost:
            raise self._error_of(lost) from None
        self._raise_faults()
        first = told[0]["description"]
        for worker, its in enumerate(told):
            found = its["difference"]
            for name in ("observation_space", "action_space"):
                space, ours = getattr(its["description"], name), getattr(first, name)
                if space != ours and not found:
                    found = difference(self.ranges[worker].start, name, space, 0, ours)
            if found:
                raise ValueError(f"{self._settings.name}: {found}. In one pool they must be equal.")
        self._describe(first)
        leaves = self._actions.leaves or []
        size = size_of(self.num_envs, self.num_workers, leaves)
        self._board_memory = self._crew.exchange.lease(size)
        self._board_memory[:] = 0
        self._board_place = self._place_of(self._board_memory)
        self._board = Board(self._crew.exchange, self._board_place, self.num_envs, self.num_workers, leaves)
        self._crew.beats = self._board.beats
        board = self._board
        # Actions of several leaves, or of no fixed shape, are put there one by one.
        actions = board.actions[0] if only_leaf(leaves) is not None else None
        self._orders = Orders(self._crew.exchange, self._board_place, actions, board.places, board.done, self.num_envs)
        self._number = 0
        self._ask_all("set_up", self._board_place, self.num_envs, self.num_workers, 0)

    def _place_of(self, memory: np.ndarray) -> int:
        place = self._crew.exchange.place_of(memory)
        assert place is not None
        return place

    # What workers are asked.

    def _have_done(
        self,
        workers: Iterable[int],
        ask: Callable[[int], None],
        ask_again: Callable[[int], None] | None = None,
        *,
        anew: Collection[int] = (),
        watches: bool = True,
    ) -> list[Any]:
        """Asks workers something; those that are lost before they answer are asked again when they are back."""
        asked = list(workers)
        for worker in asked:
            ask(worker)
        silent = self._crew.silent(asked)
        self._get_through(lambda: not silent(), silent, ask_again or ask, anew=anew, watches=watches)
        return self._crew.replies(asked)

    def _ask_all(self, *message: Any) -> list[Any]:
        self._require_open()
        everyone = range(self.num_workers)
        return self._have_done(everyone, lambda worker: self._crew.tell(worker, *message), watches=False)

    def _get_through(
        self,
        is_done: Callable[[], bool],
        busy: Callable[[], list[int]],
        redo: Callable[[int], None],
        deadline: float | None = None,
        *,
        anew: Collection[int] = (),
        watches: bool = True,
    ) -> bool:
        """Waits, and brings workers back that are lost on the way. `anew`: whose episodes begin anyway."""
        crew = self._crew
        crew.rest()
        is_through = False
        try:
            while not is_through:
                try:
                    if not crew.wait(is_done, busy, deadline, watches=watches):
                        return False
                    is_through = True
                except LostError as lost:
                    self._heal(lost, anew)
                    redo(lost.worker)
        except KeyboardInterrupt:
            self._was_interrupted()
            raise
        self._raise_faults()
        if self.restarts:
            self._in_a_row = [0] * self.num_workers
        return True

    # What goes wrong.

    def _heal(self, lost: LostError, anew: Collection[int]) -> None:
        """A new worker in the place of one that is lost, its environments where they were if that can be."""
        worker = lost.worker
        error = self._error_of(lost)
        self._in_a_row[worker] += 1
        if not self._rules.restarts or self._in_a_row[worker] > _MOST_IN_A_ROW:
            self._is_broken, self._is_steady = error, False
            raise error
        self.restarts += 1
        envs = self.ranges[worker]
        try:
            self._replace(worker)
            self._crew.drop([env for env in envs if self._board.finished[env] == 0])  # it is done again
            others = [env for env in envs if env not in anew and self._is_reset[env]]
            if others:
                gone = self._restored(worker, others) if self._rules.episode_seeds else others
                self._crew.ask(worker, "lose", gone, str(error).partition(" Make a new pool")[0])
            self._raise_faults()
        except LostError as again:
            self._heal(again, anew)

    def _replace(self, worker: int) -> None:
        """A new process with new environments."""
        crew = self._crew
        crew.replace(worker)
        crew.replies([worker])
        self._raise_faults()
        crew.ask(worker, "set_up", self._board_place, self.num_envs, self.num_workers, self._number)
        if self._runner is not None:
            crew.ask(worker, "install", self._runner)
        self._raise_faults()

    def _was_interrupted(self) -> None:
        """By Ctrl-C, at any place: what the workers do now has no reader."""
        self._is_interrupted, self._is_steady = True, False

    def _recover(self) -> None:
        """Ends what the workers were in the middle of when the caller was interrupted."""
        if not self._is_interrupted or self.closed or self._is_broken is not None:
            return
        self._is_reset[:] = False
        self._crew.errors.clear()
        self._crew.faults.clear()
        try:
            for worker in range(self.num_workers):
                self._replace(worker)
        except LostError as lost:
            self._is_broken = self._error_of(lost)
            raise self._is_broken from None
        self._drop_finished()
        self._in_flight[:] = self._is_interrupted = False

    def _drop_finished(self) -> None:
        """Forgets what workers have done and said."""
        self._board.pending[:] = 0
        self._board.finished[:] = 0
        self._board.tally.clear()
        self._drop_notes()

    def _drop_notes(self) -> None:
        crew = self._crew
        for said in (crew.notes, crew.objects, crew.faults, crew.errors, crew.unreadable):
            said.clear()

    def _restored(self, worker: int, envs: list[int]) -> list[int]:
        """Those environments of a new worker that could not be brought to where they were."""
        rows = self._rows
        records = {}
        for env in envs:
            if self._where:
                own = self._where[env]
            else:
                own = {"hash": fingerprint(rows.observation(env), self._form.leaves), "state": None, "obs": None}
            records[env] = {**self._log.record(env), **own}
        there = self._new_rows()
        lost: list[int] = self._crew.ask(worker, "restore", records, there.place, watches=True)
        rows.take_over(there, np.array([env for env in envs if env not in lost], np.int64))
        return lost

    def _error_of(self, lost: LostError) -> Exception:
        worker, name, board = lost.worker, self._settings.name, getattr(self, "_board", None)
        at = int(board.beats[worker, 1]) if board is not None and board.beats[worker, 0] else None
        if lost.is_hung:
            assert self._timeout_s is not None
            pid = self._crew.pid(worker)
            self._crew.kill(worker)
            return hung_error(name, worker, pid, at, self._timeout_s, self._rules.restarts)
        return lost_error(name, worker, self.ranges[worker], lost.how, at, self._rules.restarts)

    def _raise_faults(self) -> None:
        """Of several, that of the first worker or environment, whoever was quicker."""
        crew = self._crew
        if crew.errors:
            (_, error), crew.errors = min(crew.errors, key=lambda each: each[0]), []
            raise error  # faults there may be besides are told by the next call
        if not crew.faults:
            return
        worker, fault = min(crew.faults, key=lambda each: each[1].env)
        failed = [each.env for _, each in crew.faults if each.env >= 0]
        crew.drop(failed)
        crew.faults.clear()
        self._is_reset[failed] = self._in_flight[failed] = self._is_steady = False
        if failed and hasattr(self, "_board"):  # what they gave may have turned out to be unreadable afterwards
            self._board.tally.take(int(np.count_nonzero(self._board.finished[failed])))
            self._board.finished[failed] = 0
        raise env_error(self._settings.name, fault, worker, crew.pid(worker))

    def _require_open(self) -> None:
        super()._require_open()
        if self._is_broken is not None:
            raise type(self._is_broken)(*self._is_broken.args)
        if self._is_interrupted:
            raise ResetNeeded("the last call was interrupted in the middle of it. Call reset() first.")
        if not self._crew.is_ours:
            raise RuntimeError("this pool was made before a fork; its workers are the parent's. Make it in the child.")

    def _have_taken_back(self, rows: Rows, options: dict[str, Any] | None = None) -> None:
        """Has workers treat what could not be read here as an error of the environments that gave it."""
        crew = self._crew
        while crew.unreadable:
            worker, number, why = crew.unreadable.pop(0)
            message = "unreadable", number, why, options, rows.place, self._rows.place
            self._have_done([worker], partial(_tell, crew, message))

    def _taken_notes(self, rows: Rows, which: Iterable[int], options: dict[str, Any] | None = None) -> Notes:
        """What the workers said of some environments, in the order of these."""
        crew = self._crew
        if crew.unreadable:
            self._have_taken_back(rows, options)
        if crew.objects:
            for env in [env for env in which if env in crew.objects]:
                given = crew.objects.pop(env)
                rows.objects[env] = self._rows.objects[env] if given is None else given  # of a worker that is new
        if not crew.notes:
            return []
        wanted = set(which)
        taken = [note for note in crew.notes if note[0] in wanted]
        if self._form.leaves is None:
            for env, info in taken:
                if "final_obs" in info and info["final_obs"] is None:
                    info["final_obs"] = self._rows.objects[env]
        crew.notes = [note for note in crew.notes if note[0] not in wanted]
        return sorted(taken, key=lambda note: note[0])


def _tell(crew: Crew, message: tuple[Any, ...], worker: int) -> None:
    crew.tell(worker, *message)
