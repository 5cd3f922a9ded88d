"""Whatever an environment does, the check ends with a finding: no traceback, no hang, nothing left behind."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import pytest

import raceway
from raceway.envs.checking import CheckReport
from raceway.errors import SettingError
from tests.envs.checking import hostile_envs as hostile
from tests.envs.checking import right_envs as right
from tests.envs.checking import wrong_envs as wrong
from tests.envs.python.watching import children


def checked(env: Any, **settings: Any) -> CheckReport:
    return raceway.check(env, **{"lanes": False, "timeout_s": 20.0, **settings})


@pytest.mark.parametrize(
    ("env", "code", "text"),
    [
        (hostile.Hangs, "hangs", "It hangs in step 1: nothing came back within 1.5 s."),
        (hostile.Spins, "hangs", "It hangs in reset: nothing came back within 1.5 s."),
        (hostile.Exits, "exits", "step 1 calls sys.exit('done')."),
        (hostile.Vanishes, "dies", "It ended the process in step 1, with exit code 3."),
        (hostile.KillsItself, "dies", "It ended the process in reset: killed by SIGKILL."),
        (hostile.ReadsInput, "reset-raises", "reset raises EOFError"),
        (hostile.broken_maker, "make-raises", "make raises ImportError: 'no simulator here'."),
    ],
)
def test_what_ends_or_stops_a_process_is_one_problem_and_nothing_is_left(
    env: Callable[..., Any], code: str, text: str
) -> None:
    before, descriptors = children(), os.listdir("/proc/self/fd")
    started = time.monotonic()
    report = checked(env, timeout_s=1.5)
    assert time.monotonic() - started < 10
    (problem,) = report.problems
    assert (problem.code, problem.topic) == (code, "api")
    assert problem.text.startswith(text)
    assert not report.trains
    assert children() <= before
    assert len(os.listdir("/proc/self/fd")) <= len(descriptors)


@pytest.mark.parametrize(
    ("env", "code", "text"),
    [
        (hostile.DiesAfterEnd, "dies-after-end", "killed by SIGSEGV"),
        (hostile.DiesEarly, "dies-before-reset", "in step 1, with exit code 7"),
        (hostile.DiesWhenDrawn, "render-dies", "in render: killed by SIGABRT"),
    ],
)
def test_what_no_trainer_does_is_a_note_and_the_rest_is_still_examined(
    env: Callable[..., Any], code: str, text: str
) -> None:
    report = checked(env)
    assert report.trains
    (note,) = report.notes
    assert note.code == code
    assert text in note.text
    for each in ("determinism", "state", "episodes"):
        assert report.find(each) is not None


def test_what_it_prints_is_kept_from_the_terminal_and_told(capfd: pytest.CaptureFixture[str]) -> None:
    report = checked(hostile.Chatters)
    assert capfd.readouterr() == ("", "")
    note = report.find("prints")
    assert note is not None
    assert "such as: step " in note.text
    assert report.trains


def test_hashes_that_differ_from_process_to_process_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    report = checked(wrong.Hashed)
    assert [note.code for note in report.notes] == ["differs-elsewhere", "state-lost"]


def test_a_slow_environment_takes_no_more_than_its_budget() -> None:
    started = time.monotonic()
    report = checked(right.Slow)
    assert time.monotonic() - started < 60
    assert report.trains
    assert report.speed is not None
    assert report.speed.step_s >= 0.05
    assert report.speed.cpu_share < 0.2
    assert any("waits for the rest" in each for each in report.advice)


def test_code_that_is_nowhere_by_name_is_examined_too() -> None:
    class Local(right.Walk):
        pass

    report = checked(lambda: Local())
    assert report.name == "<lambda>"
    assert not report.problems


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (3, "env=3 is no environment"),
        ("CartPol-v1", "Did you mean 'CartPole-v1'?"),
        ("no_such_module:make", "No module 'no_such_module'"),
        ("math:make", "Module 'math' has no 'make'"),
        (gymnasium.make("CartPole-v1"), "Give what makes it"),
        ("nowhere/mine.hpp", "There is no file"),
    ],
)
def test_what_is_no_environment_is_refused(env: Any, message: str) -> None:
    with pytest.raises(SettingError, match=message.replace("?", r"\?")):
        checked(env)


@pytest.mark.parametrize("settings", [{"num_envs": 0}, {"num_workers": -1}, {"timeout_s": 0.0}])
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=next(iter(settings))):
        checked(right.Walk, **settings)


def test_an_argument_that_it_does_not_take_is_refused() -> None:
    with pytest.raises(SettingError, match="no argument 'size'"):
        checked(right.Walk, env_args={"size": 3})


def test_a_module_that_raises_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torn_module.py").write_text("import gymnasium\nraise OSError('half a file')\n")
    monkeypatch.syspath_prepend(tmp_path)
    (problem,) = checked("torn_module:make").problems
    assert problem.code == "import-raises"
    assert "half a file" in problem.text
    assert "torn_module.py:2" in problem.details


def test_what_crashes_is_told_without_anything_of_ours() -> None:
    finding = checked(hostile.Vanishes).find("dies")
    assert finding is not None
    assert finding.details == ""


def test_a_callable_without_render_mode_has_no_videos_and_that_is_all() -> None:
    finding = checked(lambda: right.Picture()).find("render-argument")
    assert finding is not None
    assert finding.mark == "note"
    assert (finding.text, finding.details) == ("It takes no render_mode, so there are no videos.", "")
