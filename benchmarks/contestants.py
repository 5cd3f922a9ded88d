"""Who is measured on environments: Raceway, its limit and its peers, each in a process that speaks `turns`.

Run by the measurement as `python -m benchmarks.contestants <setting as JSON>`, by the interpreter that has the
contestant's libraries. Everybody gets random actions of the same distribution, fresh each step, drawn outside the
timed part; everybody's Python call per step is inside it.
"""

from __future__ import annotations

import json
import math
import os
import platform
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from importlib import import_module, metadata
from itertools import cycle, islice
from typing import Any

import numpy as np

from benchmarks.own_native import own_cart_pole
from benchmarks.tasks import ACTIONS, GYMNASIUM_NAMES, MUJOCO
from benchmarks.turns import Contestant, Turn, serve

# Enough that a turn rarely sees an action twice, little enough that drawing and reading it stays cheap.
_MAX_DRAWN = 2**20


@dataclass(frozen=True)
class Setting:
    """What a contestant is to run."""

    kind: str
    """A key of KINDS."""
    task: str
    num_envs: int
    batch_size: int | None = None
    num_workers: int | None = None
    env_kwargs: dict[str, Any] = field(default_factory=dict)
    fresh: bool = False
    """Every turn starts from a reset, not timed, as the bare loop's always do: for tasks whose steps cost more or less
    as an episode goes on."""

    def contestant(self, name: str, interpreter: str) -> Contestant:
        """This setting as a process to be started."""
        return Contestant(name, interpreter, ("-m", "benchmarks.contestants", json.dumps(asdict(self))))


class Actions:
    """Random actions for `width` environments at a time, the same sequence for everybody."""

    def __init__(self, task: str, width: int) -> None:
        self._space = ACTIONS[task]
        self._width = width
        self._generator = np.random.default_rng(0)

    def draw(self, calls: int) -> np.ndarray:
        """New actions [T, width] for that many calls, or for as many as are drawn at most."""
        rows = min(calls, max(1, _MAX_DRAWN // self._width))
        return self._space.draw(self._generator, (rows, self._width))


def stepping(env: Any, setting: Setting) -> Turn:
    """Turns of `env.step`, for everything that has Gymnasium's vector API."""
    actions = Actions(setting.task, setting.num_envs)
    env.reset()

    def turn(steps: int) -> tuple[int, float]:
        calls = math.ceil(steps / setting.num_envs)
        rows = islice(cycle(list(actions.draw(calls))), calls)
        if setting.fresh:
            env.reset(seed=0)
        step = env.step
        start = time.perf_counter()
        for row in rows:
            step(row)
        return calls * setting.num_envs, time.perf_counter() - start

    return turn


def raceway_sync(setting: Setting) -> Turn:
    """Raceway's pool, one step call for all environments."""
    return stepping(_raceway_pool(setting), setting)


def raceway_own(setting: Setting) -> Turn:
    """The same task from a header, as a user's own is."""
    assert setting.task == "CartPole-v1", setting.task
    return stepping(import_module("raceway").make(str(own_cart_pole()), setting.num_envs, seed=0), setting)


def raceway_async(setting: Setting) -> Turn:
    """Raceway's pool with first-ready batches."""
    return batches(_raceway_pool(setting), setting)


def batches(env: Any, setting: Setting) -> Turn:
    """Turns of `env.send` and `env.recv`.

    A turn begins and ends with every environment waiting for an action: what is computed between turns would
    otherwise be counted but not timed.
    """
    batch = setting.batch_size
    if batch is None or setting.num_envs % batch:
        raise ValueError(f"Async turns need num_envs in whole batches, got {setting.num_envs} and {batch}.")
    actions = Actions(setting.task, batch)
    in_flight = setting.num_envs // batch
    env.async_reset()
    idle = [env.recv()[4]["env_id"].copy() for _ in range(in_flight)]

    def turn(steps: int) -> tuple[int, float]:
        calls = max(in_flight, math.ceil(steps / batch))
        rows = islice(cycle(list(actions.draw(calls))), calls)
        start = time.perf_counter()
        for ids in idle:
            env.send(next(rows), ids)
        for row in rows:
            env.send(row, env.recv()[4]["env_id"])
        for place in range(in_flight):
            idle[place] = env.recv()[4]["env_id"].copy()
        return calls * batch, time.perf_counter() - start

    return turn


def bare_loop(setting: Setting) -> Turn:
    """The limit: the same native environments in a bare C++ loop, one thread per CPU, which times itself."""
    run = import_module("benchmarks.bare").bare_loop
    actions = Actions(setting.task, setting.num_envs)

    def turn(steps: int) -> tuple[int, float]:
        calls = math.ceil(steps / setting.num_envs)
        drawn, done, seconds = actions.draw(calls), 0, 0.0
        while done < calls:
            rows = drawn[: calls - done]
            seconds += run(setting.task, setting.num_envs, rows, seed=done, **setting.env_kwargs)
            done += len(rows)
        return calls * setting.num_envs, seconds

    return turn


def envpool_sync(setting: Setting) -> Turn:
    """EnvPool, one step call for all environments, a thread per CPU that the process may use."""
    threads = setting.num_workers or min(len(os.sched_getaffinity(0)), setting.num_envs)
    make = import_module("envpool").make_gymnasium
    return stepping(make(setting.task, num_envs=setting.num_envs, num_threads=threads, seed=0), setting)


def gymnasium_sync(setting: Setting) -> Turn:
    """Gymnasium's SyncVectorEnv: a Python loop."""
    # The checker helps while an environment is written; nobody who wants speed leaves it on.
    return stepping(_gymnasium(setting, "sync", disable_env_checker=True), setting)


def gymnasium_async(setting: Setting) -> Turn:
    """Gymnasium's AsyncVectorEnv: one process per environment."""
    return stepping(_gymnasium(setting, "async", disable_env_checker=True), setting)


def gymnasium_numpy(setting: Setting) -> Turn:
    """Gymnasium's NumPy-vectorised environment, for the tasks that have one."""
    return stepping(_gymnasium(setting, "vector_entry_point"), setting)


Kinds = Mapping[str, tuple[Callable[[Setting], Turn], tuple[str, ...]]]
"""By name: what makes a contestant ready for a setting, and the packages that it shows the versions of."""

# Libraries are imported by name: each lives only in the virtual environment of the contestant that needs it.
KINDS: Kinds = {
    "raceway": (raceway_sync, ("raceway", "gymnasium", "numpy")),
    "raceway own": (raceway_own, ("raceway", "gymnasium", "numpy")),
    "raceway async": (raceway_async, ("raceway", "gymnasium", "numpy")),
    "bare loop": (bare_loop, ("raceway", "numpy")),
    "envpool": (envpool_sync, ("envpool", "gymnasium", "numpy")),
    "gymnasium sync": (gymnasium_sync, ("gymnasium", "numpy")),
    "gymnasium async": (gymnasium_async, ("gymnasium", "numpy")),
    "gymnasium numpy": (gymnasium_numpy, ("gymnasium", "numpy")),
}


def _raceway_pool(setting: Setting) -> Any:
    return import_module("raceway").make(
        setting.task,
        setting.num_envs,
        batch_size=setting.batch_size,
        num_workers=setting.num_workers,
        seed=0,
        **setting.env_kwargs,
    )


def _gymnasium(setting: Setting, mode: str, **kwargs: Any) -> Any:
    make_vec = import_module("gymnasium").make_vec
    name = GYMNASIUM_NAMES.get(setting.task, setting.task)
    return make_vec(name, setting.num_envs, vectorization_mode=mode, **kwargs, **setting.env_kwargs)


def serve_kinds(kinds: Kinds) -> None:
    """Serves the setting given as the only argument."""
    setting = Setting(**json.loads(sys.argv[1]))
    set_up, packages = kinds[setting.kind]
    if setting.task in MUJOCO and setting.kind != "envpool":  # which has an engine of its own inside, MuJoCo 3.6.0
        packages = (*packages, "mujoco")
    warnings.simplefilter("ignore")  # an old version number or a space's precision is no news here
    versions = {"python": platform.python_version()} | {name: metadata.version(name) for name in packages}

    def ready() -> tuple[Turn, dict[str, Any]]:
        for name in packages:
            import_module(name.replace("-", "_"))
        start = time.perf_counter()
        turn = set_up(setting)
        return turn, {"versions": versions, "create_s": time.perf_counter() - start}

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # MuJoCo leaves a MUJOCO_LOG.TXT wherever it warns
        serve(ready)


if __name__ == "__main__":
    serve_kinds(KINDS)
