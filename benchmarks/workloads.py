"""What is done in the experiments with graphs, the same code for everybody who does it.

Every experiment has one driver and n workers. In each round the driver, who has what the workers gave in the last one,
sends every worker a message; each does its work on it and gives something back. How messages travel, and where workers
live, is what is measured. NumPy and Gymnasium are all that this needs.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium
import numpy as np

from benchmarks.junction import OBSERVATION_SIZE, Junction
from benchmarks.tasks import ACTIONS, Discrete

Work = Callable[[Any], Any]
"""What a worker does with a message."""
Drive = Callable[[Sequence[Any] | None], Any]
"""The driver: from what the workers gave (nothing before the first round) to the next messages."""
Empty = Callable[[Any, Any], np.ndarray]
"""Makes an array, given shape and dtype, for what is about to be sent. Who can, makes it where its reader reads it."""

PROOF_ROUNDS = 40
HIDDEN = 64
NAP_S = 0.01
"""How long each of two takes that overlap."""


class Workload(Protocol):
    """An experiment's two parts."""

    shared: bool
    """All workers get the same message. Otherwise messages are an array or a list, with one row for each."""
    steps_per_round: int
    """What a round counts as, in the unit of the experiment."""
    proof_rounds: int
    """After how many rounds contestants show what they have computed so far."""

    def driver(self, empty: Empty = np.empty) -> Drive: ...

    def worker(self, index: int, empty: Empty = np.empty) -> Work: ...


@dataclass(frozen=True)
class Job:
    """What a contestant is to run."""

    experiment: str
    """A key of WORKLOADS."""
    workers: int
    task: str = ""
    payload_bytes: int = 0

    def workload(self) -> Workload:
        return WORKLOADS[self.experiment](self)

    @property
    def has_limit(self) -> bool:
        """A reaction that does nothing has none."""
        return self.experiment != "react"


class Broadcast:
    """The driver sends everybody the same array, fresh each round; each worker gives back a copy of it."""

    shared = True
    steps_per_round = 1
    proof_rounds = 2

    def __init__(self, job: Job) -> None:
        self._template = np.random.default_rng(0).random(max(1, job.payload_bytes // 8))

    def driver(self, empty: Empty = np.empty) -> Drive:
        return lambda results: _copy(self._template, empty)

    def worker(self, index: int, empty: Empty = np.empty) -> Work:
        return lambda payload: _copy(payload, empty)


class Sampling:
    """The driver draws random actions; each worker steps a Gymnasium environment and gives back what that gives."""

    shared = False
    proof_rounds = PROOF_ROUNDS

    def __init__(self, job: Job) -> None:
        self._task = job.task
        self.steps_per_round = self._workers = job.workers

    def driver(self, empty: Empty = np.empty) -> Drive:
        space, generator, shape = ACTIONS[self._task], np.random.default_rng(0), (self._workers,)
        return lambda results: space.draw(generator, shape)

    def worker(self, index: int, empty: Empty = np.empty) -> Work:
        # The checker helps while an environment is written; nobody who wants speed leaves it on.
        env = gymnasium.make(self._task, disable_env_checker=True)
        env.reset(seed=index)
        whole = isinstance(ACTIONS[self._task], Discrete)

        def step(action: Any) -> tuple[Any, float, bool, bool]:
            obs, reward, terminated, truncated, _ = env.step(int(action) if whole else action)
            if terminated or truncated:
                obs, _ = env.reset()
            return obs, float(reward), terminated, truncated

        return step


class Inference:
    """The driver has a junction; each worker has a policy of its own, an MLP, and acts for one of the cars."""

    shared = False
    steps_per_round = 1
    proof_rounds = PROOF_ROUNDS

    def __init__(self, job: Job) -> None:
        self._workers = job.workers

    def driver(self, empty: Empty = np.empty) -> Drive:
        junction = Junction(self._workers, seed=0)

        def drive(actions: Sequence[int] | None) -> np.ndarray:
            if actions is None:
                return junction.observe()
            observations, _, ended = junction.step(np.array(actions))
            return junction.reset() if ended else observations

        return drive

    def worker(self, index: int, empty: Empty = np.empty) -> Work:
        return policy(seed=index)


WORKLOADS: dict[str, Callable[[Job], Workload]] = {
    "broadcast": Broadcast,
    "sampling": Sampling,
    "inference": Inference,
}


def _copy(array: np.ndarray, empty: Empty) -> np.ndarray:
    copy = empty(array.shape, array.dtype)
    np.copyto(copy, array)
    return copy


def policy(seed: int) -> Callable[[np.ndarray], int]:
    """An MLP with two hidden layers of tanh, for one observation at a time: the index of its largest output."""
    generator = np.random.default_rng(1000 + seed)
    sizes = (OBSERVATION_SIZE, HIDDEN, HIDDEN, 2)
    layers = [
        (generator.normal(0.0, inputs**-0.5, (inputs, outputs)).astype(np.float32), np.zeros(outputs, np.float32))
        for inputs, outputs in itertools.pairwise(sizes)
    ]
    (first, first_bias), (second, second_bias), (last, last_bias) = layers

    def act(observation: np.ndarray) -> int:
        hidden = np.tanh(observation @ first + first_bias)
        hidden = np.tanh(hidden @ second + second_bias)
        return int(np.argmax(hidden @ last + last_bias))

    return act


class Digest:
    """A short name for a sequence of values: two contestants with the same digest have computed the same."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=8)

    def add(self, value: Any) -> None:
        if isinstance(value, (tuple, list)):
            for item in value:
                self.add(item)
        elif isinstance(value, np.ndarray):
            self._hash.update(f"{value.dtype} {value.shape}".encode())
            self._hash.update(np.ascontiguousarray(value).data)
        else:
            self._hash.update(repr(value).encode())

    def __str__(self) -> str:
        return self._hash.hexdigest()
