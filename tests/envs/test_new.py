"""`raceway new`: names, files, and what is refused."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import raceway
from raceway.cli import main
from raceway.envs.new import spellings
from raceway.envs.templates.my_task import MyTask
from raceway.errors import SettingError


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("name", "snake", "camel"),
    [
        ("MyTask", "my_task", "MyTask"),
        ("my-task", "my_task", "MyTask"),
        ("my_task", "my_task", "MyTask"),
        ("HTTPServer2", "http_server2", "HTTPServer2"),
        ("x", "x", "X"),
    ],
)
def test_names_are_spelled_as_files_and_as_classes(name: str, snake: str, camel: str) -> None:
    assert spellings(name) == (snake, camel)


@pytest.mark.parametrize("name", ["", "2fast", "my task", "a/b", "über", "_x", "x-", "../x"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(SettingError, match="is no name for an environment"):
        spellings(name)


@pytest.mark.parametrize("kind", ["env", "native-env"])
def test_a_file_that_is_there_stays(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", kind, "ice-hockey"]) == 0
    said = capsys.readouterr().out.splitlines()
    file = Path("ice_hockey.py" if kind == "env" else "ice_hockey.hpp")
    assert said[0] == f"{file} is written. It trains as it is:"
    assert said[1].strip() == (
        "raceway train ice_hockey:IceHockey" if kind == "env" else "raceway train ice_hockey.hpp"
    )
    assert "my_task" not in file.read_text()
    assert "MyTask" not in file.read_text()
    file.write_text("changed")
    assert main(["new", kind, "IceHockey"]) == 2
    assert "is there already, and stays as it is" in capsys.readouterr().err
    assert file.read_text() == "changed"


@pytest.mark.parametrize(
    ("kind", "name"), [("env", "random"), ("env", "numpy"), ("env", "class"), ("native-env", "Step")]
)
def test_names_that_others_have_are_refused(kind: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", kind, name]) == 2
    assert "has already. Choose another" in capsys.readouterr().err
    assert not list(Path().iterdir())


@pytest.mark.filterwarnings("error")
def test_the_python_template_keeps_gymnasiums_contract() -> None:
    check_env(MyTask(), skip_render_check=True)
    with pytest.raises(ValueError, match="push=0 is not a force"):
        MyTask(push=0)


def test_the_two_templates_are_the_same_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert main(["new", "native-env", "puck-game"]) == 0
    native = raceway.make("puck_game.hpp", 4, seed=5, autoreset="same_step", render_mode="rgb_array")
    python = gymnasium.vector.SyncVectorEnv(
        [lambda: MyTask(render_mode="rgb_array")] * 4, autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP
    )
    np.testing.assert_array_equal(native.reset(seed=5)[0], python.reset(seed=5)[0])
    for action in np.random.default_rng(1).integers(0, 3, (250, 4)):
        for one, other in zip(native.step(action)[:4], python.step(action)[:4], strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)
    pictures = native.render()
    assert pictures is not None
    assert [picture.shape for picture in pictures] == [(120, 480, 3)] * 4
    assert [list(picture[82, 0]) for picture in pictures] == [[60, 60, 60]] * 4
    python.close()
