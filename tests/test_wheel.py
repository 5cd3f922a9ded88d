"""`make wheel`: the wheel works where there is nothing but Python and its dependencies."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

_HERE = Path(__file__).parent.parent
_TRIAL = """
import numpy as np
import raceway

assert "site-packages" in raceway.__file__, raceway.__file__
for task in ("CartPole-v1", "HalfCheetah-v5"):
    envs = raceway.make(task, 4, seed=1)
    envs.reset()
    assert np.isfinite(envs.step(envs.action_space.sample())[1]).all()
    envs.close()
"""


@pytest.fixture(scope="module")
def wheel() -> Path:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    subprocess.run(["make", "wheel"], cwd=_HERE, env=environment, check=True, capture_output=True)
    (found,) = (_HERE / "dist").glob("raceway-*.whl")
    return found


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_it_trains_in_an_empty_virtual_environment(wheel: Path, tmp_path: Path) -> None:
    venv, work = tmp_path / "venv", tmp_path / "work"
    work.mkdir()
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    install: list[str | Path] = [venv / "bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    subprocess.run([*install, "-c", _HERE / "constraints.txt", wheel], check=True)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    subprocess.run([venv / "bin/python", "-c", _TRIAL], cwd=work, env=clean, check=True)
    train: list[str | Path] = [
        venv / "bin/raceway",
        "train",
        "CartPole-v1",
        "--total-steps",
        "8000",
        "--log.quiet",
        "true",
    ]
    subprocess.run(train, cwd=work, env=clean, check=True)
    assert list(work.glob("runs/CartPole-v1/*/outcome.json"))


@pytest.mark.slow
def test_it_names_nothing_of_the_machine_that_built_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            assert str(_HERE).encode() not in archive.read(name), name
        (core,) = (archive.read(name) for name in archive.namelist() if "_core" in name and name.endswith(".so"))
    # The search path of the libraries that it loads: MuJoCo's package beside it, wherever that is.
    assert b"\0$ORIGIN/../mujoco\0" in core
    assert not re.search(rb"\0[^\0]*site-packages[^\0]*\0", core)
