"""How fast agents are trained: `python -m benchmarks.train [--quick] [--only NAME]`.

Every section becomes `benchmarks/results/train-<name>.json`; `python -m benchmarks.table` makes README's tables of
them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.environments import run_sections
from benchmarks.paired import Pair, Plan
from benchmarks.results import RESULTS, Experiment, Section
from benchmarks.train_questions import RACEWAY, Bench, Question, chosen_in_words, ways
from benchmarks.train_settings import OWN, RL, RLLIB, Setting
from benchmarks.train_solve import solve_amounts

INTERPRETERS = {OWN: sys.executable, RL: "benchmarks/.venv-rl/bin/python", RLLIB: "benchmarks/.venv-rllib/bin/python"}
FULL = Plan(rounds=9, warmup_rounds=1, turn_s=1.5, turn_timeout_s=300.0, ready_timeout_s=300.0)
HEATS = replace(FULL, rounds=2)
QUICK = replace(FULL, rounds=2, turn_s=0.5)

SERIAL, BARE, LIMIT, CENTRAL, BARRIER = "raceway serial", "bare loop", "bare sum", "raceway central", "barrier loop"
BY_STEPS, BY_SCAN = "envpool + jax", "envpool in XLA"
SB3, SBX, RLLIB_PPO = "sb3", "sbx", "rllib"

COLLECTION_GOALS = {("HalfCheetah-v5", 64): 1.4, ("HalfCheetah-v5", 8): 3.0, ("CartPole-v1", 64): 10.0}
SHARE_OF_BARE = 0.92
GOALS = {SB3: 7.0, RLLIB_PPO: 10.0, SBX: 4.0, BY_STEPS: 2.3, BY_SCAN: 2.3}
GOAL_AT_64 = 1.4
CARTPOLE_GOALS = {SB3: 7.0}
OVER_BARRIER = 2.5
AS_FAST = 1.0

STYLES = {
    "dummy 1": "DummyVecEnv, 1 PyTorch thread",
    "dummy 2": "DummyVecEnv, 2 PyTorch threads",
    "subproc 1": "SubprocVecEnv, 1 PyTorch thread",
    "subproc 2": "SubprocVecEnv, 2 PyTorch threads",
    "0 1": "no env runners, 1 PyTorch thread",
    "0 2": "no env runners, 2 PyTorch threads",
    "2 1": "2 env runners, 1 PyTorch thread",
    "2 2": "2 env runners, 2 PyTorch threads",
}


def collect(bench: Bench) -> Section:
    """Rounds without learning, the policy included."""
    experiments = bench.answers("collect", [_collection(bench, *task) for task in COLLECTION_GOALS])
    about = (
        "Steps with a policy: actions, log-probabilities and values computed and kept. The limit is a bare C++ loop "
        "with the same policy. *envpool + jax*: one compiled call of the policy for each step of all environments; "
        "*envpool in XLA*: EnvPool's XLA interface in a `lax.scan`. Every turn starts from a reset."
    )
    return _section("train-collect", "Collection", about, 30, experiments)


def ppo(bench: Bench) -> Section:
    """HalfCheetah from end to end, at the size that everybody has, and at a larger one."""
    base = Setting(RACEWAY, "HalfCheetah-v5", 8)
    players = {**_own(base), **_envpool(base), **_torch(base), **_rllib(base)}
    questions = [
        Question("8 envs x 256 steps, minibatches of 256", players, _pairs(GOALS), LIMIT),
        *(_large(replace(base, num_envs=64, minibatch=minibatch)) for minibatch in (256, 2048)),
    ]
    experiments = bench.answers("ppo", questions)
    about = (
        "PPO on HalfCheetah-v5, collecting and learning, 10 epochs. The limit is the sum of the bare loop's seconds "
        "for the same steps and of the compiled update alone, one after the other. The loops over EnvPool are in "
        "CleanRL's manner: policy, advantages and the whole update compiled." + chosen_in_words(experiments, STYLES)
    )
    return _section("train-ppo", "PPO, HalfCheetah-v5", about, 31, experiments)


def cartpole(bench: Bench) -> Section:
    """CartPole from end to end, and until it is solved."""
    base = Setting(
        RACEWAY,
        "CartPole-v1",
        8,
        num_steps=32,
        epochs=20,
        minibatch=256,
        learning_rate=1e-3,
        gamma=0.98,
        gae_lambda=0.8,
    )
    players = {**_own(base), **_torch(base), **_envpool(base)}
    pairs = _pairs(CARTPOLE_GOALS | dict.fromkeys((SBX, BY_STEPS, BY_SCAN)))
    question = Question("8 envs x 32 steps, minibatches of 256", players, pairs, LIMIT)
    experiments = bench.answers("cartpole", [question])
    about = (
        "PPO on CartPole-v1 with the hyperparameters of SB3's zoo, 20 epochs; and seconds until a mean of 475 over 100 "
        "episodes is reached by its preset." + chosen_in_words(experiments, STYLES)
    )
    amounts = [] if bench.match else solve_amounts(bench.seeds)
    return replace(_section("train-cartpole", "PPO, CartPole-v1", about, 32, experiments), amounts=amounts)


def wait(bench: Bench) -> Section:
    """Who waits for whom."""
    base = Setting("wait", "Busy-v0", 16, num_steps=128)
    players = {
        RACEWAY: ways(base, "worker"),
        CENTRAL: ways(base, "central"),
        BARRIER: ways(base, "barrier"),
    }
    pairs = [Pair(RACEWAY, BARRIER, OVER_BARRIER), Pair(CENTRAL, BARRIER, OVER_BARRIER)]
    experiments = bench.answers("wait", [Question("16 envs that wait 2 ms, 128 steps", players, pairs)])
    about = (
        "16 environments that wait (exponentially spread, 2 ms on average), 16 workers, and a learner that takes 128 x "
        "2 ms: the concurrent schedule, with the policy in the worker (*raceway*) and with central inference for "
        "groups of one, against a loop with a barrier at every step."
    )
    return _section("train-wait", "Without a barrier", about, 33, experiments)


SECTIONS: dict[str, Callable[[Bench], Section]] = {"collect": collect, "ppo": ppo, "cartpole": cartpole, "wait": wait}


def _section(name: str, title: str, about: str, order: int, experiments: Sequence[Experiment]) -> Section:
    return Section(name, title, about, order, experiments, block="train")


def _collection(bench: Bench, task: str, num_envs: int) -> Question:
    setting, goal = Setting("collect", task, num_envs), COLLECTION_GOALS[task, num_envs]
    peer = replace(setting, kind="jax + envpool")
    players = {
        RACEWAY: ways(setting, "raceway"),
        BY_STEPS: ways(peer, "steps collect"),
        BY_SCAN: ways(peer, "scan collect"),
        BARE: ways(setting, "bare"),
    }
    pairs = [Pair(RACEWAY, BY_STEPS, goal), Pair(RACEWAY, BY_SCAN, goal), Pair(RACEWAY, BARE, SHARE_OF_BARE)]
    # Ratios near one need more rounds, and turns that begin with a reset need as many steps for everybody.
    rounds = bench.plan.rounds if bench.heats is None else 15
    plan = replace(bench.plan, rounds=rounds, turn_s=bench.plan.turn_s / 3, stretch=3.0)
    return Question(f"{task}, {num_envs} envs", players, pairs, BARE, plan)


def _large(base: Setting) -> Question:
    """Many environments, against those whose environments are as fast."""
    goals = {BY_STEPS: GOAL_AT_64, BY_SCAN: GOAL_AT_64}
    words = f"64 envs x 256 steps, minibatches of {base.minibatch}"
    return Question(words, {**_own(base), **_envpool(base)}, _pairs(goals), LIMIT)


def _own(base: Setting) -> dict[str, Sequence[Setting]]:
    return {RACEWAY: ways(base, "concurrent"), SERIAL: ways(base, "serial"), LIMIT: ways(base, "limit")}


def _envpool(base: Setting) -> dict[str, Sequence[Setting]]:
    peer = replace(base, kind="jax + envpool")
    return {BY_STEPS: ways(peer, "steps"), BY_SCAN: ways(peer, "scan")}


def _torch(base: Setting) -> dict[str, Sequence[Setting]]:
    return {
        SB3: ways(replace(base, kind="sb3"), "dummy 1", "dummy 2", "subproc 1", "subproc 2"),
        SBX: ways(replace(base, kind="sbx"), "dummy 1", "subproc 1"),
    }


def _rllib(base: Setting) -> dict[str, Sequence[Setting]]:
    return {RLLIB_PPO: ways(replace(base, kind="rllib"), "0 1", "0 2", "2 1", "2 2")}


def _pairs(goals: dict[str, float] | dict[str, float | None]) -> list[Pair]:
    """Over the peers, over the schedule that takes turns, and the share of the limit, which has no goal."""
    peers = [Pair(RACEWAY, name, goal) for name, goal in goals.items()]
    return [*peers, Pair(RACEWAY, SERIAL, AS_FAST), Pair(RACEWAY, LIMIT)]


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.train", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few short rounds, to see that it works; saves nothing")
    parser.add_argument("--only", choices=SECTIONS, action="append", metavar="NAME", help=", ".join(SECTIONS))
    parser.add_argument("--match", default="", metavar="TEXT", help="only settings that have this; saves nothing")
    parser.add_argument("--rl", default=INTERPRETERS[RL], help="the Python that has benchmarks/rl.txt installed")
    parser.add_argument("--rllib", default=INTERPRETERS[RLLIB], help="the one that has benchmarks/rllib.txt installed")
    parser.add_argument("--out", type=Path, help="folder for the results, instead of benchmarks/results")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Measures the sections asked for, prints their answers and writes their results."""
    options = _arguments(argv)
    interpreters = {OWN: sys.executable, RL: options.rl, RLLIB: options.rllib}
    for path in interpreters.values():
        if not Path(path).exists():
            print(
                f"No interpreter at {path}: the peers are not installed. `make bench-train` does it.", file=sys.stderr
            )
            return 2
    bench = Bench(FULL, HEATS, interpreters, match=options.match)
    if options.quick:
        bench = replace(bench, plan=QUICK, heats=None, seeds=(1,))
    folder = options.out or (None if options.quick or options.match else RESULTS)
    return run_sections({name: SECTIONS[name] for name in options.only or SECTIONS}, bench, bench.plan, folder)


if __name__ == "__main__":
    sys.exit(main())
