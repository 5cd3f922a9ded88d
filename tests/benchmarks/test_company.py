"""Players that are kept over several questions, with real processes."""

import sys
from pathlib import Path

import pytest

from benchmarks import graph
from benchmarks.company import BARE, LIMIT, Company, Player, Question, check_same_work
from benchmarks.paired import Measurement, Pair, Plan
from benchmarks.raceway_side import OWN
from benchmarks.results import Experiment
from benchmarks.turns import ContestantError
from benchmarks.workloads import WORKLOADS, Job

TINY = Plan(rounds=1, warmup_rounds=0, turn_s=0.01)
RAY = Path(graph.RAY_PYTHON)
JOBS = [
    Job("broadcast", 2, payload_bytes=10**6),
    Job("sampling", 3, "CartPole-v1"),
    Job("sampling", 3, "Blackjack-v1"),
    Job("inference", 3),
]


def test_all_styles_of_raceway_do_the_same_work():
    styles = ("inline", "threads", "spread", "processes", "inline-traced")
    players = {style: Player("benchmarks.raceway_side", style) for style in styles}
    with Company(TINY, sys.executable) as company:
        for job in JOBS:
            found = company.answer(Question("all", job, players, [Pair("threads", "inline")], share_target=0.1))
            assert set(found.measurement.rates) == {*styles, LIMIT}
            assert all(rate > 0 for rates in found.measurement.rates.values() for rate in rates)
            digests = {facts.get("digest") for facts in found.measurement.facts.values()}
            assert len(digests - {None}) == 1
            assert [(pair.above, pair.below) for pair in found.comparisons] == [
                ("threads", "inline"),
                ("inline", LIMIT),
            ]


@pytest.mark.slow
@pytest.mark.skipif(not RAY.exists(), reason="Ray is not installed: make bench-graph")
def test_all_styles_of_ray_do_the_same_work_as_raceway():
    players = {style: Player("benchmarks.ray_side", style) for style in ("actors", "compiled", "paper")}
    packed = {"packed": Player("benchmarks.ray_side", "packed")}
    with Company(TINY, str(RAY)) as company:
        for job in JOBS:
            others = players if job.experiment == "broadcast" else {**players, **packed}
            company.answer(Question("all", job, {"raceway": Player("benchmarks.raceway_side", "inline"), **others}))


@pytest.mark.parametrize(
    "job",
    [
        Job("react", 10),
        Job("hop", 1, payload_bytes=1000),
        Job("deliver", 2, payload_bytes=10**6),
        Job("overlap", 2),
    ],
)
def test_raceways_own_experiments_can_be_played(job: Job):
    with Company(TINY, sys.executable) as company:
        found = company.answer(Question("own", job, {"raceway": graph.PROCESSES}))
    assert found.measurement.rates["raceway"][0] > 0
    assert (LIMIT in found.measurement.rates) is job.has_limit


def test_different_work_is_not_compared():
    check_same_work({"a": {"digest": "1"}, "b": {"digest": "1"}, "limit": {}})
    with pytest.raises(ContestantError, match=r"same work.*'b': '2'"):
        check_same_work({"a": {"digest": "1"}, "b": {"digest": "2"}})


def test_a_player_that_fails_is_named_with_its_reason():
    with Company(TINY, sys.executable) as company, pytest.raises(ContestantError, match=r"'raceway'(?s:.*)NoSuchTask"):
        company.answer(Question("bad", Job("sampling", 1, "NoSuchTask"), {"raceway": graph.INLINE}))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Question]:
    """The questions that a company is asked; it answers none."""
    found: list[Question] = []

    def remember(self: Company, question: Question) -> Experiment:
        found.append(question)
        return Experiment(question.words, "", None, Measurement({"raceway": [2e5, 5e4, 1e5]}, {}, {}), [])

    monkeypatch.setattr(Company, "answer", remember)
    return found


def test_every_section_asks_answerable_questions(asked: list[Question]):
    company = Company(TINY, sys.executable)
    for section in graph.SECTIONS.values():
        assert section(graph.Bench(company, TINY)).block == "graph"
    assert len({question.words for question in asked}) == len(asked) > 15
    modules = {player.module for question in asked for player in question.players.values()}
    assert modules == {"benchmarks.raceway_side", "benchmarks.ray_side"}
    assert BARE.module not in modules
    for question in asked:
        assert question.job.experiment in {*WORKLOADS, *OWN}
        for pair in question.pairs:
            assert {pair.above, pair.below} <= set(question.players), question.words


def test_goals_over_ray_are_those_of_the_issue(asked: list[Question]):
    bench = graph.Bench(Company(TINY, sys.executable), TINY)
    for section, goal in ((graph.sampling, 10.0), (graph.inference, 5.12)):
        asked.clear()
        section(bench)
        for question in asked:
            assert {pair.below: pair.target for pair in question.pairs if pair.target} == dict.fromkeys(
                ("ray", "ray compiled"), goal
            )


def test_microseconds_are_those_of_the_median_rate(asked: list[Question]):
    amounts = graph.own(graph.Bench(Company(TINY, sys.executable), TINY)).amounts
    assert [(amount.value, amount.at_most, amount.reached) for amount in amounts] == [
        (pytest.approx(10.0), 10.0, True),
        (pytest.approx(10.0), 30.0, True),
    ]


def test_only_what_matches_is_asked(asked: list[Question]):
    graph.broadcast(graph.Bench(Company(TINY, sys.executable), TINY, match="10 MB to 4"))
    assert [question.words for question in asked] == ["10 MB to 4 and back"]


def test_missing_ray_is_named_with_the_command_that_installs_it(capsys: pytest.CaptureFixture[str]):
    assert graph.main(["--quick", "--ray", "no/such/python"]) == 2
    assert "`make bench`" in capsys.readouterr().err
