"""The folder that a command is given in is hostile: its files are imported only if they are asked for by name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

COMMAND = "import sys; from raceway.cli import main; sys.exit(main())"
SMALL = ["--total-steps", "64", "--num-envs", "2", "--n-steps", "8", "--hidden", "4", "--no-evaluation.enabled"]
INSTALLED = ("csv", "jax", "json", "numpy", "optax", "rich", "safetensors", "tensorboardX", "tyro", "wandb")

TASK = """
import gymnasium
import numpy as np
import beside

class Walk(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self):
        import beside_too
        assert beside.VALUE == beside_too.VALUE == 7

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        import beside_in_step
        return np.zeros(2, np.float32), 1.0, False, False, {}
"""


def raceway(folder: Path, *arguments: str, module: bool = False) -> subprocess.CompletedProcess[str]:
    """A command, as the installed script runs it: Python puts the folder of the script first, not this one."""
    how = ["-m", "raceway.cli"] if module else ["-P", "-c", COMMAND]
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    return subprocess.run(
        [sys.executable, *how, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def plant(folder: Path, names: Sequence[str]) -> None:
    """Files that tell when they are run."""
    for name in names:
        (folder / f"{name}.py").write_text(f"open({str(folder / f'{name}.ran')!r}, 'w').close()\n")


def ran(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.ran"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    trained = raceway(folder, "train", "CartPole-v1", *SMALL, "--log.name", "run", "--log.quiet")
    assert trained.returncode == 0, trained.stderr
    return folder / "runs/CartPole-v1/run"


@pytest.mark.parametrize("verb", [["eval", "RUN", "--episodes", "1"], ["resume", "RUN"], ["list", "envs"]])
def test_files_beside_a_command_are_not_imported(run: Path, tmp_path: Path, verb: list[str]) -> None:
    plant(tmp_path, [*sorted(sys.stdlib_module_names), *INSTALLED])
    (tmp_path / "jax_plugins/evil").mkdir(parents=True)  # which JAX looks for on sys.path
    plant(tmp_path / "jax_plugins/evil", ["__init__"])
    done = raceway(tmp_path, *(str(run) if word == "RUN" else word for word in verb))
    assert done.returncode == 0, done.stderr
    assert ran(tmp_path) == []
    assert ran(tmp_path / "jax_plugins/evil") == []


def test_files_beside_python_dash_m_are_not_imported_once_raceway_runs(tmp_path: Path) -> None:
    plant(tmp_path, ["optax", "tyro"])
    done = raceway(tmp_path, "train", "CartPole-v1", *SMALL, "--log.quiet", module=True)
    assert done.returncode == 0, done.stderr
    assert ran(tmp_path) == []


def test_a_module_that_is_named_is_found_with_what_it_imports_from_beside_itself(tmp_path: Path) -> None:
    (tmp_path / "my_walk.py").write_text(TASK)
    for name in ("beside", "beside_too", "beside_in_step"):
        (tmp_path / f"{name}.py").write_text("VALUE = 7\n")
    plant(tmp_path, ["optax", "csv", "wandb", "moviepy", "libtpu"])
    trained = raceway(tmp_path, "train", "my_walk:Walk", *SMALL, "--log.name", "run", "--log.quiet")
    assert trained.returncode == 0, trained.stderr
    evaluated = raceway(tmp_path, "eval", "runs/my_walk-Walk/run", "--episodes", "1")
    assert evaluated.returncode == 0, evaluated.stderr
    assert ran(tmp_path) == []


def test_an_installed_module_wins_over_one_of_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "gymnasium.py").write_text("raise SystemExit('harm')\n")
    done = raceway(tmp_path, "train", "gymnasium.envs.classic_control:CartPoleEnv", *SMALL, "--log.quiet")
    assert done.returncode == 0, done.stderr


def test_a_module_that_only_a_folder_names_is_not_imported(run: Path, tmp_path: Path) -> None:
    plant(tmp_path, ["my_walk"])
    config = json.loads((run / "config.json").read_text())
    (tmp_path / "run").mkdir()
    (tmp_path / "run/config.json").write_text(json.dumps({**config, "env": "my_walk:Walk"}))
    for verb in (["eval"], ["play", "--agent", "random"], ["resume"]):
        done = raceway(tmp_path, verb[0], "run", *verb[1:])
        assert done.returncode == 2, done.stderr
    assert ran(tmp_path) == []


@pytest.mark.parametrize("module", [False, True], ids=["command", "python -m"])
def test_a_current_folder_that_was_deleted_is_no_obstacle(tmp_path: Path, module: bool) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = [sys.executable, "-m", "raceway.cli"] if module else [str(Path(sys.executable).with_name("raceway"))]
    script = "import os, shutil, sys; shutil.rmtree(os.getcwd()); os.execv(sys.argv[1], sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", script, *command, "list", "algos"], cwd=gone, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "ppo" in done.stdout
