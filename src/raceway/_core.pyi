from collections.abc import Sequence
from typing import Any

import numpy as np
from typing_extensions import Buffer

_Bytes = Buffer | np.ndarray  # whose type says that it is a Buffer from Python 3.12 on

class Configurations:
    def __init__(self, id: str, kwargs: list[dict[str, Any]]) -> None: ...
    def __len__(self) -> int: ...
    def layout(self, index: int) -> dict[str, Any]: ...
    @property
    def has_pictures(self) -> bool:
        """Whether the task draws itself: see Pool.pictures."""

class Pool:
    def __init__(
        self,
        configurations: Configurations,
        which: list[int],
        limits: list[int],
        settings: dict[str, Any],
    ) -> None: ...
    def seed(self, seeds: list[int | None]) -> None: ...
    def reset(
        self, mask: np.ndarray | None, options: list[float] | None, seeds: list[int | None]
    ) -> tuple[Any, ...]: ...
    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]: ...
    def observe(self) -> Any: ...
    def async_reset(self) -> None: ...
    def send(self, actions: Any, env_ids: Any | None) -> None: ...
    def recv(self, timeout_s: float | None) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]: ...
    def save(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...
    def load(self, rows: np.ndarray, random: np.ndarray, counts: np.ndarray, sums: np.ndarray) -> None: ...
    def faults(self) -> np.ndarray: ...
    def pictures(self) -> np.ndarray:
        """One of each environment, [N, height, width, 3]."""
    def close(self) -> None: ...
    @property
    def workers(self) -> int: ...
    @property
    def threads(self) -> int: ...
    @property
    def in_flight(self) -> int: ...

class Policy:
    """A small network that acts, described by its layers' places in one vector of parameters."""

    def __init__(self, layout: dict[str, Any]) -> None: ...
    def load(self, params: np.ndarray, mean: np.ndarray | None = None, rate: np.ndarray | None = None) -> None:
        """Takes float32 parameters, and what observations are scaled by. Rollouts under way keep what they have."""
    def act(
        self,
        obs: np.ndarray,
        actions: np.ndarray,
        log_probs: np.ndarray,
        values: np.ndarray,
        seed: int,
        first_env: int,
        step: int,
        greedy: bool,
        mask: np.ndarray | None,
    ) -> None:
        """Acts on observations [B, ...], leaves one after the other; writes actions [B, K], log-probabilities, values.

        Numbers are those of a rollout, to the bit: neither depends on how many rows there are.
        """
    def value(self, obs: np.ndarray, values: np.ndarray) -> None:
        """The values of observations alone."""
    @property
    def num_params(self) -> int: ...
    @property
    def num_scaled(self) -> int:
        """How many numbers mean and rate have: one for each of the boxes among the observation's leaves."""

class Rollout:
    """Collects with the policy in the worker: a thread does all steps of its environments alone."""

    def __init__(self, pool: Pool, policy: Policy) -> None: ...
    def collect(
        self,
        buffers: dict[str, Any],
        num_steps: int,
        seed: int,
        first_step: int,
        greedy: bool = False,
        first_env: int = 0,
    ) -> None:
        """Fills the buffers (C-contiguous NumPy arrays), going on from where the environments are.

        `info_means`, if given, receives the mean of each of `info_names` over all steps.
        """
    def set_group_size(self, size: int) -> None:
        """How many environments a thread steps together, 1 to 8; 0: whatever seems best. It changes no bit."""
    @property
    def info_names(self) -> list[str]: ...
    @property
    def has_action_mask(self) -> bool: ...

class Patience:
    """How long one waiting thread spins before it sleeps: at most so many microseconds, and not at all if its waits
    are usually longer. While it spins it offers its CPU to others."""

    def __init__(self, most_us: float = 50.0, polite: bool = True) -> None:
        """A polite one offers its CPU to others while it spins: for more processes than CPUs."""

class Bell:
    """A doorbell between the threads of one process: read now(), look for work, and only then wait."""

    def __init__(self) -> None: ...
    def now(self) -> int: ...
    def ring(self) -> None:
        """Wakes one of those who sleep; who spins sees it too."""
    def ring_all(self) -> None: ...
    def wait(self, seen: int, patience: Patience, timeout_s: float | None = None) -> bool:
        """Until now() is no longer `seen`; False if that takes longer than the timeout."""

class Letter:
    """An encoded message, ready to be posted to as many hosts as it was written for."""

class Exchange:
    """How the processes (hosts) of one program send each other messages. Its bell is this host's."""

    @staticmethod
    def create(hosts: int) -> int:
        """The memory they share, as a file descriptor that closes on exec."""
    def __init__(self, fd: int, host: int, writes_all: bool = False) -> None:
        """Maps it. The descriptor remains the caller's, and may be closed. Only one at a time for each host.

        `writes_all`: the other hosts' leases may be written too.
        """
    @property
    def host(self) -> int: ...
    @property
    def hosts(self) -> int: ...
    def now(self) -> int: ...
    def ring(self) -> None: ...
    def ring_all(self) -> None: ...
    def ring_host(self, host: int) -> None:
        """Rings another's bell."""
    def place_of(self, array: _Bytes) -> int | None:
        """Where an array lies that this host has leased, or a part of one, for `window`; None: it lies elsewhere."""
    def window(self, host: int, place: int, size: int) -> np.ndarray:
        """Bytes that another host has leased, for as long as it holds them."""
    def wait(self, seen: int, patience: Patience, timeout_s: float | None = None) -> bool: ...
    def lease(self, size: int) -> np.ndarray:
        """Memory that parts can be written to in place: they are not copied when sent, and must not change then."""
    def write(self, head: Buffer, parts: Sequence[_Bytes], readers: int) -> Letter:
        """Copies a message to where its readers will find it."""
    def post(self, to: int, letter: Letter) -> bool:
        """False if there is no room; this host's bell rings when there is. Any thread may post."""
    def receive(self) -> list[tuple[bytes, list[np.ndarray]]]:
        """All messages that lie here now, in order per sender; parts are read-only bytes. One thread at a time."""
    def abort(self) -> None:
        """Sets `aborted` for all hosts and rings every bell."""
    @property
    def aborted(self) -> bool: ...
    def sent(self) -> list[tuple[int, int]]:
        """Messages and bytes that went to each host."""

class PythonSteps:
    """Steps environments written in Python one after the other, and writes to their rows what came of it."""

    def __init__(
        self,
        observations: np.ndarray | None,
        rewards: np.ndarray,
        terminated: np.ndarray,
        truncated: np.ndarray,
        lengths: np.ndarray,
        beats: np.ndarray | None,
        first: int,
        after_end: bool | None,
    ) -> None:
        """`beats[1]` is the environment that is being called, counted from `first`. Lengths count its steps.

        `after_end`: what `special` says of an environment whose episode has ended; None: `run` returns there.
        """
    def run(
        self,
        steps: list[Any],
        which: list[int],
        actions: list[Any],
        begin: int,
        special: bytearray,
        notes: list[tuple[int, dict[str, Any]]],
    ) -> tuple[int, Any] | None:
        """From place `begin` of `which` on; None at its end.

        Else the place of one that gave something unusual, and what that was, not written yet; or of one that
        `special` marks, which was not stepped, and None.
        """
    @property
    def place(self) -> int:
        """Where it is: if a step raised, that one."""

class Tally:
    """Counts what is done, in memory that a host has leased, and rings its bell when it has what it wants."""

    def __init__(self, exchange: Exchange, host: int, place: int) -> None:
        """24 bytes, aligned to 8, zero at the beginning."""
    def add(self, done: int) -> None: ...
    def want(self, wanted: int) -> None:
        """How many it takes from now on. Look whether they are there after this, and only then wait."""
    def take(self, done: int) -> None: ...
    def clear(self) -> None: ...
    @property
    def done(self) -> int: ...
    @property
    def issued(self) -> int:
        """The number of what is to be done; whoever sees it also sees what was written before."""

class Orders:
    """Has all environments of a pool stepped by its workers, in one call."""

    def __init__(
        self,
        exchange: Exchange,
        tally: int,
        actions: np.ndarray | None,
        places: np.ndarray,
        done: np.ndarray,
        wanted: int,
    ) -> None:
        """`tally`: its place. The arrays are the board's; `actions` is None if they do not lie there as one."""
    def takes(self, actions: Any) -> bool:
        """Whether these actions can be written down as they are."""
    def step(
        self, actions: np.ndarray | None, number: int, place: int, before: int, patience: Patience, timeout_s: float
    ) -> bool | None:
        """Gives the order of this number and waits; `actions` is None if they are written down already.

        None if not all workers have done so within the timeout; else whether one of them has said something.
        """

def describe_tasks() -> list[dict[str, Any]]: ...
def describe_library(path: str, source: str) -> dict[str, Any]:
    """The task of a library, which is only opened. Raises ValueError if it is none, or of another version."""

def add_library(path: str, source: str) -> None:
    """Makes its task one of the tasks, in the place of one of the same id. Pools made before go on with theirs.

    From now on a crash inside its code is told, with `source` as the argument of `raceway check`.
    """

def table_loop(
    id: str,
    kwargs: dict[str, Any],
    limit: int,
    num_envs: int,
    actions: np.ndarray,
    num_steps: int,
    num_threads: int,
    seed: int,
) -> float: ...
def guard_pools(guard: bool) -> None:
    """Whether pools made from now on look for environments that write outside their own memory, which is slow."""

def user_code() -> tuple[int, int]:
    """How many threads are in the code of a user's own header now, and how often any has entered it."""

def usable_cpus() -> int: ...
def die_with_parent(parent_pid: int) -> None:
    """This process is killed when the thread that started it ends; at once if its parent is another by now."""
