"""How fast Python environments run: `python -m benchmarks.python_environments [--quick] [--only NAME]`.

Every section becomes `benchmarks/results/python_environments/<name>.json`; `python -m benchmarks.table` makes README's
tables of them, `python -m benchmarks.pages` those of docs/process-lane.md.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import contestants, questions, train, train_questions
from benchmarks.environments import PEERS, run_sections
from benchmarks.paired import Pair, Plan
from benchmarks.python_contestants import (
    ASYNC,
    GYMNASIUM_ASYNC,
    GYMNASIUM_SYNC,
    LIMIT,
    LOOPS,
    PUFFER,
    PUFFER_ASYNC,
    PUFFER_ONE,
    RACEWAY,
    SUBPROC,
    PythonSetting,
)
from benchmarks.python_tasks import rounds_for
from benchmarks.questions import Question
from benchmarks.results import RESULTS, Section
from benchmarks.table import SUBFOLDER
from benchmarks.train import SB3, SERIAL, STYLES
from benchmarks.train_questions import chosen_in_words, ways
from benchmarks.train_settings import OWN, RL, Setting

FOLDER = RESULTS / SUBFOLDER
BLOCK = "python"
PUFFER_PYTHON = "benchmarks/.venv-puffer/bin/python"
FULL = Plan(rounds=15, warmup_rounds=2, turn_s=0.4, ready_timeout_s=120.0)
TRAINING = replace(train.FULL, turn_s=1.0)
HEATS = replace(train.HEATS, turn_s=1.0)
QUICK = Plan(rounds=2, warmup_rounds=1, turn_s=0.1)
STEP_S = 1e-3

SHARE_OF_CARTPOLE, SHARE_OF_WORK, SHARE_OF_PICTURES, SHARE_WITH_POLICY = 0.85, 0.95, 0.90, 0.93
OVER_ASYNC, AHEAD, OVER_SB3, AS_FAST = 5.0, 1.0, 1.5, 0.95


@dataclass(frozen=True)
class Benches:
    """What the sections need: one for environments alone, one for learners."""

    pools: questions.Bench
    learners: train_questions.Bench

    @property
    def has_puffer(self) -> bool:
        """Whether PufferLib could be installed."""
        return Path(self.pools.others.get(PUFFER, "")).is_file()


def cartpole(benches: Benches) -> Section:
    """An environment whose step costs a few microseconds: what the lane costs shows."""
    goals = {
        GYMNASIUM_ASYNC: OVER_ASYNC,
        PUFFER: AHEAD,
        PUFFER_ONE: AHEAD,
        PUFFER_ASYNC: AHEAD,
        GYMNASIUM_SYNC: None,
        SUBPROC: None,
    }
    question = _against(benches, "CartPole-v1", 64, {}, goals, SHARE_OF_CARTPOLE)
    about = (
        '`gymnasium.make("CartPole-v1")` without its environment checker. *raceway async* and *pufferlib async*: '
        "batches of 32, first come, first served."
    )
    return _pools(benches, "cartpole", "CartPole, in Python", about, 20, [question])


def work(benches: Benches) -> Section:
    """An environment that computes for a millisecond."""
    goals = dict.fromkeys((GYMNASIUM_ASYNC, SUBPROC, PUFFER))
    asked = [_against(benches, "Work", num_envs, _millisecond(), goals, SHARE_OF_WORK) for num_envs in (64, 8)]
    about = "A Python environment that computes 1 ms a step."
    return _pools(benches, "work", "A millisecond a step", about, 21, asked)


def pictures(benches: Benches) -> Section:
    """The same, with large observations."""
    goals = dict.fromkeys((GYMNASIUM_ASYNC, SUBPROC, PUFFER))
    question = _against(benches, "Pictures", 64, _millisecond(), goals, SHARE_OF_PICTURES)
    about = "The same with observations of 84 x 84 x 4 bytes."
    return _pools(benches, "pictures", "Pictures", about, 22, [question])


def training(benches: Benches) -> Section:
    """The policy in the worker, and PPO from end to end."""
    base = Setting("raceway", "benchmarks.python_tasks:Work", 8, work=_millisecond()["rounds"])
    collection = train_questions.Question(
        "a 64 x 64 policy in the worker",
        {RACEWAY: ways(replace(base, kind="collect"), "raceway"), **_loop(base)},
        [Pair(RACEWAY, LIMIT, SHARE_WITH_POLICY)],
        LIMIT,
        benches.learners.plan,
    )
    # SB3's own default, and the size that the other tables have.
    asked = [collection, *(_ppo(benches, replace(base, minibatch=minibatch)) for minibatch in (64, 256))]
    experiments = benches.learners.answers("training", asked)
    about = (
        "The environment that computes 1 ms a step: 8 of it, rounds of 256 steps, PPO with 10 epochs. The "
        "limit has no policy and no learner. SB3 has its SubprocVecEnv." + chosen_in_words(experiments, STYLES)
    )
    return Section("training", "Training on it", about, 23, experiments, block=BLOCK)


def _ppo(benches: Benches, base: Setting) -> train_questions.Question:
    """From end to end, against SB3."""
    players = {
        RACEWAY: ways(base, "concurrent"),
        SERIAL: ways(base, "serial"),
        SB3: ways(replace(base, kind="sb3"), "subproc 1", "subproc 2"),
        **_loop(base),
    }
    pairs = [Pair(RACEWAY, SB3, OVER_SB3), Pair(RACEWAY, SERIAL), Pair(RACEWAY, LIMIT)]
    words = f"PPO, minibatches of {base.minibatch}"
    return train_questions.Question(words, players, pairs, LIMIT, benches.learners.plan)


def _loop(base: Setting) -> dict[str, Sequence[Setting]]:
    return {LIMIT: ways(replace(base, kind="collect"), "loop")}


def native(benches: Benches) -> Section:
    """A user's own native environment beside the built-in one that it is a copy of."""
    name, bare, task, own = "native", questions.LIMIT, ("CartPole-v1", 64), "raceway own"
    pool = Question(
        "CartPole-v1, 64 envs, step",
        {RACEWAY: contestants.Setting(RACEWAY, *task), own: contestants.Setting(own, *task)},
        (Pair(own, RACEWAY, AS_FAST),),
    )
    setting = Setting("collect", *task)
    collected = train_questions.Question(
        "CartPole-v1, 64 envs, with a policy",
        {RACEWAY: ways(setting, "raceway"), own: ways(setting, "own"), bare: ways(setting, "bare")},
        [Pair(own, RACEWAY, AS_FAST), Pair(RACEWAY, bare)],
        bare,
        replace(benches.learners.plan, turn_s=benches.learners.plan.turn_s / 3),
    )
    about = (
        "CartPole as a user's header, compiled by `raceway.load_native` (*raceway own*), and built in (*raceway*). The "
        "limit is the built-in one in a bare C++ loop."
    )
    section = _pools(benches, name, "A native environment of one's own", about, 24, [pool])
    return replace(section, experiments=[*section.experiments, *benches.learners.answers(name, [collected])])


SECTIONS: dict[str, Callable[[Benches], Section]] = {
    "cartpole": cartpole,
    "work": work,
    "pictures": pictures,
    "training": training,
    "native": native,
}


def _against(
    benches: Benches,
    task: str,
    num_envs: int,
    env_kwargs: dict[str, Any],
    goals: Mapping[str, float | None],
    share: float,
) -> Question:
    """Raceway's step call against its batches and the peers that are there, with the ratios that are wanted."""
    peers = {kind: goal for kind, goal in goals.items() if benches.has_puffer or not kind.startswith(PUFFER)}
    settings = {
        kind: PythonSetting(kind, task, num_envs, _batch(kind, num_envs), env_kwargs=env_kwargs)
        for kind in (RACEWAY, ASYNC, *peers, LOOPS)
    }
    pairs = (
        *(Pair(_rival(kind), kind, goal) for kind, goal in peers.items()),
        Pair(ASYNC, LIMIT),
    )
    return Question(f"{task}, {num_envs} envs", settings, pairs, share, limit=LIMIT)


def _rival(kind: str) -> str:
    """Who is compared with a peer: batches with batches."""
    return ASYNC if kind == PUFFER_ASYNC else RACEWAY


def _batch(kind: str, num_envs: int) -> int | None:
    return num_envs // 2 if kind in (ASYNC, PUFFER_ASYNC) else None


def _pools(benches: Benches, name: str, title: str, about: str, order: int, asked: Sequence[Question]) -> Section:
    section = benches.pools.section(name, title, about, order, asked)
    return replace(section, name=name, block=BLOCK)


@functools.cache
def _millisecond() -> dict[str, Any]:
    """How much work a step is, measured here and not by each contestant for itself."""
    return {"rounds": rounds_for(STEP_S)}


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.python_environments", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few short rounds, to see that it works; saves nothing")
    parser.add_argument("--only", choices=SECTIONS, action="append", metavar="NAME", help=", ".join(SECTIONS))
    parser.add_argument("--match", default="", metavar="TEXT", help="only settings that have this; saves nothing")
    parser.add_argument("--peers", default=PEERS, help="the Python that has benchmarks/peers.txt installed")
    parser.add_argument("--rl", default=train.INTERPRETERS[RL], help="the one that has benchmarks/rl.txt installed")
    parser.add_argument("--puffer", default=PUFFER_PYTHON, help="the one that has PufferLib; left out if there is none")
    parser.add_argument("--out", type=Path, help=f"folder for the results, instead of {FOLDER.name}")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Measures the sections asked for, prints their answers and writes their results."""
    options = _arguments(argv)
    for path in (options.peers, options.rl):
        if not Path(path).exists():
            message = f"No interpreter at {path}: the peers are not installed. `make bench-python` does it."
            print(message, file=sys.stderr)
            return 2
    others = {"sb3": options.rl, PUFFER: options.puffer}
    interpreters = {OWN: sys.executable, RL: options.rl}
    benches = Benches(
        questions.Bench(QUICK if options.quick else FULL, options.peers, match=options.match, others=others),
        train_questions.Bench(TRAINING, HEATS, interpreters, match=options.match),
    )
    if options.quick:
        benches = replace(benches, learners=replace(benches.learners, plan=train.QUICK, heats=None))
    if not benches.has_puffer:
        print(f"left out: PufferLib, there is no interpreter at {options.puffer}", file=sys.stderr)
    folder = options.out or (None if options.quick or options.match else FOLDER)
    sections = {name: SECTIONS[name] for name in options.only or SECTIONS}
    return run_sections(sections, benches, benches.pools.plan, folder)


if __name__ == "__main__":
    sys.exit(main())
