"""The state of one environment in Python, as plain data: what it takes to go on with the very same episode.

An environment has one if it has `get_state()`, which gives arrays, numbers, strings, and lists, tuples and dicts of
them, and `set_state(state)`, which takes that; its generator `np_random` is seen to here. Wrappers of Gymnasium that
keep nothing, or only a count of steps, need nothing; others need the same two methods.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from typing import Any

import gymnasium
from gymnasium import wrappers

_KEEP_NOTHING = (
    wrappers.ClipAction,
    wrappers.ClipReward,
    wrappers.DtypeObservation,
    wrappers.FilterObservation,
    wrappers.FlattenObservation,
    wrappers.GrayscaleObservation,
    wrappers.OrderEnforcing,
    wrappers.PassiveEnvChecker,
    wrappers.RescaleAction,
    wrappers.RescaleObservation,
    wrappers.ReshapeObservation,
    wrappers.ResizeObservation,
)


def save(env: gymnasium.Env) -> list[Any] | None:
    """Layer by layer, from the outermost wrapper to the environment itself; None if one of them cannot tell."""
    states: list[Any] = []
    for layer in _layers(env):
        if knows_its_state(layer):
            states.append(copy.deepcopy(layer.get_state()))  # type: ignore[attr-defined]
        elif type(layer) is wrappers.TimeLimit:
            states.append(layer._elapsed_steps)
        elif type(layer) in _KEEP_NOTHING:
            states.append(None)
        else:
            return None
    return [*states, env.unwrapped.np_random.bit_generator.state]


def load(env: gymnasium.Env, states: list[Any]) -> None:
    """Takes over what `save` gave of another of its kind; it has been reset before."""
    *layers, generator = states
    for layer, state in zip(_layers(env), layers, strict=True):
        if knows_its_state(layer):
            layer.set_state(copy.deepcopy(state))  # type: ignore[attr-defined]
        elif type(layer) is wrappers.TimeLimit:
            layer._elapsed_steps = int(state)  # type: ignore[assignment]
    env.unwrapped.np_random.bit_generator.state = generator


def silent_layers(env: gymnasium.Env) -> list[str]:
    """The wrappers, and the environment, that cannot tell their state: why `save` gave None."""
    told = (wrappers.TimeLimit, *_KEEP_NOTHING)
    return [type(each).__name__ for each in _layers(env) if type(each) not in told and not knows_its_state(each)]


def knows_its_state(env: Any) -> bool:
    """Itself: a wrapper passes on what it does not have."""
    return _takes(env, "get_state", 0) and _takes(env, "set_state", 1)


def _takes(env: Any, name: str, count: int) -> bool:
    """Whether it has such a method, of so many arguments: others use these names for something else."""
    method = getattr(type(env), name, None)
    if not callable(method):
        return False
    try:
        inspect.signature(method).bind(env, *[None] * count)
    except TypeError:
        return False
    except ValueError:  # some that are not written in Python do not tell
        pass
    return True


def _layers(env: gymnasium.Env) -> Iterator[gymnasium.Env]:
    yield env
    while isinstance(env, gymnasium.Wrapper):
        env = env.env
        yield env
