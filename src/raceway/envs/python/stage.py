"""Environments in this process, stepped one after the other: what both Python lanes do in the end."""

from __future__ import annotations

import contextlib
import hashlib
import traceback
from bdb import BdbQuit
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import DependencyNotInstalled
from gymnasium.vector import AutoresetMode

from raceway._core import PythonSteps
from raceway.envs.packages import what_is_missing
from raceway.envs.python.infos import Why
from raceway.envs.python.leaves import check_has_spaces
from raceway.envs.python.rows import Rows, Writer
from raceway.errors import MissingPackageError, SettingError, UserError
from raceway.messages import quoted, traceback_of, words_of

Notes = list[tuple[int, dict[str, Any]]]
"""The infos that environments gave, if any, in the order in which they came."""

Maker = Callable[[], gymnasium.Env]

_MOST_IN_A_ROW = 10
"""Restarts of an environment without one good step in between."""
MAKING = "creation"
"""What a fault was in the middle of."""
_DONE = {"reset": "reset", "step": "stepped"}
_STEP = "observation, reward, terminated, truncated, info"


@dataclass(frozen=True)
class Rules:
    """How environments are treated, the same for all of a pool."""

    autoreset: AutoresetMode
    restarts: bool
    """Whether one that raises is made anew, or the error is passed on."""
    episode_seeds: bool
    """Whether every episode begins with a seed of its own, so that it can be played again from there."""


@dataclass(frozen=True)
class Fault:
    """An environment that raised, in words that travel between processes."""

    env: int
    doing: str
    step: int
    """Of the episode."""
    error: str
    traceback: str
    """Empty if there is nothing to see in it."""
    refusal: UserError | None = None
    """What to raise instead, if the user can fix it without looking at the code."""
    was_restarted: bool = False
    """Whether it was made anew before, to no avail."""


class FaultError(Exception):
    """Ends what the stage was asked to do."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.error)
        self.fault = fault
        self.notes: Notes = []
        """Of the environments before the one that failed."""


def episode_seed(base: int, number: int) -> int:
    """The seed of an environment's episode: counted, so that none depends on those before it."""
    if number == 0:
        return base
    digest = hashlib.blake2b(f"{base} {number}".encode(), digest_size=4).digest()
    return int.from_bytes(digest) >> 1


class Stage:
    """Some environments, `first` and those after it, and where each of them stands."""

    def __init__(self, makers: Sequence[Maker], first: int, rules: Rules) -> None:
        self.first = first
        self.rules = rules
        self.beats: np.ndarray | None = None
        """Where others see that it gets on: how many calls there were, and the environment that is being called."""
        self._makers = makers
        self.envs: list[gymnasium.Env] = []
        for index in range(len(makers)):
            try:
                self.envs.append(self._made(index))
            except Exception as error:
                raise FaultError(fault_of(first + index, MAKING, 0, error)) from error
        self._steps = [env.step for env in self.envs]
        count = len(makers)
        self._special = bytearray(count)
        """Which environments are not simply stepped, but begin an episode instead."""
        is_same_step = rules.autoreset is AutoresetMode.SAME_STEP
        self._after_end = None if is_same_step else rules.autoreset is AutoresetMode.NEXT_STEP
        """What that says of one whose episode has ended; None: the next has begun already."""
        self._broken: dict[int, str] = {}
        """Environments whose episode is lost, and why: it ends with their next step."""
        self.lengths = np.zeros(count, np.int64)
        self._before_begin = [(0, 0)] * count
        """Of the episodes before: how long they were, and `_in_a_row` then."""
        self.bases: list[int | None] = [None] * count
        self.numbers = [0] * count
        self.faults = [0] * count
        self._in_a_row = [0] * count
        self._new: set[int] = set()
        """Environments made in the place of others, and not reset yet."""

    def _made(self, index: int) -> gymnasium.Env:
        env = self._makers[index]()
        if not isinstance(env, gymnasium.Env):
            raise TypeError(
                f"a {type(env).__name__} was made, which is no gymnasium.Env. A callable makes one environment; a "
                "vector environment is given itself."
            )
        check_has_spaces(env)
        return env

    def differing(self) -> str | None:
        """In words, how the spaces of an environment differ from those of the first, if they do."""
        for index, env in enumerate(self.envs):
            for name in ("observation_space", "action_space"):
                ours, its = getattr(self.envs[0], name), getattr(env, name)
                if ours != its:
                    return difference(self.first + index, name, its, self.first, ours)
        return None

    # A step or reset of some environments.

    def step(self, which: list[int], actions: list[Any], rows: Rows, before: Rows) -> Notes:
        """Steps them in order. `before`: where their last observations are."""
        notes: Notes = []
        if rows.steps is None:
            one = rows.leaves[0] if rows.is_one_array else None
            flags = rows.rewards, rows.terminated, rows.truncated
            rows.steps = PythonSteps(one, *flags, self.lengths, self.beats, self.first, self._after_end)
        place = 0
        while place < len(which):
            try:
                left = rows.steps.run(self._steps, which, actions, place, self._special, notes)
                if left is None:
                    break
                place, result = left
                self._see_to(which[place], result, rows, before, notes)
            except FaultError as error:
                error.notes = notes
                raise
            except (Exception, SystemExit) as error:
                self._give_up(which[rows.steps.place], error, rows, before, notes)
                place = rows.steps.place
            place += 1
        return notes

    def _give_up(self, index: int, error: BaseException, rows: Rows, before: Rows, notes: Notes) -> None:
        """An episode in which a step raised."""
        try:
            self._failed(index, "step", error)
            self._cut_off(index, words_of(error), rows, before, notes)
        except FaultError as fault:
            fault.notes = notes
            raise

    def _see_to(self, index: int, result: Any, rows: Rows, before: Rows, notes: Notes) -> None:
        """A step that is not like most: an episode begins or ends, or the observation is not one array as it is."""
        if self._special[index]:  # it was not stepped
            if index in self._broken:
                self._cut_off(index, self._broken.pop(index), rows, before, notes)
            else:
                rows.rewards[index], rows.terminated[index], rows.truncated[index] = 0.0, False, False
                self._begin(index, None, None, rows.write, notes)
            return
        obs, reward, terminated, truncated, info = _parts("step", result, _STEP)
        rows.write(index, obs)
        try:
            rows.rewards[index] = reward
        except (TypeError, ValueError):
            raise TypeError(f"step() gave the reward {quoted(reward)}, which is not a number") from None
        rows.terminated[index], rows.truncated[index] = terminated, truncated
        if not isinstance(info, dict):
            raise TypeError(f"step() gave a {type(info).__name__} as info, where a dict is expected")
        info = dict(info)
        self.lengths[index] += 1
        if terminated or truncated:
            if self.rules.autoreset is AutoresetMode.SAME_STEP:
                notes.append((index, {"final_obs": _own(obs), "final_info": info}))
                self._begin(index, None, None, rows.write, notes)
                return
            self._special[index] = self.rules.autoreset is AutoresetMode.NEXT_STEP
        if info:
            notes.append((index, info))

    def reset(
        self, which: Iterable[int], seeds: Sequence[int | None], options: dict[str, Any] | None, rows: Rows
    ) -> Notes:
        """Begins episodes; an environment without a seed goes on with what it has."""
        notes: Notes = []
        put = rows.write
        for index, seed in zip(which, seeds, strict=True):
            self.called(index)
            self._broken.pop(index, None)
            if seed is not None:
                self.bases[index], self.numbers[index] = seed, -1
            rows.rewards[index], rows.terminated[index], rows.truncated[index] = 0.0, False, False
            try:
                self._begin(index, seed, options, put, notes)
            except FaultError as error:
                error.notes = notes
                raise
        return notes

    def called(self, index: int) -> None:
        """Says that an environment is being called."""
        if self.beats is not None:
            self.beats[0] += 1
            self.beats[1] = self.first + index

    def _begin(
        self,
        index: int,
        seed: int | None,
        options: dict[str, Any] | None,
        put: Writer,
        notes: Notes,
    ) -> None:
        """An episode; if that fails and environments are restarted, in a new environment."""
        self._special[index] = False
        while True:
            self.numbers[index] += 1
            base = self.bases[index]
            if self.rules.episode_seeds and base is not None:
                seed = episode_seed(base, self.numbers[index])
            elif seed is None and index in self._new and base is not None:
                seed = episode_seed(base, self.faults[index])  # it has no generator yet, and none by chance is wanted
            if self.lengths[index] > 0:
                self._before_begin[index] = int(self.lengths[index]), self._in_a_row[index]
                self._in_a_row[index] = 0
            self.lengths[index] = 0
            try:
                begun = self.envs[index].reset(seed=seed, options=options)
                obs, info = _parts("reset", begun, "observation, info")
                put(index, obs)
                if not isinstance(info, dict):
                    raise TypeError(f"reset() gave a {type(info).__name__} as info, where a dict is expected")
            except (Exception, SystemExit) as error:
                self._failed(index, "reset", error)
                notes.append((index, {"fault": Why(words_of(error))}))
                seed = None
                continue
            self._new.discard(index)
            if info:
                notes.append((index, dict(info)))
            return

    # What goes wrong.

    def take_back(
        self,
        index: int,
        info: dict[str, Any],
        error: Exception,
        options: dict[str, Any] | None,
        rows: Rows,
        before: Rows,
    ) -> Notes:
        """Treats a step or reset that gave `info` as one that raised `error`. Notes to tell instead."""
        notes: Notes = []
        is_last = self.rules.autoreset is AutoresetMode.SAME_STEP and "final_obs" in info
        if not is_last and self.lengths[index] == 0:
            self._failed(index, "reset", error)
            notes.append((index, {"fault": Why(words_of(error))}))
            self._begin(index, None, options, rows.write, notes)
            return notes
        if is_last:  # the next episode has begun already, and is given up
            self.lengths[index], self._in_a_row[index] = self._before_begin[index]
            self.numbers[index] -= 1
            rows.write(index, info["final_obs"])
        self.lengths[index] -= 1
        if rows is before and rows.objects:
            rows.objects[index] = None  # the pool has the one before
        self._give_up(index, error, rows, before, notes)
        return notes

    def _failed(self, index: int, doing: str, error: BaseException) -> None:
        """Makes the environment anew, if that is the rule, and has helped before."""
        if isinstance(error, BdbQuit):
            raise error  # somebody has left the debugger
        if self.lengths[index] > 0:
            self._in_a_row[index] = 0
        self._in_a_row[index] += 1
        fault = fault_of(self.first + index, doing, int(self.lengths[index]) + (doing == "step"), error)
        if not self.rules.restarts or fault.refusal is not None:  # a new environment would fail in the same way
            raise FaultError(fault) from error
        if self._in_a_row[index] > _MOST_IN_A_ROW:
            doing = f"{doing}, made anew {_MOST_IN_A_ROW} times without one good step in between"
            raise FaultError(
                Fault(fault.env, doing, fault.step, fault.error, fault.traceback, was_restarted=True)
            ) from error
        self.faults[index] += 1
        with contextlib.suppress(Exception, SystemExit):
            self.envs[index].close()
        try:
            self.envs[index] = self._made(index)
        except (Exception, SystemExit) as again:
            raise FaultError(fault_of(self.first + index, f"{MAKING} anew", 0, again)) from again
        self._steps[index] = self.envs[index].step
        self._new.add(index)

    def _cut_off(self, index: int, why: str, rows: Rows, before: Rows, notes: Notes) -> None:
        """Ends an episode that cannot go on: truncated, with the last observation there is."""
        rows.rewards[index], rows.terminated[index], rows.truncated[index] = 0.0, False, True
        if self.rules.autoreset is AutoresetMode.SAME_STEP:
            notes.append((index, {"final_obs": before.observation(index), "final_info": {"fault": Why(why)}}))
            self._begin(index, None, None, rows.write, notes)
            return
        rows.take_over(before, np.array([index]))
        notes.append((index, {"fault": Why(why)}))
        self._special[index] = self.rules.autoreset is AutoresetMode.NEXT_STEP

    def lose_episodes(self, which: Iterable[int], why: str) -> None:
        """These environments are new; the episodes that others believe them to be in end with the next step."""
        for index in which:
            self.faults[index] += 1
            self._new.add(index)
            self._broken[index] = why
            self._special[index] = True

    def settle(self, index: int, base: int, number: int, length: int) -> None:
        """An environment was brought to where it is, in this episode."""
        self.bases[index], self.numbers[index], self.lengths[index] = base, number, length
        self._special[index] = False
        self._in_a_row[index] = 0
        self._broken.pop(index, None)
        self._new.discard(index)

    def close(self) -> None:
        """Whatever they raise: all are closed."""
        for env in self.envs:
            with contextlib.suppress(BaseException):
                env.close()


def difference(env: int, name: str, its: Any, other: int, others: Any) -> str:
    """In words, that environments do not fit in one pool."""
    return f"environment {env} has another {name} than environment {other} ({its}, not {others})"


def _parts(call: str, result: Any, expected: str) -> Any:
    """What an environment returned, if it is a tuple of as many parts as expected."""
    count = expected.count(",") + 1
    if isinstance(result, (tuple, list)) and len(result) == count:
        return result
    what = "None" if result is None else f"a {type(result).__name__}"
    what = f"{len(result)} values" if isinstance(result, (tuple, list)) else what
    raise TypeError(f"{call}() returned {what}, where Gymnasium expects {count}: {expected}")


def _own(observation: Any) -> Any:
    """Not the environment's any more: it may go on writing to its arrays."""
    if isinstance(observation, np.ndarray):
        return observation.copy()
    if type(observation) is dict:
        return {key: _own(part) for key, part in observation.items()}
    return tuple(map(_own, observation)) if type(observation) is tuple else observation


def fault_of(env: int, doing: str, step: int, error: BaseException) -> Fault:
    # What was made to be told, and never raised, has no traceback; one of our own code would only distract.
    text = "" if _is_ours(error) else traceback_of(error)
    return Fault(env, doing, step, words_of(error), text, _refusal(env, doing, error))


def _is_ours(error: BaseException) -> bool:
    """Whether none of the user's code was at work: it had returned something that cannot be used."""
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    return all(Path(file).parent == Path(__file__).parent for file in files)


def _refusal(env: int, doing: str, error: BaseException) -> UserError | None:
    """The error for wrong arguments or a missing package, which is not the environment's fault; None for others."""
    if doing.startswith(MAKING):
        return error if isinstance(error, (MissingPackageError, SettingError)) else None
    is_named = isinstance(error, ModuleNotFoundError) and error.name
    if doing in _DONE and (is_named or isinstance(error, DependencyNotInstalled)):
        assert isinstance(error, (ImportError, DependencyNotInstalled))
        return MissingPackageError(f"Environment {env} cannot be {_DONE[doing]}: {what_is_missing(error)}")
    return None
