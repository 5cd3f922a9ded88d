"""PPO in JAX over EnvPool, in CleanRL's manner: `python -m benchmarks.learners_jax <setting as JSON>`.

Two ways of it. *steps*: Gymnasium's API, one compiled call of the policy for every step of all environments. *scan*:
EnvPool's XLA interface, so that a whole round is one compiled program. With `collect` in the style nothing is learnt.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import envpool
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import learners_ppo as ppo
from benchmarks.learners_ppo import Storage
from benchmarks.train_settings import Rounds, Setting, serve_rounds, timed
from benchmarks.turns import Turn

Collect = Callable[[ppo.Params], tuple[Storage, Any]]
"""Gives a round and the observations after it."""
Restart = Callable[[], None]
"""Begins new episodes."""


def make_envs(setting: Setting) -> Any:
    """A thread per CPU that the process may use, at most one per environment."""
    threads = min(len(os.sched_getaffinity(0)), setting.num_envs)
    return envpool.make_gymnasium(setting.task, num_envs=setting.num_envs, num_threads=threads, seed=0)


def is_continuous(envs: Any) -> bool:
    return hasattr(envs.action_space, "high")


def empty(setting: Setting, envs: Any) -> Storage:
    """Room for a round, to be filled row by row."""
    shape = (setting.num_steps, setting.num_envs)
    actions = np.zeros(shape + envs.action_space.shape, np.float32 if is_continuous(envs) else np.int32)
    return Storage(
        obs=np.zeros(shape + envs.observation_space.shape, np.float32),
        actions=actions,
        log_probs=np.zeros(shape, np.float32),
        values=np.zeros(shape, np.float32),
        rewards=np.zeros(shape, np.float32),
        ends=np.zeros(shape, bool),
    )


def collect_by_steps(setting: Setting) -> tuple[Any, Collect, Restart]:
    """A call of the policy, a call of the environments, and so on; everything goes to its row."""
    envs = make_envs(setting)
    act, applied_type = jax.jit(ppo.act), np.float64 if is_continuous(envs) else np.int32
    round_, key = empty(setting, envs), jax.random.key(0)
    obs: Any = None

    def restart() -> None:
        nonlocal obs
        obs, _ = envs.reset()

    def collect(params: ppo.Params) -> tuple[Storage, Any]:
        nonlocal obs, key
        for step in range(setting.num_steps):
            decision, key = act(params, obs, key)
            round_.obs[step] = obs
            applied = np.asarray(decision.applied, applied_type)
            obs, rewards, terminated, truncated, _ = envs.step(applied)
            round_.actions[step] = decision.actions
            round_.log_probs[step] = decision.log_probs
            round_.values[step] = decision.values
            round_.rewards[step] = rewards
            np.logical_or(terminated, truncated, out=round_.ends[step])
        return round_, obs

    return envs, collect, restart


def collect_by_scan(setting: Setting) -> tuple[Any, Collect, Restart]:
    """The policy and the environments in one program."""
    envs = make_envs(setting)
    applied_type = jnp.float64 if is_continuous(envs) else jnp.int32
    handle, _, _, step_envs = envs.xla()
    carry: Any = handle, None, jax.random.key(0)

    def restart() -> None:
        nonlocal carry
        carry = carry[0], jnp.asarray(envs.reset()[0], jnp.float32), carry[2]

    def step(params: ppo.Params, carry: Any, _: Any) -> Any:
        handle, obs, key = carry
        decision, key = ppo.act(params, obs, key)
        handle, (new_obs, rewards, terminated, truncated, _) = step_envs(handle, decision.applied.astype(applied_type))
        row = Storage(
            obs, decision.actions, decision.log_probs, decision.values, rewards, jnp.logical_or(terminated, truncated)
        )
        return (handle, new_obs.astype(jnp.float32), key), row

    @jax.jit
    def scan(params: ppo.Params, carry: Any) -> Any:
        return jax.lax.scan(lambda carry, x: step(params, carry, x), carry, None, setting.num_steps)

    def collect(params: ppo.Params) -> tuple[Storage, Any]:
        nonlocal carry
        carry, round_ = scan(params, carry)
        return round_, carry[1]

    return envs, collect, restart


COLLECTORS = {"steps": collect_by_steps, "scan": collect_by_scan}


def learn(setting: Setting, params: ppo.Params, collect: Collect) -> Rounds:
    """Collect a round, update, and so on."""
    first_state, update = ppo.make_update(setting)
    state, key = first_state(params), jax.random.key(1)

    def rounds(count: int) -> None:
        nonlocal params, state, key
        for _ in range(count):
            round_, last_obs = collect(params)
            key, own = jax.random.split(key)
            params, state, metrics = update(params, state, round_, jnp.asarray(last_obs, jnp.float32), own)
            # The rows of the round are written again only when they have been read.
            wait_for(metrics)

    return rounds


def set_up(setting: Setting) -> Turn:
    way, _, purpose = setting.style.partition(" ")
    if way == "scan":
        jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]
    envs, collect, restart = COLLECTORS[way](setting)
    restart()
    space = envs.action_space
    size = int(np.prod(space.shape)) if is_continuous(envs) else int(space.n)
    params = ppo.init(jax.random.key(2), envs.observation_space.shape[0], size, continuous=is_continuous(envs))
    if purpose == "collect":
        return timed(setting, lambda count: _collect_only(count, params, collect), restart)
    return timed(setting, learn(setting, params, collect))


def wait_for(tree: Any) -> None:
    """Until everything in it is there."""
    for leaf in jax.tree.leaves(tree):
        np.asarray(leaf)


def _collect_only(count: int, params: ppo.Params, collect: Collect) -> None:
    for _ in range(count):
        wait_for(collect(params))


def main() -> None:
    """Serves the setting given as the only argument."""
    serve_rounds(set_up, lambda setting: ("envpool", "gymnasium", "jax", "numpy", "optax"))


if __name__ == "__main__":
    main()
