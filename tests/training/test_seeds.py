"""Several seeds: which they are, what each is told, and what becomes of them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import threading
from pathlib import Path
from typing import Any

import gymnasium
import pytest

import raceway
from raceway.errors import SeedsError, SettingError
from raceway.training.folder import RunFolder
from raceway.training.processes import Ending
from raceway.training.resolve import resolve
from raceway.training.seeds import Progress, SeedSeries, last_row, spelled_out

SHORT: dict[str, Any] = {"total_steps": 2048, "evaluation": {"enabled": False}}


def test_seeds_are_counted_from_the_first_or_are_those_that_are_named(tmp_path: Path) -> None:
    config = resolve("CartPole-v1", seed=7, log={"directory": str(tmp_path), "name": "x"})
    series = SeedSeries(config, 3, jobs=1)
    assert series.seeds == [7, 8, 9]
    assert [folder.path for folder in series.folders] == [tmp_path / f"CartPole-v1/x-seed{seed}" for seed in (7, 8, 9)]
    assert SeedSeries(config, [5, 2], jobs=1).seeds == [5, 2]


@pytest.mark.parametrize("seeds", [0, -1, True, [], [1, 1], [1, -1], [1.5], [2**64]])
def test_seeds_that_make_no_sense_are_refused(seeds: Any) -> None:
    with pytest.raises(SettingError, match="seeds="):
        SeedSeries(resolve("CartPole-v1"), seeds, jobs=1)


def test_without_a_name_the_folders_are_new_and_share_their_time(tmp_path: Path) -> None:
    config = resolve("CartPole-v1", log={"directory": str(tmp_path)})
    first = SeedSeries(config, 2, jobs=1)
    names = [folder.path.name for folder in first.folders]
    assert names[0].replace("ppo-1-", "") == names[1].replace("ppo-2-", "")
    first.folders[1].path.mkdir(parents=True)
    second = SeedSeries(config, 2, jobs=1)
    assert not {folder.path for folder in second.folders} & {first.folders[1].path}


def test_runs_side_by_side_are_quiet_and_share_the_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raceway.training.seeds.usable_cpus", lambda: 8)
    config = resolve("CartPole-v1")
    series = SeedSeries(config, 9, jobs=None)
    assert series.jobs == 4
    assert {(each.log.quiet, each.num_workers) for each in series.configs} == {(True, 2)}
    alone = SeedSeries(config, 9, jobs=1)
    assert {(each.log.quiet, each.num_workers) for each in alone.configs} == {(False, None)}
    assert SeedSeries(config, 1, jobs=None).jobs == 1
    assert SeedSeries(resolve("CartPole-v1", num_workers=3), 9, jobs=4).configs[0].num_workers == 3


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"algo": "a2c", "gamma": 0.9},
        {"algo": "impala", "schedule": "serial"},
        {"preset": False, "num_envs": 6, "n_steps": 30, "hidden": (7, 7), "env_args": {"max_episode_steps": 9}},
    ],
)
def test_a_process_is_told_exactly_the_settings_that_were_resolved(settings: dict[str, Any]) -> None:
    config = resolve("CartPole-v1", **settings)
    assert resolve("CartPole-v1", **spelled_out(config)) == config


def test_what_cannot_be_given_to_other_processes_is_refused_in_words() -> None:
    with pytest.raises(SettingError, match="each seed needs its own"):
        raceway.train_seeds(raceway.make("CartPole-v1", num_envs=2), seeds=2)
    lock = threading.Lock()
    with pytest.raises(SettingError, match="cannot be sent to a process of their own"):
        raceway.train_seeds(lambda: lock, seeds=2, **SHORT)


def test_each_seed_gives_the_run_that_it_gives_alone_also_of_a_callable_without_a_name(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    length = 20
    env = lambda: gymnasium.make("CartPole-v1", max_episode_steps=length)  # noqa: E731
    settings: dict[str, Any] = {**SHORT, "hidden": (8,), "log": {"directory": str(tmp_path), "name": "x"}}
    runs = raceway.train_seeds(env, seeds=[3, 1], jobs=2, **settings)
    assert [run.config.seed for run in runs] == [3, 1]
    assert [run.directory.name for run in runs] == ["x-seed3", "x-seed1"]
    said = capfd.readouterr().out
    assert "seeds 3, 1  2 at a time" in said
    assert "seed 1  done in 0:0" in said
    settings["log"] = {"directory": str(tmp_path), "name": "alone", "quiet": True}
    alone = raceway.train(env, seed=1, **settings)
    assert runs[1].digest == alone.digest != runs[0].digest
    again = raceway.train_seeds(env, seeds=[3, 1], jobs=2, **{**settings, "log": {**settings["log"], "name": "x"}})
    assert [run.digest for run in again] == [run.digest for run in runs]
    assert capfd.readouterr().out == ""


def test_a_run_that_fails_is_named_with_its_last_words_and_the_others_go_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    flag = str(tmp_path / "first")

    def env() -> gymnasium.Env:
        """Whoever makes the first one fails."""
        with contextlib.suppress(FileExistsError):
            os.mkdir(flag)
            raise RuntimeError("the cart fell over")
        return gymnasium.make("CartPole-v1")

    log = {"directory": str(tmp_path / "runs"), "name": "x", "quiet": True}
    with pytest.raises(SeedsError, match="1 of 2 seeds failed") as raised:
        raceway.train_seeds(env, seeds=2, jobs=2, log=log, **SHORT)
    assert "the cart fell over" in str(raised.value)
    assert (raised.value.code, len(raised.value.runs)) == (2, 1)  # the environment is the user's to mend
    told = capfd.readouterr().err
    assert "failed (exit code 2), the others go on" in told
    assert "RuntimeError: the cart fell over\n" in told


def test_how_a_process_ended_is_said_in_words() -> None:
    assert [Ending(code, "").words for code in (1, -9, -70)] == [
        "exit code 1",
        "killed by SIGKILL",
        "killed by signal 70",
    ]


def test_the_last_row_of_a_file_that_is_being_written(tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    assert last_row(file) == {}
    rows = [{"step": step, "round": step, "x" * 500: 1.0} for step in range(400)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"step": 400, "evaluation/return": 1}\n{"st')
    assert last_row(file)["step"] == 399
    file.write_bytes(
        b'\xff\n[]\n{}\n{"step": 1e400, "round": 1}\n{"step": 1, "round": 1, "episode/return": "high"}\n\n'
    )
    assert last_row(file) == {}
    file.write_bytes(b'{"step": 1, "round": 1, "episode/return": 1e400}\n')
    assert last_row(file) == {"step": 1, "round": 1, "episode/return": None}


def test_a_finished_run_with_other_settings_is_refused_before_anything_starts(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"log": {"directory": str(tmp_path), "name": "x"}, **SHORT}
    folder = RunFolder(tmp_path / "CartPole-v1/x-seed2")
    folder.path.mkdir(parents=True)
    folder.begin(resolve("CartPole-v1", gamma=0.5, seed=2, **settings))
    with pytest.raises(SettingError, match=r"x-seed2 already, with other settings: ppo\.gamma=0\.5"):
        raceway.train_seeds("CartPole-v1", seeds=2, jobs=2, **settings)
    assert not (tmp_path / "CartPole-v1/x-seed1").exists()


def test_a_reader_that_has_gone_does_not_stop_the_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr("sys.stdout", Gone())
    progress = Progress(SeedSeries(resolve("CartPole-v1"), 2, jobs=2), [0, 1])
    progress.begin()
    progress.stopped()
