"""What contestants do in a turn, with environments that only count."""

from typing import Any, Self

import numpy as np
import pytest

from benchmarks import contestants
from benchmarks.contestants import Actions, Setting
from benchmarks.environments import SECTIONS
from benchmarks.paired import Measurement, Plan
from benchmarks.questions import Bench, Question
from benchmarks.results import Experiment
from benchmarks.tasks import ACTIONS, Continuous, Discrete
from benchmarks.turns import TurnResult


class CountingPool:
    """Remembers what was sent; gives first-ready batches out in the order sent."""

    def __init__(self, num_envs: int, batch_size: int | None) -> None:
        self.num_envs = num_envs
        self.batch_size = batch_size or num_envs
        self.ready: list[int] = []
        self.received = 0
        self.actions: list[np.ndarray] = []
        self.reset_after: list[int] = []

    def reset(self, seed: int | None = None) -> None:
        """Remembers how many calls came before."""
        self.reset_after.append(len(self.actions))

    def step(self, actions: np.ndarray) -> None:
        self.actions.append(actions)

    def async_reset(self) -> None:
        self.ready = list(range(self.num_envs))

    def send(self, actions: np.ndarray, env_ids: np.ndarray) -> None:
        assert not set(env_ids) & set(self.ready), "an environment got a second action before its first was answered"
        assert len(actions) == len(env_ids)
        self.ready += list(env_ids)

    def recv(self) -> tuple[Any, ...]:
        assert len(self.ready) >= self.batch_size, "recv would wait forever"
        batch, self.ready = self.ready[: self.batch_size], self.ready[self.batch_size :]
        self.received += len(batch)
        return None, None, None, None, {"env_id": np.array(batch)}


def test_actions_have_the_tasks_type_shape_and_range():
    for task, space in ACTIONS.items():
        drawn = Actions(task, 8).draw(100)
        if isinstance(space, Discrete):
            assert (drawn.shape, drawn.dtype) == ((100, 8), np.int64)
            assert set(np.unique(drawn)) == set(range(space.n))
        else:
            assert isinstance(space, Continuous)
            assert (drawn.shape, drawn.dtype) == ((100, 8, space.size), np.float32)
            assert 0.9 * space.bound < np.abs(drawn).max() <= space.bound


def test_actions_are_new_every_turn_and_bounded():
    actions = Actions("Acrobot-v1", 1024)
    first, second = actions.draw(5), actions.draw(5)
    assert not np.array_equal(first, second)
    assert actions.draw(10**9).size <= 2**20


def test_sync_turn_counts_whole_batches_of_environment_steps():
    pool = CountingPool(8, None)
    turn = contestants.stepping(pool, Setting("raceway", "CartPole-v1", 8))
    steps, seconds = turn(20)
    assert steps == 24
    assert seconds > 0
    assert [len(row) for row in pool.actions] == [8, 8, 8]


def test_fresh_turns_start_from_a_reset_and_others_go_on():
    for fresh, resets in ((False, [0]), (True, [0, 0, 3])):
        pool = CountingPool(8, None)
        turn = contestants.stepping(pool, Setting("raceway", "Ant-v5", 8, fresh=fresh))
        turn(24)
        turn(24)
        assert pool.reset_after == resets


def test_async_turn_times_all_that_it_counts(monkeypatch: pytest.MonkeyPatch):
    pool = CountingPool(8, 2)
    monkeypatch.setattr(contestants, "_raceway_pool", lambda setting: pool)
    turn = contestants.raceway_async(Setting("raceway async", "CartPole-v1", 8, batch_size=2))
    for asked, counted in ((1, 8), (21, 22)):
        before = pool.received
        assert turn(asked)[0] == counted
        assert pool.received - before == counted
        assert not pool.ready


def test_async_batches_must_divide_the_environments():
    with pytest.raises(ValueError, match="whole batches, got 10 and 4"):
        contestants.raceway_async(Setting("raceway async", "CartPole-v1", 10, batch_size=4))


def test_bare_loop_runs_every_step_that_it_counts(monkeypatch: pytest.MonkeyPatch):
    class Bare:
        done = 0

        def bare_loop(self, task: str, num_envs: int, actions: np.ndarray, *, seed: int, step_us: float) -> float:
            assert (task, num_envs, step_us) == ("Busy-v0", 4, 20.0)
            self.done += actions.shape[0] * actions.shape[1]
            return 0.25

    bare = Bare()
    monkeypatch.setattr(contestants, "import_module", lambda name: bare)
    monkeypatch.setattr(contestants, "_MAX_DRAWN", 40)
    turn = contestants.bare_loop(Setting("bare loop", "Busy-v0", 4, env_kwargs={"step_us": 20.0}))
    assert turn(98) == (100, 0.75)
    assert bare.done == 100


def test_every_section_asks_answerable_questions(monkeypatch: pytest.MonkeyPatch):
    asked: list[Question] = []

    def remember(self: Bench, question: Question) -> Experiment:
        asked.append(question)
        return Experiment(question.words, "", None, Measurement({}, {}, {}), [])

    monkeypatch.setattr(Bench, "answer", remember)
    monkeypatch.setattr("benchmarks.environments.ContestantProcess", _NoProcess)
    monkeypatch.setattr("benchmarks.mujoco.ContestantProcess", _NoProcess)
    for section in SECTIONS.values():
        section(Bench(Plan(), "python"))
    assert len({question.words for question in asked if len(question.settings) > 1}) > 20
    for question in asked:
        for pair in question.pairs:
            assert {pair.above, pair.below} <= set(question.settings), question.words
        for setting in question.settings.values():
            assert setting.kind in contestants.KINDS
            assert setting.task in ACTIONS


class _NoProcess:
    """Stands for a contestant whose memory never grows."""

    def __init__(self, contestant: object, turn_timeout_s: float = 60.0) -> None:
        del contestant, turn_timeout_s
        self.facts = {"create_s": 1.0}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing to close."""

    def turn(self, steps: int) -> TurnResult:
        return TurnResult(steps, 1.0, 2**20)
