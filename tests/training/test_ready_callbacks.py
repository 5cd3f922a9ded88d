"""Ready-made callbacks: stopping at a return, schedules and curricula, and that they are as exact as the run."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import gymnasium
import numpy as np
import pytest

import raceway
from raceway.algos.rollout import Collected, Episodes, Weights
from raceway.callbacks import (
    Callback,
    Control,
    Curriculum,
    EntropySchedule,
    LearningRateSchedule,
    Round,
    StopAtReturn,
    cosine,
    linear,
    piecewise,
    steps,
)
from raceway.cli import main
from raceway.errors import SettingError
from raceway.graph import Loss
from raceway.training.callbacks import Director
from raceway.training.ending import Ending
from raceway.training.evaluation import Evaluation
from raceway.training.policy_files import Best, PolicyFile, read_policy
from raceway.training.recent import RecentEpisodes
from tests.training.interrupting import StopAt

pytestmark = pytest.mark.usefixtures("compiled_without_optimizing")

SMALL: dict[str, Any] = {
    "num_envs": 4, "n_steps": 8, "hidden": (8, 8), "preset": False, "total_steps": 4 * 8 * 30,
    "evaluation": {"enabled": False}, "checkpoint": {"interval_s": 0.01},
}  # fmt: skip
PPO = {"batch_size": 16, "n_epochs": 2}


def train(directory: Path, env: Any = "CartPole-v1", **settings: Any) -> Any:
    log = {"directory": str(directory), "name": "run", "quiet": True}
    minibatches = PPO if settings.get("algo", "ppo") == "ppo" else {}
    return raceway.train(env, **{**SMALL, **minibatches, "log": log, **settings})


class Diary(Callback):
    """Keeps what it is told, and may interrupt the run."""

    def __init__(self, interrupts_at: int = -1) -> None:
        self.rounds: list[Round] = []
        self.evaluations: list[Evaluation] = []
        self.interrupts_at = interrupts_at

    def on_round(self, told: Round, control: Control) -> None:
        self.rounds.append(told)
        if told.round == self.interrupts_at:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)

    def on_evaluation(self, found: Evaluation, control: Control) -> None:
        self.evaluations.append(found)

    def metric(self, name: str) -> list[float]:
        return [told.metrics[name] for told in self.rounds]


def interrupted(directory: Path, callbacks: list[Callback], round_: int = 14, **settings: Any) -> Path:
    """The folder of a run that was interrupted in the middle."""
    with pytest.raises(KeyboardInterrupt):
        train(directory, callbacks=[*callbacks, Diary(round_)], **settings)
    (found,) = directory.glob("*/run")
    return found


# --- schedules


def test_shapes_of_schedules() -> None:
    assert [linear(4.0, 2.0)(x) for x in (0.0, 0.5, 1.0)] == [4.0, 3.0, 2.0]
    assert [cosine(4.0, 2.0)(x) for x in (0.0, 0.5, 1.0)] == pytest.approx([4.0, 3.0, 2.0])
    assert cosine(4.0, 2.0)(0.25) > linear(4.0, 2.0)(0.25)
    assert [steps({0: 3.0, 0.5: 1.0})(x) for x in (0.0, 0.49, 0.5, 1.0)] == [3.0, 3.0, 1.0, 1.0]
    rise = piecewise({0: 0.0, 0.2: 1.0, 0.6: 0.5})
    assert [rise(x) for x in (0.0, 0.1, 0.2, 0.4, 0.6, 1.0)] == pytest.approx([0.0, 0.5, 1.0, 0.75, 0.5, 0.5])


@pytest.mark.parametrize("points", [{}, {0.5: 1.0}, {0: 1.0, 1.5: 2.0}, {-1: 1.0, 0: 1.0}])
def test_points_that_make_no_schedule_are_refused(points: dict[float, float]) -> None:
    for shape in (steps, piecewise):
        with pytest.raises(SettingError, match="give values by progress"):
            shape(points)


def test_a_schedule_holds_from_the_first_update_to_the_last(tmp_path: Path) -> None:
    diary = Diary()
    train(tmp_path, callbacks=[LearningRateSchedule(linear(3e-3, 1e-3)), EntropySchedule(cosine(0.1)), diary])
    assert diary.metric("learning_rate") == pytest.approx([3e-3 - 2e-3 * k / 30 for k in range(30)], rel=1e-5)
    assert diary.metric("ent_coef") == pytest.approx([0.05 * (1 + math.cos(math.pi * k / 30)) for k in range(30)])


def test_a_linear_schedule_is_the_built_in_one_to_the_bit(tmp_path: Path) -> None:
    float32 = np.float32

    def same(progress: float) -> float:
        return float(float32(1e-3) * (float32(1.0) - float32(progress)))

    by_callback = train(tmp_path / "a", learning_rate=1e-3, callbacks=[LearningRateSchedule(same)])
    assert by_callback.digest == train(tmp_path / "b", learning_rate=1e-3, lr_schedule="linear").digest


@pytest.mark.parametrize("algo", ["ppo", "a2c", "impala"])
def test_the_entropy_bonus_is_what_is_learnt_with(tmp_path: Path, algo: str) -> None:
    settings = {"algo": algo, "schedule": "serial", "ent_coef": 0.01}
    plain = train(tmp_path / "plain", **settings)
    constant = train(tmp_path / "constant", callbacks=[EntropySchedule(lambda _: 0.01)], **settings)
    assert constant.digest == plain.digest
    other = train(tmp_path / "other", callbacks=[EntropySchedule(lambda _: 0.02)], **settings)
    set_outright = train(tmp_path / "outright", **{**settings, "ent_coef": 0.02})
    assert other.digest == set_outright.digest != plain.digest


def test_schedules_are_exact_when_a_run_is_resumed(tmp_path: Path) -> None:
    def callbacks() -> list[Callback]:
        return [LearningRateSchedule(cosine(3e-3)), EntropySchedule(steps({0: 0.1, 0.3: 0.05, 0.7: 0.0}))]

    run = interrupted(tmp_path / "stopped", callbacks())
    ended = raceway.resume(run, callbacks=[*callbacks(), Diary()])
    assert ended.digest == train(tmp_path / "whole", callbacks=callbacks()).digest


@pytest.mark.parametrize(
    ("callback", "settings", "message"),
    [
        (LearningRateSchedule(linear(1e-3)), {"lr_schedule": "linear"}, "Train with lr_schedule='constant'"),
        (LearningRateSchedule(lambda _: math.nan), {}, "has set learning_rate=nan. Set a number from 0 to 1e+38"),
        (LearningRateSchedule(lambda _: -1e-3), {}, "has set learning_rate=-0.001. Set a number from 0 to 1e+38"),
        (EntropySchedule(lambda _: math.inf), {}, "has set ent_coef=inf. Set a number from 0 to 1e+38"),
        (
            LearningRateSchedule(cast(Any, lambda _: "fast")),
            {},
            "LearningRateSchedule: its schedule gives 'fast' at progress 0",
        ),
        (EntropySchedule(linear(0.1)), {"algo": "pqn"}, "has set ent_coef=0.1, but pqn has no entropy bonus"),
        (
            Curriculum([{"gravity": 1.0}, {}], 1.0),
            {},
            "env_args={'gravity': 1.0}): CartPole-v1 takes no keyword",
        ),
    ],
)
def test_what_cannot_be_set_is_refused_before_there_is_a_folder(
    tmp_path: Path, callback: Callback, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingError, match=re.escape(message)):
        train(tmp_path, callbacks=[callback], **settings)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("kind", [LearningRateSchedule, EntropySchedule])
def test_a_schedule_is_a_function(kind: Any) -> None:
    with pytest.raises(SettingError, match="give a function of progress, such as linear"):
        kind(1e-3)


class BadLater(Callback):
    def on_round(self, told: Round, control: Control) -> None:
        control.ent_coef = -1.0


def test_what_is_set_later_is_checked_too(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="has set ent_coef=-1"):
        train(tmp_path, callbacks=[BadLater()])


# --- stopping at a return


LONG = {"total_steps": 4 * 8 * 2000, "learning_rate": 1e-3}


def test_a_run_stops_at_a_return_always_in_the_same_round_and_is_finished(tmp_path: Path) -> None:
    by_setting = train(tmp_path / "a", stop_at_return=30, **LONG)
    by_callback = train(tmp_path / "b", callbacks=[StopAtReturn(30)], **LONG)
    assert by_setting.steps < LONG["total_steps"]
    assert (by_setting.steps, by_setting.digest) == (by_callback.steps, by_callback.digest)
    assert "reached stop_at_return=30" in by_setting.stopped
    assert "reached 30" in by_callback.stopped
    again = raceway.resume(by_setting.directory)
    assert (again.steps, again.stopped) == (by_setting.steps, by_setting.stopped)


def told_of(run: Any) -> float:
    found = re.search(r"training episodes, (\S+), reached", run.stopped)
    assert found is not None
    return float(found[1])


def test_the_return_that_is_told_is_the_one_that_it_stopped_at(tmp_path: Path) -> None:
    diary = Diary()
    run = train(tmp_path, stop_at_return=30, callbacks=[diary], **LONG)
    means = [told.return_mean for told in diary.rounds]
    ended = np.cumsum([len(told.episodes.returns) for told in diary.rounds])
    reached = [
        mean for mean, count in zip(means, ended, strict=True) if mean is not None and mean >= 30 and count >= 100
    ]
    assert len(set(reached)) > 1, "it goes on for a few rounds"
    assert told_of(run) == round(reached[0], 1)
    longer = raceway.resume(run.directory, stop_at_return=40, callbacks=[Diary()])
    assert told_of(longer) >= 40


def test_the_first_of_several_reasons_is_kept() -> None:
    control = Control()
    control.stop("the first")
    control.stop("another")
    assert control.stop_reason == "the first"
    resumed = Control()
    resumed.load(control.save())
    resumed.stop("another")
    assert resumed.stop_reason == "the first"
    resumed.load(control.save(), has_new_end=True)
    resumed.stop("another")
    assert resumed.stop_reason == "another"


def test_returns_of_an_easier_level_do_not_stop_a_run(tmp_path: Path) -> None:
    """The first level pays more than the last one."""
    levels = [{"level": 5.0}, {"level": 1.0}]
    for name, stop in (("setting", None), ("callback", StopAtReturn(45.0))):
        curriculum, diary = Curriculum(levels, 50.0, by="training", episodes=60), Diary()
        settings = {"stop_at_return": 45.0} if stop is None else {}
        callbacks = [curriculum, diary, *([] if stop is None else [stop])]
        run = train(tmp_path / name, Levels, callbacks=callbacks, **SLOW, **settings)
        assert curriculum.level == 1
        assert (run.steps, run.stopped) == (SLOW["total_steps"], "")
        means = {told.return_mean for told in diary.rounds if told.env_args == levels[1]}
        assert means <= {None, 10.0}


def test_returns_of_any_size_are_compared_without_a_warning() -> None:
    recent = RecentEpisodes(2)
    recent.add(Episodes(np.array([1e308, 1e308]), np.array([1, 1]), np.zeros(2, np.int32), {}, 0.1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert recent.has_reached(1.0)


def test_one_that_reaches_its_end_was_not_stopped(tmp_path: Path) -> None:
    run = train(tmp_path, stop_at_return=1e6)
    assert (run.steps, run.stopped) == (SMALL["total_steps"], "")


def test_it_waits_for_a_hundred_episodes(tmp_path: Path) -> None:
    diary = Diary()
    train(tmp_path, callbacks=[diary], stop_at_return=0.0, **LONG)
    ended = np.cumsum([len(told.episodes.returns) for told in diary.rounds])
    enough = int(np.searchsorted(ended, 100))
    assert len(ended) - enough <= 4, "it stops a few rounds later"
    assert enough > 10
    diary = Diary()
    train(tmp_path / "few", callbacks=[StopAtReturn(0.0, episodes=5), diary], **LONG)
    assert len(diary.rounds) < enough


def test_a_resumed_run_stops_in_the_same_round(tmp_path: Path) -> None:
    whole = train(tmp_path / "whole", stop_at_return=30, callbacks=[StopAtReturn(30, episodes=120)], **LONG)
    run = interrupted(tmp_path / "stopped", [StopAtReturn(30, episodes=120)], 60, stop_at_return=30, **LONG)
    ended = raceway.resume(run, callbacks=[StopAtReturn(30, episodes=120), Diary()])
    assert (ended.steps, ended.digest, ended.stopped) == (whole.steps, whole.digest, whole.stopped)


def test_a_run_that_stopped_goes_on_to_another_return(tmp_path: Path) -> None:
    first = train(tmp_path / "a", stop_at_return=25, **LONG)
    with pytest.raises(SettingError, match="behind it already"):
        raceway.resume(first.directory, stop_at_return=30, total_steps=first.steps)
    longer = raceway.resume(first.directory, stop_at_return=30)
    assert first.steps < longer.steps < LONG["total_steps"]
    assert "stop_at_return=30" in longer.stopped
    assert longer.digest == train(tmp_path / "b", stop_at_return=30, **LONG).digest
    short = longer.steps + 4 * 8 * 10
    assert raceway.resume(first.directory, stop_at_return=None, total_steps=short).stopped == ""
    assert json.loads((first.directory / "config.json").read_text())["stop_at_return"] is None


def test_why_a_run_stopped_is_told_right_after_an_interruption(tmp_path: Path) -> None:
    """Its checkpoints have the return that it stopped at first, which is not why it stops now."""
    first = train(tmp_path, stop_at_return=25, callbacks=[StopAt(-1)], checkpoint={"interval_s": 0.01}, **LONG)
    assert "reached stop_at_return=25" in first.stopped
    with pytest.raises(KeyboardInterrupt):
        raceway.resume(first.directory, stop_at_return=35, callbacks=[StopAt(first.steps // 32 + 5)])
    ended = raceway.resume(first.directory, callbacks=[StopAt(-1)])
    assert ended.steps > first.steps + 5 * 32
    assert "reached stop_at_return=35" in ended.stopped


def test_the_command_says_that_it_stopped_and_is_finished(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = "--stop-at-return 20 --no-preset --num-envs 4 --n-steps 8 --total-steps 1e6 --evaluation.no-enabled"
    options += " --batch-size 16 --n-epochs 2 --hidden 8 8"
    log = ["--log.directory", str(tmp_path), "--log.name", "run"]
    assert main(["train", "CartPole-v1", *options.split(), *log]) == 0
    said = capsys.readouterr().out
    assert "finished    before 1,000,000 steps: the mean return of the last 100 training episodes, " in said
    assert "reached stop_at_return=20" in said
    assert main(["resume", str(tmp_path / "CartPole-v1/run")]) == 0
    assert "reached stop_at_return=20" in capsys.readouterr().out
    assert (
        main(["resume", str(tmp_path / "CartPole-v1/run"), "--stop-at-return", "none", "--total-steps", "20000"]) == 0
    )
    assert "reached stop_at_return" not in capsys.readouterr().out


@pytest.mark.parametrize("value", [math.nan, "high"])
def test_a_return_to_stop_at_is_a_number(tmp_path: Path, value: Any) -> None:
    with pytest.raises(SettingError, match="stop_at_return="):
        train(tmp_path, stop_at_return=value)


# --- curricula


class Levels(gymnasium.Env):
    """Gives as a reward the level it was made for, every step of ten."""

    observation_space = gymnasium.spaces.Box(0.0, 100.0, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, level: float = 9.0) -> None:
        self.level = level

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        return np.array([self.level], np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        return np.array([self.level], np.float32), self.level, self.steps == 10, False, {"level": self.level}


THREE = [{"level": 1.0}, {"level": 2.0}, {"level": 3.0}]
SLOW = {"lane": "inline", "total_steps": 4 * 8 * 120}


def test_training_returns_lead_from_level_to_level_reproducibly(tmp_path: Path) -> None:
    def run(name: str, **settings: Any) -> tuple[Any, Diary, Curriculum]:
        diary, curriculum = Diary(), Curriculum(THREE, [10.0, 20.0], by="training", episodes=40)
        return train(tmp_path / name, Levels, callbacks=[curriculum, diary], **SLOW, **settings), diary, curriculum

    first, diary, curriculum = run("a")
    assert curriculum.level == 2
    levels = [told.episodes.infos["level"] for told in diary.rounds]
    assert levels[0] == 1.0, "the first level is there from the first round on, not the one of the settings"
    assert levels[-1] == 3.0
    assert sorted(levels) == levels
    assert [told.env_args["level"] for told in diary.rounds] == levels
    # 40 episodes of 10 steps in rounds of 32 steps: those of a level before do not count.
    assert levels.count(1.0) >= 13
    assert levels.count(2.0) >= 13
    second, _, _ = run("b")
    assert second.digest == first.digest


def test_a_threshold_that_is_not_reached_holds_the_level(tmp_path: Path) -> None:
    curriculum = Curriculum(THREE, [10.0, 20.5], by="training", episodes=20)
    train(tmp_path, Levels, callbacks=[curriculum], **SLOW)
    assert curriculum.level == 1


@pytest.mark.parametrize("round_", [5, 16, 40])
def test_a_curriculum_by_training_is_exact_when_a_run_is_resumed(tmp_path: Path, round_: int) -> None:
    def curriculum() -> Curriculum:
        return Curriculum(THREE, 10.0, by="training", episodes=40)

    whole = train(tmp_path / "whole", Levels, callbacks=[curriculum()], **SLOW)
    run = interrupted(tmp_path / "stopped", [curriculum()], round_, env=Levels, **SLOW)
    ended = raceway.resume(run, env=Levels, callbacks=[curriculum(), Diary()])
    assert ended.digest == whole.digest


class UntilTheLast(Diary):
    """Lets the run go on until the last level was evaluated."""

    def on_evaluation(self, found: Evaluation, control: Control) -> None:
        super().on_evaluation(found, control)
        if found.env_args == THREE[-1]:
            control.stop()


def test_evaluations_follow_the_level_and_lead_to_the_next(tmp_path: Path) -> None:
    diary, curriculum = UntilTheLast(), Curriculum(THREE, [10.0, 20.0])
    rounds = 1_000_000
    settings = {"lane": "inline", "total_steps": 4 * 8 * rounds, "evaluation": {"times": rounds // 5, "episodes": 2}}
    run = train(tmp_path, Levels, callbacks=[curriculum, diary], **settings)
    assert curriculum.level == 2
    found = {each.mean: each.env_args for each in diary.evaluations}
    assert found == {10.0 * level["level"]: level for level in THREE}
    assert run.evaluation.mean == 30.0
    assert run.evaluation.env_args == {"level": 3.0}
    assert raceway.resume(run.directory, env=Levels).evaluation == run.evaluation
    assert run.best_return == 30.0


def test_the_best_policy_is_that_of_the_newest_level(tmp_path: Path) -> None:
    """The returns of a level that was easier are higher."""
    spaces = Levels.observation_space, Levels.action_space
    best = Best(PolicyFile(tmp_path, *spaces))

    def offer(version: int, return_: float, **env_args: Any) -> float | None:
        weights = Weights(version, np.zeros(3, np.float32), None)
        best.offer(weights, Evaluation(version, 32 * version, (return_,), (10,), env_args or None))
        return best.score

    assert offer(1, 50.0) == 50.0
    assert offer(2, 40.0) == 50.0
    assert offer(3, 30.0, level=1.0) == 30.0
    assert offer(4, 20.0, level=1.0) == 30.0
    assert offer(5, 10.0, level=2.0, masses=np.ones(2), bound=math.inf) == 10.0
    assert offer(6, 9.0, level=2.0, masses=np.ones(2), bound=math.inf) == 10.0
    assert read_policy(tmp_path).weights.version == 5


def test_a_curriculum_by_evaluations_needs_some(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"advances by evaluations, but evaluation is off\. Use by='training'"):
        train(tmp_path, Levels, callbacks=[Curriculum(THREE, 10.0)])
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("by", ["evaluation", "training"])
def test_that_a_curriculum_stays_where_it_is_without_an_evaluator_is_told(by: Any) -> None:
    said: list[str] = []
    console, rescue = SimpleNamespace(trouble=said.append), SimpleNamespace(look=lambda: False)
    training: Any = SimpleNamespace(director=Director([Diary(), Curriculum(THREE, 10.0, by=by)]))
    report: Any = SimpleNamespace(console=console, rescue=rescue)
    Ending(None, report, training).tell_loss(Loss(("evaluator",), "it raised", is_final=True))  # type: ignore[arg-type]
    stays = "which advances by evaluations, stays at level 1 of 3, {'level': 1.0}"
    assert (stays in said[0]) == (by == "evaluation")


def test_evaluations_of_a_level_that_is_over_do_not_count() -> None:
    curriculum, control = Curriculum(THREE, 10.0), Control()
    curriculum.on_start(control)

    def evaluate(mean: float, **env_args: float) -> int:
        curriculum.on_evaluation(Evaluation(1, 32, (mean,), (10,), env_args), control)
        return curriculum.level

    assert control.env_args == {"level": 1.0}
    assert evaluate(9.0, level=1.0) == 0
    assert evaluate(math.nan, level=1.0) == 0
    assert evaluate(10.0, level=1.0) == 1
    assert control.env_args == {"level": 2.0}
    assert evaluate(99.0, level=1.0) == 1
    assert evaluate(99.0, level=2.0) == 2
    assert evaluate(99.0, level=3.0) == 2
    assert control.env_args == {"level": 3.0}


def test_an_evaluation_that_a_checkpoint_has_missed_is_told_again() -> None:
    def directed() -> tuple[Director, Curriculum]:
        curriculum = Curriculum(THREE, 10.0)
        return Director([curriculum]), curriculum

    found = [Evaluation(3, 96, (50.0,), (10,), {"level": 1.0}), Evaluation(6, 192, (9.0,), (10,), {"level": 2.0})]
    first, curriculum = directed()
    first.on_evaluations(found[:0])
    before = first.save()  # the learner's checkpoint is made before the reporter hears of the evaluation
    first.on_evaluations(found)
    first.on_evaluations(found)
    assert curriculum.level == 1
    resumed, curriculum = directed()
    resumed.load(before)
    assert curriculum.level == 0
    resumed.on_evaluations(found)
    assert curriculum.level == 1
    after, curriculum = directed()
    after.load(first.save())
    after.on_evaluations(found)
    assert curriculum.level == 1, "and it is told once"


def test_a_level_is_announced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = {"directory": str(tmp_path), "name": "run"}
    train(tmp_path, Levels, callbacks=[Curriculum(THREE, 10.0, by="training", episodes=40)], log=log, **SLOW)
    said = capsys.readouterr().out
    assert "level 2 of 3, {'level': 2.0}, after " in said
    assert "training return 10.0" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([{}], 1.0), "1 levels leave nothing to advance to"),
        ((THREE, [1.0]), "3 levels need one threshold for all, or 2"),
        ((THREE, [1.0, 2.0, 3.0]), "3 levels need one threshold for all, or 2"),
        ((THREE, math.nan), "need one threshold"),
    ],
)
def test_curricula_that_make_no_sense_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(SettingError, match=re.escape(message)):
        Curriculum(*arguments)
    with pytest.raises(SettingError, match="by 'evaluation' or by 'training'"):
        Curriculum(THREE, 1.0, by="luck")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="from 1 up"):
        Curriculum(THREE, 1.0, episodes=0)


class Resizing(Callback):
    def on_round(self, told: Round, control: Control) -> None:
        control.env_args = {"exclude_current_positions_from_observation": False}


def test_environments_with_other_spaces_are_refused_in_words(tmp_path: Path) -> None:
    level = {"exclude_current_positions_from_observation": False}
    with pytest.raises(SettingError, match=r"changes the observation space from .* to "):
        train(tmp_path, "Hopper-v5", callbacks=[Curriculum([{}, level], 1.0)])
    assert not any(tmp_path.iterdir())
    with pytest.raises(SettingError, match=r"changes the observation space from .* to "):
        train(tmp_path, "Hopper-v5", callbacks=[Resizing()])


def test_one_that_was_used_before_begins_at_the_beginning(tmp_path: Path) -> None:
    curriculum = Curriculum(THREE, 10.0, by="training", episodes=40)
    stop = StopAtReturn(10.0, episodes=2000)
    digests = [train(tmp_path / name, Levels, callbacks=[curriculum, stop], **SLOW).digest for name in ("a", "b")]
    assert digests[0] == digests[1]


def test_the_module_is_there_at_once() -> None:
    assert raceway.callbacks.StopAtReturn is StopAtReturn
    assert "callbacks" in dir(raceway)
    assert raceway.Callback is Callback


def test_a_director_without_anything_to_do_is_not_asked() -> None:
    assert Director().is_idle
    assert not Director(stop_at_return=1.0).is_idle
    director = Director(stop_at_return=1.0)
    episodes = Episodes(np.full(100, 2.0), np.full(100, 3), np.zeros(100, np.int32), {}, 0.1)
    director.on_round(0, 1, 0.5, Collected(None, episodes), {})  # type: ignore[arg-type]
    assert director.control.is_stopping
