"""The raceway command."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import raceway
from raceway.cli import main
from raceway.errors import SettingError
from raceway.graph import ReactionError
from raceway.training.preset_settings import SETTINGS
from raceway.training.presets import Result, digest_of_settings, presets

COMMAND = str(Path(sys.executable).with_name("raceway"))


def test_list_envs_names_what_make_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "envs"]) == 0
    names = capsys.readouterr().out.split()
    assert names == raceway.list_envs()
    assert {"CartPole-v1", "Taxi-v3", "Pendulum-v1"} <= set(names)


def test_list_algos(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "algos"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("ppo ")
    assert max(len(line) for line in said.splitlines()) <= 80


def test_list_presets_is_a_table_with_what_was_measured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = digest_of_settings(SETTINGS["Ant-v5", "ppo"])
    result = Result(9876.5, 9000.0, 9999.0, 1_000_000, 83.0, 3, "raceway train Ant-v5", settings=settings)
    monkeypatch.setattr("raceway.training.presets.measured", lambda: {"Ant-v5 ppo": result})
    assert main(["list", "presets"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in rows] == [preset.env for preset in presets()]
    row = next(row for row in rows if row.startswith("Ant-v5"))
    assert "9,876 (9,000 to 9,999)" in row
    assert row.index("9,876") == head.index("return")
    assert "1:23" in row


def test_resume_speaks_though_the_run_was_told_to_be_quiet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = {"directory": str(tmp_path), "quiet": True}
    run = raceway.train("CartPole-v1", total_steps=512, log=log, evaluation={"enabled": False})
    assert main(["resume", str(run.directory), "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["resume", str(run.directory)]) == 0
    assert "finished before" in capsys.readouterr().out
    raceway.resume(run.directory)  # as it was begun
    assert capsys.readouterr().out == ""


def test_the_installed_command_says_its_version() -> None:
    done = subprocess.run([COMMAND, "--version"], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == f"raceway {raceway.__version__}"


def test_a_reader_that_has_had_enough_is_no_error() -> None:
    for _ in range(5):
        listing = subprocess.Popen([COMMAND, "list", "envs"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert listing.stdout is not None
        listing.stdout.close()
        _, errors = listing.communicate(timeout=30)
        assert (listing.returncode, errors) == (0, b"")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["list", "agents"], "invalid choice: 'agents'"),
        (["list", "env"], "Did you mean 'envs'?"),
        (["list"], "what"),
        (["eval", "x", "--episods", "3"], "Did you mean '--episodes'?"),
        (["eval", "x", "--episodes", "three"], "invalid int value: 'three'"),
        (["export", "x", "--to", "onx"], "Did you mean 'onnx'?"),
    ],
)
def test_an_unknown_or_missing_argument_is_refused_with_what_there_is(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert "usage: raceway" in errors


@pytest.mark.parametrize(
    ("arguments", "code", "first"),
    [
        ([], 2, "Raceway: "),
        (["help"], 0, "Raceway: "),
        (["--help"], 0, "Raceway: "),
        (["-h"], 0, "Raceway: "),
        (["trian", "CartPole-v1"], 2, "raceway: no verb 'trian'. Did you mean 'train'?\n"),
        (["xyzzy"], 2, "raceway: no verb 'xyzzy'.\n"),
        (["help", "resum"], 2, "raceway: no verb 'resum'. Did you mean 'resume'?\n"),
        (["--hepl"], 2, "raceway: no option '--hepl'. Did you mean '--help'?\n"),
    ],
)
def test_without_a_verb_all_are_listed_with_a_line_each(
    arguments: list[str], code: int, first: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == code
    captured = capsys.readouterr()
    said, nothing = (captured.out, captured.err) if code == 0 else (captured.err, captured.out)
    assert said.startswith(first)
    assert nothing == ""
    listed = re.findall(r"^  (\w+) +(\S.*)$", said, flags=re.MULTILINE)
    assert [verb for verb, _ in listed] == [
        "train", "resume", "eval", "play", "plot", "compare", "export", "new", "check", "list", "graph", "doctor",
    ]  # fmt: skip
    assert max(map(len, said.splitlines())) <= 80


def test_help_with_a_verb_is_the_help_of_the_verb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["help", "eval"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage: raceway eval")


@pytest.mark.parametrize(
    ("algo", "instead"),
    [
        ("sac", "For continuous actions use ppo."),
        ("TD3", "For continuous actions use ppo."),
        ("ddpg", "For continuous actions use ppo."),
        ("dqn", "For discrete actions use pqn"),
        ("rainbow", "For discrete actions use pqn"),
        ("qr-dqn", "For discrete actions use pqn"),
        ("trpo", "Use ppo, or a2c"),
        ("recurrent_ppo", "--network.gru 64"),
        ("MaskablePPO", "action_mask"),
        ("dreamerv3", "no model-based algorithms"),
    ],
)
def test_an_algorithm_of_other_libraries_is_told_with_what_to_use_instead(
    algo: str, instead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "Hopper-v5", "--algo", algo]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"raceway: No algorithm '{algo}'. There are: ppo, a2c, impala, pqn (raceway list algos).")
    assert instead in said
    assert "Did you mean" not in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train"], "No environment is named"),
        (["train", "CartPol-v1"], "Did you mean 'CartPole-v1'?"),
        (["train", "CartPole-v1", "--leaning-rate", "1"], "Did you mean --ppo.learning-rate?"),
        (["train", "CartPole-v1", "--gamma", "2"], "gamma=2.0 must be from 0 to 1"),
        (["train", "CartPole-v1", "--env.gravity", "2"], "CartPole-v1 takes no keyword argument 'gravity'"),
        (["train", "CartPole-v1", "--config", "none.toml"], "The settings in none.toml cannot be read"),
        (["train", "no_such_module:make"], "No module 'no_such_module'"),
        (["train", "math:make"], "'make'"),
        (["eval", "nowhere"], "There is no nowhere"),
        (["play", "nowhere"], "There is no nowhere"),
        (["play", "--agent", "random", "CartPol-v1"], "Did you mean 'CartPole-v1'?"),
        (["play", "--agent", "random", "Busy-v0"], "Busy-v0 cannot be shown"),
        (["graph", "nowhere"], "There is no nowhere"),
        (["export", "nowhere"], "There is no nowhere"),
        (["check", "CartPole-v1", "--num-envs", str(2**62)], "Use a number from 1 to 65,536"),
        (["check", "CartPole-v1", "--num-workers", "0"], "Use a number from 1 to 4,096"),
        (["check", "CartPole-v1", "--timeout", "inf"], "timeout_s=inf is out of range"),
    ],
)
def test_what_the_user_can_put_right_is_one_message_and_exit_code_2(
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.startswith("raceway: ")
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", [["eval", "run", "--at-least"], ["compare", "run", "--at"]])
def test_no_return_is_compared_with_nan(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*option, "nan"])
    assert ended.value.code == 2
    assert "'nan' is not a number" in capsys.readouterr().err


def test_a_bug_comes_with_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> list[str]:
        raise RuntimeError("a bug")

    monkeypatch.setattr(raceway, "list_envs", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        main(["list", "envs"])


@pytest.mark.parametrize(("cause", "code"), [(SettingError("no such thing"), 2), (KeyError("a bug"), None)])
def test_within_a_run_the_two_are_told_apart_too(
    cause: Exception, code: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> list[str]:
        raise ReactionError("learner.learn failed in round 3") from cause

    monkeypatch.setattr(raceway, "list_envs", fail)
    if code is None:
        with pytest.raises(ReactionError, match="round 3"):
            main(["list", "envs"])
    else:
        assert main(["list", "envs"]) == code
        assert capsys.readouterr().err == "raceway: no such thing\n"


def test_an_interrupt_is_told_by_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> list[str]:
        raise KeyboardInterrupt

    monkeypatch.setattr(raceway, "list_envs", interrupted)
    assert main(["list", "envs"]) == 130


def test_names_that_raceway_has_not_are_told_as_usual() -> None:
    with pytest.raises(AttributeError, match="module 'raceway' has no attribute 'tain'"):
        raceway.tain  # noqa: B018
    assert {"train", "load", "evaluate", "play", "make"} <= set(dir(raceway))


def test_graph_says_where_the_picture_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text("{}")
    assert main(["graph", str(tmp_path)]) == 2
    assert "has no graph.svg" in capsys.readouterr().err
    (tmp_path / "graph.svg").touch()
    (tmp_path / "graph.mmd").write_text("flowchart LR\n")
    assert main(["graph", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'graph.svg'}\n"
    assert main(["graph", "--mermaid", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "flowchart LR\n"


def test_doctor_reports_and_its_exit_code_says_whether_training_works(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--directory", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert re.search(r"✓ python +3\.", said)
    (tmp_path / "file").touch()
    assert main(["doctor", "--directory", str(tmp_path / "file")]) == 1
    assert "✗ run folders" in capsys.readouterr().out


def test_random_play_without_a_screen_writes_a_video(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for number in (1, 2):
        assert main(["play", "--agent", "random", "CartPole-v1", "--episodes", "2", "--seed", "5"]) == 0
        said = capsys.readouterr().out
        assert re.search(r"episode 1: return \d+.00, \d+ steps\nepisode 2: ", said)
        assert said.endswith(f"video: CartPole-v1-random-{number}.mp4\n")
        assert (tmp_path / f"CartPole-v1-random-{number}.mp4").stat().st_size > 1000


SHORT = ["--total-steps", "2048", "--evaluation.episodes", "2", "--evaluation.times", "1"]

MAKER = """
import gymnasium

def make(length=200, **kwargs):
    return gymnasium.make("CartPole-v1", max_episode_steps=length, **kwargs)
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder in which CartPole was trained for a moment, by the installed command; and what that said."""
    place = tmp_path_factory.mktemp("place")
    done = subprocess.run(
        [COMMAND, "train", "CartPole-v1", *SHORT], cwd=place, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return place, done.stdout


def run_of(trained: tuple[Path, str]) -> Path:
    (found,) = (trained[0] / "runs" / "CartPole-v1").iterdir()
    return found


def test_train_leaves_everything_in_its_folder_and_says_where(trained: tuple[Path, str]) -> None:
    run = run_of(trained)
    for name in ("config.json", "system.json", "metrics.jsonl", "chain.jsonl", "graph.svg", "graph.mmd"):
        assert (run / name).stat().st_size > 0, name
    for policy in ("best", "final"):
        assert list((run / policy).glob("policy-*.safetensors"))
    assert list((run / "tensorboard").iterdir())
    assert str(run.relative_to(trained[0])) in trained[1]
    assert "100%  2,048 steps" in trained[1]
    steps = [json.loads(line)["step"] for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert max(steps) == 2048


def test_eval_play_and_graph_take_the_run(
    trained: tuple[Path, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = str(run_of(trained))
    assert main(["eval", run, "--episodes", "5", "--seed", "3"]) == 0
    first = capsys.readouterr().out
    assert re.fullmatch(r"return [\d.]+ ± [\d.]+ over 5 episodes of [\d.]+ steps\n", first)
    assert main(["eval", run, "--episodes", "5", "--seed", "3"]) == 0
    assert capsys.readouterr().out == first
    assert main(["play", run, "--episodes", "1"]) == 0
    said = capsys.readouterr().out
    assert Path(said.splitlines()[-1].removeprefix("video: ")).parent == Path(run) / "videos"
    assert main(["graph", run]) == 0
    assert "<svg" in Path(capsys.readouterr().out.strip()).read_text()


def test_export_says_what_it_wrote(trained: tuple[Path, str], capsys: pytest.CaptureFixture[str]) -> None:
    run = run_of(trained)
    assert main(["export", str(run), "--policy", "final"]) == 0
    assert capsys.readouterr().out == f"{run / 'policy.onnx'}\n"
    out = run / "videos/mine.safetensors"
    assert main(["export", str(run), "--to", "safetensors", "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}\n{out.with_suffix('.json')}\n"
    assert json.loads(out.with_suffix(".json").read_text())["arrays"] == out.name


def test_an_environment_of_ones_own_is_trained_from_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MAKER)
    line = [COMMAND, "train", "mine:make", "--env.length", "20", *SHORT, "--log.quiet"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (config,) = tmp_path.glob("runs/*/*/config.json")
    assert json.loads(config.read_text())["env_args"] == {"length": 20}


def test_ctrl_c_in_a_terminal_keeps_the_policy_and_the_terminal(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    line = [COMMAND, "train", "CartPole-v1", "--total-steps", "1e9"]
    env = {**os.environ, "TERM": "xterm"}
    process = subprocess.Popen(line, stdin=follower, stdout=follower, stderr=follower, cwd=tmp_path, env=env)
    os.close(follower)
    shown = ""
    deadline = time.monotonic() + 120
    while "steps/s" not in shown and time.monotonic() < deadline:
        shown += os.read(leader, 65536).decode(errors="replace")
    process.send_signal(signal.SIGINT)
    try:
        while part := os.read(leader, 65536):
            shown += part.decode(errors="replace")
    except OSError:
        pass  # the other end is gone
    assert process.wait(timeout=60) == 130
    os.close(leader)
    assert "Traceback" not in shown
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")
    assert list(tmp_path.glob("runs/CartPole-v1/*/final/policy.json"))
