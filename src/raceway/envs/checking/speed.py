"""What one environment takes, in a bare loop."""

from __future__ import annotations

import statistics
import time
from dataclasses import replace
from typing import Any

import numpy as np

from raceway._core import usable_cpus
from raceway.envs.checking.contestants import NativeLoop
from raceway.envs.checking.findings import EnvSpeed
from raceway.envs.checking.loop import Loop, run_for
from raceway.envs.checking.notebook import Facts, Notebook
from raceway.envs.checking.subject import Subject, layers
from raceway.envs.checking.targets import Target

_SECONDS = 0.6
_TURN_S = 0.12
_TURNS = 4
_SLOW_S = 2e-3
"""Of a step: what wrappers take beside it is not worth looking at."""


def timed(subject: Subject, notes: Notebook, facts: Facts, *, target: Target) -> None:
    """Steps and resets of one, and what its wrappers take of that."""
    env = subject.make()
    loop = Loop(env, subject.actions(env), facts)
    subject.call("reset", loop.begin)
    if not facts.is_slow:  # the first step is not like the others
        subject.call("step", loop.run, 1)
        loop = Loop(env, subject.actions(env), facts)
        subject.call("reset", loop.begin)
    run_for(subject, loop, _SECONDS)
    facts.step_s = loop.step_s
    reset_s = loop.reset_s / loop.resets if loop.resets else _reset_s(subject, env)
    facts.cpus = usable_cpus()
    facts.speed = EnvSpeed(
        step_s=loop.step_s,
        reset_s=reset_s,
        reset_share=loop.reset_s / loop.seconds,
        slowest_s=loop.step_s if facts.is_slow else _slowest(subject, env, facts),
        cpu_share=loop.cpu_share,
        wrappers=tuple(type(layer).__name__ for layer in layers(env) if layer is not env.unwrapped),
        wrapper_share=_wrapper_share(subject, env, facts),
    )
    if target.is_native:  # seen as one of Gymnasium's it takes far longer
        facts.step_s = 1.0 / NativeLoop(target).turn(_SECONDS)
        facts.speed = replace(facts.speed, step_s=facts.step_s, slowest_s=facts.step_s, reset_share=0.0)
    facts.limit = facts.speed.steps_per_second * facts.cpus


def _reset_s(subject: Subject, env: Any) -> float:
    times = []
    for _ in range(3):
        started = time.perf_counter()
        subject.raw_reset(env)
        times.append(time.perf_counter() - started)
        if sum(times) > _TURN_S:
            break
    return statistics.median(times)


def _slowest(subject: Subject, env: Any, facts: Facts) -> float:
    """What one in a hundred steps takes, at least, among some that are timed one by one."""
    loop = Loop(env, subject.actions(env), facts)
    subject.call("reset", loop.begin)
    times: list[float] = []
    end = time.perf_counter() + _TURN_S
    while len(times) < 300 and (not times or time.perf_counter() < end):
        before = loop.seconds - loop.reset_s
        subject.call("step", loop.run, 1)
        times.append(loop.seconds - loop.reset_s - before)
    return float(np.quantile(times, 0.99))


def _wrapper_share(subject: Subject, env: Any, facts: Facts) -> float:
    """In turns with the environment itself."""
    if env is env.unwrapped or facts.step_s > _SLOW_S or facts.has_masks:
        return 0.0
    actions = subject.actions(env)
    wrapped, bare = Loop(env, actions, facts), Loop(env.unwrapped, actions, facts, facts.time_limit)
    shares = []
    for turn in range(_TURNS):
        before = wrapped.seconds - wrapped.reset_s, wrapped.steps, bare.seconds - bare.reset_s, bare.steps
        for loop in (wrapped, bare) if turn % 2 else (bare, wrapped):
            subject.call("reset", loop.begin)
            run_for(subject, loop, _TURN_S)
        outer = (wrapped.seconds - wrapped.reset_s - before[0]) / (wrapped.steps - before[1])
        inner = (bare.seconds - bare.reset_s - before[2]) / (bare.steps - before[3])
        shares.append(1.0 - inner / outer)
    return max(statistics.median(shares), 0.0)
