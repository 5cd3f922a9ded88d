"""What is asked of learners, and the parts that their measurement is made of."""

import json
import queue
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import train
from benchmarks.paired import Measurement, Pair, Plan
from benchmarks.results import Experiment
from benchmarks.train_questions import Bench, Question, chosen_in_words, fastest, ways
from benchmarks.train_settings import MODULES, OWN, RL, RLLIB, Setting
from benchmarks.train_solve import amounts_of
from benchmarks.turns import Contestant, ContestantProcess

TINY = Plan(rounds=1, warmup_rounds=0, turn_s=0.01)
OURS = {OWN: sys.executable, RL: sys.executable, RLLIB: sys.executable}
PEERS = {**OURS, RL: train.INTERPRETERS[RL], RLLIB: train.INTERPRETERS[RLLIB]}
HAS_PEERS = all(Path(path).exists() for path in PEERS.values())


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Question]:
    """Sections only collect their questions here."""
    found: list[Question] = []

    def answers(self: Bench, section: str, questions: Sequence[Question]) -> list[Experiment]:
        found.extend(questions)
        return []

    monkeypatch.setattr(Bench, "answers", answers)
    monkeypatch.setattr(train, "solve_amounts", lambda seeds: [])
    for section in train.SECTIONS.values():
        section(Bench(TINY, TINY, OURS))
    return found


def test_everybody_has_the_same_hyperparameters(asked: list[Question]):
    assert asked
    for question in asked:
        settings = [replace(way, kind="", style="") for styles in question.players.values() for way in styles]
        assert len(set(settings)) == 1, question.words


def test_every_kind_is_served_and_every_pair_can_be_compared(asked: list[Question]):
    for question in asked:
        assert {way.kind for styles in question.players.values() for way in styles} <= set(MODULES)
        names = {name for pair in question.pairs for name in (pair.above, pair.below)}
        assert names <= set(question.players)
        assert question.limit is None or question.limit in question.players


def test_rounds_are_whole_minibatches(asked: list[Question]):
    for question in asked:
        setting = next(iter(question.players.values()))[0]
        assert setting.batch % setting.minibatch == 0, question.words


def test_the_goals_are_those_that_were_set(asked: list[Question]):
    goals = {
        (question.words, pair.above, pair.below): pair.target
        for question in asked
        for pair in question.pairs
        if pair.target is not None
    }
    large = "8 envs x 256 steps, minibatches of 256"
    for peer, goal in {"sb3": 7.0, "rllib": 10.0, "sbx": 4.0, "envpool + jax": 2.3, "raceway serial": 1.0}.items():
        assert goals[large, "raceway", peer] == goal
    for task, goal in {
        "HalfCheetah-v5, 64 envs": 1.4,
        "HalfCheetah-v5, 8 envs": 3.0,
        "CartPole-v1, 64 envs": 10.0,
    }.items():
        assert goals[task, "raceway", "envpool + jax"] == goal
        assert goals[task, "raceway", "bare loop"] == 0.92
    assert goals["16 envs that wait 2 ms, 128 steps", "raceway central", "barrier loop"] == 2.5


def test_only_what_matches_is_asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def answer(self: Bench, question: Question) -> Experiment:
        return Experiment(question.words, "raceway", None, Measurement({}, {}, {}), [])

    monkeypatch.setattr(Bench, "answer", answer)
    found = train.ppo(Bench(TINY, TINY, OURS, match="minibatches of 2048"))
    assert [experiment.setting for experiment in found.experiments] == ["64 envs x 256 steps, minibatches of 2048"]
    assert "ppo 1/1" in capsys.readouterr().err


def test_missing_peers_are_named_with_the_command_that_installs_them(capsys: pytest.CaptureFixture[str]):
    assert train.main(["--quick", "--rl", "no/such/python"]) == 2
    assert "`make bench-train`" in capsys.readouterr().err


# A learner of a fixed speed, which its style tells.
SLEEPER = """
import json, sys, time
from benchmarks.turns import serve
setting = json.loads(sys.argv[1])
def turn(steps):
    return steps, steps / float(setting["style"])
serve(lambda: (turn, {"style": setting["style"]}))
"""


@pytest.fixture
def sleepers(monkeypatch: pytest.MonkeyPatch) -> None:
    def contestant(self: Setting, name: str, interpreters: dict[str, str]) -> Contestant:
        return Contestant(name, interpreters[OWN], ("-c", SLEEPER, json.dumps(asdict(self))))

    monkeypatch.setattr(Setting, "contestant", contestant)


@pytest.mark.usefixtures("sleepers")
def test_the_fastest_way_takes_part_and_the_heats_are_kept():
    base = Setting("raceway", "CartPole-v1", 8)
    players = {"raceway": ways(base, "8000"), "peer": ways(base, "1000", "4000", "2000")}
    question = Question("it", players, [Pair("raceway", "peer", 1.5)])
    found = Bench(TINY, TINY, OURS).answer(question)
    assert found.measurement.facts["peer"]["style"] == "4000"
    assert found.measurement.facts["peer"]["heats"] == pytest.approx({"1000": 1000, "4000": 4000, "2000": 2000})
    assert "heats" not in found.measurement.facts["raceway"]
    assert found.comparisons[0].ratio == pytest.approx(2.0)
    assert (
        chosen_in_words([found], {"4000": "in its best way"}) == " Fastest configurations found: peer in its best way."
    )


@pytest.mark.usefixtures("sleepers")
def test_without_heats_the_first_way_takes_part():
    base = Setting("raceway", "CartPole-v1", 8)
    players = {"raceway": ways(base, "8000"), "peer": ways(base, "1000", "4000")}
    found = Bench(TINY, None, OURS).answer(Question("it", players, [Pair("raceway", "peer")]))
    assert found.measurement.facts["peer"] == {"style": "1000"}
    assert chosen_in_words([found], {}) == ""


def test_fastest_is_the_place_of_the_highest_rate():
    assert fastest([1.0, 3.0, 2.0]) == 1


def test_an_attempt_counts_only_if_it_has_solved_the_task():
    found = {"mean": 480.0, "steps": 1000, "training_s": 5.0, "total_s": 12.0}
    training, total = amounts_of(1, found)
    assert (training.value, training.at_most, training.reached) == (5.0, 10.0, True)
    assert (total.value, total.at_most) == (12.0, None)
    assert next(amounts_of(1, found | {"mean": 474.0})).reached is False
    assert next(amounts_of(1, found | {"training_s": 11.0})).reached is False


@pytest.mark.parametrize("overlap", [True, False])
def test_a_turn_has_as_many_updates_as_rounds_and_they_may_overlap(overlap: bool):
    from benchmarks.train_raceway import Gate

    gate, log, rollouts, weights = Gate(), list[str](), queue.SimpleQueue[None](), queue.SimpleQueue[None]()
    collect, learn = gate.collecting(lambda: log.append("collect")), gate.learning(lambda: log.append("learn"))

    def collector() -> None:
        while True:
            weights.get()
            collect()
            rollouts.put(None)

    def learner() -> None:
        while True:
            rollouts.get()
            learn()
            weights.put(None)
            gate.learnt()

    for _ in range(2 if overlap else 1):
        weights.put(None)
    for part in (collector, learner):
        threading.Thread(target=part, daemon=True).start()
    gate.prime()
    assert log == ["collect"]
    for rounds in (3, 1):
        log.clear()
        gate.turn(rounds)
        assert sorted(log) == ["collect"] * rounds + ["learn"] * rounds


def test_a_run_that_fails_fails_the_turn():
    from benchmarks.train_raceway import Gate

    gate = Gate()
    gate.fail(ValueError("it is broken"))
    with pytest.raises(ValueError, match="it is broken"):
        gate.turn(1)


def test_rounds_get_the_same_memory_again():
    from benchmarks.train_collect import Arrays

    arrays, found = Arrays(), []
    for _ in range(2):
        arrays.begin()
        found.append([arrays.empty((2, 3), np.float32), arrays.empty((4,), np.int32)])
    assert all(first is second for first, second in zip(*found, strict=True))
    assert [array.shape for array in found[0]] == [(2, 3), (4,)]


def test_the_peers_advantages_are_those_of_the_definition():
    from benchmarks.learners_ppo import Storage, advantages

    setting = Setting("", "", 1, num_steps=3, gamma=0.5, gae_lambda=0.5)
    column = [np.array(values, np.float32)[:, None] for values in ([1.0, 2.0, 4.0], [0.5, 1.0, 2.0])]
    ends = np.array([[False], [True], [False]])
    round_ = Storage(None, None, None, column[1], column[0], ends)
    # Backwards: 4 + 0.5 * 8 - 2 = 6; 2 - 1 = 1, an end; 1 + 0.5 * 1 - 0.5 + 0.25 * 1 = 1.25.
    found = advantages(setting, round_, np.array([8.0], np.float32))  # type: ignore[arg-type]
    assert np.asarray(found)[:, 0] == pytest.approx([1.25, 1.0, 6.0])


@pytest.mark.slow
def test_the_peers_update_learns_what_is_rewarded():
    import jax

    from benchmarks import learners_ppo as ppo

    setting = Setting("", "", 16, num_steps=16, minibatch=64, learning_rate=3e-3)
    params, key = ppo.init(jax.random.key(0), 3, 2, continuous=False), jax.random.key(1)
    first_state, update = ppo.make_update(setting)
    state = first_state(params)
    obs = np.random.default_rng(0).normal(size=(16, 16, 3)).astype(np.float32)
    for _ in range(5):
        decision, key = ppo.act(params, obs.reshape(256, 3), key)  # type: ignore[arg-type]
        actions, log_probs, values = (
            np.asarray(x).reshape(16, 16) for x in (decision.actions, decision.log_probs, decision.values)
        )
        rewards, ends = (actions == 1).astype(np.float32), np.ones((16, 16), bool)
        round_ = ppo.Storage(obs, actions, log_probs, values, rewards, ends)
        params, state, _ = update(params, state, round_, obs[0], key)
    assert np.asarray(decision.actions).mean() > 0.8


def _turns(setting: Setting, interpreters: dict[str, str]) -> Iterator[tuple[int, float]]:
    with ContestantProcess(setting.contestant("it", interpreters), ready_timeout_s=250) as process:
        assert process.facts["versions"]
        for rounds in (1, 3):
            result = process.turn(rounds * setting.batch)
            yield result.steps, result.seconds


SMALL = Setting("", "CartPole-v1", 4, num_steps=16, epochs=2, minibatch=32)
OWN_WAYS = [
    *(replace(SMALL, kind="raceway", style=style) for style in ("concurrent", "serial", "limit")),
    *(replace(SMALL, kind="collect", style=style) for style in ("raceway", "bare")),
    *(replace(SMALL, task="Busy-v0", kind="wait", style=style) for style in ("worker", "central", "barrier")),
]
PEERS_WAYS = [
    *(
        replace(SMALL, kind="jax + envpool", style=style)
        for style in ("steps", "scan", "steps collect", "scan collect")
    ),
    *(replace(SMALL, kind=kind, style=style) for kind in ("sb3", "sbx") for style in ("dummy 1", "subproc 1")),
    *(replace(SMALL, kind="rllib", style=style) for style in ("0 1", "2 1")),
]


def _name(setting: Setting) -> str:
    return f"{setting.kind}-{setting.style}"


@pytest.mark.parametrize(
    "setting", [OWN_WAYS[0], *(pytest.param(way, marks=pytest.mark.slow) for way in OWN_WAYS[1:])], ids=_name
)
def test_raceways_ways_take_turns_of_whole_rounds(setting: Setting):
    assert [steps for steps, seconds in _turns(setting, OURS) if seconds > 0] == [setting.batch, 3 * setting.batch]


@pytest.mark.slow
@pytest.mark.skipif(not HAS_PEERS, reason="the peers are not installed: make bench-train")
@pytest.mark.parametrize("setting", PEERS_WAYS, ids=_name)
def test_the_peers_ways_take_turns_of_whole_rounds(setting: Setting):
    assert [steps for steps, seconds in _turns(setting, PEERS) if seconds > 0] == [setting.batch, 3 * setting.batch]
