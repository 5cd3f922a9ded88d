"""What is asked of Python environments, and the parts that their measurement is made of."""

import pickle
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from benchmarks import contestants, python_contestants, python_environments, python_tasks, questions, train_questions
from benchmarks.own_native import BUILT_IN, own_cart_pole
from benchmarks.paired import Measurement, Pair, Plan, compare
from benchmarks.python_contestants import ASYNC, KINDS, LIMIT, LOOPS, RACEWAY, PythonSetting
from benchmarks.python_environments import SECTIONS, Benches
from benchmarks.python_tables import rates_tables
from benchmarks.results import Experiment, Section, section_record
from benchmarks.tasks import ACTIONS
from benchmarks.train_settings import OWN, RL, Setting
from benchmarks.turns import ContestantProcess

TINY = Plan(rounds=1, warmup_rounds=0, turn_s=0.01)
OTHERS = {"sb3": "benchmarks/.venv-rl/bin/python", "pufferlib": "benchmarks/.venv-puffer/bin/python"}
PEERS = "benchmarks/.venv/bin/python"
HAS_PEERS = all(Path(path).exists() for path in (PEERS, *OTHERS.values()))


def benches(puffer: str = sys.executable) -> Benches:
    others = {"sb3": sys.executable, "pufferlib": puffer}
    interpreters = {OWN: sys.executable, RL: sys.executable}
    return Benches(
        questions.Bench(TINY, sys.executable, others=others), train_questions.Bench(TINY, None, interpreters)
    )


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The questions that sections ask; nobody answers."""
    found: list[Any] = []

    def remember(self: object, question: Any) -> Experiment:
        found.append(question)
        return Experiment(question.words, "", None, Measurement({}, {}, {}), [])

    monkeypatch.setattr(questions.Bench, "answer", remember)
    monkeypatch.setattr(train_questions.Bench, "answer", remember)
    return found


def test_everybody_is_asked_for_the_same_work(asked: list[Any]):
    for section in SECTIONS.values():
        assert section(benches()).block == "python"
    for question in asked:
        if isinstance(question, questions.Question):
            same = {(way.task, way.num_envs, str(way.env_kwargs)) for way in question.settings.values()}
            settings = question.settings.values()
            is_python = all(isinstance(way, PythonSetting) for way in settings)
            assert {*(way.kind for way in settings), question.limit} <= set(KINDS if is_python else contestants.KINDS)
            assert {way.task for way in settings} <= set(ACTIONS)
            names = {*question.settings, question.limit}
        else:
            same = {replace(way, kind="", style="") for styles in question.players.values() for way in styles}
            names = set(question.players)
        assert len(same) == 1, question.words
        assert {name for pair in question.pairs for name in (pair.above, pair.below)} <= names


def test_the_goals_are_those_that_were_set(asked: list[Any]):
    for section in SECTIONS.values():
        section(benches())
    shares = {each.words: each.share_target for each in asked if isinstance(each, questions.Question)}
    assert shares["CartPole-v1, 64 envs"] == 0.85
    assert shares["Work, 64 envs"] == 0.95
    assert shares["Pictures, 64 envs"] == 0.90
    goals = {(each.words, pair.above, pair.below): pair.target for each in asked for pair in each.pairs}
    assert goals["CartPole-v1, 64 envs", RACEWAY, "gymnasium async"] == 5.0
    assert goals["CartPole-v1, 64 envs", RACEWAY, "pufferlib"] == 1.0
    assert goals["CartPole-v1, 64 envs", ASYNC, "pufferlib async"] == 1.0
    assert goals["a 64 x 64 policy in the worker", RACEWAY, LIMIT] == 0.93
    assert {goals[f"PPO, minibatches of {size}", RACEWAY, "sb3"] for size in (64, 256)} == {1.5}
    for how in ("step", "with a policy"):
        assert goals[f"CartPole-v1, 64 envs, {how}", "raceway own", RACEWAY] == 0.95


def test_a_users_header_is_the_built_in_one(tmp_path: Path):
    lines, built_in = own_cart_pole(tmp_path).read_text().splitlines(), BUILT_IN.read_text().splitlines()
    assert lines[-1].startswith("RACEWAY_ENV(")
    assert [line for line in built_in if line not in lines] == ['#include "../../env.hpp"']


def test_pufferlib_is_left_out_where_it_is_not_installed(asked: list[Any]):
    python_environments.cartpole(benches(puffer="no/such/python"))
    (question,) = asked
    assert not [name for name in question.settings if name.startswith("pufferlib")]
    assert not [pair for pair in question.pairs if pair.below.startswith("pufferlib")]


def test_missing_peers_are_named_with_the_command_that_installs_them(capsys: pytest.CaptureFixture[str]):
    assert python_environments.main(["--quick", "--rl", "no/such/python"]) == 2
    assert "`make bench-python`" in capsys.readouterr().err


@pytest.mark.parametrize("task", python_tasks.OWN)
def test_the_tasks_keep_gymnasiums_contract(task: str):
    make = pickle.loads(pickle.dumps(python_tasks.maker(task, rounds=3)))
    env = make()
    check_env(env, skip_render_check=True)
    first, second = env.reset(seed=1)[0], env.step(0)[0]
    assert not np.shares_memory(first, second)
    ends = [env.step(0)[3] for _ in range(python_tasks.EPISODE_STEPS - 1)]
    assert [index for index, end in enumerate(ends) if end] == [python_tasks.EPISODE_STEPS - 2]


def test_cartpole_has_no_checker():
    assert "PassiveEnvChecker" not in str(python_tasks.make("CartPole-v1"))
    assert "TimeLimit" in str(python_tasks.make("CartPole-v1"))


def test_work_is_as_much_as_asked():
    assert python_tasks.rounds_for(1e-9) == 1
    assert python_tasks.rounds_for(0.1) > 1000
    assert python_tasks.compute(1, 2) == python_tasks.compute(python_tasks.compute(1, 1), 1)


class Log:
    """Ends after every third step."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def reset(self) -> None:
        self.calls.append("reset")

    def step(self, action: int) -> tuple[None, float, bool, bool, None]:
        self.calls.append(action)
        return None, 0.0, len(self.calls) % 4 == 3, False, None


def test_the_loop_resets_instead_of_stepping_after_an_end():
    envs, ended = [Log(), Log()], [False, False]
    rows = [[step, 10 + step] for step in range(6)]
    assert python_contestants.run_loop(envs, rows[:3], ended) > 0
    python_contestants.run_loop(envs, rows[3:], ended)
    assert envs[0].calls == [0, 1, 2, "reset", 4, 5]
    assert envs[1].calls == [10, 11, 12, "reset", 14, 15]


def test_the_loop_counts_for_every_worker():
    steps, seconds = python_contestants.python_loop(PythonSetting(LIMIT, "Work", 4, env_kwargs={"rounds": 1}))(15)
    assert steps == 16
    assert seconds > 0


def test_loops_at_the_same_time_count_what_they_do_together():
    setting = PythonSetting(LOOPS, "Work", 4, env_kwargs={"rounds": 1})
    # In a contestant's process: the loops' own end with it.
    with ContestantProcess(setting.contestant("it", sys.executable)) as process:
        assert [process.turn(asked).steps for asked in (8, 9)] == [8, 12]


def test_rates_are_shown_with_their_share_of_the_limit():
    rates = {RACEWAY: [90.0, 80.0, 85.0], "peer": [10.0] * 3, LIMIT: [100.0] * 3}
    found = Measurement(rates, dict.fromkeys(rates, 1), {name: {"versions": {"numpy": "2"}} for name in rates})
    experiment = Experiment("Work, 8 envs", RACEWAY, LIMIT, found, [compare(rates, Pair(RACEWAY, LIMIT), limit=LIMIT)])
    machine = {"cpu": "a CPU", "cpus": 2, "kernel": "6.1", "python": "3.11.2", "memory_gib": 8.0, "date": "2026-01-01"}
    text = rates_tables([section_record(Section("work", "", "", 1, [experiment]), Plan(), machine)])
    assert text.splitlines()[:5] == [
        "|  | Work, 8 envs |",
        "| --- | --- |",
        "| raceway | 85.0 (0.85) |",
        "| peer | 10.0 (0.10) |",
        f"| {LIMIT} | 100 |",
    ]
    assert text.endswith("Versions: numpy 2.")


def _turn(kind: str, task: str, interpreter: str) -> None:
    kwargs = {"rounds": 10} if task in python_tasks.OWN else {}
    batch = 2 if kind in (ASYNC, "pufferlib async") else None
    setting = PythonSetting(kind, task, 4, batch, env_kwargs=kwargs)
    with ContestantProcess(setting.contestant("it", interpreter)) as process:
        assert process.facts["versions"]
        for _ in range(2):
            assert process.turn(40).steps >= 40


@pytest.mark.parametrize("kind", [RACEWAY, pytest.param(ASYNC, marks=pytest.mark.slow), LIMIT])
def test_raceways_side_takes_turns(kind: str):
    _turn(kind, "CartPole-v1", sys.executable)


@pytest.mark.slow
@pytest.mark.skipif(not HAS_PEERS, reason="the peers are not installed: make bench-python")
@pytest.mark.parametrize("task", ["CartPole-v1", "Pictures"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in (RACEWAY, ASYNC, LIMIT, LOOPS)])
def test_the_peers_take_turns(kind: str, task: str):
    _turn(kind, task, questions.Bench(TINY, PEERS, others=OTHERS).interpreter(kind))


WORK = Setting("", "benchmarks.python_tasks:Work", 4, num_steps=16, epochs=2, minibatch=32, work=10)


@pytest.mark.slow
@pytest.mark.parametrize(
    "setting",
    [
        replace(WORK, kind="collect", style="raceway"),
        replace(WORK, kind="collect", style="loop"),
        replace(WORK, kind="raceway", style="concurrent"),
        replace(WORK, kind="collect", task="CartPole-v1", style="own", work=0),
        replace(WORK, kind="sb3", style="subproc 1"),
    ],
    ids=lambda setting: f"{setting.kind}-{setting.style}",
)
def test_learners_take_turns_of_whole_rounds(setting: Setting):
    if setting.kind == "sb3" and not HAS_PEERS:
        pytest.skip("the peers are not installed: make bench-python")
    interpreters = {OWN: sys.executable, RL: OTHERS["sb3"]}
    with ContestantProcess(setting.contestant("it", interpreters), ready_timeout_s=250) as process:
        assert process.turn(3 * setting.batch).steps >= 3 * setting.batch
