"""`make`: one door to every environment."""

from __future__ import annotations

import copy as copy_module
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
from gymnasium.error import NameNotFound
from gymnasium.vector import AutoresetMode, VectorEnv

from raceway.envs import user_native
from raceway.envs.catalog import no_such_env, tasks
from raceway.envs.native import NativePool
from raceway.envs.packages import refuse_elsewhere
from raceway.names import did_you_mean

LANES = ("native", "process", "inline")

Target = str | os.PathLike[str] | Callable[..., gymnasium.Env] | Sequence[Callable[..., gymnasium.Env]] | VectorEnv


def make(
    id: Target,  # noqa: A002 (Gymnasium's name for it)
    num_envs: int | None = None,
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
    on_error: str = "raise",
    worker_timeout: float | None = None,
    **kwargs: Any,
) -> Any:
    """A batch of environments, as a `gymnasium.vector.VectorEnv`.

    Args:
        id: such as "CartPole-v1" (`raceway.list_envs()` names those that run natively), any other name that Gymnasium
            knows, "package.module:callable", an environment's class, a callable that makes one, a list of callables,
            one per environment, or the path of a header with a native environment of your own: see
            `raceway.load_native`. A vector environment is returned as it is, and takes none of the other arguments.
        num_envs: how many environments there are; 1 by default, or as many as the list has.
        batch_size: how many of them `recv` returns at a time: those that are ready first. All by default.
        num_workers: threads at work, the calling one among them, or worker processes. By default the CPUs this
            process may use.
        seed: of the first reset: environment i gets seed + i, or its entry of a list.
        autoreset: "next_step", "same_step" or "disabled", as in Gymnasium.
        lane: "native" (threads, in C++), "process" (Python, in worker processes), "inline" (Python, in the calling
            thread); "auto" takes the fastest that can run the task. The pool's `lane` says which.
        max_episode_steps: truncates episodes; the task's own limit by default, -1 for none.
        record_episodes: puts return, length and seconds of each ended episode into `infos["episode"]`.
        render_mode: "rgb_array" if `render` is to be called.
        copy: False hands out the same arrays every time, overwritten by the next call of the same kind.
        pin: ties each worker to a CPU, neighbours on one NUMA node.
        env_kwargs: one dict of keyword arguments per environment, over those given to all.
        on_error: what becomes of an environment in Python that raises, or whose worker is lost: "raise" ends the call
            with an `EnvError`, "restart" makes it anew and truncates its episode.
        worker_timeout: seconds that one step of a Python environment may take in a worker process; None: any time.
            Like on_error, it is refused for what runs natively; and in the inline lane, which has no workers.
        **kwargs: the environment's own keyword arguments, the same for all. MuJoCo tasks also take Gymnasium's for
            pictures: width, height, camera_id, camera_name, default_camera_config, max_geom, visual_options.
    """
    if lane not in ("auto", *LANES):
        near = did_you_mean(lane, LANES) if isinstance(lane, str) else ""
        raise ValueError(f"No lane {lane!r}.{near} There are: auto, {', '.join(LANES)}.")
    shared: dict[str, Any] = {
        "batch_size": batch_size,
        "num_workers": num_workers,
        "seed": seed,
        "autoreset": autoreset,
        "max_episode_steps": max_episode_steps,
        "record_episodes": record_episodes,
        "copy": copy,
        "pin": pin,
        "env_kwargs": env_kwargs,
    }
    faults: dict[str, Any] = {"on_error": on_error, "worker_timeout": worker_timeout}
    if isinstance(id, VectorEnv):
        return _as_it_is(id, num_envs, {"lane": lane, "render_mode": render_mode, **shared, **faults, **kwargs})
    id = user_native.plain(id)  # noqa: A001
    native = _native_id(id)
    if lane == "native" and native is None and not isinstance(id, str):
        raise ValueError(f"lane='native' runs environments written in C++, not {id!r}. Use 'process' or 'inline'.")
    if native is None and isinstance(id, str) and ":" not in id and id not in gymnasium.registry:
        refuse_elsewhere(id)
        raise NameNotFound(no_such_env(id))
    if lane == "native" or (lane == "auto" and native is not None):
        if native is not None:
            _check_native(native, faults)
        return _native(native or id, 1 if num_envs is None else num_envs, render_mode, shared, kwargs)
    if native is not None:
        if native not in gymnasium.registry:
            raise ValueError(
                f"lane={lane!r} runs environments in Python, and {native} is written in C++. Leave lane out."
            )
        id = native  # noqa: A001 (Gymnasium's own, of the same name)
    if lane == "inline" and worker_timeout is not None:
        raise ValueError(
            f"worker_timeout={worker_timeout!r} is for worker processes, but lane='inline' steps environments in the "
            "calling thread, which cannot be given up. Leave it out, or use lane='process'."
        )
    if render_mode is not None:
        kwargs["render_mode"] = render_mode
    lane = "process" if lane == "auto" else lane
    from raceway.envs.python import python_pool  # not before it is needed: `import raceway` is quick

    return python_pool(id, num_envs, lane=lane, kwargs=kwargs, **shared, **faults)


def _native_id(id_: Any) -> str | None:
    """The name of the native task that is meant; None if it is none."""
    if not isinstance(id_, str):
        return None
    own = user_native.resolve(id_)
    name = id_.removeprefix("raceway/")
    return own or (name if name in tasks() else None)


def _check_native(name: str, faults: Mapping[str, Any]) -> None:
    if given := _said(faults):
        instead = ", or use lane='process'" if name in gymnasium.registry else ""
        raise ValueError(
            f"{given} is for environments in Python, but {name} runs natively, in threads of this process, which "
            f"cannot be started again or given up. Leave it out{instead}."
        )


def _native(
    id_: Any, num_envs: int, render_mode: str | None, shared: Mapping[str, Any], kwargs: Mapping[str, Any]
) -> NativePool:
    pool = NativePool(id_, num_envs, render_mode=render_mode, **shared, **kwargs)
    pool.spec = copy_module.deepcopy(gymnasium.spec(f"raceway/{pool.task_id}"))
    pool.spec.kwargs |= {"num_envs": num_envs, **kwargs}
    return pool


def _as_it_is(env: VectorEnv, num_envs: int | None, others: Mapping[str, Any]) -> VectorEnv:
    if given := _said(others):
        raise ValueError(
            f"{given}, but {type(env).__name__} is a vector environment that is there already, and is returned as it "
            "is. Say that where it is made, and seeds in reset(); or give a callable that makes one environment."
        )
    if num_envs not in (None, env.num_envs):
        raise ValueError(
            f"num_envs={num_envs}, but the vector environment that was given has {env.num_envs}. Leave num_envs out."
        )
    return env


def _said(arguments: Mapping[str, Any]) -> str:
    """Those arguments of `make` that are not at their defaults, as they were given."""
    defaults = make.__kwdefaults__ or {}

    def is_default(name: str, value: Any) -> bool:  # seeds may be arrays, which cannot just be compared
        return name in defaults and type(value) is type(defaults[name]) and value == defaults[name]

    return ", ".join(f"{name}={value!r}" for name, value in arguments.items() if not is_default(name, value))
