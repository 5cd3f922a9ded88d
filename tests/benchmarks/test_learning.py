"""Learning studies: what is run, what is kept of it, and what is made of the numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.learning import presets, records, running
from benchmarks.learning.__main__ import main
from benchmarks.learning.digest import digest_of
from benchmarks.learning.pictures import draw_study
from benchmarks.learning.records import Record
from benchmarks.learning.sections import beside_sb3, learning_in_brief
from benchmarks.learning.studies import SB3, STUDIES
from benchmarks.learning.study import Job, Setting, Study, Task
from benchmarks.learning.tables import NOTHING, final_table, over_run_table, overall, ratio, seconds_table, seconds_to

TINY = {"num_envs": 4, "n_steps": 32, "batch_size": 64, "n_epochs": 1, "hidden": (4,)}
STUDY = Study(
    "tiny",
    "Does it work?",
    tasks=[Task("CartPole-v1", 512, TINY)],
    settings=[Setting("serial", {"schedule": "serial"}), Setting("concurrent", {"schedule": "concurrent"})],
    seeds=[1, 2],
    episodes=3,
    speed_steps=256,
)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Study:
    """The tiny study among those that the command knows."""
    monkeypatch.setitem(STUDIES, "tiny", STUDY)
    return STUDY


def _record(setting: str, seed: int, returns: list[float], **changes: object) -> Record:
    curve = [[100.0 * (place + 1), value] for place, value in enumerate(returns)]
    return replace(Record(setting, seed, "", int(curve[-1][0]), 1.0, curve), **changes)  # type: ignore[arg-type]


def _keep(study: Study, folder: Path, *found: Record) -> None:
    """As if a run of the study had given it."""
    for each in found:
        setting = next(setting for setting in study.settings if setting.name == each.setting)
        job = Job(study.name, study.tasks[0], setting, each.seed)
        records.append(job, replace(each, digest=each.digest or digest_of(job, study.episodes)), folder)


def _keep_speed(study: Study, folder: Path, rates: dict[str, dict[str, list[float]]]) -> None:
    for task in study.tasks:
        records.keep_speeds(study, task, rates[task.name], folder)


def test_jobs_come_seed_by_seed_and_those_that_need_the_machine_last() -> None:
    study = replace(STUDY, settings=[replace(STUDY.settings[0], alone=True), STUDY.settings[1]])
    assert [(job.seed, job.setting.name) for job in study.jobs()] == [
        (1, "concurrent"), (2, "concurrent"), (1, "serial"), (2, "serial")
    ]  # fmt: skip


def test_a_run_is_one_line_and_is_repeated_only_under_other_settings(tmp_path: Path) -> None:
    jobs = list(STUDY.jobs())
    running.run_one(jobs[0], STUDY.episodes, tmp_path)
    (record,) = records.read("tiny", "CartPole-v1", tmp_path)
    assert (record.setting, record.seed, record.steps) == ("serial", 1, 512)
    assert record.final is not None
    assert record.curve[0][0] <= record.curve[-1][0] == 512
    assert [job.name for job in running.pending(STUDY, tmp_path)] == [job.name for job in jobs[1:]]
    longer = replace(STUDY, tasks=[replace(STUDY.tasks[0], total_steps=1024)])
    assert len(running.pending(longer, tmp_path)) == 4
    running.run_one(jobs[0], STUDY.episodes, tmp_path)
    (again,) = records.read("tiny", "CartPole-v1", tmp_path)
    assert again.curve == record.curve  # the same seed, the same bits
    assert again.final == record.final


def test_results_are_small(tmp_path: Path) -> None:
    curve = records.thinned(list(range(0, 100_000, 10)), np.random.default_rng(0).normal(size=10_000).tolist())
    assert len(curve) == records.POINTS
    assert (curve[0][0], curve[-1][0]) == (0, 99_990)
    _keep(STUDY, tmp_path, replace(_record("serial", 1, [1.0]), curve=curve))
    assert records.path_of("tiny", "CartPole-v1", tmp_path).stat().st_size < 1500


def test_a_record_replaces_the_one_before(tmp_path: Path) -> None:
    _keep(STUDY, tmp_path, _record("serial", 2, [1.0]), _record("serial", 1, [2.0]), _record("serial", 2, [3.0]))
    found = records.read("tiny", "CartPole-v1", tmp_path)
    assert [(each.seed, each.last) for each in found] == [(1, 2.0), (2, 3.0)]


def test_a_record_under_other_settings_does_not_count(tmp_path: Path) -> None:
    _keep(STUDY, tmp_path, _record("serial", 1, [5.0], digest="another"), _record("serial", 2, [7.0]))
    assert [each.seed for each in records.of_study(STUDY, tmp_path)["CartPole-v1"]["serial"]] == [2]
    assert "**7.00**" in over_run_table(STUDY, "serial", tmp_path)
    evaluated_longer = replace(STUDY, episodes=100)
    assert over_run_table(evaluated_longer, "serial", tmp_path) == NOTHING


def test_the_ratio_of_two_settings_and_its_interval() -> None:
    found = ratio([8.0, 9.0, 10.0, 11.0, 12.0], [10.0] * 5)
    assert found is not None
    assert found.value == pytest.approx(1.0)
    assert 0.8 <= found.low < 1.0 < found.high <= 1.2
    negative = ratio([-90.0] * 3, [-100.0] * 3)  # less far below zero is better
    assert negative is not None
    assert negative.value == pytest.approx(1.1)
    assert ratio([5.0, -3.0, 8.0], [1.0, -2.0, 2.0]) is None
    assert ratio([5.0, 6.0], [5.0, 6.0]) is None


def test_tasks_count_alike_whatever_their_returns() -> None:
    small, large = ([1.0, 1.1, 0.9], [1.0] * 3), ([2000.0, 2200.0, 1800.0], [1000.0] * 3)
    found = overall([small, large])
    assert found is not None
    assert found.value == pytest.approx(1.475)  # of 1, 1.1, 1.8 and 2
    assert found.low < 1.475 < found.high
    assert overall([([1.0] * 3, [-1.0, 0.0, 1.0])]) is None


def test_the_return_over_the_run_is_a_mean_over_steps() -> None:
    record = _record("serial", 1, [0.0, 100.0, 100.0])
    assert record.mean_over(100, 300) == pytest.approx(75.0, abs=0.5)
    assert record.mean_over(100, 200) == pytest.approx(50.0)
    assert record.mean_over(100, 1) == 0.0


def test_runs_are_compared_from_when_all_have_a_return(tmp_path: Path) -> None:
    late = replace(_record("concurrent", 1, [0.0, 100.0]), curve=[[200.0, 100.0], [300.0, 200.0]], steps=300)
    _keep(STUDY, tmp_path, _record("serial", 1, [0.0, 100.0, 200.0]), late)
    assert "| CartPole-v1, 300 steps | **150.0** | **150.0** |" in over_run_table(STUDY, "serial", tmp_path)


def test_equal_seconds_are_those_of_the_fastest(tmp_path: Path) -> None:
    slow, fast = _record("serial", 1, [0.0, 100.0, 200.0]), _record("concurrent", 1, [0.0, 100.0, 200.0])
    _keep(STUDY, tmp_path, slow, fast)
    assert seconds_table(STUDY, "serial", tmp_path) == NOTHING
    rates = {"CartPole-v1": {"serial": [50.0, 1.0, 99.0], "concurrent": [100.0]}}
    _keep_speed(STUDY, tmp_path, rates)
    table = seconds_table(STUDY, "serial", tmp_path)  # from 2 s to 3 s: 100 to 150 steps, and 200 to 300
    assert "| CartPole-v1, 3 s | **25.00**, 50.0 steps/s | **150.0**, 100 steps/s |" in table


def test_a_speed_under_other_settings_is_out_of_date(tmp_path: Path) -> None:
    _keep_speed(STUDY, tmp_path, {"CartPole-v1": {"serial": [50.0], "concurrent": [60.0]}})
    _keep_speed(STUDY, tmp_path, {"CartPole-v1": {"concurrent": [70.0]}})  # what is not measured again stays
    assert records.speeds(STUDY, tmp_path) == {"CartPole-v1": {"serial": [50.0], "concurrent": [70.0]}}
    changed = replace(STUDY, settings=[STUDY.settings[0], replace(STUDY.settings[1], options={"gamma": 0.5})])
    assert records.speeds(changed, tmp_path) == {"CartPole-v1": {"serial": [50.0]}}


def test_seconds_to_a_return() -> None:
    found = [_record("serial", 1, [0.0, 100.0, 200.0]), _record("serial", 2, [0.0, 10.0, 20.0])]
    assert seconds_to(found, 100.0, 50.0) == [4.0, np.inf]


def test_the_time_to_a_return_that_others_told(tmp_path: Path) -> None:
    assert presets.goals_table(tmp_path) == NOTHING
    study = presets.presets_study()
    study = replace(study, tasks=[each for each in study.tasks if each.name == "Ant-v5"])
    reached = _record("preset", presets.SEEDS[0], [0.0, 4000.0, 3000.0])
    _keep(study, tmp_path, reached)
    assert presets.goals_table(tmp_path) == NOTHING
    _keep_speed(study, tmp_path, {"Ant-v5": {"preset": [2.0, 1.0, 9.0]}})
    assert "| Ant-v5 | 4,000 | 1:40 | 200 | 4,000 | 2 |" in presets.goals_table(tmp_path)
    _keep(study, tmp_path, replace(reached, curve=reached.curve[:1]))
    assert "| Ant-v5 | 4,000 | not reached |  | 0.00 | 2 |" in presets.goals_table(tmp_path)


def test_what_is_not_measured_is_not_shown(tmp_path: Path) -> None:
    assert over_run_table(STUDY, "serial", tmp_path) == NOTHING
    _keep(STUDY, tmp_path, _record("serial", 1, [5.0]))
    assert "| CartPole-v1, 100 steps | **5.00** |  |" in over_run_table(STUDY, "serial", tmp_path)
    assert final_table(STUDY, "serial", tmp_path) == NOTHING


def test_sb3s_time_and_ours_to_what_it_ends_with(tmp_path: Path) -> None:
    study = replace(SB3, tasks=SB3.tasks[:1], seeds=[1])
    _keep(study, tmp_path, _record("sb3", 1, [0.0, 50.0, 100.0]), _record("raceway", 1, [0.0, 100.0, 200.0]))
    rates = {study.tasks[0].name: {"sb3": [1.0], "raceway": [10.0]}}
    _keep_speed(study, tmp_path, rates)
    assert "| 100.0 | 5:00 | 0:20 | 15.0 | 1.00 | 10.0 |" in beside_sb3(study, tmp_path)
    assert "| 100.0 | 5:00 | 0:20 | 15.0 |\n" in learning_in_brief(study, tmp_path) + "\n"
    assert learning_in_brief(study, tmp_path / "nothing") == NOTHING


def test_curves_are_drawn_over_steps_and_seconds(tmp_path: Path) -> None:
    _keep(STUDY, tmp_path, *(_record("serial", seed, [1.0, 2.0, 3.0]) for seed in (1, 2, 3)))
    draw_study(STUDY, tmp_path / "one.svg", folder=tmp_path)
    _keep_speed(STUDY, tmp_path, {"CartPole-v1": {"serial": [10.0]}})
    draw_study(STUDY, tmp_path / "two.svg", seconds=True, folder=tmp_path)
    assert "environment steps" in (tmp_path / "one.svg").read_text()
    assert "time (s)" not in (tmp_path / "one.svg").read_text()
    assert "time (s)" in (tmp_path / "two.svg").read_text()


def test_what_presets_reached_is_written_beside_them(tmp_path: Path) -> None:
    (task,) = [task for task in presets.presets_study().tasks if task.name == "CartPole-v1"]
    study = replace(presets.presets_study(), tasks=[task])
    for place, final in enumerate((490.0, 500.0, 495.0)):
        _keep(study, tmp_path, _record("preset", study.seeds[place], [1.0], final=final))
    presets.write_results(tmp_path, tmp_path / "presets.json")
    assert json.loads((tmp_path / "presets.json").read_text()) == {}  # how long it takes is not known
    _keep_speed(study, tmp_path, {"CartPole-v1": {"preset": [100.0]}})
    presets.write_results(tmp_path, tmp_path / "presets.json")
    told = json.loads((tmp_path / "presets.json").read_text())
    assert list(told) == ["CartPole-v1 ppo"]
    assert told["CartPole-v1 ppo"]["evaluation"] == 495.0
    assert told["CartPole-v1 ppo"]["seconds"] == 1.0
    assert told["CartPole-v1 ppo"]["command"] == f"raceway train CartPole-v1 --seed {study.seeds[0]}"


@pytest.mark.slow
def test_the_command_runs_what_is_missing_and_shows_it(
    tmp_path: Path, known: Study, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_this_process(job: Job, folder: Path) -> int:
        running.run_one(job, known.episodes, folder)
        return 0

    # The processes of a run have only the studies that are shipped.
    monkeypatch.setattr(running, "_in_process", in_this_process)
    options = ["tiny", "--folder", str(tmp_path)]
    assert main(["run", *options, "--seeds", "1"]) == 0
    assert "2 of 2 runs are missing" in capsys.readouterr().out
    assert main(["run", *options]) == 0
    assert "2 of 4 runs are missing" in capsys.readouterr().out
    assert main(["table", *options]) == 0
    assert "| CartPole-v1, 512 steps | **" in capsys.readouterr().out
    assert main(["pace", *options, "--settings", "serial", "--seeds", "1", "--steps", "256"]) == 0
    assert float(capsys.readouterr().out) > 0
    monkeypatch.setattr(running, "_speed_of", lambda job, steps: 100.0 if job.setting.name == "serial" else 110.0)
    monkeypatch.setattr(running, "MACHINE", tmp_path / "machine")
    assert main(["speed", *options, "--turns", "2"]) == 0
    assert records.speeds(STUDY, tmp_path)["CartPole-v1"] == {"serial": [100.0] * 2, "concurrent": [110.0] * 2}
    assert main(["draw", *options, str(tmp_path / "curves.svg")]) == 0
    assert (tmp_path / "curves.svg").read_text().startswith("<?xml")


@pytest.mark.slow
def test_a_job_that_fails_is_counted_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "ERRORS", tmp_path / "errors.log")
    monkeypatch.setattr(running, "MACHINE", tmp_path / "machine")
    (job, *_) = STUDY.jobs()
    assert running.run_all([replace(job, study="no-such-study")], 1, tmp_path) == 1
    assert "no-such-study" in (tmp_path / "errors.log").read_text()
