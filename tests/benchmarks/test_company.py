"""Players that are kept over several questions, with real processes."""

import sys
from pathlib import Path

import pytest

from benchmarks import graph
from benchmarks.company import LIMIT, Company, Player, Question, check_same_work
from benchmarks.paired import Measurement, Plan
from benchmarks.raceway_side import OWN
from benchmarks.results import Experiment
from benchmarks.turns import ContestantError
from benchmarks.workloads import WORKLOADS, Job

TINY = Plan(rounds=1, warmup_rounds=0, turn_s=0.01)
RAY = Path(graph.RAY_PYTHON)
JOBS = [Job("broadcast", 2, payload_bytes=10**6), Job("sampling", 3, "Blackjack-v1"), Job("inference", 3)]


@pytest.mark.slow
def test_all_styles_of_raceway_do_the_same_work():
    players = {style: Player("benchmarks.raceway_side", style) for style in ("inline", "threads-traced", "spread")}
    with Company(TINY, sys.executable) as company:
        for job in JOBS:
            found = company.answer(Question("all", job, players, goals={LIMIT: 0.1}))
            assert [experiment.setting for experiment in found] == [f"all, {style}" for style in players]
            for experiment in found:
                assert set(experiment.measurement.rates) == {"raceway", LIMIT}
                assert all(rate > 0 for rates in experiment.measurement.rates.values() for rate in rates)
            assert len({experiment.measurement.facts["raceway"]["digest"] for experiment in found}) == 1


@pytest.mark.slow
@pytest.mark.skipif(not RAY.exists(), reason="Ray is not installed: make bench-graph")
def test_all_styles_of_ray_do_the_same_work_as_raceway():
    with Company(TINY, str(RAY)) as company:
        for job in JOBS:
            others = graph.ACTORS if job.experiment == "broadcast" else {**graph.ACTORS, **graph.PACKED}
            assert company.answer(Question("all", job, {"": graph.INLINE}, others))


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
        (found,) = company.answer(Question("own", job, {"": graph.PROCESSES}))
    assert found.setting == "own"
    assert found.measurement.rates["raceway"][0] > 0
    assert (LIMIT in found.measurement.rates) is job.has_limit


def test_each_place_is_an_answer_and_the_goals_are_for_the_first():
    places = {"here": graph.THREADS, "there": graph.SPREAD}
    question = Question("it", Job("inference", 4), places, {"ray": graph.ACTORS["ray"]}, {"ray": 2.0, LIMIT: 0.5})
    rates = {"raceway here": [8.0] * 3, "raceway there": [6.0] * 3, "ray": [2.0] * 3, LIMIT: [10.0] * 3}
    measurement = Measurement(rates, dict.fromkeys(rates, 1), {name: {} for name in rates})
    here, there = question.experiments(measurement)
    assert (here.setting, there.setting) == ("it, here", "it, there")
    assert [(pair.above, pair.below, pair.ratio, pair.target) for pair in here.comparisons] == [
        ("raceway", "ray", 4.0, 2.0),
        ("raceway", LIMIT, 0.8, 0.5),
    ]
    assert [(pair.ratio, pair.target) for pair in there.comparisons] == [(3.0, None), (0.6, None)]
    assert there.measurement.rates == {"raceway": [6.0] * 3, "ray": [2.0] * 3, LIMIT: [10.0] * 3}


def test_different_work_is_not_compared():
    check_same_work({"a": {"digest": "1"}, "b": {"digest": "1"}, "limit": {}})
    with pytest.raises(ContestantError, match=r"same work.*'b': '2'"):
        check_same_work({"a": {"digest": "1"}, "b": {"digest": "2"}})


def test_a_player_that_fails_is_named_with_its_reason():
    with (
        Company(TINY, sys.executable) as company,
        pytest.raises(ContestantError, match=r"'raceway here'(?s:.*)NoSuchTask"),
    ):
        company.answer(Question("bad", Job("sampling", 1, "NoSuchTask"), {"here": graph.INLINE}))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Question]:
    """The questions that a company is asked; it answers none."""
    found: list[Question] = []

    def remember(self: Company, question: Question) -> list[Experiment]:
        found.append(question)
        return [Experiment(question.words, "", None, Measurement({"raceway": [2e5, 5e4, 1e5]}, {}, {}), [])]

    monkeypatch.setattr(Company, "answer", remember)
    return found


def test_every_section_asks_answerable_questions(asked: list[Question]):
    company = Company(TINY, sys.executable)
    for section in graph.SECTIONS.values():
        assert section(graph.Bench(company, TINY)).block == "graph"
    assert len({(question.words, *question.places) for question in asked}) == len(asked) > 15
    modules = {player.module for question in asked for player in question.players().values()}
    assert modules == {"benchmarks.raceway_side", "benchmarks.ray_side", "benchmarks.bare_side"}
    for question in asked:
        assert question.job.experiment in {*WORKLOADS, *OWN}
        assert set(question.goals) <= set(question.players()), question.words


def test_goals_over_ray_are_for_its_faster_way_too(asked: list[Question]):
    bench = graph.Bench(Company(TINY, sys.executable), TINY)
    for section, goal in ((graph.sampling, 10.0), (graph.inference, 5.12)):
        asked.clear()
        section(bench)
        assert all(question.goals == {"ray": goal, "ray compiled": goal} for question in asked)


def test_microseconds_are_those_of_the_median_rate(asked: list[Question]):
    amounts = graph.own(graph.Bench(Company(TINY, sys.executable), TINY)).amounts
    assert [(amount.value, amount.at_most, amount.reached) for amount in amounts] == [
        (pytest.approx(10.0), 10.0, True),
        (pytest.approx(10.0), 30.0, True),
    ]


def test_only_what_matches_is_asked(asked: list[Question], capsys: pytest.CaptureFixture[str]):
    graph.broadcast(graph.Bench(Company(TINY, sys.executable), TINY, match="10 MB to 4"))
    assert [question.words for question in asked] == ["10 MB to 4 and back"]
    assert "broadcast 1/1: 10 MB to 4 and back" in capsys.readouterr().err


def test_missing_ray_is_named_with_the_command_that_installs_it(capsys: pytest.CaptureFixture[str]):
    assert graph.main(["--quick", "--ray", "no/such/python"]) == 2
    assert "`make bench`" in capsys.readouterr().err
