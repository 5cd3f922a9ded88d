"""Checks what a pool is called with, and says what is wrong in words that name the value and the way out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from raceway.envs.catalog import Task, native_arguments, positive
from raceway.envs.picture import Picture, picture_of
from raceway.messages import quoted
from raceway.names import did_you_mean

_MODES = {
    "next_step": AutoresetMode.NEXT_STEP,
    "same_step": AutoresetMode.SAME_STEP,
    "disabled": AutoresetMode.DISABLED,
}


@dataclass(frozen=True)
class EnvArguments:
    """The keyword arguments of every environment of a pool; equal ones are kept once."""

    distinct: list[dict[str, Any]]
    which: list[int]
    """Environment i has the arguments `distinct[which[i]]`."""
    limits: list[int]
    """Its `max_episode_steps`; 0 for none."""
    pictures: list[Picture]
    """How it is drawn."""


def env_arguments(
    task: Task,
    num_envs: int,
    max_episode_steps: int | None,
    shared: Mapping[str, Any],
    own: Sequence[Mapping[str, Any]] | None,
) -> EnvArguments:
    """Joins the arguments given to all environments with each one's own."""
    if own is None and shared.get("map_name", "") is not None:  # a map drawn at random is each one's own
        return EnvArguments(
            [native_arguments(task, shared)],
            [0] * num_envs,
            [_step_limit(task, max_episode_steps)] * num_envs,
            [picture_of(task, shared)] * num_envs,
        )
    own = [{}] * num_envs if own is None else own
    if not isinstance(own, Sequence) or not all(isinstance(each, Mapping) for each in own):
        raise TypeError(
            "env_kwargs must be a list with one dict per environment. For all alike, pass keyword arguments."
        )
    if len(own) != num_envs:
        raise ValueError(f"env_kwargs has {len(own)} entries for num_envs={num_envs}. Give one dict per environment.")
    result = EnvArguments([], [], [], [])
    seen: dict[str, int] = {}
    for each in own:
        given = {**shared, **each}
        result.limits.append(_step_limit(task, given.pop("max_episode_steps", max_episode_steps)))
        converted = native_arguments(task, given)
        key = repr(sorted(converted.items()))
        if key not in seen:
            seen[key] = len(result.distinct)
            result.distinct.append(converted)
        result.which.append(seen[key])
        result.pictures.append(picture_of(task, given))
    return result


def _step_limit(task: Task, limit: int | None) -> int:
    if limit is None:
        return task.max_episode_steps or 0
    if limit == -1 and not isinstance(limit, bool):
        return 0
    return positive("max_episode_steps", limit)


def autoreset_mode(value: str | AutoresetMode) -> AutoresetMode:
    """The mode by our name, by Gymnasium's name, or as it is."""
    if isinstance(value, AutoresetMode):
        return value
    by_name = _MODES | {mode.value: mode for mode in AutoresetMode}
    if not isinstance(value, str) or value not in by_name:
        hint = did_you_mean(str(value), _MODES)
        raise ValueError(f"No autoreset mode {quoted(value)}.{hint} There are: {', '.join(_MODES)}.")
    return by_name[value]


def seed_list(seed: int | Sequence[int | None], num_envs: int) -> list[int | None]:
    """One seed per environment: seed + i for an int."""
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
        return [_seed(seed) + i for i in range(num_envs)]
    if (
        isinstance(seed, (str, bytes))
        or not isinstance(seed, (Sequence, np.ndarray))
        or np.ndim(np.asarray(seed, dtype=object)) != 1
    ):
        raise TypeError(f"seed={quoted(seed)} is not a whole number or a list of them.")
    if len(seed) != num_envs:
        raise ValueError(f"seed has {len(seed)} entries for num_envs={num_envs}. Give one per environment.")
    return [None if each is None else _seed(each) for each in seed]


def _seed(value: Any) -> int:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise TypeError(f"seed {quoted(value)} is not a whole number.")
    if value < 0:
        raise ValueError(f"seed {quoted(value)} is negative. Use a number from 0 up.")
    return int(value)


def timeout_of(value: Any) -> float | None:
    """Seconds from 0 up, or None."""
    if value is None:
        return None
    if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(value, bool) or not value >= 0:
        raise ValueError(
            f"timeout={quoted(value)} is not a number of seconds. Use one from 0 up, or None to wait as long as it "
            "takes."
        )
    return float(value)


def env_ids_of(env_ids: Any, num_envs: int) -> np.ndarray:
    """Numbers of environments, each once; None: all of them."""
    if env_ids is None:
        return np.arange(num_envs)
    which = np.asarray(env_ids)
    if which.ndim != 1 or which.dtype.kind not in "iu" or not len(which):
        raise ValueError(f"env_ids must be a list of whole numbers, not {quoted(env_ids)}.")
    is_rising = bool((which[1:] > which[:-1]).all())  # as `recv` gives them
    outside = which[[0, -1]] if is_rising else which
    if ((outside < 0) | (outside >= num_envs)).any():
        first = int(which[np.argmax((which < 0) | (which >= num_envs))])
        raise ValueError(f"env_ids has {first}: there are 0 to {num_envs - 1}.")
    if not is_rising and len(np.unique(which)) < len(which):
        raise ValueError(f"env_ids names an environment twice: {quoted(which.tolist())}. Send one action to each.")
    return which.astype(np.int64, copy=False)


def subject(which: np.ndarray) -> str:
    """`environment 3 has`, or `environments 3, 4 and 7 more have`: those that are marked."""
    envs = np.flatnonzero(which).tolist()
    if len(envs) == 1:
        return f"environment {envs[0]} has"
    named = ", ".join(map(str, envs[:3]))
    return f"environments {named}{f' and {len(envs) - 3} more' if len(envs) > 3 else ''} have"


def reset_mask_of(options: dict[str, Any] | None, num_envs: int) -> np.ndarray | None:
    """Takes the mask out of `options`, checked as Gymnasium checks it."""
    if options is None:
        return None
    if not isinstance(options, dict):
        raise TypeError(f"options={quoted(options)} is not a dict.")
    if "reset_mask" not in options:
        return None
    mask = options.pop("reset_mask")
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
        kind = mask.dtype if isinstance(mask, np.ndarray) else type(mask).__name__
        raise TypeError(f"options['reset_mask'] must be a NumPy array of bool, not {kind}.")
    if mask.shape != (num_envs,):
        raise ValueError(f"options['reset_mask'] has shape {mask.shape}: expected ({num_envs},).")
    if not mask.any():
        raise ValueError("options['reset_mask'] marks no environment. Mark one or more, or do not call reset.")
    return np.ascontiguousarray(mask)


def reset_options(task: Task, options: Mapping[str, Any] | None) -> list[float] | None:
    """The numbers that `options` sets, in the task's order; options that the task does not have are ignored."""
    if not options or not any(name in options for name in task.options):
        return None
    values = {
        name: _number(name, options.get(name, fallback), least, most)
        for name, (fallback, least, most) in task.options.items()
    }
    if "low" in values and values["low"] > values["high"]:
        raise ValueError(f"options['low']={values['low']} is above options['high']={values['high']}.")
    return list(values.values())


def _number(name: str, value: Any, least: float, most: float) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"options[{name!r}]={quoted(value)} is not a number.") from None
    if not math.isfinite(number):
        raise ValueError(f"options[{name!r}]={quoted(value)} is not finite.")
    if not least <= number <= most:
        raise ValueError(f"options[{name!r}]={quoted(value)} is not from {least:g} to {most:g}.")
    return number
