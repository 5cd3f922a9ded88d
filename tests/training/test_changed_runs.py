"""Runs that go on under other conditions: what is refused changes nothing, and what is wanted is recorded."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import raceway
from raceway.cli import main
from raceway.errors import RunFolderError, SettingError, UserError
from raceway.training.outcome import Run
from tests.training.full_disks import files_of_at_most
from tests.training.small_runs import SMALL

pytestmark = pytest.mark.usefixtures("compiled_without_optimizing")

WALK = "tests.training.drawing:Drawn"
OTHER = "tests.training.drawing:Undrawn"
STEPS = 4 * 8 * 10


def train(directory: Path, env: Any = "Pendulum-v1", **settings: Any) -> Run:
    log = {"directory": str(directory), "name": "run", "quiet": True, "tensorboard": False}
    evaluation = {"times": 2, "episodes": 2}
    return raceway.train(env, **{**SMALL, "total_steps": STEPS, "evaluation": evaluation, "log": log, **settings})


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("trained")).directory


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    shutil.copytree(trained, tmp_path / "run")
    return tmp_path / "run"


def content(run: Path) -> dict[str, bytes]:
    return {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("*") if path.is_file()}


class Nothing(raceway.Callback):
    pass


REFUSED: dict[str, dict[str, Any]] = {
    "finished": {"env_args": {"g": 30.0}, "anyway": True},
    "finished, and quiet": {"quiet": False},
    "other arguments": {"env_args": {"g": 30.0}, "total_steps": 2 * STEPS},
    "callbacks": {"env_args": {"g": 30.0}, "anyway": True, "total_steps": 2 * STEPS, "callbacks": [Nothing()]},
    "the past": {"env_args": {"g": 30.0}, "anyway": True, "total_steps": 32},
    "no such argument": {"env_args": {"gee": 30.0}, "anyway": True, "total_steps": 2 * STEPS},
    "another environment": {"env": "MountainCarContinuous-v0", "anyway": True, "total_steps": 2 * STEPS},
}


@pytest.mark.parametrize("how", REFUSED)
def test_what_is_refused_or_has_nothing_to_do_changes_nothing(run: Path, how: str) -> None:
    before = content(run)
    if how.startswith("finished"):
        raceway.resume(run, **REFUSED[how])
    else:
        with pytest.raises(UserError):
            raceway.resume(run, **REFUSED[how])
    assert content(run) == before
    assert raceway.evaluate(run, 2).returns


def test_a_system_that_differs_is_recorded_only_if_the_run_goes_on(run: Path) -> None:
    facts = json.loads((run / "system.json").read_text())
    facts["versions"]["jax"] = "0.0.1"
    (run / "system.json").write_text(json.dumps(facts))
    before = content(run)
    with pytest.raises(SettingError, match="behind it already"):
        raceway.resume(run, anyway=True, total_steps=32)
    assert content(run) == before
    raceway.resume(run, anyway=True, total_steps=2 * STEPS)
    assert json.loads((run / "system.json").read_text())["versions"]["jax"] != "0.0.1"


def test_with_other_arguments_the_older_best_policy_gives_way(run: Path) -> None:
    """Its return is that of another task, and its settings are not the run's any more."""
    ended = raceway.resume(run, env_args={"g": 30.0}, anyway=True, total_steps=2 * STEPS)
    assert json.loads((run / "config.json").read_text())["env_args"] == {"g": 30.0}
    assert ended.evaluation is not None
    assert ended.best_return is not None
    assert ended.best_return >= ended.evaluation.mean
    for which in ("best", "final"):
        assert raceway.evaluate(run, 2, which=which).returns


def test_a_policy_of_other_settings_names_the_other_one(run: Path) -> None:
    facts = json.loads((run / "best/policy.json").read_text())
    facts["run"]["sha256"] = "0" * 64
    (run / "best/policy.json").write_text(json.dumps(facts))
    with pytest.raises(RunFolderError, match=r"Put the settings back, or use the other one, --policy final \(in Py"):
        raceway.load(run)
    raceway.load(run, "final")
    shutil.rmtree(run / "final")
    with pytest.raises(RunFolderError, match=r"is another run's\. Put the settings back\.$"):
        raceway.load(run)


def test_another_environment_is_refused_or_recorded(tmp_path: Path) -> None:
    run = train(tmp_path, WALK, lane="inline").directory
    told = rf"was begun with env {WALK} \(now {OTHER}\).*--anyway"
    with pytest.raises(SettingError, match=told):
        raceway.resume(run, env=OTHER, total_steps=2 * STEPS)
    raceway.resume(run, env=OTHER, total_steps=2 * STEPS, anyway=True)
    (line,) = (run / "resumed.jsonl").read_text().splitlines()
    assert json.loads(line)["differences"][0] == f"env {WALK} (now {OTHER})"
    assert json.loads((run / "config.json").read_text())["env"] == WALK


def test_an_environment_that_no_name_leads_to_may_have_another_name_now(tmp_path: Path) -> None:
    from tests.training.drawing import Drawn

    class Local(Drawn):
        pass

    run = train(tmp_path, Local, lane="inline", evaluation={"enabled": False}).directory
    raceway.resume(run, env=Drawn, total_steps=2 * STEPS)
    (line,) = (run / "resumed.jsonl").read_text().splitlines()
    assert f"(now {WALK})" in json.loads(line)["differences"][0]


# --- disks


@pytest.mark.parametrize("num_bytes", [10, 2500, 6000])
def test_a_disk_that_is_full_from_the_beginning_is_one_message(
    tmp_path: Path, num_bytes: int, capsys: pytest.CaptureFixture[str]
) -> None:
    small = "--no-preset --num-envs 4 --n-steps 8 --total-steps 320 --batch-size 16 --evaluation.no-enabled"
    with files_of_at_most(num_bytes):
        assert main(["train", "CartPole-v1", *small.split(), "--log.directory", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert "File too large" in said


@pytest.mark.parametrize("num_bytes", [10, 2500, 6000])
def test_a_disk_that_is_full_when_a_run_goes_on_is_one_message(
    run: Path, num_bytes: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with files_of_at_most(num_bytes):
        assert main(["resume", str(run), "--total-steps", str(2 * STEPS)]) == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert "File too large" in said


# --- errors that others must not hide


class Planted(raceway.Callback):
    """Makes something unusable, and fails."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_round(self, told: Any, control: Any) -> None:
        if told.round == 5:
            shutil.rmtree(self.path / "checkpoints", ignore_errors=True)
            (self.path / "checkpoints").symlink_to("elsewhere")
            raise ValueError("a fault of the user's own")


def test_a_link_in_the_place_of_checkpoints_does_not_hide_why_a_run_failed(tmp_path: Path) -> None:
    with pytest.raises(raceway.graph.ReactionError, match="a fault of the user's own"):
        train(tmp_path, callbacks=[Planted(tmp_path / "Pendulum-v1/run")], checkpoint={"interval_s": 1000.0})


class Poisoned(gymnasium.Env[Any, Any]):
    """Rewards that are not numbers, after a while."""

    observation_space = gymnasium.spaces.Box(0, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        return np.zeros(1, np.float32), np.nan if self.steps > 20 else 1.0, False, False, {}


class NoDumps(raceway.Callback):
    """A file where the data of an update that failed would go."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_round(self, told: Any, control: Any) -> None:
        for run in self.path.glob("*/run"):
            (run / "dumps").touch()


def test_data_that_cannot_be_written_does_not_hide_why_there_is_any(tmp_path: Path) -> None:
    told = r"gave the reward nan.*The data of the update could not be written: "
    with pytest.raises(raceway.graph.ReactionError, match=told):
        train(tmp_path, Poisoned, lane="inline", evaluation={"enabled": False}, callbacks=[NoDumps(tmp_path)])


def test_a_policy_of_a_machine_with_more_memory_can_be_evaluated(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds are for training. An evaluation takes what its own environments take."""
    monkeypatch.setattr("raceway.memory.available_bytes", lambda: 10**6)
    assert raceway.evaluate(run, 2).returns
    with pytest.raises(SettingError, match=r"A round of .* would take .* of memory"):
        raceway.train("Pendulum-v1", n_steps=1 << 14, num_envs=4, log={"directory": str(run)})
    monkeypatch.setattr("raceway.memory.available_bytes", lambda: 10**4)
    with pytest.raises(SettingError, match=r"An evaluation with 16 environments would take .*num_envs=1 takes least"):
        raceway.evaluate(run, 100)


def test_a_run_whose_code_has_changed_says_so_and_records_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "changing_walk.py"
    module.write_text("from tests.training.drawing import Drawn as Walk\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "changing_walk", raising=False)
    run = train(tmp_path, "changing_walk:Walk", lane="inline").directory
    raceway.resume(run, total_steps=2 * STEPS)
    module.write_text("from tests.training.drawing import Drawn as Walk  # changed\n")
    more: dict[str, Any] = {"total_steps": 3 * STEPS, "trust": True}
    with pytest.raises(RunFolderError, match=r"was begun with other code of changing_walk:Walk\. .*with --anyway"):
        raceway.resume(run, **more)
    raceway.resume(run, **more, anyway=True)
    lines = [json.loads(line) for line in (run / "resumed.jsonl").read_text().splitlines()]
    assert [line["differences"] for line in lines] == [[], ["other code of changing_walk:Walk"]]
    raceway.resume(run, total_steps=4 * STEPS)
    module.unlink()  # where it is not found, it cannot be compared
    raceway.resume(run, env=WALK, total_steps=5 * STEPS)
