"""Callbacks: what they are told, what they can change, and that it is as reproducible as the run."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import raceway
from raceway.callbacks import LearningRateSchedule
from raceway.errors import SettingError
from raceway.graph import ReactionError
from raceway.training.callbacks import Control, Round
from raceway.training.evaluation import Evaluation

pytestmark = pytest.mark.usefixtures("compiled_without_optimizing")

SMALL: dict[str, Any] = {
    "num_envs": 4, "n_steps": 8, "batch_size": 16, "n_epochs": 2, "hidden": (8, 8), "preset": False,
    "total_steps": 4 * 8 * 30, "evaluation": {"enabled": False}, "checkpoint": {"interval_s": 0.01},
}  # fmt: skip


def train(directory: Path, env: Any = "CartPole-v1", **settings: Any) -> Any:
    log = {"directory": str(directory), "name": "run", "quiet": True}
    return raceway.train(env, **{**SMALL, "log": log, **settings})


class Diary(raceway.Callback):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.rounds: list[Round] = []
        self.evaluations: list[Evaluation] = []
        self.checkpoints: list[Path] = []

    def on_round(self, told: Round, control: Control) -> None:
        self.rounds.append(told)

    def on_evaluation(self, found: Evaluation, control: Control) -> None:
        self.evaluations.append(found)

    def on_checkpoint(self, path: Path, control: Control) -> None:
        self.checkpoints.append(path)


def test_they_hear_of_rounds_evaluations_and_checkpoints(tmp_path: Path) -> None:
    diary = Diary()
    run = train(tmp_path, callbacks=[diary], evaluation={"times": 3, "episodes": 2})
    assert [told.round for told in diary.rounds] == list(range(30))
    assert diary.rounds[-1].steps == run.steps
    assert diary.rounds[-1].progress == 1.0
    assert diary.rounds[-1].return_mean is not None
    assert sum(len(told.episodes.returns) for told in diary.rounds) > 10
    assert {"policy_loss", "entropy"} <= set(diary.rounds[0].metrics)
    assert diary.checkpoints[-1].name == "checkpoint-000000029.json"
    assert diary.checkpoints[-1].is_file()
    told = [json.loads(line) for line in (run.directory / "metrics.jsonl").read_text().splitlines()]
    evaluated = {row["step"] for row in told if "evaluation/return" in row}
    assert {found.steps for found in diary.evaluations} <= evaluated


class StopAtReturn(raceway.Callback):
    def __init__(self, wanted: float) -> None:
        self.wanted = wanted

    def on_round(self, told: Round, control: Control) -> None:
        if told.return_mean is not None and told.return_mean >= self.wanted:
            control.stop()


def test_one_may_stop_the_run_always_at_the_same_round(tmp_path: Path) -> None:
    settings = {"total_steps": 4 * 8 * 1000, "learning_rate": 1e-3}
    first, second = (train(tmp_path / name, callbacks=[StopAtReturn(30)], **settings) for name in ("a", "b"))
    assert first.steps < 4 * 8 * 1000
    assert (first.steps, first.digest) == (second.steps, second.digest)
    assert raceway.resume(first.directory).steps == first.steps, "it is finished"


class StopAtRound(raceway.Callback):
    def on_round(self, told: Round, control: Control) -> None:
        if told.round == 10:
            control.stop()


def test_a_run_that_was_stopped_goes_on_if_more_steps_are_wanted(tmp_path: Path) -> None:
    stopped = train(tmp_path / "stopped", callbacks=[StopAtRound()])
    assert stopped.steps < SMALL["total_steps"]
    longer = raceway.resume(stopped.directory, total_steps=SMALL["total_steps"], callbacks=[StopAtRound()])
    assert longer.steps == SMALL["total_steps"]
    assert longer.digest == train(tmp_path / "whole").digest


class Halving(raceway.Callback):
    """The learning rate halves every ten rounds; it counts them itself, to see whether it is remembered."""

    def __init__(self, interrupts_at: int = -1) -> None:
        self.count = 0
        self.interrupts_at = interrupts_at

    def on_round(self, told: Round, control: Control) -> None:
        self.count += 1
        control.learning_rate = 1e-3 * 0.5 ** (self.count // 10)
        if told.round == self.interrupts_at:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)

    def save(self) -> dict[str, Any]:
        return {"count": self.count}

    def load(self, state: Mapping[str, Any]) -> None:
        self.count = state["count"]


def test_one_may_set_the_learning_rate(tmp_path: Path) -> None:
    diary = Diary()
    train(tmp_path, callbacks=[Halving(), diary])
    rates = [told.metrics["learning_rate"] for told in diary.rounds]
    assert rates[1] == pytest.approx(1e-3)
    assert rates[10] == pytest.approx(5e-4)
    assert rates[20] == pytest.approx(2.5e-4)


@pytest.mark.parametrize("schedule", ["linear", pytest.param("adaptive_kl", marks=pytest.mark.slow)])
def test_a_rate_that_the_schedule_would_overwrite_is_refused(tmp_path: Path, schedule: str) -> None:
    with pytest.raises(SettingError, match=rf"lr_schedule='{schedule}'.*lr_schedule='constant'"):
        train(tmp_path, callbacks=[Halving()], lr_schedule=schedule)


class Once(raceway.Callback):
    """Another learning rate for one update."""

    def on_round(self, told: Round, control: Control) -> None:
        control.learning_rate = 0.5 if told.round == 3 else None


def test_a_rate_that_is_taken_back_is_that_of_the_settings_again(tmp_path: Path) -> None:
    diary = Diary()
    train(tmp_path, callbacks=[Once(), diary], learning_rate=1e-3)
    rates = [told.metrics["learning_rate"] for told in diary.rounds]
    assert rates[3:6] == pytest.approx([1e-3, 0.5, 1e-3])


def test_what_they_remember_is_in_checkpoints(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "stopped", callbacks=[Halving(interrupts_at=14)])
    signal.signal(signal.SIGINT, before)
    whole = train(tmp_path / "whole", callbacks=[Halving()])
    assert raceway.resume(tmp_path / "stopped/CartPole-v1/run", callbacks=[Halving()]).digest == whole.digest


class Heavier(raceway.Callback):
    """Other environments from the tenth round on."""

    def on_round(self, told: Round, control: Control) -> None:
        if told.round == 10:
            control.env_args = {"g": 20.0}


@pytest.mark.parametrize(
    ("collector", "schedule"),
    [
        ("worker", "concurrent"),
        ("central", "serial"),
        pytest.param("worker", "serial", marks=pytest.mark.slow),
        pytest.param("central", "concurrent", marks=pytest.mark.slow),
    ],
)
def test_one_may_change_the_environments(tmp_path: Path, schedule: str, collector: str) -> None:
    settings = {"schedule": schedule, "collector": collector}
    changed = [train(tmp_path / name, "Pendulum-v1", callbacks=[Heavier()], **settings) for name in ("a", "b")]
    plain = train(tmp_path / "plain", "Pendulum-v1", **settings)
    chains = [(run.directory / "chain.jsonl").read_text().splitlines() for run in (*changed, plain)]
    assert chains[0] == chains[1]
    first = next(index for index, (one, other) in enumerate(zip(chains[0], chains[2], strict=True)) if one != other)
    assert first == (11 if schedule == "serial" else 12)


class Broken(raceway.Callback):
    def __init__(self, where: str) -> None:
        self.where = where

    def on_round(self, told: Round, control: Control) -> None:
        if self.where == "round":
            raise ZeroDivisionError("in a round")

    def on_evaluation(self, found: Evaluation, control: Control) -> None:
        if self.where == "evaluation":
            raise ConnectionError("after an evaluation")  # an OSError, but none of the run's own files

    def on_checkpoint(self, path: Path, control: Control) -> None:
        if self.where == "checkpoint":
            raise ZeroDivisionError("at a checkpoint")


@pytest.mark.parametrize("where", ["round", "evaluation", "checkpoint"])
def test_one_that_fails_ends_the_run_with_its_error(tmp_path: Path, where: str) -> None:
    settings = {"total_steps": 4 * 8 * 30_000, "evaluation": {"times": 10_000, "episodes": 1}}
    with pytest.raises((ReactionError, ZeroDivisionError), match=where):
        train(tmp_path, callbacks=[Broken(where)], **settings)


class Misspelt(raceway.Callback):
    def on_rounds(self, told: Round, control: Control) -> None:
        control.stop()


class Short(raceway.Callback):
    def on_eval(self, found: Evaluation, control: Control) -> None:
        control.stop()


class Helped(raceway.Callback):
    on_device = True

    def on_round(self, told: Round, control: Control) -> None:
        self.on_round_end()

    def on_round_end(self) -> None: ...

    def on_restart(self) -> None: ...


@pytest.mark.parametrize(
    ("callbacks", "said"),
    [
        (StopAtReturn(5.0), r"is not a list. Give one: callbacks=\[...\]"),
        ([StopAtReturn], r"StopAtReturn is a class. Give an object of it: StopAtReturn\(...\)"),
        ([print], "is not a callback. Derive its class from raceway.Callback"),
        (7, "callbacks=7 is not a list"),
        ([Misspelt()], "Misspelt.on_rounds is never called. Is on_round meant"),
        ([Short()], "Short.on_eval is never called. Is on_evaluation meant"),
    ],
    ids=["one", "a class", "a function", "a number", "a misspelt method", "a shortened one"],
)
def test_what_is_no_list_of_callbacks_is_told(callbacks: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=said):
        raceway.train("CartPole-v1", callbacks=callbacks, log={"directory": str(tmp_path)})
    assert list(tmp_path.iterdir()) == []


def test_methods_of_a_callbacks_own_are_no_mistakes(tmp_path: Path) -> None:
    assert train(tmp_path, callbacks=[Helped()], total_steps=4 * 8 * 2).steps


def test_only_what_there_is_can_be_set() -> None:
    with pytest.raises(AttributeError, match="lr"):
        Control().lr = 1e-3  # type: ignore[attr-defined]


class Odd(raceway.Callback):
    def __init__(self, name: str, value: Any) -> None:
        self.name, self.value = name, value

    def on_start(self, control: Control) -> None:
        setattr(control, self.name, self.value)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("learning_rate", "fast", "learning_rate='fast'. Set a number from 0"),
        ("ent_coef", 10**400, "ent_coef=1000"),
        ("env_args", 5, "env_args=5. Set a dict, or None"),
        ("is_stopping", np.array([1, 2]), "is_stopping=array([1, 2]). Call control.stop()"),
        ("is_stopping", "no", "is_stopping='no'. Call control.stop()"),
    ],
)
def test_what_no_run_can_use_is_refused(tmp_path: Path, name: str, value: Any, said: str) -> None:
    with pytest.raises(SettingError, match=re.escape(f"A callback has set {said}")):
        train(tmp_path, callbacks=[Odd(name, value)])


def test_a_learning_rate_that_no_update_can_use_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"A callback has set learning_rate=1e\+300"):
        raceway.train(
            "CartPole-v1", callbacks=[LearningRateSchedule(lambda progress: 1e300)], log={"directory": str(tmp_path)}
        )
