"""The state of vector environments, as plain data: what a run needs to go on with the very same episodes.

Pools have one, and so has a vector environment with `get_state()` and `set_state(state)`. Gymnasium's SyncVectorEnv has
one if all its environments do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import SyncVectorEnv, VectorEnv

from raceway.envs import env_state
from raceway.envs.native import NativePool
from raceway.envs.python import PythonPool


def save_vector(env: VectorEnv) -> dict[str, Any] | None:
    """The state of all its environments; None if one of them cannot tell."""
    if isinstance(env, PythonPool):
        return {"python": env.state()} if env.has_episode_seeds else None
    if isinstance(env, NativePool):
        return {"pool": env.state()}
    if env_state.knows_its_state(env):
        return {"vector": env.get_state()}  # type: ignore[attr-defined]
    if type(env) is not SyncVectorEnv:
        return None
    states = [env_state.save(each) for each in env.envs]
    if any(state is None for state in states):
        return None
    return {"envs": states, "resets_next": np.array(env._autoreset_envs)}


def load_vector(env: VectorEnv, state: dict[str, Any]) -> list[int]:
    """Takes over what `save_vector` gave; the environments have been reset before.

    Returns those that could not be brought back to where they were, and have begun a new episode.
    """
    if isinstance(env, PythonPool):
        return env.set_state(state["python"])
    if isinstance(env, NativePool):
        env.set_state(state["pool"])
        env.observe()  # which none can be that was never reset
    elif env_state.knows_its_state(env):
        env.set_state(state["vector"])  # type: ignore[attr-defined]
    else:
        assert isinstance(env, SyncVectorEnv)
        for each, its in zip(env.envs, state["envs"], strict=True):
            env_state.load(each, its)
        env._autoreset_envs = np.array(state["resets_next"], bool)
    return []
