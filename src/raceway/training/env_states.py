"""The state of environments, as plain data: what a run needs to go on with the very same episodes.

Native pools have one. An environment in Python has one if it has `save_state()`, which gives arrays, numbers, strings,
and lists, tuples and dicts of them, and `load_state(state)`, which takes that; its generator `np_random` is seen to
here. Wrappers of Gymnasium that keep nothing, or only a count of steps, need nothing; others need the same two methods.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium import wrappers
from gymnasium.vector import SyncVectorEnv, VectorEnv

from raceway.envs.native import NativePool

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


def save_vector(env: VectorEnv) -> dict[str, Any] | None:
    """The state of all its environments; None if one of them cannot tell."""
    if isinstance(env, NativePool):
        return {"pool": env.state()}
    if _knows_its_state(env):
        return {"vector": env.save_state()}  # type: ignore[attr-defined]
    if type(env) is not SyncVectorEnv:
        return None
    states = [_save(each) for each in env.envs]
    if any(state is None for state in states):
        return None
    return {"envs": states, "resets_next": np.array(env._autoreset_envs)}


def load_vector(env: VectorEnv, state: dict[str, Any]) -> None:
    """Takes over what `save_vector` gave; the environments have been reset before."""
    if isinstance(env, NativePool):
        env.set_state(state["pool"])
        env.observe()  # which none can be that was never reset
    elif _knows_its_state(env):
        env.load_state(state["vector"])  # type: ignore[attr-defined]
    else:
        assert isinstance(env, SyncVectorEnv)
        for each, its in zip(env.envs, state["envs"], strict=True):
            _load(each, its)
        env._autoreset_envs = np.array(state["resets_next"], bool)


def _save(env: gymnasium.Env) -> list[Any] | None:
    """Layer by layer, from the outermost wrapper to the environment itself."""
    states: list[Any] = []
    for layer in _layers(env):
        if _knows_its_state(layer):
            states.append(layer.save_state())  # type: ignore[attr-defined]
        elif type(layer) is wrappers.TimeLimit:
            states.append(layer._elapsed_steps)
        elif type(layer) in _KEEP_NOTHING:
            states.append(None)
        else:
            return None
    return [*states, env.unwrapped.np_random.bit_generator.state]


def _load(env: gymnasium.Env, states: list[Any]) -> None:
    *layers, generator = states
    for layer, state in zip(_layers(env), layers, strict=True):
        if _knows_its_state(layer):
            layer.load_state(state)  # type: ignore[attr-defined]
        elif type(layer) is wrappers.TimeLimit:
            layer._elapsed_steps = int(state)  # type: ignore[assignment]
    env.unwrapped.np_random.bit_generator.state = generator


def _layers(env: gymnasium.Env) -> Iterator[gymnasium.Env]:
    yield env
    while isinstance(env, gymnasium.Wrapper):
        env = env.env
        yield env


def _knows_its_state(env: Any) -> bool:
    """Itself: a wrapper passes on what it does not have."""
    return all(callable(getattr(type(env), name, None)) for name in ("save_state", "load_state"))
