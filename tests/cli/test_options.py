"""The options of `raceway train`."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
import tyro

from raceway.cli.options import parse, spelled
from raceway.cli.train_help import Help
from raceway.errors import UserError
from raceway.training.config import ALGORITHMS, TrainConfig
from raceway.training.resolve import resolve
from raceway.training.settings import paths_of


@pytest.mark.parametrize(
    ("arguments", "settings"),
    [
        ("--seed 3", {"seed": 3}),
        ("--seed=3", {"seed": 3}),
        ("--total-steps 1e6", {"total_steps": 1_000_000}),
        ("--total_steps 1_000_000", {"total_steps": 1_000_000}),
        ("--total-timesteps 5000", {"total_steps": 5000}),
        ("--ppo.learning-rate 3e-4", {"ppo.learning_rate": 3e-4}),
        ("--learning-rate 3e-4 --num-envs 4", {"ppo.learning_rate": 3e-4, "num_envs": 4}),
        ("--ppo.clip-range-vf none", {"ppo.clip_range_vf": None}),
        ("--num-workers None", {"num_workers": None}),
        ("--num-minibatches 4", {"ppo.num_minibatches": 4}),
        ("--anneal-lr false", {"ppo.anneal_lr": False}),
        ("--schedule serial", {"schedule": "serial"}),
        ("--no-preset", {"preset": False}),
        ("--preset", {"preset": True}),
        ("--preset false", {"preset": False}),
        ("--log.no-tensorboard", {"log.tensorboard": False}),
        ("--no-log.tensorboard", {"log.tensorboard": False}),
        ("--log.tensorboard=off", {"log.tensorboard": False}),
        ("--network.hidden 256 128 --seed 1", {"network.hidden": (256, 128), "seed": 1}),
        ("--network.hidden 256,128", {"network.hidden": (256, 128)}),
        ("--network.hidden (256,)", {"network.hidden": (256,)}),
        ("--network.hidden None", {"network.hidden": None}),
        ("--network.log-std-init -2", {"network.log_std_init": -2.0}),
        ("--log.name 5", {"log.name": "5"}),
        ("--env.frame_skip 2 --env.healthy-reward -1.5", {"env_args": {"frame_skip": 2, "healthy_reward": -1.5}}),
        ("--env.map_name 8x8 --env.is_slippery false", {"env_args": {"map_name": "8x8", "is_slippery": False}}),
        ("--env.sutton-barto-reward", {"env_args": {"sutton_barto_reward": True}}),
        ("--env.desc=['SF','HG']", {"env_args": {"desc": ["SF", "HG"]}}),
    ],
)
def test_options_become_settings_before_and_after_the_environment(arguments: str, settings: dict[str, Any]) -> None:
    for line in (f"Some-v1 {arguments}", f"{arguments} --device cpu Some-v1"):
        parsed = parse(line.split())
        found = dict(parsed.settings)
        if "--device" in line:
            assert found.pop("device") == "cpu"
        assert (parsed.env, found) == ("Some-v1", settings)


def test_a_list_does_not_swallow_the_environment() -> None:
    parsed = parse(["--network.hidden", "64", "64", "CartPole-v1"])
    assert (parsed.env, parsed.settings) == ("CartPole-v1", {"network.hidden": (64, 64)})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--leaning-rate 3", "No option --leaning-rate. Did you mean --ppo.learning-rate?"),
        ("--ppo.gama=3", "No option --ppo.gama. Did you mean --ppo.gamma?"),
        ("--num-env 3", "Did you mean --num-envs?"),
        ("--confg x", "Did you mean --config?"),
        ("--zzz", "No option --zzz. All options: raceway train --help."),
        ("--zzz", "An argument of the environment is given as --env.zzz VALUE."),
        ("--seed", "--seed needs a value"),
        ("--seed --device cpu", "--seed needs a value"),
        ("--seed x", "--seed='x' is not a whole number"),
        ("--seed 1 --seed 2", "--seed is given twice"),
        ("--schedule serail", "--schedule='serail' is not one of concurrent, serial, async. Did you mean 'serial'?"),
        ("--no-seed 3", "No option --no-seed"),
        ("--env-args x", "No option --env-args"),
        ("Two-v1", "'Two-v1' is one too many: the environment is 'One-v1'"),
    ],
)
def test_what_is_wrong_is_named_with_the_nearest_option(arguments: str, message: str) -> None:
    with pytest.raises(UserError) as raised:
        parse(["One-v1", *arguments.split()])
    assert message in str(raised.value)


def sample(path: str, type_: Any) -> list[str]:
    """Something to give an option."""
    if path in ("network.hidden", "algo"):
        return {"network.hidden": ["32", "16"], "algo": ["a2c"]}[path]
    if get_origin(type_) is Literal:
        return [get_args(type_)[-1]]
    return ["1.0"] if type_ is float else ["4"]


@pytest.mark.parametrize("path", [path for path in paths_of(TrainConfig) if path not in ("env", "env_args")])
def test_every_option_of_the_help_is_read_as_the_help_says(path: str) -> None:
    type_ = paths_of(TrainConfig)[path]
    group, dot, leaf = spelled(path)[2:].rpartition(".")
    arguments = [f"--{group}{dot}no-{leaf}"] if type_ is bool else [spelled(path), *sample(path, type_)]
    by_help = tyro.cli(Help, args=["Some-v1", *arguments], default=Help(env=tyro.MISSING))
    ours = parse(["Some-v1", *arguments])
    found: Any = by_help
    for part in path.split("."):
        found = getattr(found, part)
    assert ours.settings == {path: found}


def test_the_help_has_the_defaults_of_the_environment(capsys: pytest.CaptureFixture[str]) -> None:
    from raceway.cli import main

    assert main(["train", "CartPole-v1", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.replace("│", " ").split())
    config = resolve("CartPole-v1")
    assert f"(default: {config.total_steps})" in said
    assert f"(default: {config.ppo.gamma})" in said
    for field in dataclasses.fields(config.ppo):
        assert spelled(f"ppo.{field.name}") in said
    assert main(["train", "--help"]) == 0
    assert "ENV" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["list", "presets"], ["doctor", "--help"]])
def test_help_and_lists_do_not_bring_in_jax(arguments: list[str]) -> None:
    script = f"""if True:
        import sys
        from raceway.cli import main
        try:
            main({arguments})
        except SystemExit as ended:
            assert ended.code == 0
        print("heavy:", {{"jax", "pygame", "tensorboardX"}} & set(sys.modules))
    """
    env = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, env=env)
    assert done.stdout.rstrip().endswith("heavy: set()"), done.stdout + done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_short_names_are_of_the_algorithm_that_is_chosen_wherever_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text('{"algo": "impala"}')
    for line in ("--gamma 0.5 --algo a2c", "--algo=a2c --gamma 0.5", "--algorithm a2c --a2c.gamma 0.5"):
        assert parse(line.split()).settings == {"algo": "a2c", "a2c.gamma": 0.5}
    assert parse(["--gamma", "0.5", "--config", str(tmp_path / "mine.json")]).settings == {"impala.gamma": 0.5}
    with pytest.raises(UserError, match="No option --clip-range in a2c: it is one of ppo"):
        parse(["--algo", "a2c", "--clip-range", "0.1"])
    with pytest.raises(UserError, match=r"No algorithm 'a3c'\. Did you mean 'a2c'"):
        parse(["--algo", "a3c", "--gamma", "0.1"])


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_the_help_has_the_settings_of_one_algorithm(algo: str, capsys: pytest.CaptureFixture[str]) -> None:
    from raceway.cli import main

    assert main(["train", "--algo", algo, "--help"]) == 0
    said = capsys.readouterr().out
    assert {name for name in ALGORITHMS if f"--{name}.gamma" in said} == {algo}
    assert {name for name in ALGORITHMS if f"{name} options" in said} == {algo}
