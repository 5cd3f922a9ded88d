"""Every setting with values that make no sense: a short message, or a run that ends, and never a traceback."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest

import raceway
from raceway.callbacks import Curriculum
from raceway.cli import main
from raceway.errors import SettingError, UserError
from raceway.graph import Program, ReactionError
from raceway.training.checkpointer import Checkpointer
from raceway.training.config import ALGORITHMS, TrainConfig
from raceway.training.programs import build
from raceway.training.resolve import resolve
from raceway.training.settings import paths_of
from tests.graph.parts import Counter, Sink
from tests.training.small_runs import SMALL, set_up

_LONGEST_MESSAGE = 2000
NUMBERS = (2**62, 2**70, -1, 0, -(2**70), 10**400, 1e300, -1e300, math.nan, math.inf, -math.inf, "9" * 5000, "nan")
TEXTS = ("x" * 10**6, "a\0b", "\ud800", "", "..", "../..", "/dev/null/x")
PATHS = paths_of(TrainConfig)
NUMERIC = [path for path, type_ in PATHS.items() if any(kind in str(type_) for kind in ("int", "float"))]
TEXTUAL = [path for path, type_ in PATHS.items() if "str" in str(type_) and "Literal" not in str(type_)]


def settings(path: str, value: Any) -> dict[str, Any]:
    group = path.partition(".")[0]
    return {path: value, **({"algo": group} if group in ALGORITHMS else {})}


@contextmanager
def told_shortly() -> Iterator[None]:
    """Nothing goes wrong, or what the user is told of it is a short message."""
    told: BaseException | None = None
    try:
        yield
    except UserError as error:
        told = error
    except ReactionError as error:  # such as a run that diverges: the command line shows the cause alone
        told = error.__cause__
        if not isinstance(told, UserError):
            raise
    assert told is None or 0 < len(str(told)) < _LONGEST_MESSAGE


@pytest.mark.parametrize("path", NUMERIC)
def test_a_number_is_taken_or_refused_in_a_short_message(path: str) -> None:
    for value in NUMBERS:
        for given in (value, [value], [value, value]) if path == "network.hidden" else (value,):
            with told_shortly():
                resolve("CartPole-v1", **settings(path, given))


@pytest.mark.parametrize("path", NUMERIC)
def test_it_is_one_message_and_exit_code_2_on_the_command_line(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of those values that no setting takes."""
    monkeypatch.chdir(tmp_path)
    group = path.partition(".")[0]
    algo = ["--algo", group] if group in ALGORITHMS else []
    for value in ("nan", "9" * 5000, "many", "--"):
        assert main(["train", "CartPole-v1", *algo, f"--{path.replace('_', '-')}={value}"]) == 2
        said = capsys.readouterr().err
        assert "Traceback" not in said
        assert len(said) < _LONGEST_MESSAGE
    assert not list(tmp_path.iterdir())


ACCEPTED = [
    ("stop_at_return", -math.inf),
    ("stop_at_return", 1e300),
    ("seed", 2**64 - 1),
    ("checkpoint.interval_s", 1e9),
    ("log.interval_s", 1e9),
    ("ppo.max_grad_norm", math.inf),
    ("ppo.clip_range", math.inf),
    ("ppo.target_kl", 1e30),
    ("ppo.ent_coef", 1e30),
    ("ppo.vf_coef", 1e30),
    ("ppo.learning_rate", 1e30),
    ("evaluation.times", 10**15),
    ("evaluation.max_steps", 10**6),
    ("network.log_std_init", 20.0),
    ("network.log_std_init", -20.0),
    *(("log.directory", text) for text in TEXTS),
    *(("log.name", text) for text in TEXTS),
    *(("init_from", text) for text in TEXTS),
    *(("network.custom", text) for text in TEXTS),
]


@pytest.mark.parametrize(("path", "value"), ACCEPTED, ids=lambda each: repr(each)[:24])
def test_a_run_with_an_odd_value_ends_or_is_refused(
    path: str,
    value: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    compiled_without_optimizing: None,
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    died: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", died.append)
    wanted = {**SMALL, "total_steps": 64, "log.quiet": True, "log.tensorboard": False, **settings(path, value)}
    if not path.startswith("evaluation"):
        wanted["evaluation.enabled"] = False
    env = "Pendulum-v1" if path == "network.log_std_init" else "CartPole-v1"
    with told_shortly():
        raceway.train(env, **wanted)
    assert not died
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("value", [1e300, math.inf, 0.0, -1.0])
@pytest.mark.parametrize("path", ["checkpoint.interval_s", "log.interval_s", "worker_timeout"])
def test_seconds_have_a_range(path: str, value: float) -> None:
    with pytest.raises(SettingError, match=rf"{path}=.* must be above 0 seconds, and at most 1,000,000,000"):
        resolve("CartPole-v1", None, **settings(path, value))


@pytest.mark.parametrize("path", ["evaluation.max_steps", "evaluation.episodes"])
def test_evaluations_that_nobody_waits_for_are_refused(path: str) -> None:
    with pytest.raises(SettingError, match=rf"{path}=1000001 is out of range. Use a number from 1 to 1,000,000"):
        resolve("CartPole-v1", None, **settings(path, 10**6 + 1))


def test_a_thread_of_checkpoints_that_dies_ends_the_run_with_its_error() -> None:
    """Whatever it dies of: here, of an interval that no wait can take."""

    class Nothing:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError("there is no time for a checkpoint")

    program = Program("counting")
    counter, sink = program.add(Counter()), program.add(Sink(sleep_s=0.001))
    program.connect(counter.out, sink.inp)
    checkpointer = Checkpointer(Nothing(), SimpleNamespace(known=None), {}, 1e300, (), print, print)  # type: ignore[arg-type]
    with pytest.raises(OverflowError), checkpointer.watch(program):
        program.run(10**6)


@pytest.mark.parametrize("algo", ["ppo", "pqn"])
def test_the_largest_seeds_are_different_seeds(algo: str) -> None:
    """Not so if they were floats on their way."""
    setups = [set_up("CartPole-v1", algo=algo, seed=seed) for seed in (2**64 - 1, 2**64 - 2)]
    first, second = (build(setup, None).learner.current.params for setup in setups)
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("value", [2**62, 2**70, -1])
@pytest.mark.parametrize("verb", [raceway.evaluate, raceway.play], ids=["evaluate", "play"])
def test_episodes_and_seeds_of_eval_and_play_have_a_range(verb: Any, value: int) -> None:
    with pytest.raises(SettingError, match=r"episodes=.* is out of range"):
        verb("nowhere", episodes=value)
    if not 0 <= value < 2**64:
        with pytest.raises(SettingError, match=r"seed=.* is out of range"):
            verb("nowhere", episodes=1, seed=value)


def test_more_seeds_than_anybody_trains_are_refused() -> None:
    with pytest.raises(SettingError, match="seeds=4611686018427387904: give how many, from 1 to 10,000"):
        raceway.train_seeds("CartPole-v1", seeds=2**62)


@pytest.mark.parametrize(
    "given", [{"episodes": "3"}, {"episodes": None}, {"seed": 1.5}, {"num_envs": "x"}, {"num_envs": 0}]
)
def test_what_is_no_number_of_episodes_or_environments_is_told(given: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=rf"{next(iter(given))}=.* is (not a whole number|out of range)"):
        raceway.evaluate("nowhere", **given)


class Untrainable(gymnasium.Env[Any, Any]):
    """Spaces that no algorithm takes, as asked for."""

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, what: str = "text") -> None:
        texts, numbers = gymnasium.spaces.Text(5), gymnasium.spaces.Box(-1, 1, (2,))
        self.what = what
        self.observation_space = texts if what == "text" else numbers
        if what in ("actions", "masks"):
            self.action_space = gymnasium.spaces.Dict({"a": gymnasium.spaces.Discrete(2)})  # type: ignore[assignment]

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        infos = {"action_mask": np.ones(2, bool)} if self.what == "masks" else {}
        return ("" if self.what == "text" else np.zeros(2, np.float32)), infos

    def step(self, action: Any) -> Any:
        return self.reset()[0], 0.0, False, False, {}


@pytest.mark.parametrize("what", ["text", "actions", "masks"])
def test_spaces_that_cannot_be_trained_with_are_one_message(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", f"{__name__}:Untrainable", "--env.what", what, "--lane", "inline"]) == 2
    said = capsys.readouterr().err
    assert "Text" in said if what == "text" else "Dict" in said
    assert "Traceback" not in said
    assert not (tmp_path / "runs").exists()


def test_a_level_that_cannot_be_trained_with_is_told(tmp_path: Path) -> None:
    curriculum = Curriculum([{"what": "fine"}, {"what": "text"}], threshold=1.0, by="training")
    with pytest.raises(SettingError, match=r"which changes the observation space from Box.* to Text"):
        raceway.train(
            Untrainable,
            env_args={"what": "fine"},
            callbacks=[curriculum],
            lane="inline",
            log={"directory": str(tmp_path)},
        )
