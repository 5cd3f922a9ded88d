"""Training in a native environment of one's own: every process of a run finds it, and nobody else's is compiled."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import raceway
from raceway.cli import main
from raceway.envs.new import new
from raceway.errors import EnvError, NativeEnvError, RunFolderError, SettingError
from raceway.graph import ReactionError
from tests.envs.own_headers import INFOS, NOISE, change_reward


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def caches(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.chdir(home)


@pytest.fixture(scope="module")
def run(home: Path) -> Path:
    """A run of the template, as its commands would make it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setenv("XDG_CACHE_HOME", str(home / "cache"))
        new("native-env", "ice-hockey")
        header = home / "ice_hockey.hpp"
        header.write_text(header.read_text().replace("#pragma once\n", '#pragma once\n#include "rink.hpp"\n'))
        (home / "rink.hpp").write_text("#pragma once\n")
        found = raceway.train(Path("ice_hockey.hpp"), total_steps=36_000, log={"quiet": True, "name": "first"})
        return Path(home / found.directory)


def test_the_template_learns_with_its_policy_in_the_worker(run: Path, home: Path) -> None:
    assert run == home / "runs/ice_hockey/first"
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    returns = [row["episode/return"] for row in rows if "episode/return" in row]
    assert returns[0] < 40
    assert returns[-1] > 60
    assert any("evaluation/return" in row for row in rows)  # which is made in a process of its own


def test_a_run_is_gone_on_with_from_any_folder(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert raceway.resume(run, total_steps=40_000).steps >= 40_000
    assert raceway.evaluate(run, 10).mean > 50
    assert raceway.evaluate(run, 10, env=run.parents[2] / "ice_hockey.hpp").mean > 50
    played = raceway.play(run, episodes=1, video=tmp_path / "video.mp4")
    assert (tmp_path / "video.mp4").stat().st_size > 1000
    assert len(played.returns) == 1


@pytest.mark.parametrize("name", ["ice_hockey.hpp", pytest.param("rink.hpp", marks=pytest.mark.slow)])
def test_a_run_whose_header_was_changed_is_gone_on_with_only_if_that_is_wanted(
    run: Path, home: Path, name: str
) -> None:
    header = home / name
    before = header.read_text()
    header.write_text(before + "// as it was\n")
    try:
        with pytest.raises(
            SettingError, match=r"runs code that has changed since .*ice_hockey\.hpp, for its environment.*--trust"
        ):
            raceway.resume(run, total_steps=60_000)
        with pytest.raises(RunFolderError, match=r"was begun with the header and its includes '.*--anyway"):
            raceway.resume(run, total_steps=60_000, trust=True)
    finally:
        header.write_text(before)


def test_a_loaded_id_is_trained_with_by_other_processes_too(run: Path, home: Path) -> None:
    name = raceway.load_native("ice_hockey.hpp")
    found = raceway.train(name, total_steps=4096, log={"quiet": True, "name": "by id"}, evaluation={"enabled": False})
    config = json.loads((found.directory / "config.json").read_text())
    assert config["env"] == str(home / "ice_hockey.hpp")


def test_the_python_template_trains_by_the_command_that_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["new", "env", "ice-slide"]) == 0
    told = next(line for line in capsys.readouterr().out.splitlines() if "raceway train" in line)
    settings = ["--total-steps", "4096", "--log.quiet", "--no-evaluation.enabled", "--env.push", "3"]
    assert main([*told.split()[1:], *settings]) == 0
    assert len(list((tmp_path / "runs/ice_slide-IceSlide").iterdir())) == 1


def test_arguments_that_it_does_not_take_are_refused(run: Path) -> None:
    with pytest.raises(SettingError, match=r"IceHockey-v0 takes no keyword argument 'pusj'\. Did you mean 'push'"):
        raceway.train("ice_hockey.hpp", env_args={"pusj": 3.0})


HOSTILE = """
#include <cstdio>
struct Harm { Harm() { std::fclose(std::fopen("HARM", "w")); } } harm;
"""


@pytest.mark.parametrize("place", ["absolute", "relative", "inside"])
def test_a_header_that_a_folder_names_is_not_compiled_unless_it_is_trusted(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(run, tmp_path / "run")
    header = tmp_path / ("run/ice_hockey.hpp" if place == "inside" else "ice_hockey.hpp")
    header.write_text(HOSTILE.replace("HARM", str(tmp_path / "harm")))
    config = json.loads((run / "config.json").read_text())
    config["env"] = {"absolute": str(header), "relative": "ice_hockey.hpp", "inside": "run/ice_hockey.hpp"}[place]
    (tmp_path / "run/config.json").write_text(json.dumps(config))
    for act in (
        lambda: raceway.evaluate(tmp_path / "run", 1),
        lambda: raceway.play(tmp_path / "run", agent="random", video=tmp_path / "video.mp4"),
        lambda: raceway.resume(tmp_path / "run"),
    ):
        with pytest.raises(SettingError, match=r"runs code that you have not trained with, .*ice_hockey\.hpp.*--trust"):
            act()
    assert not (tmp_path / "harm").exists()
    if place == "absolute":
        with pytest.raises(NativeEnvError, match="does not say which environment it has"):
            raceway.evaluate(tmp_path / "run", 1, trust=True)
        assert (tmp_path / "harm").exists()  # so this is what would have come of it


FAULTY = NOISE.replace("Noise-v0", "FaultyNoise-v0").replace(
    "row[1] = uniform_;", "row[1] = uniform_ > 0.9 ? 0.0 / (uniform_ - uniform_) : uniform_;"
)


def test_an_observation_that_is_not_finite_is_blamed_on_the_environment(home: Path) -> None:
    (home / "faulty.hpp").write_text(FAULTY)
    change_reward(home, 1.0)
    settings: dict[str, Any] = {
        "total_steps": 4096,
        "evaluation": {"enabled": False},
        "log": {"quiet": True},
        "hidden": (8,),
    }
    with pytest.raises(ReactionError, match=r"environment \d of .* gave nan in entry 1 of its observation before step"):
        raceway.train(home / "faulty.hpp", **settings)


# From its third step on it allows nothing.
STUCK = (
    INFOS.replace("Infos-v0", "Stuck-v0")
    .replace('entries<std::int8_t>("mask", 3)', 'entries<std::int8_t>("action_mask", 5)')
    .replace("how_ = *action;", "how_ += 5 + 0 * *action;")
    .replace(
        "row.entry<std::int8_t>(1, 3)[2] = 1;",
        "for (int i = 0; i < 5; ++i) row.entry<std::int8_t>(1, 5)[i] = how_ < 15;",
    )
)


def test_a_mask_that_allows_nothing_is_an_error(home: Path) -> None:
    (home / "stuck.hpp").write_text(STUCK)
    with pytest.raises(EnvError, match=r"Environment 0 gave an action_mask that allows no action, before step 3 of"):
        raceway.train(home / "stuck.hpp", total_steps=1024, evaluation={"enabled": False}, log={"quiet": True})
