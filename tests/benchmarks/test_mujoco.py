"""What is asked of MuJoCo tasks, without asking it."""

import sys

import numpy as np
import pytest
from gymnasium.spaces import Box

import raceway
from benchmarks import mujoco
from benchmarks.contestants import Setting
from benchmarks.paired import Measurement, Plan
from benchmarks.questions import Bench, Question
from benchmarks.results import Experiment
from benchmarks.tasks import MUJOCO, Continuous
from benchmarks.turns import Contestant


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Question]:
    """The questions that a bench is asked; it answers none."""
    found: list[Question] = []

    def remember(self: Bench, question: Question) -> Experiment:
        found.append(question)
        return Experiment(question.words, "", None, Measurement({}, {}, {}), [])

    monkeypatch.setattr(Bench, "answer", remember)
    return found


def test_every_task_is_asked_at_both_sizes_with_its_goals(asked: list[Question]):
    section = mujoco.mujoco(Bench(Plan(), "python"))
    assert (section.block, section.by_task) == ("mujoco", True)
    assert len(asked) == 2 * len(MUJOCO) == 22
    shares = {question.words: question.share_target for question in asked}
    assert shares["HalfCheetah-v5, 64 envs"] == 0.92
    assert shares["Ant-v5, 64 envs"] == 0.90
    assert shares["HalfCheetah-v5, 8 envs"] == 0.85
    over_envpool = {question.words: question.pairs[0].target for question in asked}
    assert over_envpool.pop("HalfCheetah-v5, 64 envs") == 1.6
    assert set(over_envpool.values()) == {1.0}


def test_turns_start_from_a_reset_and_slow_ones_are_stretched(asked: list[Question]):
    mujoco.mujoco(Bench(Plan(turn_s=0.1), "python"))
    for question in asked:
        assert question.plan is not None
        assert question.plan.stretch > 1
        assert all(setting.fresh for setting in question.settings.values())
        assert question.plan.turn_s == (0.2 if question.words.endswith(" 64 envs") else 0.1)


def test_only_what_matches_is_asked(asked: list[Question], capsys: pytest.CaptureFixture[str]):
    mujoco.mujoco(Bench(Plan(), "python", match="Humanoid-v5, 8"))
    assert [question.words for question in asked] == ["Humanoid-v5, 8 envs"]
    assert "mujoco 1/1: Humanoid-v5, 8 envs" in capsys.readouterr().err


@pytest.mark.parametrize("task", MUJOCO)
def test_actions_fill_the_tasks_action_space(task: str):
    drawn = MUJOCO[task]
    assert isinstance(drawn, Continuous)
    envs = raceway.make(task, 1)
    space = envs.single_action_space
    envs.close()
    assert space == Box(-drawn.bound, drawn.bound, (drawn.size,), np.float32)


def test_cost_of_many_is_measured_in_a_real_process():
    seconds, memory = mujoco._cost(Bench(Plan(), sys.executable, many_envs=3), "raceway")
    assert (seconds.setting, seconds.unit, seconds.at_most) == ("Ant-v5, 3 envs", "s", 2.0)
    assert 0.0 < seconds.value < 60.0
    assert 0.01 < memory.value < 1.0
    assert memory.reached


def test_a_peer_that_cannot_do_it_is_left_out(capsys: pytest.CaptureFixture[str]):
    assert not list(mujoco._cost(Bench(Plan(), "no/such/python", many_envs=3), "envpool"))
    assert "left out: Contestant 'Ant-v5, 3 envs (envpool)' could not be started" in capsys.readouterr().err


def test_a_peers_cost_has_no_goal(monkeypatch: pytest.MonkeyPatch):
    def stand_in(self: Setting, name: str, interpreter: str) -> Contestant:
        program = "from benchmarks.turns import serve; serve(lambda: (lambda steps: (steps, 1.0), {'create_s': 9.0}))"
        return Contestant(name, sys.executable, ("-c", program))

    monkeypatch.setattr(Setting, "contestant", stand_in)
    seconds, memory = mujoco._cost(Bench(Plan(), "python", many_envs=3), "envpool")
    assert (seconds.value, seconds.at_most, seconds.reached) == (9.0, None, None)
    assert (memory.at_most, memory.reached) == (None, None)
