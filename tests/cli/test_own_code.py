"""Environments and networks of a user's own on the command line, where a run's folder does not lead to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import raceway
from raceway.cli import main
from tests.training.drawing import Drawn
from tests.training.small_runs import SMALL

MODULE = "tests.training.drawing"
NETWORK = f"{MODULE}:PAIR"
SHORT = ["--num-envs", "4", "--n-steps", "8", "--batch-size", "16", "--total-steps", "64", "--lane", "inline"]
QUIET = ["--evaluation.no-enabled", "--log.quiet"]


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a run of a class that no command finds."""

    class Local(Drawn):
        pass

    log = {"directory": str(tmp_path_factory.mktemp("local")), "quiet": True}
    settings: dict[str, Any] = {**SMALL, "total_steps": 64, "lane": "inline", "evaluation": {"enabled": False}}
    return str(raceway.train(Local, **settings, log=log).directory)


def test_play_eval_and_resume_take_an_environment_and_its_arguments(
    local: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--env", f"{MODULE}:Drawn", "--env.length", "3"]
    assert main(["eval", local, *given, "--episodes", "2"]) == 0
    assert capsys.readouterr().out == "return 9.00 ± 0.00 over 2 episodes of 3.00 steps\n"
    assert main(["eval", local, *given[:3], "1000000000", "--episodes", "2"]) == 0
    told = "raceway: 2 of 2 episodes are left out: evaluation.max_steps was up before they ended.\n"
    assert capsys.readouterr().err == told
    assert main(["play", local, *given, "--episodes", "1", "--video", str(tmp_path / "a.mp4")]) == 0
    assert capsys.readouterr().out == f"episode 1: return 9.00, 3 steps\nvideo: {tmp_path / 'a.mp4'}\n"
    assert main(["resume", local, *given, "--total-steps", "96"]) == 2
    assert "env_args.length left out (now 3)" in capsys.readouterr().err
    assert main(["resume", local, *given[:2], "--total-steps", "96"]) == 0


@pytest.mark.parametrize("verb", ["play", "eval", "resume"])
def test_without_it_the_call_from_python_is_told(verb: str, local: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, local]) == 2
    function = {"eval": "evaluate"}.get(verb, verb)
    assert f'Give it in Python: raceway.{function}("{local}", env=...).' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--env", "CartPol-v1"], "No environment 'CartPol-v1'. Did you mean 'CartPole-v1'?"),
        (["--env", "no_such:Task"], "No module 'no_such' for the environment 'no_such:Task'"),
        (["--env", f"{MODULE}:Drown"], "Did you mean 'Drawn'?"),
        (["--env", "CartPole-v1"], "CartPole-v1 has Box("),
        (["--env", f"{MODULE}:Drawn", "--env.lenght", "3"], "Did you mean 'length'?"),
        (["--env", f"{MODULE}:Drawn", "--network", f"{MODULE}:PAIRS"], "Did you mean 'PAIR'?"),
        (["--env", f"{MODULE}:Drawn", "--network", NETWORK], "the network 6"),
    ],
)
def test_what_is_wrong_with_it_is_one_line(
    given: list[str], message: str, local: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", local, *given]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_a_network_is_named_for_train_and_again_for_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", f"{MODULE}:Drawn", "--network", NETWORK, *SHORT, *QUIET]) == 0
    run = str(next(tmp_path.glob("runs/*/*")))
    for verb in ("eval", "play", "resume"):
        assert main([verb, run]) == 2
        assert f"raceway {verb} {run} --network {NETWORK}." in capsys.readouterr().err
    assert main(["eval", run, "--network", NETWORK, "--episodes", "1"]) == 0
    assert main(["play", run, "--network", NETWORK, "--episodes", "1"]) == 0
    assert main(["resume", run, "--network", NETWORK, "--total-steps", "96"]) == 0
    assert main(["train", f"{MODULE}:Drawn", "--network", "no_such:pair", *SHORT]) == 2
    assert "No module 'no_such' for the network" in capsys.readouterr().err


def test_settings_of_the_built_in_network_are_without_effect_beside_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", f"{MODULE}:Drawn", "--network", NETWORK, "--hidden", "3", *SHORT]) == 0
    assert "without effect: network.hidden=(3,), since the network is your own" in capsys.readouterr().out


@pytest.mark.slow
def test_several_seeds_have_the_network_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    line = ["train", "CartPole-v1", "--network", NETWORK, "--seeds", "2", "--jobs", "1", *SHORT[:-2], *QUIET]
    assert main(line) == 0
    runs = sorted(tmp_path.glob("runs/*/*"))
    assert len(runs) == 2
    assert raceway.evaluate(runs[0], 1, network=NETWORK).returns


def test_verbs_without_an_environment_refuse_arguments_for_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["graph", "x", "--env.length", "3"])
    assert "unrecognized arguments: --env.length" in capsys.readouterr().err


def test_random_play_takes_the_arguments_of_the_environment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    video = str(tmp_path / "a.mp4")
    assert main(["play", "--agent", "random", f"{MODULE}:Drawn", "--env.length", "2", "--video", video]) == 0
    assert capsys.readouterr().out.startswith("episode 1: return 4.00, 2 steps\n")
