"""`make`: one door to every environment."""

from __future__ import annotations

import copy as copy_module
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode

from raceway.envs.native import NativePool
from raceway.names import did_you_mean

LANES = ("native",)


def make(
    id: str,  # noqa: A002 (Gymnasium's name for it)
    num_envs: int = 1,
    *,
    batch_size: int | None = None,
    num_workers: int | None = None,
    seed: int | Sequence[int | None] | None = None,
    autoreset: str | AutoresetMode = "next_step",
    lane: str = "auto",
    max_episode_steps: int | None = None,
    record_episodes: bool = False,
    render_mode: str | None = None,
    copy: bool = True,
    pin: bool = False,
    env_kwargs: Sequence[Mapping[str, Any]] | None = None,
    **kwargs: Any,
) -> NativePool:
    """A batch of environments that run natively, as a `gymnasium.vector.VectorEnv`.

    Args:
        id: such as "CartPole-v1"; `raceway.list_envs()` names them all.
        num_envs: how many environments there are.
        batch_size: how many of them `recv` returns at a time: those that are ready first. All by default.
        num_workers: threads at work, the calling one among them. By default the CPUs this process may use.
        seed: of the first reset: environment i gets seed + i, or its entry of a list.
        autoreset: "next_step", "same_step" or "disabled", as in Gymnasium.
        lane: "auto" takes the fastest lane that can run the task; the pool's `lane` says which.
        max_episode_steps: truncates episodes; the task's own limit by default, -1 for none.
        record_episodes: puts return, length and seconds of each ended episode into `infos["episode"]`.
        render_mode: "rgb_array" if `render` is to be called.
        copy: False hands out the same arrays every time, overwritten by the next call of the same kind.
        pin: ties each worker thread to a CPU, neighbours on one NUMA node.
        env_kwargs: one dict of keyword arguments per environment, over those given to all.
        **kwargs: the task's own keyword arguments, the same for every environment. MuJoCo tasks also take Gymnasium's
            for pictures: width, height, camera_id, camera_name, default_camera_config, max_geom, visual_options.
    """
    if lane not in ("auto", *LANES):
        raise ValueError(f"No lane {lane!r}.{did_you_mean(str(lane), LANES)} There are: auto, {', '.join(LANES)}.")
    pool = NativePool(
        id,
        num_envs,
        batch_size=batch_size,
        num_workers=num_workers,
        seed=seed,
        autoreset=autoreset,
        max_episode_steps=max_episode_steps,
        record_episodes=record_episodes,
        render_mode=render_mode,
        copy=copy,
        pin=pin,
        env_kwargs=env_kwargs,
        **kwargs,
    )
    pool.spec = copy_module.deepcopy(gymnasium.spec(f"raceway/{pool.task_id}"))
    pool.spec.kwargs |= {"num_envs": num_envs, **kwargs}
    return pool
