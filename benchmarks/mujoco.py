"""How fast MuJoCo tasks step, and what many of them cost to have.

A step of theirs costs more or less as an episode goes on (a humanoid that lies has more contacts than one that falls),
and by more than the ratios that are asked for. So everybody's turn starts from a reset and takes as many steps as the
fastest one's, unless that would take too long: then the steps are cheap and the many there are do.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace

from benchmarks.contestants import Setting
from benchmarks.paired import Pair, Plan
from benchmarks.questions import Bench, Question, in_words
from benchmarks.results import Amount, Section
from benchmarks.tasks import MUJOCO
from benchmarks.turns import ContestantError, ContestantProcess

GIGABYTE = 1e9

# The least share of the bare loop by the number of environments, and what is asked of one task in particular.
SHARES = {64: 0.90, 8: 0.85}
SHARES_OF = {("HalfCheetah-v5", 64): 0.92}
OVER_ENVPOOL = {("HalfCheetah-v5", 64): 1.6}
OVER_ASYNC = 2.8


def mujoco(bench: Bench) -> Section:
    """Every MuJoCo task against the bare loop, EnvPool and what a Gymnasium user has today."""
    questions = [
        _question(task, num_envs, _plan(bench.plan, num_envs))
        for num_envs in sorted(bench.task_sizes, reverse=True)
        for task in MUJOCO
    ]
    about = (
        "One step call for all environments, against EnvPool (whose library names MuJoCo 3.6.0) and Gymnasium's "
        "AsyncVectorEnv. Every turn starts from a reset. The goal over "
        f"AsyncVectorEnv is {OVER_ASYNC}, or {SHARES[64]:.2f} of the limit where that is less."
    )
    section = bench.section("mujoco", "Every task", about, 7, questions)
    return replace(section, block="mujoco", by_task=True)


def mujoco_memory(bench: Bench) -> Section:
    """What thousands of environments cost: seconds until they are there, and memory."""
    about = "A fresh process: create and reset them all, then step each once."
    amounts = [amount for kind in ("raceway", "envpool") for amount in _cost(bench, kind)]
    return Section("environments-mujoco-memory", "Many at once", about, 8, amounts=amounts, block="mujoco")


def _plan(plan: Plan, num_envs: int) -> Plan:
    """Longer turns for large batches: a call for 64 humanoids takes some tens of milliseconds."""
    turn_s = plan.turn_s * (2 if num_envs >= 64 else 1)
    return replace(plan, rounds=min(plan.rounds, 11), warmup_rounds=1, turn_s=turn_s, stretch=3.0)


def _question(task: str, num_envs: int, plan: Plan) -> Question:
    share = SHARES_OF.get((task, num_envs), SHARES[num_envs])
    settings = {kind: Setting(kind, task, num_envs, fresh=True) for kind in ("raceway", "envpool", "gymnasium async")}
    pairs = (
        Pair("raceway", "envpool", OVER_ENVPOOL.get((task, num_envs), 1.0)),
        Pair("raceway", "gymnasium async", OVER_ASYNC, or_share=SHARES[num_envs]),
    )
    return Question(in_words(task, num_envs, {}), settings, pairs, share, plan)


def _cost(bench: Bench, kind: str) -> Iterator[Amount]:
    """Seconds and memory for `bench.many_envs` ants, with a goal where they are Raceway's."""
    ours = kind == "raceway"
    setting = Setting(kind, "Ant-v5", bench.many_envs)
    words = in_words(setting.task, setting.num_envs, {}) + ("" if ours else f" ({kind})")
    print(f"mujoco-memory: {words}", file=sys.stderr, flush=True)
    try:
        with ContestantProcess(setting.contestant(words, bench.interpreter(kind))) as process:
            seconds, memory = process.facts["create_s"], process.turn(setting.num_envs).rss_bytes / GIGABYTE
    except ContestantError as error:
        if ours:
            raise
        print(f"left out: {error}", file=sys.stderr, flush=True)
        return
    for what, value, unit, most in (
        ("to create and reset", seconds, "s", 2.0),
        ("resident after one step of each", memory, "GB", 1.0),
    ):
        yield Amount(words, what, value, unit, most if ours else None, value <= most if ours else None)
