"""The worker processes of a pool, seen from the process that started them."""

from __future__ import annotations

import os
import pickle
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

import cloudpickle
import numpy as np
from gymnasium.error import ClosedEnvironmentError

from raceway._core import Exchange, Patience, usable_cpus
from raceway.encoding import dumps
from raceway.envs.python.board import pack
from raceway.envs.python.stage import Fault, Maker, Rules
from raceway.errors import SettingError
from raceway.interpreter import FreshProcess
from raceway.messages import words_of

_TICK_S = 0.1
_START_S = 30.0
"""Less than this is never asked of a start: modules are imported in it."""
_GRACE_S = 2.0
_sizes: dict[int, int] = {}
"""How many workers each crew of this process has: they share its CPUs."""
_SPIN_US = 50.0

# A worker has one CPU. What computes with several threads in each would only be in the others' way.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Recruit:
    """What a worker is told when it starts."""

    name: str
    makers: Sequence[Maker]
    first: int
    rules: Rules
    cpu: int | None
    """The only one that it may use."""


class LostError(Exception):
    """A worker is gone, or does not get on."""

    def __init__(self, worker: int, how: str, is_hung: bool = False) -> None:
        super().__init__(how)
        self.worker = worker
        self.how = how
        self.is_hung = is_hung


class Crew:
    """Starts workers, passes messages to and fro, and notices when one is gone or hangs."""

    def __init__(self, recruits: Sequence[Recruit], timeout_s: float | None) -> None:
        self.faults: list[tuple[int, Fault]] = []
        self.errors: list[tuple[int, Exception]] = []
        """What went wrong in a worker beside environments, such as in a runner."""
        self.notes: list[tuple[int, dict[str, Any]]] = []
        self.unreadable: list[tuple[int, int, str]] = []
        """Notes that could not be read: who sent them, their number, and why."""
        self.objects: dict[int, Any] = {}
        """Observations that have no fixed shape, by environment."""
        self.beats: np.ndarray | None = None
        """How far each worker is, once there is a board."""
        self._replies: dict[int, Any] = {}
        self._asked = [0] * len(recruits)
        """The number of the last message to each worker; 0: its start."""
        self._timeout_s = timeout_s
        self._start_s = [max(_START_S, (timeout_s or 0.0) * len(recruit.makers)) for recruit in recruits]
        """How long each worker may take to start and to make its environments, where it has a CPU to itself."""
        self._started = [0.0] * len(recruits)
        self._payloads = [_payload(recruit) for recruit in recruits]
        self._kept: list[deque[Any]] = [deque() for _ in recruits]
        self._seen_beats: dict[int, tuple[int, float]] = {}
        self._pid = os.getpid()
        self._fd = Exchange.create(len(recruits) + 1)
        _sizes[id(self)] = len(recruits)
        self.exchange = Exchange(self._fd, 0)
        is_crowded = len(recruits) >= usable_cpus()
        self.patience = Patience(0.0 if is_crowded else _SPIN_US, polite=True)
        self._processes: list[FreshProcess] = []
        try:
            for worker in range(len(recruits)):
                self._processes.append(self._start(worker))
        except BaseException:
            self.close()
            raise

    def _start(self, worker: int) -> FreshProcess:
        environment = {**dict.fromkeys(_ONE_THREAD, "1"), **os.environ}
        self._started[worker] = monotonic()
        arguments = [str(self._fd), str(worker + 1), str(os.getpid())]
        return FreshProcess(
            "raceway.envs.python.worker", arguments, self._payloads[worker], fds=[self._fd], environment=environment
        )

    def __len__(self) -> int:
        return len(self._payloads)

    @property
    def is_ours(self) -> bool:
        """Not in a child of fork()."""
        return os.getpid() == self._pid

    def pid(self, worker: int) -> int:
        return self._processes[worker].pid

    # Messages.

    def tell(self, worker: int, *message: Any) -> None:
        """Sends a message to one worker, which gets copies of all arrays in it."""
        self._send(worker, self.exchange.write(dumps((self._numbered(worker), *message)), [], 1))

    def lend(self, workers: Sequence[int], *message: Any) -> None:
        """Sends a message written once, whose arrays are read where they lie; they are held until all have replied."""
        numbers = {worker: self._numbered(worker) for worker in workers}
        head, parts = pack(self.exchange, (numbers, *message))
        letter = self.exchange.write(head, parts, len(workers))
        for worker in workers:
            self._send(worker, letter)

    def _numbered(self, worker: int) -> int:
        """Of a message: what a worker replies to an earlier one is not heard any more."""
        self._replies.pop(worker, None)
        self._asked[worker] += 1
        return self._asked[worker]

    def ask(self, worker: int, *message: Any, watches: bool = False) -> Any:
        """The reply of one worker."""
        self.tell(worker, *message)
        return self.replies([worker], watches=watches)[0]

    def replies(self, workers: Sequence[int], *, watches: bool = False) -> list[Any]:
        """Of workers that were asked something, in their order."""
        silent = self.silent(workers)
        self.wait(lambda: not silent(), silent, watches=watches)
        return [self._replies.pop(worker) for worker in workers]

    def silent(self, workers: Sequence[int]) -> Callable[[], list[int]]:
        """Those of them that have not replied yet, whenever that is asked."""
        return lambda: [worker for worker in workers if worker not in self._replies]

    def _send(self, worker: int, letter: Any) -> None:
        kept = self._kept[worker]
        if kept or not self.exchange.post(worker + 1, letter):
            kept.append(letter)

    def receive(self) -> bool:
        """Hears what workers have said; whether they said anything."""
        for worker, kept in enumerate(self._kept):
            while kept and self.exchange.post(worker + 1, kept[0]):
                kept.popleft()
        messages = self.exchange.receive()
        body: Any
        for head, (body,) in messages:
            kind, worker, number = pickle.loads(head)
            try:
                value = pickle.loads(body)
            except Exception as error:
                value, why = None, words_of(error, 300)
                if kind == "notes":
                    self.unreadable.append((worker, number, why))
                else:
                    told = f"What worker {worker} sent ({kind}) cannot be read in the pool's process: {why}."
                    self.errors.append((worker, RuntimeError(told)))
            self._hear(kind, worker, number, value)
        return bool(messages)

    def _hear(self, kind: str, worker: int, number: int, value: Any) -> None:
        if kind == "reply":
            if number == self._asked[worker]:
                self._replies[worker] = value
        elif kind == "fault":
            self.faults.append((worker, value))
        elif kind == "error":
            self.errors.append((worker, value))
        elif value is not None:
            notes, objects = value
            self.notes += notes
            self.objects |= objects

    def drop(self, envs: Collection[int]) -> None:
        """Forgets what was said of some environments."""
        self.notes = [note for note in self.notes if note[0] not in envs]
        self.faults = [each for each in self.faults if each[1].env not in envs]
        self.objects = {env: each for env, each in self.objects.items() if env not in envs}

    # Waiting.

    def wait(
        self,
        is_done: Callable[[], bool],
        busy: Callable[[], list[int]],
        deadline: float | None = None,
        *,
        watches: bool = False,
    ) -> bool:
        """Until it is done; False when the deadline passes before.

        LostError if one of the busy is gone; or hangs, if they call environments now and are watched.
        """
        looked = monotonic()
        while True:
            seen = self.exchange.now()
            if self._fd < 0:
                raise ClosedEnvironmentError("the pool was closed while a call waited.")
            self.receive()
            if is_done():
                self.receive()  # what was said before that
                return True
            now = monotonic()
            if deadline is not None and now >= deadline:
                return False
            if now - looked >= _TICK_S:
                looked = now
                self._look_after(busy(), now, watches)
            left = _TICK_S if deadline is None else min(_TICK_S, deadline - now)
            self.exchange.wait(seen, self.patience, left)

    def _look_after(self, busy: Iterable[int], now: float, watches: bool) -> None:
        for worker in busy:
            if how := self._processes[worker].how_it_ended():
                self.receive()  # what it said last
                raise LostError(worker, how)
            if self._timeout_s is None:
                continue
            if self._asked[worker] == 0 and now - self._started[worker] > self._start_limit(worker):
                self.kill(worker)
                raise LostError(worker, self._slow_start(worker))
            if not watches or self.beats is None:
                continue
            beat = int(self.beats[worker, 0])
            known, since = self._seen_beats.get(worker, (-1, now))
            if beat != known:
                self._seen_beats[worker] = beat, now
            elif now - since > self._timeout_s:
                del self._seen_beats[worker]
                raise LostError(worker, f"process {self.pid(worker)} does not get on", is_hung=True)

    def _start_limit(self, worker: int) -> float:
        return self._start_s[worker] * max(1.0, sum(list(_sizes.values())) / usable_cpus())

    def _slow_start(self, worker: int) -> str:
        return (
            f"process {self.pid(worker)} had not made them after {self._start_limit(worker):g} seconds, and was killed "
            f"(worker_timeout={self._timeout_s:g} for each of them, and at least {_START_S:g} for all)"
        )

    def rest(self) -> None:
        """Nobody is busy: time that passes from here on is not theirs."""
        self._seen_beats.clear()

    # Ends.

    def kill(self, worker: int) -> None:
        """Ends one at once."""
        self._processes[worker].kill()

    def replace(self, worker: int) -> None:
        """A new process in the place of one that is gone, or that is killed now."""
        self.kill(worker)
        self.receive()
        self._replies.pop(worker, None)
        self.unreadable = [each for each in self.unreadable if each[0] != worker]  # nobody is left to ask
        self._asked[worker] = 0
        self._kept[worker].clear()
        self._seen_beats.pop(worker, None)
        if self.beats is not None:
            self.beats[worker] = 0  # nobody's yet
        self._processes[worker] = self._start(worker)

    def close(self) -> None:
        """Ends the workers: those that are in the middle of something are killed after a while."""
        if not self.is_ours or self._fd < 0:
            return
        fd, self._fd = self._fd, -1
        _sizes.pop(id(self), None)
        self.exchange.abort()
        deadline = monotonic() + _GRACE_S
        try:
            for process in self._processes:
                process.wait(max(0.0, deadline - monotonic()))
        finally:
            for process in self._processes:
                process.kill()
            os.close(fd)


def _payload(recruit: Recruit) -> bytes:
    try:
        return cloudpickle.dumps(recruit)
    except Exception as error:
        raise SettingError(
            f"The environment cannot be sent to a worker process: {words_of(error)}. What a callable "
            "uses must be picklable; open files, locks and the like are made inside it. Or use lane='inline'."
        ) from error
