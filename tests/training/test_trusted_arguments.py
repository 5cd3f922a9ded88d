"""What a run folder gives to code that is trusted, and models that it names: only what was trained with here."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import raceway
from raceway.callbacks import Curriculum
from raceway.errors import RunFolderError, SettingError
from raceway.training.callbacks import Control, Round
from raceway.training.checkpoints import Checkpoints
from raceway.training.folder import RunFolder
from raceway.training.identity import identity_of
from tests.training.small_runs import SMALL

pytestmark = pytest.mark.usefixtures("compiled_without_optimizing")

STEPS = 4 * 8 * 10
TASK = """
import os
from tests.training.drawing import Drawn

class Walk(Drawn):
    def __init__(self, length=5, word=""):
        super().__init__(length)
        if word:
            open(os.path.join(os.path.dirname(__file__), word), "w").close()
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "walk_of_trust.py").write_text(TASK)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "walk_of_trust", raising=False)  # another test's
    return "walk_of_trust:Walk"


def train(directory: Path, env: str, **settings: Any) -> Path:
    log = {"directory": str(directory), "name": "run", "quiet": True, "tensorboard": False}
    more = {"total_steps": STEPS, "evaluation": {"enabled": False}, "lane": "inline", "log": log}
    return raceway.train(env, **{**SMALL, **more, **settings}).directory


def spoil(run: Path, env_args: Mapping[str, Any]) -> None:
    """Puts arguments wherever the checkpoint has some, with the right checksums."""

    def replace(part: Any) -> None:
        if isinstance(part, dict):
            for name in part:
                if name == "env_args":
                    part[name] = dict(env_args)
                else:
                    replace(part[name])

    checkpoints = Checkpoints(run / "checkpoints", 2)
    newest = checkpoints.newest()
    assert newest is not None
    replace(dict(newest.snapshot.reactors))
    checkpoints.write(newest.snapshot, newest.facts)


def test_arguments_in_a_checkpoint_do_not_reach_code_that_was_not_trained_with_them(tmp_path: Path, walk: str) -> None:
    run = train(tmp_path, walk)
    spoil(run, {"word": "harm"})
    with pytest.raises(RunFolderError, match=r"runs code that you have not trained with, .*word='harm'.*--trust"):
        raceway.resume(run, total_steps=2 * STEPS)
    assert not (tmp_path / "harm").exists()
    raceway.resume(run, total_steps=2 * STEPS, trust=True)
    assert (tmp_path / "harm").exists()


class Longer(raceway.Callback):
    def on_start(self, control: Control) -> None:
        control.env_args = {"length": 5}

    def on_round(self, told: Round, control: Control) -> None:
        if told.round % 4 == 3:
            assert control.env_args is not None
            control.env_args = {"length": control.env_args["length"] + 1}


@pytest.mark.parametrize("kind", ["curriculum", "callback"])
def test_what_callbacks_have_called_it_with_is_remembered(tmp_path: Path, walk: str, kind: str) -> None:
    def callbacks() -> list[raceway.Callback]:
        if kind == "callback":
            return [Longer()]
        return [Curriculum([{"length": 5}, {"length": 6}], -100.0, by="training", episodes=1)]

    run = train(tmp_path, walk, callbacks=callbacks())
    whole = train(tmp_path / "whole", walk, callbacks=callbacks(), total_steps=2 * STEPS)
    raceway.resume(run, total_steps=2 * STEPS, callbacks=callbacks())
    assert (run / "chain.jsonl").read_bytes() == (whole / "chain.jsonl").read_bytes()


MODEL = """<mujoco><worldbody><body><joint name="a" type="hinge"/><geom size="0.1"/></body></worldbody>
<actuator><motor joint="a" ctrlrange="-1 1"/></actuator></mujoco>"""


def test_a_model_that_a_folder_names_is_read_only_if_it_was_trained_with(tmp_path: Path) -> None:
    """It may include any file, a pipe that never ends for instance, and ask for any amount of memory."""
    model, other = tmp_path / "mine.xml", tmp_path / "other.xml"
    model.write_text(MODEL)
    args = {"xml_file": str(model), "reward": {"alive": 1.0}}
    run = train(tmp_path, "MujocoTask-v0", env_args=args, lane="auto")
    assert raceway.evaluate(run, 1).returns
    os.mkfifo(tmp_path / "pipe.xml")
    other.write_text('<mujoco><include file="pipe.xml"/></mujoco>')
    folder = RunFolder(run)
    config = json.loads(folder.config.read_text())
    config["env_args"]["xml_file"] = str(other)
    folder.config.write_text(json.dumps(config))
    facts = json.loads((run / "final/policy.json").read_text())
    facts["run"] = identity_of(folder.read_config())
    (run / "final/policy.json").write_text(json.dumps(facts))
    for act in (raceway.evaluate, raceway.resume):
        with pytest.raises(SettingError, match=r"uses a model that you have not trained with, .*other\.xml.*--trust"):
            act(run)
    assert raceway.evaluate(run, 1, env_args={"xml_file": str(model)}).returns  # what the user gives is read


def test_another_runs_policy_is_neither_exported_nor_begun_from(tmp_path: Path) -> None:
    runs = [train(tmp_path / str(seed), "CartPole-v1", lane="auto", seed=seed) for seed in (1, 2)]
    for file in (runs[1] / "final").iterdir():
        (runs[0] / "final" / file.name).write_bytes(file.read_bytes())
    with pytest.raises(RunFolderError, match=r"belongs to another run: seed=2 \(here 1\)"):
        raceway.export(runs[0], "safetensors")
    with pytest.raises(RunFolderError, match=r"belongs to another run: seed=2 \(here 1\)"):
        train(tmp_path / "new", "CartPole-v1", lane="auto", init_from=str(runs[0] / "final"))
