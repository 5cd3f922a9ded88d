"""What cannot be made because something is missing says in one line what to install or to give."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from gymnasium.error import NameNotFound

import raceway
from raceway.cli import main
from raceway.envs import packages
from raceway.envs.packages import what_is_missing
from raceway.envs.python.makers import check_known
from raceway.errors import EnvError, MissingPackageError, SettingError, UserError
from raceway.local_code import look_in
from tests.envs.python.scripted import Counting

LANES = pytest.mark.parametrize("lane", ["inline", "process"])

OWN = """
import gymnasium

class Sized(gymnasium.Env):
    metadata = {"render_modes": ["rgb_array"]}
    def __init__(self, size, colour, render_mode=None):
        pass

def lacking():
    import no_such_package.part

gymnasium.register("Sized-v0", Sized)

class LaterLacking(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2)
    metadata = {"render_modes": ["rgb_array"]}
    render_mode = "rgb_array"

    def reset(self, **given):
        import no_such_package
"""


def is_there(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


CASES = {
    "ALE/Pong-v5": ("ale_py", "pip install ale-py"),
    "PongNoFrameskip-v4": ("ale_py", "pip install ale-py"),
    "LunarLander-v3": ("Box2D", r'pip install .*"gymnasium\[box2d\]"'),
    "MiniGrid-Empty-5x5-v0": ("minigrid", "pip install minigrid.*'minigrid:MiniGrid-Empty-5x5-v0'"),
    "minigrid:MiniGrid-Empty-5x5-v0": ("minigrid", "pip install minigrid"),
}


@LANES
@pytest.mark.parametrize("env", CASES)
def test_a_missing_package_is_named_with_the_command_that_installs_it(env: str, lane: str) -> None:
    module, said = CASES[env]
    if is_there(module):
        pytest.skip(f"{module} is installed")
    with pytest.raises(MissingPackageError, match=said) as raised:
        raceway.make(env, 2, lane=lane)
    assert "\n" not in str(raised.value)


def _lacking() -> Any:
    import no_such_package  # type: ignore[import-not-found]

    return no_such_package


@LANES
@pytest.mark.parametrize("target", [_lacking, [Counting, _lacking]], ids=["one", "list"])
def test_a_module_that_an_environment_lacks_is_named_with_the_file_that_imports_it(lane: str, target: Any) -> None:
    with pytest.raises(MissingPackageError, match=r"'no_such_package', which \S*test_missing_packages.py:\d+ imports"):
        raceway.make(target, None if isinstance(target, list) else 1, lane=lane)


@LANES
def test_only_packages_that_are_known_are_advised_by_name(lane: str) -> None:
    with pytest.raises(MissingPackageError) as raised:
        raceway.make(_lacking, 1, lane=lane)
    assert "pip install" not in str(raised.value), "a stranger may have taken the name"
    advice = r"put it beside \S*test_missing_packages\.py; otherwise install the package that provides it\.$"
    assert re.search(f"If it is yours, {advice}", str(raised.value))
    with pytest.raises(MissingPackageError, match=r"put it where Python finds it; otherwise") as raised:
        raceway.make("no_such_package:Env-v0", 1, lane=lane)
    assert "\n" not in str(raised.value)


class Sized(Counting):
    def __init__(self, size: int, *, colour: str) -> None:
        if size > 10:
            raise TypeError("too large")
        super().__init__()


@LANES
def test_arguments_that_are_needed_are_named(lane: str) -> None:
    with pytest.raises(SettingError, match=r"Sized needs the arguments 'size' and 'colour'.*--env\.size"):
        raceway.make(Sized, 2, lane=lane)
    with pytest.raises(SettingError, match=r"Sized needs the argument 'colour'.*env_args=\{'colour': \.\.\.\}"):
        raceway.make(Sized, 2, lane=lane, env_kwargs=[{"size": 1, "colour": "red"}, {"size": 2}])
    with pytest.raises(SettingError, match=r"no argument 'siz'\. Did you mean 'size'"):
        raceway.make(Sized, 2, lane=lane, siz=3, colour="red")
    raceway.make(Sized, 2, lane=lane, size=3, colour="red").close()


class ByPosition(Counting):
    def __init__(self, size: int, /, colour: str = "red") -> None:
        super().__init__()


@LANES
def test_arguments_without_a_name_cannot_be_given(lane: str) -> None:
    cases: list[dict[str, Any]] = [{}, {"size": 3}]
    for given in cases:
        with pytest.raises(SettingError, match=r"ByPosition takes 'size' by position only, .* and calls ByPosition\."):
            raceway.make(ByPosition, 2, lane=lane, **given)


@LANES
def test_arguments_of_a_registered_environment_are_named_too(lane: str) -> None:
    gymnasium.register("Sized-v0", f"{__name__}:Sized", kwargs={"colour": "red"})
    try:
        with pytest.raises(
            SettingError, match=r"^Sized-v0 needs the argument 'size'\. Give env_args=\{'size'"
        ) as raised:
            raceway.make("Sized-v0", 2, lane=lane)
        assert "\n" not in str(raised.value)
        with pytest.raises(SettingError, match=r"^Sized-v0 has no argument 'siz'\. Did you mean 'size'"):
            raceway.make("Sized-v0", 2, lane=lane, siz=3)
        with pytest.raises(EnvError, match="TypeError: too large"):
            raceway.make("Sized-v0", 2, lane=lane, size=100, max_episode_steps=3)
        raceway.make("Sized-v0", 2, lane=lane, size=3, max_episode_steps=3).close()
    finally:
        del gymnasium.registry["Sized-v0"]


class LacksLater(Counting):
    """Imports what there is not in a method."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where

    def reset(self, **given: Any) -> Any:
        if self.where == "reset":
            _lacking()
        return super().reset(**given)

    def step(self, action: Any) -> Any:
        return _lacking() if self.where == "step" else super().step(action)


@LANES
@pytest.mark.parametrize("on_error", ["raise", "restart"])
@pytest.mark.parametrize("where", ["reset", "step"])
def test_a_module_that_is_missing_later_is_named_in_one_line(lane: str, where: str, on_error: str) -> None:
    envs = raceway.make(LacksLater, 2, lane=lane, on_error=on_error, where=where, num_workers=1)
    done = {"reset": "reset", "step": "stepped"}[where]
    said = rf"^Environment 0 cannot be {done}: there is no module 'no_such_package', which \S+ imports\."
    try:
        if where == "step":
            envs.reset(seed=1)
        act = {"reset": envs.reset, "step": lambda: envs.step(envs.action_space.sample())}[where]
        with pytest.raises(MissingPackageError, match=said) as raised:
            act()
    finally:
        envs.close()
    assert "\n" not in str(raised.value)


class NeverMade(Counting):
    def __init__(self) -> None:
        raise ZeroDivisionError("never made")


@LANES
def test_a_restart_is_advised_for_steps_and_resets_alone(lane: str) -> None:
    with pytest.raises(EnvError, match="never made") as raised:
        raceway.make(NeverMade, 1, lane=lane)
    assert "restart" not in str(raised.value)


@LANES
@pytest.mark.parametrize("env", ["Humanoid-v3", "HalfCheetah-v2"])
def test_an_old_id_says_where_its_environment_is_now(lane: str, env: str) -> None:
    newest = f"{env.partition('-')[0]}-v5"
    with pytest.raises(MissingPackageError, match=f"gymnasium-robotics.* There is '{newest}', which runs natively"):
        raceway.make(env, 1, lane=lane)


@pytest.mark.parametrize("is_installed", [True, False])
@pytest.mark.parametrize(
    "env", ["Pong-v4", "Pong-v0", "PongNoFrameskip-v4", "PongDeterministic-v4", "Pong-ram-v4", "Pong-v5", "Pong"]
)
def test_old_ids_of_atari_games_lead_to_the_present_one(
    monkeypatch: pytest.MonkeyPatch, env: str, is_installed: bool
) -> None:
    monkeypatch.setattr(packages, "_is_installed", lambda module: is_installed)
    for look in (check_known, partial(raceway.make, num_envs=1)):
        with pytest.raises(MissingPackageError, match=r"The Atari game is 'ale_py:ALE/Pong-v5'") as raised:
            look(env)
        assert ("pip install ale-py" in str(raised.value)) != is_installed
        assert ("--env.obs_type ram" in str(raised.value)) == ("-ram" in env)


@pytest.mark.parametrize("env", ["LunarLander-v2", "Ant-v1", "Pendulum-v0", "raceway/CartPole-v7"])
def test_ids_of_other_versions_lead_to_those_that_there_are(env: str) -> None:
    near = {"LunarLander-v2": "LunarLander-v3", "Ant-v1": "Ant-v5", "Pendulum-v0": "Pendulum-v1"}.get(
        env, "CartPole-v1"
    )
    with pytest.raises(SettingError, match=f"Did you mean '{near}'"):
        check_known(env)
    with pytest.raises(NameNotFound, match=f"Did you mean '{near}'"):
        raceway.make(env, 1)


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "raceway.cli", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "COLUMNS": "200"},
        check=False,
    )


VERBS = {
    "train": ["--total-steps", "64"],
    "check": ["--no-lanes"],
    "play": ["--agent", "random", "--video", "a.mp4"],
}


def cases(folder: Path) -> dict[str, str]:
    """Environments that cannot be made, and what is said of each."""
    (folder / "mine.py").write_text(OWN)
    (folder / "broken.py").write_text("import no_such_package\n")
    own = {
        "mine:lacking": "no module 'no_such_package', which mine.py:10 imports",
        "broken:Env": "no module 'no_such_package', which broken.py:1 imports",
        "mine:Sized": "Sized needs the arguments 'size' and 'colour'",
        "mine:Sized-v0": "Sized-v0 needs the arguments 'size' and 'colour'",
        "mine:LaterLacking": "cannot be reset: there is no module 'no_such_package', which mine.py:21 imports",
    }
    return own | {env: "pip install" for env, (module, _) in CASES.items() if not is_there(module)}


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_says_so_in_one_line(tmp_path: Path, verb: str) -> None:
    told = cases(tmp_path)
    if verb == "check":  # which reports what reset() raises
        del told["mine:LaterLacking"]
    for env, said in told.items():
        ended = command(tmp_path, verb, env, *VERBS[verb])
        assert ended.returncode == 2, (env, ended)
        assert said in ended.stderr, (env, ended)
        assert len(ended.stderr.strip().splitlines()) == 1, (env, ended)


@pytest.fixture
def local_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder of a command, whose modules are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    look_in(None)
    for name in ("mine", "broken"):
        sys.modules.pop(name, None)
    gymnasium.registry.pop("Sized-v0", None)


def test_training_and_making_say_so_in_one_line(local_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for env, said in cases(local_folder).items():
        assert main(["train", env, *VERBS["train"]]) == 2, env
        errors = capsys.readouterr().err
        assert said in errors, env
        assert len(errors.strip().splitlines()) == 1, errors
        if "Later" not in env:
            with pytest.raises(UserError, match=re.escape(said)) as raised:
                raceway.make(env, 1, lane="inline")
            assert "\n" not in str(raised.value)
    assert not (local_folder / "runs").exists()


def test_a_module_that_an_installed_package_lacks_is_not_to_be_put_beside_it(tmp_path: Path) -> None:
    place = tmp_path / "site-packages"
    place.mkdir()
    (place / "their_package.py").write_text("import no_such_module_at_all\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(place)
        with pytest.raises(ModuleNotFoundError) as raised:
            importlib.import_module("their_package")
    said = what_is_missing(raised.value)
    assert said.endswith("imports. Install the package that provides it.")
    assert "beside" not in said
