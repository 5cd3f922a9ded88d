"""`raceway check`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import raceway
from raceway.cli import main
from raceway.cli.options import take_env_arguments
from raceway.envs.checking import CheckReport, Finding

MODULE = """
import gymnasium, numpy as np

class Mine(gymnasium.Env):
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, bound=1.0, wrong=False):
        self.observation_space = gymnasium.spaces.Box(-bound, bound, (1,), np.float32)
        self.wrong = wrong

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.uniform(-1, 1, 1).astype(np.float32), {}

    def step(self, action):
        if self.wrong:
            raise ValueError("wrong")
        return self.np_random.uniform(-1, 1, 1).astype(np.float32), 1.0, bool(self.np_random.uniform() < 0.1), False, {}
"""


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_checked.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)


def test_the_exit_code_says_whether_training_works(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "own_checked:Mine", "--no-lanes"]) == 0
    assert capsys.readouterr().out.endswith("All is well.\n")
    assert main(["check", "own_checked:Mine", "--no-lanes", "--env.wrong"]) == 1
    said = capsys.readouterr().out
    assert "✗ step 1 raises ValueError: 'wrong'." in said
    assert "own_checked.py:17 in step" in said


def test_strict_minds_what_could_be_better(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def found(env: str, **settings: Any) -> CheckReport:
        asked.update(settings, env=env)
        return CheckReport("mine", (Finding("observation-outside", "spaces", "note", "It is outside."),))

    monkeypatch.setattr(raceway, "check", found)
    arguments = ["check", "--env.bound", "0.5", "own_checked:Mine", "--no-lanes", "--num-envs", "6", "--json"]
    assert main(arguments) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["trains"] is True
    assert [each["code"] for each in told["findings"]] == ["observation-outside"]
    assert main([*arguments, "--strict"]) == 1
    assert (asked["env"], asked["env_args"]) == ("own_checked:Mine", {"bound": 0.5})
    assert (asked["lanes"], asked["num_envs"], asked["timeout_s"]) == (False, 6, 30.0)


def test_what_is_no_environment_is_one_message_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "own_checked:Mien"]) == 2
    assert capsys.readouterr().err == "raceway: Module 'own_checked' has no 'Mien'. Did you mean 'Mine'?\n"
    assert main(["check", "own_checked:Mine", "--timeout", "0"]) == 2
    assert "timeout_s=0.0 is out of range. Use seconds above 0" in capsys.readouterr().err


def test_arguments_of_the_environment_are_told_from_the_others() -> None:
    rest, args = take_env_arguments(["check", "--env.wide", "--json", "X", "--env.low=-3", "--env.map-name", "8x8"])
    assert rest == ["check", "--json", "X"]
    assert args == {"wide": True, "low": -3, "map_name": "8x8"}
