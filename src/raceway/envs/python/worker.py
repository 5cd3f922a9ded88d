"""A worker process, `python -m raceway.envs.python.worker EXCHANGE HOST PARENT`: steps some environments of a pool."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter_ns
from typing import Any

import numpy as np

from raceway._core import Exchange, Patience, die_with_parent, usable_cpus
from raceway.encoding import dumps
from raceway.envs.python.actions import ActionReader
from raceway.envs.python.board import RESET, Board, SharedUnpickler
from raceway.envs.python.crew import Recruit
from raceway.envs.python.faults import sendable
from raceway.envs.python.inline import InlinePool, called, describe
from raceway.envs.python.restoring import Record, mark, restore
from raceway.envs.python.rows import Form, Rows
from raceway.envs.python.sending import NoteSender
from raceway.envs.python.settings import PoolSettings
from raceway.envs.python.stage import Fault, FaultError, Notes, Stage, fault_of
from raceway.local_code import adopt_imports

_SPIN_US = 1000.0
_AT_ONCE_NS = 400_000
"""How long the first of some environments may wait for the others, to be told together with them."""


class Line:
    """To the pool: replies, notes and faults."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._worker = exchange.host - 1

    def say(self, kind: str, value: Any, number: int = 0) -> None:
        """`number`: of the message that this is the reply to."""
        letter = self._exchange.write(pickle.dumps((kind, self._worker, number)), [dumps(value)], 1)
        patience = Patience(0.0)
        while True:
            seen = self._exchange.now()
            if self._exchange.post(0, letter):
                return
            if self._exchange.aborted:
                raise SystemExit
            self._exchange.wait(seen, patience, 0.1)


class Worker:
    """Does what the board and the pool's messages say."""

    def __init__(self, exchange: Exchange, line: Line, recruit: Recruit) -> None:
        self._exchange = exchange
        self._line = line
        self._recruit = recruit
        self._stage = Stage(recruit.makers, recruit.first, recruit.rules)
        self._notes = NoteSender(line.say, self._stage)
        self._count = len(recruit.makers)
        self._all = list(range(self._count))
        self._known: dict[int, Rows] = {}
        self._loose: dict[int, Any] = {}
        """Actions that have no fixed shape, by environment."""
        self._inline: InlinePool | None = None
        self._runner: Any = None
        self._args: tuple[Any, ...] = ()
        self._board: Board | None = None
        self._last_order = self._last_sent = 0
        self._question = 0
        """The number of the message that is being answered."""
        self._at_once = 1
        """How many environments are stepped before that is told."""

    def made(self) -> dict[str, Any]:
        """For the pool: what the environments are, and how they differ."""
        return {"description": describe(self._stage), "difference": self._stage.differing()}

    def set_up(self, place: int, num_envs: int, num_workers: int, last_order: int) -> None:
        """Finds the board."""
        env = self._stage.envs[0]
        self._form = Form(env.observation_space, num_envs)
        self._own_form = Form(env.observation_space, self._count)
        self._actions = ActionReader(env.action_space)
        board = Board(self._exchange, place, num_envs, num_workers, self._actions.leaves or [])
        worker = self._exchange.host - 1
        first = self._recruit.first
        self._own = slice(first, first + self._count)
        self._last_order, self._last_sent = last_order, int(board.sent[worker])
        # Numbers are read and written more quickly through memoryviews than through arrays.
        self._sent = _view(board.sent[worker : worker + 1])
        self._places = _view(board.places)
        self._done = _view(board.done[worker : worker + 1])
        self._tally = board.tally
        self._pending, self._finished = board.pending[self._own], board.finished[self._own]
        self._given = [leaf[self._own] for leaf in board.actions]
        self._stage.beats = board.beats[worker]
        self._board = board

    # The loop.

    def work(self) -> None:
        """Until the pool says that it is over."""
        exchange = self._exchange
        patience = Patience(_SPIN_US, polite=exchange.hosts > usable_cpus())
        while not exchange.aborted:
            seen = exchange.now()
            if not self._look():
                exchange.wait(seen, patience)

    def _look(self) -> bool:
        """Whether there was something to do."""
        if self._board is not None:
            number = self._tally.issued
            if number != self._last_order:
                if self._actions.leaves is None:
                    self._hear()  # they come as messages
                self._last_order = number
                self._step_all()
                return True
            if self._sent[0] != self._last_sent:
                self._last_sent = self._sent[0]
                self._step_pending()
                return True
        # Not every CPU shows what was written in the order in which it was.
        return self._hear() or (self._last_sent > 0 and self._step_pending())

    def _hear(self) -> bool:
        messages = self._exchange.receive()
        for head, parts in messages:
            self._answer(head, parts)
        return bool(messages)

    def _answer(self, head: bytes, parts: Sequence[Any]) -> None:
        worker = self._exchange.host - 1
        self._question += 1  # as the pool counts them, should this one not be readable
        try:
            number, name, *arguments = SharedUnpickler(self._exchange, head, parts).load()
            self._question = number[worker] if isinstance(number, dict) else number
            getattr(self, f"on_{name}")(*arguments)
        except FaultError as error:
            self._line.say("fault", error.fault)
            self._reply(None)
        except (Exception, SystemExit) as error:
            self._line.say("error", sendable(error, worker))
            self._reply(None)

    def _reply(self, value: Any) -> None:
        self._line.say("reply", value, self._question)

    def _rows(self, place: int) -> Rows:
        """Of its own environments; others' are not seen."""
        if (known := self._known.get(place)) is None:
            if len(self._known) > 64:
                self._known.clear()
            whole = self._form.over(self._exchange.window(0, place, max(1, self._form.size)))
            arrays = [*whole.leaves, whole.rewards, whole.terminated, whole.truncated]
            known = self._known[place] = Rows(self._own_form, [array[self._own] for array in arrays])
        return known

    def _taken(self, which: Sequence[int]) -> list[Any]:
        """The actions of some environments, as they lie on the board."""
        if self._actions.leaves is None:
            return [self._loose.pop(index, None) for index in which]  # a successor has none, and needs none
        if which is self._all:
            return self._actions.each(self._given)
        return self._actions.each([leaf[which] for leaf in self._given])

    def _step_all(self) -> None:
        place, before = self._places
        rows, last = self._rows(place), self._rows(before)
        which = self._all
        try:
            notes = self._stage.step(which, self._taken(which), rows, last)
            if notes or rows.objects:
                self._say_faults(self._notes.send(notes, which, rows, last))
        except FaultError as error:
            self._say_faults(self._stopped_at(error, which, rows, last)[1])
        self._done[0] = self._last_order
        self._tally.add(self._count)

    def _step_pending(self) -> bool:
        """All that wait, in turns, so that none is passed over for ever. Whether there were any."""
        pending, any_done = self._pending, False
        while len(waiting := np.flatnonzero(pending.copy())):  # the pool writes to it meanwhile
            if self._actions.leaves is None or pending[waiting[0]] == RESET:
                self._hear()  # actions and seeds come as messages
            queue = waiting.tolist()
            while queue:
                kinds = pending[queue[: self._at_once]]
                alike = len(kinds) if (kinds == kinds[0]).all() else int(np.argmax(kinds != kinds[0]))
                queue = queue[self._step_some(queue[:alike], pending) :]
            any_done = True
        return any_done

    def _step_some(self, some: list[int], pending: np.ndarray) -> int:
        """Steps or resets them, and tells it at once: somebody may wait for them. How many it has dealt with."""
        rows = self._rows(self._places[0])
        start = perf_counter_ns()
        if pending[some[0]] == RESET:
            do = partial(self._stage.reset, some, [self._seeds[index] for index in some], None, rows)
        else:
            do = partial(self._stage.step, some, self._taken(some), rows, rows)
        done, faults = self._told(do, some, rows)
        now = perf_counter_ns()
        # One that failed never counts as finished: the pool hears of it by its fault alone.
        dealt_with = [*done, *(fault.env - self._recruit.first for fault in faults)]
        pending[dealt_with] = 0
        self._finished[done] = now
        self._tally.add(len(done))
        self._say_faults(faults)
        self._at_once = max(1, min(2 * self._at_once, _AT_ONCE_NS * len(some) // (now - start + 1)))
        return len(dealt_with)

    def _told(self, do: Callable[[], Notes], which: list[int], rows: Rows) -> tuple[list[int], list[Fault]]:
        """Does something, and passes on what cannot be written in rows. Whom it was done with, and who failed."""
        try:
            faults = self._notes.send(do(), which, rows, rows)
        except FaultError as error:
            return self._stopped_at(error, which, rows, rows)
        return self._without(which, faults), faults

    def _stopped_at(
        self, error: FaultError, which: list[int], rows: Rows, before: Rows
    ) -> tuple[list[int], list[Fault]]:
        """Those before the one that failed, of whom all is passed on; and who failed."""
        done = which[: which.index(error.fault.env - self._recruit.first)]
        faults = self._notes.send(error.notes, done, rows, before)
        return self._without(done, faults), [*faults, error.fault]

    def _without(self, which: list[int], faults: Sequence[Fault]) -> list[int]:
        failed = [fault.env - self._recruit.first for fault in faults]
        return [index for index in which if index not in failed] if failed else which

    def _say_faults(self, faults: Sequence[Fault]) -> None:
        for fault in faults:
            self._line.say("fault", fault)

    # Messages.

    def on_set_up(self, *arguments: Any) -> None:
        self.set_up(*arguments)
        self._reply(None)

    def on_again(self, last_order: int) -> None:
        """The order after that one is still to be done."""
        self._last_order = last_order

    def on_actions(self, actions: dict[int, Any]) -> None:
        self._loose |= {env - self._recruit.first: action for env, action in actions.items()}

    def on_reset(self, which: list[int], seeds: list[int | None], options: dict[str, Any] | None, place: int) -> None:
        rows = self._rows(place)
        local = [env - self._recruit.first for env in which]
        notes = self._stage.reset(local, seeds, options, rows)
        self._say_faults(self._notes.send(notes, local, rows, rows, options))
        self._reply(None)

    def on_unreadable(self, number: int, why: str, options: dict[str, Any] | None, place: int, before: int) -> None:
        """The pool could not read some notes."""
        rows, last = self._rows(place), self._rows(before)
        self._say_faults(self._notes.send_again(number, why, rows, last, options))
        self._reply(None)

    def on_seeds(self, seeds: list[int | None]) -> None:
        self._seeds = seeds

    def on_call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._reply([called(env, name, args, kwargs) for env in self._stage.envs])

    def on_set_attr(self, name: str, values: Sequence[Any]) -> None:
        for env, value in zip(self._stage.envs, values[self._own], strict=True):
            env.set_wrapper_attr(name, value)
        self._reply(None)

    def on_marks(self, place: int) -> None:
        self._reply(self._marks(self._rows(place)))

    def _marks(self, rows: Rows) -> list[Record]:
        return [mark(self._stage, index, rows) for index in range(self._count)]

    def on_restore(self, records: Mapping[int, Record], place: int) -> None:
        rows, first = self._rows(place), self._recruit.first
        space = self._stage.envs[0].action_space
        self._reply(
            [env for env, record in records.items() if not restore(self._stage, env - first, record, space, rows)]
        )

    def on_lose(self, which: Sequence[int], why: str) -> None:
        self._stage.lose_episodes([env - self._recruit.first for env in which], why)
        self._reply(None)

    def on_install(self, runner: bytes) -> None:
        self._runner = pickle.loads(runner)
        recruit = self._recruit
        settings = PoolSettings(recruit.name, recruit.makers, recruit.rules, writes_log=False)
        self._inline = InlinePool(settings, recruit.first, self._stage, self._exchange.host - 1)
        self._runner.open(self._inline, recruit.first)
        self._reply(None)

    def on_args(self, args: tuple[Any, ...]) -> None:
        self._args = args

    def on_run(self, progress: Any, place: int, marks: bool) -> None:
        """A run begins with the observations that the pool has, and leaves its last ones there."""
        assert self._inline is not None
        rows = self._rows(place)
        self._inline.go_on_from(rows)
        faults = self._inline.faults.copy()
        after = self._runner.run(progress, *self._args)
        self._args = ()
        rows.take_over(self._inline.rows, np.arange(self._count))
        self._reply((after, self._inline.faults - faults, self._marks(rows) if marks else None))

    def close(self) -> None:
        """Closes the environments."""
        self._stage.close()


def _view(array: Any) -> memoryview:
    return memoryview(array)


def main() -> None:
    fd, host, parent = (int(argument) for argument in sys.argv[1:4])
    die_with_parent(parent)
    # A service manager tells every process to end; the process that runs the pool decides when.
    signal.signal(signal.SIGTERM, lambda number, frame: None)  # unlike SIG_IGN, not inherited by what it starts
    exchange = Exchange(fd, host, writes_all=True)
    os.close(fd)
    exchange.receive()  # what a predecessor had not read yet
    line = Line(exchange)
    try:
        adopt_imports(sys.stdin.buffer)
        recruit: Recruit = pickle.load(sys.stdin.buffer)
        if recruit.cpu is not None:
            os.sched_setaffinity(0, {recruit.cpu})
        worker = Worker(exchange, line, recruit)
        line.say("reply", worker.made())
    except FaultError as error:
        line.say("fault", error.fault)
        line.say("reply", None)
        return
    except BaseException as error:
        line.say("fault", fault_of(-1, "the start of a worker", 0, error))
        line.say("reply", None)
        return
    try:
        worker.work()
    finally:
        worker.close()


if __name__ == "__main__":
    main()
