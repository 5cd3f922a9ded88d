"""What the Python lanes have in common: Gymnasium's vector API over environments that are stepped elsewhere."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from raceway.envs.arguments import env_ids_of, reset_mask_of, seed_list, subject, timeout_of
from raceway.envs.catalog import flag, positive
from raceway.envs.python.actions import ActionReader
from raceway.envs.python.calls import one_at_a_time, refuse_inside
from raceway.envs.python.counts import EpisodeCounts
from raceway.envs.python.infos import collected, count_faults
from raceway.envs.python.restoring import EpisodeLog, Record
from raceway.envs.python.rows import Form, Rows
from raceway.envs.python.settings import Description, PoolSettings
from raceway.envs.python.stage import Notes

_MOST_ROWS = 4
"""Rows to be used again: a caller has those of the last step, and often of the one before."""

Result = tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]


class PythonPool(VectorEnv):
    """A batch of environments in Python: equal to Gymnasium's `SyncVectorEnv` of them, wherever they are stepped.

    Arrays handed out are the caller's to keep; with `copy=False` they are the same memory each time. Beyond Gymnasium:
    `async_reset()`, `send(actions, env_ids)` and `recv(timeout)`, for those that are ready first.
    """

    lane: str

    def __init__(self, settings: PoolSettings) -> None:
        self._settings = settings
        self._rules = settings.rules
        self.num_envs = len(settings.makers)
        size = settings.batch_size
        self.batch_size = positive("batch_size", self.num_envs if size is None else size, self.num_envs)
        self._reuses = not flag("copy", settings.copy)
        self._next_seeds = None if settings.seed is None else seed_list(settings.seed, self.num_envs)
        self.faults = np.zeros(self.num_envs, np.int64)
        """How often each environment was made anew because it raised or its worker was lost."""
        self.lost_infos: dict[str, Any] = {}
        """What the environments that `set_state` could not bring back gave with their new episodes."""
        self._log = EpisodeLog(self.num_envs)
        self._writes_log = settings.rules.episode_seeds and settings.writes_log
        self._is_reset = np.zeros(self.num_envs, bool)
        self._ended = np.zeros(self.num_envs, bool)
        self._in_flight = np.zeros(self.num_envs, bool)
        self._is_resetting = np.zeros(self.num_envs, bool)
        """Whether what is in flight is a reset."""
        self._is_steady = False
        """Whether it is open, all have been reset and none is in flight: quickly known."""
        self._counts = EpisodeCounts(self.num_envs) if flag("record_episodes", settings.record_episodes) else None
        self._caller: int | None = None
        """The thread that is in a call. Not a lock: after Ctrl-C in a bad moment nobody would let go of it."""
        self._notes_ends = self._counts is not None or self._rules.autoreset is AutoresetMode.DISABLED

    def _describe(self, described: Description) -> None:
        self.spec = self._settings.spec
        self.metadata = {**described.metadata, "autoreset_mode": self._rules.autoreset}
        self.render_mode = described.render_mode
        self.single_observation_space, self.single_action_space = described.observation_space, described.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._form = Form(self.single_observation_space, self.num_envs)
        self._actions = ActionReader(self.single_action_space)
        self._writes_log = self._writes_log and self._actions.leaves is not None
        self._rows = self._new_rows()
        self._handed_out: deque[Rows] = deque(maxlen=_MOST_ROWS)
        """Rows that the caller was given, and may have let go of."""
        self._is_given_away = False
        """Whether the caller has arrays over the rows."""

    # What a lane does.

    @abstractmethod
    def _new_rows(self) -> Rows: ...

    @abstractmethod
    def _reset_some(
        self, which: list[int], seeds: list[int | None], options: dict[str, Any] | None, rows: Rows
    ) -> Notes: ...

    @abstractmethod
    def _step_all(self, actions: Any, rows: Rows, before: Rows) -> Notes: ...

    @abstractmethod
    def _start_reset(self, seeds: list[int | None]) -> None: ...

    @abstractmethod
    def _start(self, actions: Any, which: np.ndarray) -> None: ...

    @abstractmethod
    def _finished(self, count: int, timeout: float | None) -> tuple[np.ndarray, Notes]:
        """So many environments that have finished, the first of all that have; TimeoutError."""

    @abstractmethod
    def _drop_flying(self) -> None:
        """Waits for what was started and forgets it."""

    @abstractmethod
    def _marks(self) -> list[Record]: ...

    @abstractmethod
    def _restore(self, records: Sequence[Record], rows: Rows) -> list[int]: ...

    # Gymnasium's API.

    @one_at_a_time
    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Resets all environments, or those in `options["reset_mask"]` (taken out of `options`, as Gymnasium does).

        `seed` is an int (environment i gets seed + i), a list with an entry per environment, or None: their
        generators go on. What is in flight is finished and dropped.
        """
        self._recover()
        self._require_open()
        mask = reset_mask_of(options, self.num_envs)
        seeds = self._seeds(seed)
        if self._in_flight.any():
            self._drop_flying()
            self._in_flight[:] = self._is_resetting[:] = False
        rows = self._fresh_rows()
        if mask is not None:
            if not (self._is_reset | mask).all():
                raise ResetNeeded(
                    f"reset_mask leaves out what has no observation yet: {subject(~self._is_reset & ~mask)} not been "
                    "reset. Call reset() without a mask first."
                )
            rows.take_over(self._rows, np.flatnonzero(~mask))
        which = list(range(self.num_envs)) if mask is None else np.flatnonzero(mask).tolist()
        try:
            notes = self._reset_some(which, [seeds[index] for index in which], options, rows)
        except BaseException:
            self._is_reset[which] = self._is_steady = False
            self._next_seeds = seeds
            self._drop_notes()
            raise
        if self._rules.episode_seeds and mask is None and None not in seeds:
            self._log.begin([int(each) for each in seeds if each is not None])
        self._has_begun(np.array(which))
        self._rows, self._is_given_away = rows, not self._reuses
        infos = self._told(notes)
        return rows.results(self._reuses)[0], infos

    @one_at_a_time
    def step(self, actions: Any) -> Result:
        """Steps every environment: (observations, rewards, terminated, truncated, infos)."""
        # Where a step is cheap every call here counts: a worker had this CPU, and left little of it in the caches.
        if not self._is_steady:
            self._require_ready("step()")
        given = self._actions.read(actions, self.num_envs)
        if self._writes_log:
            given = [leaf.copy() for leaf in given]  # the caller may write to its own meanwhile
        rows = self._fresh_rows()
        try:
            notes = self._step_all(given, rows, self._rows)
        except BaseException as error:  # some have stepped and some have not
            self._is_reset[:] = self._is_steady = False
            self._drop_notes()
            if not isinstance(error, Exception):
                self._was_interrupted()
            raise
        self._rows, self._is_given_away = rows, not self._reuses
        infos = self._told(notes) if notes else {}
        if self._writes_log:
            self._log.add([leaf[None] for leaf in given], (rows.terminated | rows.truncated)[None])
        if self._notes_ends:
            self._note_ends(np.arange(self.num_envs), rows.rewards, rows.terminated | rows.truncated, infos)
        return *rows.results(self._reuses), infos

    @one_at_a_time
    def async_reset(self) -> None:
        """Starts a reset of every environment; `recv` returns them as they are ready."""
        self._require_open()
        if self._in_flight.any():
            raise RuntimeError(
                f"async_reset() while {int(self._in_flight.sum())} environments are in flight: recv() them first, or "
                "call reset() to drop them and start over."
            )
        self._keep_rows()
        self._in_flight[:] = self._is_resetting[:] = True
        self._has_begun(np.arange(self.num_envs))
        self._is_steady = False
        self._start_reset(self._seeds(None))

    @one_at_a_time
    def send(self, actions: Any, env_ids: Any = None) -> None:
        """Starts a step of the environments in `env_ids` (None: all of them, in order), one action for each."""
        self._require_open()
        which = env_ids_of(env_ids, self.num_envs)
        if not self._is_reset[which].all():
            raise ResetNeeded(f"{subject(~self._is_reset)} not been reset. Call reset() or async_reset() first.")
        if (twice := self._in_flight[which]).any():
            raise RuntimeError(
                f"environment {int(which[np.argmax(twice)])} has an action already and must be received first. Send "
                "one action to one environment, then recv() it before the next."
            )
        self._require_no_end(which)
        given = self._actions.read(actions, len(which))
        self._keep_rows()
        self._in_flight[which], self._is_resetting[which] = True, False
        self._is_steady = False
        self._start(given, which)

    @one_at_a_time
    def recv(self, timeout: float | None = None) -> Result:
        """The first `batch_size` environments that are ready, as `step` returns them.

        `infos["env_id"]` says which they are, in rising order. Raises TimeoutError after `timeout` seconds; nothing
        is lost by it. Without a timeout, a batch that can never be full is an error at once.
        """
        self._require_open()
        seconds = timeout_of(timeout)
        flying = int(self._in_flight.sum())
        if seconds is None and flying < self.batch_size:
            raise RuntimeError(
                f"recv() would wait for ever: a batch takes {self.batch_size} environments and {flying} are in flight. "
                "Call async_reset() or send() first."
            )
        which, notes = self._finished(self.batch_size, seconds)
        self._in_flight[which] = False
        self._is_reset[which] = True
        infos: dict[str, Any] = {}
        if notes:
            position = {env: row for row, env in enumerate(which.tolist())}
            infos = collected([(position[env], info) for env, info in notes], len(which))
            count_faults(self.faults, notes)
        observations, rewards, terminated, truncated = self._rows.some(which)
        if self._notes_ends:
            self._note_ends(which, rewards, terminated | truncated, infos)
        self._is_resetting[which] = False
        infos["env_id"] = which
        return observations, rewards, terminated, truncated, infos

    def close(self, **kwargs: Any) -> None:
        """Closes the environments. Another thread may do so while a call waits, which raises ClosedEnvironmentError."""
        refuse_inside(self, "close")
        super().close(**kwargs)

    # What is known of the environments.

    @abstractmethod
    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """A method or attribute of every environment."""

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """An attribute of every environment."""
        return self.call(name)

    def render(self) -> tuple[Any, ...] | None:
        """A picture of each environment."""
        return self.call("render")

    def observe(self) -> Any:
        """The current observations again, as after `set_state`."""
        self._require_ready("observe()")
        return self._rows.some(np.arange(self.num_envs))[0]

    @property
    def has_episode_seeds(self) -> bool:
        """Whether it writes down what is done in its episodes, and so has a state."""
        return self._rules.episode_seeds

    @one_at_a_time
    def state(self) -> dict[str, Any]:
        """What it takes to go on with the same episodes: the environments' own states, or what was done in them."""
        self._require_ready("state()")
        if not self._rules.episode_seeds:
            raise RuntimeError("this pool does not write down what is done in its episodes: that is for training.")
        marks = self._marks()
        records = [{**self._log.record(env), **mark} for env, mark in enumerate(marks)]
        for record in records:
            if record["state"] is not None:
                record["actions"] = None
        return {"faults": self.faults.copy(), "envs": records}

    @one_at_a_time
    def set_state(self, state: Mapping[str, Any]) -> list[int]:
        """Goes on where `state` was called. Environments that did not get there, which begin new episodes."""
        self._require_open()
        records = state["envs"]
        if len(records) != self.num_envs:
            raise ValueError(f"the state is of {len(records)} environments, this pool has {self.num_envs}.")
        rows = self._new_rows()
        lost = self._restore(records, rows)
        self._log.load(records)
        self.faults = np.array(state["faults"], np.int64)
        self._rows, self._is_given_away = rows, False
        self._has_begun(np.arange(self.num_envs))
        if lost:
            self._log.begin_next(lost)
            notes = self._reset_some(lost, [None] * len(lost), None, rows)
            self.lost_infos = collected(notes, self.num_envs)
        return lost

    def record(self, actions: Any, ended: np.ndarray) -> None:
        """What a run did, for those who let environments run alone: actions [T, N] as a batch of batches."""
        if self._actions.leaves is not None:
            self._log.add(self._actions.split(actions), np.asarray(ended, bool))

    # Small steps.

    def __del__(self) -> None:
        if not getattr(self, "closed", True):
            with contextlib.suppress(BaseException):  # it may be the interpreter's end, and nobody would hear of it
                self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._settings.name}, num_envs={self.num_envs})"

    def _recover(self) -> None:
        """From a call that was interrupted, where that takes something."""

    def _was_interrupted(self) -> None:
        """Called then."""

    def _drop_notes(self) -> None:
        """Forgets what was said of a step that failed."""

    def _require_open(self) -> None:
        if self.closed:
            raise ClosedEnvironmentError("this pool is closed. Make a new one.")

    def _require_ready(self, call: str) -> None:
        if self._is_steady:
            return
        self._require_open()
        if not self._is_reset.all():
            raise ResetNeeded(f"{subject(~self._is_reset)} not been reset. Call reset() first.")
        if self._in_flight.any():
            raise RuntimeError(
                f"{call} while {int(self._in_flight.sum())} environments are in flight: recv() them first, or call "
                "reset() to drop them and start over."
            )
        self._require_no_end(slice(None))
        self._is_steady = self._rules.autoreset is not AutoresetMode.DISABLED

    def _require_no_end(self, which: Any) -> None:
        if self._rules.autoreset is AutoresetMode.DISABLED and self._ended[which].any():
            raise ResetNeeded(
                f"{subject(self._ended)} ended an episode and autoreset is disabled. Call "
                "reset(options={'reset_mask': terminated | truncated}) first."
            )

    def _seeds(self, seed: int | Sequence[int | None] | None) -> list[int | None]:
        if seed is not None:
            self._next_seeds = seed_list(seed, self.num_envs)
        seeds, self._next_seeds = self._next_seeds, None
        return [None] * self.num_envs if seeds is None else seeds

    def _fresh_rows(self) -> Rows:
        """Rows to write to: such as the caller has let go of, if there are any."""
        if self._reuses:
            return self._rows
        for rows in self._handed_out:
            if rows is not self._rows and rows.is_free():
                return rows
        rows = self._new_rows()
        if self._form.leaves is not None:
            self._handed_out.append(rows)
        return rows

    def _keep_rows(self) -> None:
        """Rows that environments may write to at any time: none that the caller has."""
        if self._is_given_away:
            rows = self._new_rows()
            rows.take_over(self._rows, np.arange(self.num_envs))
            self._rows, self._is_given_away = rows, False

    def _has_begun(self, which: np.ndarray) -> None:
        self._is_reset[which], self._ended[which] = True, False
        if self._counts is not None:
            self._counts.begin(which)

    def _note_ends(self, which: np.ndarray, rewards: np.ndarray, ended: np.ndarray, infos: dict[str, Any]) -> None:
        """Remembers whose episode has ended, and tells how it went if that is wanted."""
        begins = self._is_resetting[which]
        if self._rules.autoreset is AutoresetMode.NEXT_STEP:
            begins = begins | self._ended[which]
        self._ended[which] = ended
        if self._counts is not None:
            self._counts.add(which, rewards, begins, ended, infos)

    def _told(self, notes: Notes) -> dict[str, Any]:
        """The infos of all environments."""
        count_faults(self.faults, notes)
        return collected(notes, self.num_envs)
