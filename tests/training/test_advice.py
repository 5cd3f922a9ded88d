"""What is printed to go on with works where it is printed."""

from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from raceway.algos.configs import NetworkConfig
from raceway.cli.options import take_env_arguments
from raceway.envs.new import new
from raceway.training.advice import how_to, is_found_by_command
from raceway.training.config import TrainConfig

RUN = Path("runs/x")


def config(env: str, network: str | None = None, **env_args: Any) -> TrainConfig:
    return TrainConfig(env=env, env_args=env_args, network=NetworkConfig(custom=network))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (config("CartPole-v1"), "raceway play runs/x"),
        (config("Blackjack-v1", length=3), "raceway play runs/x"),
        (config("LunarLander-v3"), "raceway play runs/x"),
        (config("tests.training.probes:Walk"), "raceway play runs/x"),
        (config("tests.training.probes:Walk", "mine:pair"), "raceway play runs/x --network mine:pair"),
        (config("__main__:Walk"), 'raceway.play("runs/x", env=Walk)'),
        (config("__main__:Walk", "mine:pair"), 'raceway.play("runs/x", env=Walk, network="mine:pair")'),
        (config("__main__:<lambda>"), 'raceway.play("runs/x", env=...)'),
        (config("mine:make.<locals>.Walk"), 'raceway.play("runs/x", env=...)'),
        (config("functools:<partial>"), 'raceway.play("runs/x", env=...)'),
        (config("__main__:Walk<2 of them>"), 'raceway.play("runs/x", env=[...])'),
        (config("SyncVectorEnv"), 'raceway.play("runs/x", env=...)'),
        (config("Mine-v0"), 'raceway.play("runs/x", env="Mine-v0")'),
        (config("CartPole-v1", "__main__:<init, apply>"), 'raceway.play("runs/x", network=(init, apply))'),
        (config("CartPole-v1", "__main__:<f.<locals>.init, apply>"), 'raceway.play("runs/x", network=(..., apply))'),
        (config("CartPole-v1", a={"not saved": "object"}), 'raceway.play("runs/x", env_args={"a": ...})'),
    ],
)
def test_a_command_where_names_do_and_else_the_call(settings: TrainConfig, said: str) -> None:
    assert how_to("play", RUN, settings) == said


@pytest.mark.parametrize("hostile", ["x; touch harm #", "$(touch harm)", "a b", "it's"])
def test_what_a_folder_says_is_quoted_in_a_command(hostile: str) -> None:
    """People paste it."""
    settings = config("CartPole-v1", f"mine:{hostile}")
    command = how_to("play", RUN, settings, env_args={hostile: hostile}, option=hostile)
    assert shlex.split(command) == [
        *("raceway", "play", "runs/x", "--network", f"mine:{hostile}", "--option", hostile),
        *(f"--env.{hostile}", repr(hostile)),
    ]
    call = how_to("play", RUN, config(f"__main__:{hostile}"))
    assert call == 'raceway.play("runs/x", env=...)'


def test_a_header_in_a_folder_with_a_space_can_be_pasted(tmp_path: Path) -> None:
    header = tmp_path / "my envs/task.hpp"
    header.parent.mkdir()
    header.touch()
    command = how_to("play", RUN, config("CartPole-v1"), env=str(header))
    assert shlex.split(command) == ["raceway", "play", "runs/x", "--env", str(header)]


LEVEL = {"size": 5, "g": -1.5, "kind": "easy", "flag": "no", "text": "it's", "shape": (1, 2)}


def test_arguments_besides_the_runs_own_are_given_in_either_way(tmp_path: Path) -> None:
    command = how_to("play", RUN, config("tests.training.drawing:Drawn"), env_args=LEVEL)
    assert command.startswith("raceway play runs/x --env.size 5 --env.g -1.5 --env.kind easy --env.flag ")
    _, found = take_env_arguments(shlex.split(command))
    assert found == LEVEL
    call = how_to("eval", RUN, config("__main__:Walk", a=object()), env_args={"size": 5, "tell": abs})
    assert call == 'raceway.evaluate("runs/x", env=Walk, env_args={"size": 5, "tell": ..., "a": ...})'


@pytest.mark.parametrize(
    ("settings", "env", "said"),
    [
        (config("__main__:Walk"), "CartPole-v1", "raceway play runs/x --env CartPole-v1"),
        (config("CartPole-v1"), "__main__:Walk", 'raceway.play("runs/x", env=Walk)'),
        (
            config("__main__:Walk", a=object()),
            "CartPole-v1",
            'raceway.play("runs/x", env="CartPole-v1", env_args={"a": ...})',
        ),
    ],
)
def test_another_environment_is_given_again(settings: TrainConfig, env: str, said: str) -> None:
    assert how_to("play", RUN, settings, env=env) == said


def test_options_and_odd_paths_are_spelled_for_either(tmp_path: Path) -> None:
    known, local = config("CartPole-v1"), config("__main__:Walk")
    assert how_to("resume", RUN, known, total_steps="N") == "raceway resume runs/x --total-steps N"
    assert how_to("resume", RUN, local, anyway=True) == 'raceway.resume("runs/x", env=Walk, anyway=True)'
    assert how_to("eval", RUN, local) == 'raceway.evaluate("runs/x", env=Walk)'
    own = replace(local, network=replace(local.network, custom="nets:pair"))
    assert how_to("load", RUN, own) == 'raceway.load("runs/x", network="nets:pair")'
    assert how_to("load", RUN, local) == 'raceway.load("runs/x", network=(init, apply))'
    assert how_to("resume", RUN, known, has_callbacks=True) == 'raceway.resume("runs/x", callbacks=[...])'
    odd = Path("my runs/it's")
    assert shlex.split(how_to("play", odd, known)) == ["raceway", "play", "my runs/it's"]
    header = tmp_path / "mine.hpp"
    assert not is_found_by_command(str(header))
    header.touch()
    assert how_to("play", RUN, replace(known, env=str(header))) == "raceway play runs/x"


@pytest.mark.timeout(120)
def test_what_a_script_prints_can_be_called(tmp_path: Path) -> None:
    new("env", "MyTask", tmp_path)
    (tmp_path / "elsewhere").mkdir()
    new("env", "TheirTask", tmp_path / "elsewhere")
    script = """if True:
        import io, sys
        from contextlib import redirect_stdout
        import gymnasium, raceway
        sys.path.insert(0, "elsewhere")
        from my_task import MyTask
        from their_task import TheirTask

        class Mine(MyTask):
            pass

        gymnasium.register("Mine-v0", Mine)
        small = {"num_envs": 2, "n_steps": 8, "batch_size": 16, "total_steps": 16, "hidden": (8,), "lane": "inline"}
        for env in (MyTask, TheirTask, Mine, "Mine-v0"):
            said = io.StringIO()
            with redirect_stdout(said):
                raceway.train(env, **small, evaluation={"enabled": False})
            watch = said.getvalue().splitlines()[-1].removeprefix("watch").strip()
            print(watch, flush=True)
            if watch.startswith("raceway."):
                print(eval(watch.replace(")", ", episodes=1)")).video)
    """
    (tmp_path / "script.py").write_text(script)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    command, *others = done.stdout.splitlines()
    calls, videos = others[::2], others[1::2]
    ends = ("env=TheirTask)", "env=Mine)", 'env="Mine-v0")')
    for call, end, video in zip(calls, ends, videos, strict=True):
        assert call.startswith("raceway.play(")
        assert call.endswith(end)
        assert (tmp_path / video).stat().st_size > 1000
    program = str(Path(sys.executable).with_name("raceway"))
    line = [program, *shlex.split(command)[1:], "--episodes", "1"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
