"""Some environments that are stepped together, and where their part of a round is written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from raceway.algos.diagnosis import FIX_ENVIRONMENT, not_finite_in
from raceway.algos.spaces import counted_from_zero, environment_actions, flatten, observation_leaves
from raceway.envs.masks import IGNORE, MaskReader
from raceway.envs.python.infos import Why
from raceway.errors import SettingError
from raceway.training.env_states import load_vector, save_vector
from raceway.training.slots import Slots, obs_slots, read, write
from raceway.training.underway import Underway, alike, copied

InfoSums = dict[str, tuple[np.ndarray, np.ndarray]]
"""By name: of each environment the sum of a scalar info entry, and of how many it is."""

_NOT_METRICS = frozenset({"episode", "final_obs", "final_info", "env_id", "fault"})

_AS_LARGE_AS_THEY_LIKE = np.errstate(over="ignore", invalid="ignore")
"""For rewards and observations: what float32 cannot hold is found, and told with the environment, before learning."""


class Group:
    """A vector environment with a place in the round: columns `first` to `first + size`."""

    def __init__(self, env: VectorEnv, first: int, uses_masks: bool, memory_size: int = 0) -> None:
        self.is_stepping = False
        self.env = env
        self.size = env.num_envs
        self.envs = np.arange(first, first + self.size, dtype=np.uint32)
        self.time = 0
        self.info_sums: InfoSums = {}
        self.fault = ""
        """What was the first to go wrong in this round, if an environment was made anew."""
        self.underway = Underway.of_new(self.size, memory_size)
        mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        self.resets_later = mode == AutoresetMode.NEXT_STEP
        self._resets_itself = mode != AutoresetMode.DISABLED
        self._uses_masks = uses_masks
        self._memory_size = memory_size
        self._masks = MaskReader(env.single_action_space)
        self._from_zero = counted_from_zero(env.single_observation_space)
        self._for_env = environment_actions(env.single_action_space)
        self.columns = slice(first, first + self.size)
        # What was seen last before the round, in the types that a round holds.
        self._current = obs_slots(env.single_observation_space, (self.size,), np.empty)

    @property
    def mask(self) -> np.ndarray | None:
        """[size, K] the actions that are allowed next; None if nobody tells."""
        return self.underway.mask

    def restart(self, first_seed: int) -> None:
        """Begins an episode in each environment; the first of all groups has the first seed."""
        self.underway = Underway.of_new(self.size, self._memory_size)
        obs, infos = self.env.reset(seed=first_seed + self.columns.start)
        with np.errstate(over="ignore"):
            write(self._current, slice(None), self._from_zero(obs))
        if self._uses_masks and "action_mask" in infos:
            self.underway.mask = np.ones((self.size, self._masks.num_logits), bool)
            self._look_for_masks(infos, np.ones(self.size, bool))

    def go_on(self, underway: Underway, current: Any) -> None:
        """With these episodes, of which `current` was seen last: they may have been under way elsewhere."""
        self.underway = underway
        self._current = current

    @_AS_LARGE_AS_THEY_LIKE
    def begin_anew(self, rows: Sequence[int]) -> None:
        """Some environments, of a pool, could not go on with their episodes and have begun others."""
        begun = np.zeros(self.size, bool)
        begun[list(rows)] = True
        obs, infos = self.env.observe(), self.env.lost_infos  # type: ignore[attr-defined]
        self.underway.begin_anew(begun)
        self._look_for_masks(infos, begun)
        self._current = copied(self._current)
        write(self._current, begun, read(self._from_zero(obs), begun))

    def save(self) -> dict[str, Any] | None:
        """All that the next round depends on; None if the environments cannot tell their state."""
        envs = save_vector(self.env)
        return None if envs is None else {"envs": envs, "current": self._current, **self.underway.save()}

    def load(self, state: Mapping[str, Any]) -> list[int]:
        """What `save` gave, of such a group. Returns the rows whose episodes could not go on: others have begun."""
        lost = load_vector(self.env, state["envs"])
        self.go_on(self.underway.like(state), alike(self._current, state["current"], "current"))
        if lost:
            self.begin_anew(lost)
        return lost

    @property
    def observations(self) -> Any:
        """What the policy is to act on: rows of the round, in the types that are kept."""
        return read(self._slots.obs, (self.time, self.columns))

    def begin(self, slots: Slots) -> None:
        """A new round, which goes on where the last one ended."""
        self._slots = slots
        self.time = 0
        self.info_sums = {}
        self.fault = ""
        write(slots.obs, (0, self.columns), self._current)
        if slots.memory is not None:
            slots.memory[self.columns] = self.underway.memory

    def keep_actions(self, actions: np.ndarray, log_probs: np.ndarray, values: np.ndarray) -> None:
        """Writes what the policy has drawn. What is not finite never reaches an environment."""
        # A sum is finite if all are: one number to look at, where groups may be of one and calls are what takes time.
        if not math.isfinite(log_probs.sum() + values.sum() + actions.sum()):
            self._check_finite(log_probs, values, actions.reshape(self.size, -1))
        here = self.time, self.columns
        slots = self._slots
        slots.actions[here], slots.log_probs[here], slots.values[here] = actions, log_probs, values
        if slots.action_mask is not None:
            slots.action_mask[here] = self.mask
        self._actions = self._for_env(actions)

    def _check_finite(self, log_probs: np.ndarray, values: np.ndarray, actions: np.ndarray) -> None:
        good = np.isfinite(log_probs) & np.isfinite(values) & np.isfinite(actions).all(axis=1)
        if good.all():
            return
        row = int(np.argmin(good))
        space = self.env.single_observation_space
        names = [leaf.name for leaf in observation_leaves(space)]
        env, when = int(self.envs[row]), f"step {self.time} of the round"
        if fault := not_finite_in(names, [leaf[row] for leaf in flatten(space, self.observations)]):
            raise FloatingPointError(f"environment {env} gave {fault} before {when}. {FIX_ENVIRONMENT}.")
        raise FloatingPointError(
            f"the policy's output for environment {env} in {when} is not finite, though the observation is: training "
            "has diverged. A lower learning_rate may help."
        )

    def step(self) -> None:
        """Steps the environments; `advance` writes what came of it. This alone runs beside other groups."""
        self._result = self.env.step(self._actions)

    @_AS_LARGE_AS_THEY_LIKE
    def last_observations(self) -> Any:
        """A whole group's observations, with the true last ones of truncated episodes; None if there are none."""
        obs, _, terminated, truncated, infos = self._result
        self._cut_off = None
        if not truncated.any():
            return None
        cut_off = truncated & ~terminated & ~self.underway.is_resetting
        if not cut_off.any():
            return None
        self._cut_off = cut_off
        batch = copied(self.observations)
        if self.resets_later or not self._resets_itself:
            write(batch, cut_off, read(self._from_zero(obs), cut_off))
            return batch
        for row in np.flatnonzero(cut_off).tolist():
            write(batch, row, self._from_zero(infos["final_obs"][row]))
        return batch

    def keep_last_values(self, values: np.ndarray) -> None:
        """Of `last_observations`; only those of truncated episodes mean something."""
        self._last_values = values

    @_AS_LARGE_AS_THEY_LIKE
    def advance(self) -> None:
        """Writes the outcome of a step and goes on to the next row."""
        obs, rewards, terminated, truncated, infos = self._result
        here = self.time, self.columns
        slots = self._slots
        slots.rewards[here], slots.terminated[here], slots.truncated[here] = rewards, terminated, truncated
        slots.final_values[here] = 0.0 if self._cut_off is None else np.where(self._cut_off, self._last_values, 0.0)
        if slots.valid is not None:
            slots.valid[here] = ~self.underway.is_resetting
        ended = terminated | truncated
        any_ended = bool(ended.any())
        self._count(here, rewards, ended if any_ended else None)
        if infos:
            _add_infos(self.info_sums, infos, self.size, ended)
            self.fault = self.fault or _fault_in(infos, self.envs)
        self.underway.forget(self.underway.is_resetting if self.resets_later else ended)
        if self.resets_later:
            self.underway.is_resetting = ended
        expected = ~ended if self.resets_later else np.ones(self.size, bool)  # the last mask may allow nothing
        if any_ended and not self._resets_itself:
            self._look_for_masks(infos, ~ended)
            obs, infos = self.env.reset(options={"reset_mask": ended})
            expected = ended
        self._look_for_masks(infos, expected)
        self.time += 1
        write(slots.obs, (self.time, self.columns), self._from_zero(obs))

    def _count(self, here: Any, rewards: np.ndarray, ended: np.ndarray | None) -> None:
        underway, slots = self.underway, self._slots
        underway.returns += rewards
        underway.lengths += ~underway.is_resetting
        if ended is None:
            slots.episode_returns[here], slots.episode_lengths[here] = 0.0, 0
            return
        slots.episode_returns[here] = np.where(ended, underway.returns, 0.0)
        slots.episode_lengths[here] = np.where(ended, underway.lengths, 0)
        underway.returns[ended] = 0.0
        underway.lengths[ended] = 0

    def end(self, values: np.ndarray) -> None:
        """The values of the observations that the round ends with, and the next one begins with."""
        self._slots.values[self.time, self.columns] = values
        self._current = copied(self.observations)  # the round's memory is used again when it is learnt from

    def _look_for_masks(self, infos: Mapping[str, Any], expected: np.ndarray) -> None:
        """Takes over the masks that environments give. `expected`: of whom the next action needs one."""
        if not self._uses_masks:
            return
        if self.underway.mask is not None:
            self._masks.take(self.underway.mask, self.underway.gives_masks, infos, expected, self._when)
        elif "action_mask" in infos:
            raise SettingError(
                "An environment gives an action_mask with step() that it did not give with reset(), so its first "
                f"action could not use it. Give one with reset() too, {IGNORE}."
            )

    def _when(self, row: int) -> str:
        """`Environment 3 in step 7 of its episode`."""
        length = int(self.underway.lengths[row])
        return f"Environment {self.envs[row]} in {f'step {length} of its episode' if length else 'reset()'}"


def mean_infos(parts: Iterable[tuple[int, InfoSums]]) -> dict[str, float]:
    """The mean of every scalar info entry over a round, of groups given by size and sums.

    Added up over all environments at once, so that it does not depend on the groups.
    """
    parts = list(parts)
    names = sorted({name for _, sums in parts for name in sums})
    means = {}
    for name in names:
        found = [sums.get(name) or (np.zeros(size), np.zeros(size, np.int64)) for size, sums in parts]
        total, count = (np.concatenate([each[column] for each in found]).sum() for column in (0, 1))
        if count:
            means[name] = float(total / count)
    return means


def _add_infos(sums: InfoSums, infos: Mapping[str, Any], size: int, ended: np.ndarray) -> None:
    """Of the step that was taken: where an episode ended within it, that is its last info, not the next one's first."""
    last = infos.get("final_info")
    if isinstance(last, Mapping):
        _add_infos(sums, last, size, np.zeros(size, bool))
    counted = ~ended if isinstance(last, Mapping) else np.ones(size, bool)
    for name, values in infos.items():
        if name.startswith("_") or name in _NOT_METRICS or not isinstance(values, np.ndarray):
            continue
        if values.shape != (size,) or values.dtype.kind not in "fiub":
            continue
        present = infos.get(f"_{name}")
        there = counted if present is None else counted & present
        if name not in sums:
            sums[name] = np.zeros(size), np.zeros(size, np.int64)
        total, count = sums[name]
        np.add(total, values, out=total, where=there)
        count += there


def _fault_in(infos: Mapping[str, Any], envs: np.ndarray) -> str:
    """The first environment's that was made anew, in words."""
    last = infos.get("final_info", infos)
    if not isinstance(last, Mapping):
        return ""
    for row, why in enumerate(last.get("fault", ())):
        if isinstance(why, Why):
            return f"environment {envs[row]}: {why}"
    return ""
