"""Who is measured on Python environments: `python -m benchmarks.python_contestants <setting as JSON>`.

Everybody steps the same environments (`benchmarks/python_tasks.py`), resets on the step after an episode's end where
that can be chosen, and gets the same random actions as everywhere.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from itertools import cycle, islice
from multiprocessing.connection import Connection
from typing import Any

from benchmarks import python_tasks
from benchmarks.contestants import Actions, Kinds, Setting, batches, serve_kinds, stepping
from benchmarks.turns import Contestant, Turn

RACEWAY, ASYNC, LIMIT, LOOPS = "raceway", "raceway async", "2 x python loop", "2 python loops"
GYMNASIUM_SYNC, GYMNASIUM_ASYNC, SUBPROC = "gymnasium sync", "gymnasium async", "sb3 subproc"
PUFFER, PUFFER_ONE, PUFFER_ASYNC = "pufferlib", "pufferlib 1 worker", "pufferlib async"
WORKERS = 2


@dataclass(frozen=True)
class PythonSetting(Setting):
    """What a contestant is to run. All processes are stopped between turns: PufferLib's never rest."""

    def contestant(self, name: str, interpreter: str) -> Contestant:
        argv = ("-m", "benchmarks.python_contestants", json.dumps(asdict(self)))
        return Contestant(name, interpreter, argv, restless=True)


def raceway_sync(setting: Setting) -> Turn:
    """Raceway's process lane, one step call for all environments."""
    return stepping(_process_pool(setting), setting)


def raceway_async(setting: Setting) -> Turn:
    """Raceway's process lane with first-ready batches."""
    return batches(_process_pool(setting), setting)


def gymnasium_sync(setting: Setting) -> Turn:
    """Gymnasium's SyncVectorEnv: a loop in one process."""
    return stepping(import_module("gymnasium").vector.SyncVectorEnv(_makers(setting)), setting)


def gymnasium_async(setting: Setting) -> Turn:
    """Gymnasium's AsyncVectorEnv: one process per environment, observations in shared memory."""
    return stepping(import_module("gymnasium").vector.AsyncVectorEnv(_makers(setting)), setting)


def sb3_subproc(setting: Setting) -> Turn:
    """SB3's SubprocVecEnv: one process per environment. It resets within the step."""
    vectors = import_module("stable_baselines3.common.vec_env")
    return stepping(vectors.SubprocVecEnv(_makers(setting), start_method="fork"), setting)


def pufferlib(setting: Setting) -> Turn:
    """PufferLib's Multiprocessing, with as many workers as everybody. Its arrays are overwritten by the next step."""
    return stepping(_puffer_vector(setting), setting)


def pufferlib_one(setting: Setting) -> Turn:
    """The same with one worker: its calling process never sleeps, so that two CPUs are taken then."""
    return stepping(_puffer_vector(setting, 1), setting)


def pufferlib_async(setting: Setting) -> Turn:
    """The same with batches: what `step` gives is another batch than the one that it sends actions for."""
    assert setting.batch_size is not None
    return stepping(_puffer_vector(setting), replace(setting, num_envs=setting.batch_size))


def python_loop(setting: Setting) -> Turn:
    """The limit: one process that steps its environments one by one, counted once for each worker.

    A reset counts as a step, as it does for a vector environment that resets on the next one.
    """
    envs = [make() for make in _makers(setting)]
    actions = Actions(setting.task, setting.num_envs)
    ended = [False] * len(envs)
    for seed, env in enumerate(envs):
        env.reset(seed=seed)

    def turn(steps: int) -> tuple[int, float]:
        calls = math.ceil(steps / setting.num_envs / WORKERS)
        drawn = [list(row) for row in actions.draw(calls)]
        seconds = run_loop(envs, list(islice(cycle(drawn), calls)), ended)
        return WORKERS * calls * setting.num_envs, seconds

    return turn


def python_loops(setting: Setting) -> Turn:
    """As many such loops at the same time, each in a process that never waits for another: what this machine has."""
    share = replace(setting, num_envs=setting.num_envs // WORKERS)
    context = multiprocessing.get_context("fork")
    ends = []
    for _ in range(WORKERS):
        mine, its = context.Pipe()
        context.Process(target=_serve_loop, args=(share, its), daemon=True).start()
        ends.append(mine)

    def turn(steps: int) -> tuple[int, float]:
        for end in ends:
            end.send(steps)
        found = [end.recv() for end in ends]
        return sum(done for done, _ in found) // WORKERS, max(seconds for _, seconds in found)

    return turn


def _serve_loop(share: Setting, end: Connection) -> None:
    turn = python_loop(share)
    while True:
        end.send(turn(end.recv()))


def run_loop(envs: Sequence[Any], rows: Sequence[Sequence[Any]], ended: list[bool]) -> float:
    """Each row's actions for the environments, one by one; gives the seconds that it took."""
    start = time.perf_counter()
    for row in rows:
        for place, (env, action) in enumerate(zip(envs, row, strict=True)):
            if ended[place]:
                env.reset()
                ended[place] = False
            else:
                _, _, terminated, truncated, _ = env.step(action)
                ended[place] = terminated or truncated
    return time.perf_counter() - start


def _makers(setting: Setting) -> list[Callable[[], Any]]:
    return [python_tasks.maker(setting.task, **setting.env_kwargs)] * setting.num_envs


def _process_pool(setting: Setting) -> Any:
    return import_module("raceway").make(
        _makers(setting)[0],
        setting.num_envs,
        lane="process",
        batch_size=setting.batch_size,
        num_workers=WORKERS,
        seed=0,
    )


def _puffer_vector(setting: Setting, workers: int = WORKERS) -> Any:
    vector, emulation = import_module("pufferlib.vector"), import_module("pufferlib.emulation")
    make = _makers(setting)[0]

    def emulated(buf: Any = None, seed: int = 0) -> Any:
        return emulation.GymnasiumPufferEnv(env=make(), buf=buf, seed=seed)

    batch = {} if setting.batch_size is None else {"batch_size": setting.batch_size}
    return vector.make(
        emulated, backend=vector.Multiprocessing, num_envs=setting.num_envs, num_workers=workers, **batch
    )


KINDS: Kinds = {
    RACEWAY: (raceway_sync, ("raceway", "gymnasium", "numpy")),
    ASYNC: (raceway_async, ("raceway", "gymnasium", "numpy")),
    LIMIT: (python_loop, ("gymnasium", "numpy")),
    LOOPS: (python_loops, ("gymnasium", "numpy")),
    GYMNASIUM_SYNC: (gymnasium_sync, ("gymnasium", "numpy")),
    GYMNASIUM_ASYNC: (gymnasium_async, ("gymnasium", "numpy")),
    SUBPROC: (sb3_subproc, ("stable-baselines3", "gymnasium", "numpy")),
    PUFFER: (pufferlib, ("pufferlib", "gymnasium", "numpy")),
    PUFFER_ONE: (pufferlib_one, ("pufferlib", "gymnasium", "numpy")),
    PUFFER_ASYNC: (pufferlib_async, ("pufferlib", "gymnasium", "numpy")),
}


if __name__ == "__main__":
    serve_kinds(KINDS)
