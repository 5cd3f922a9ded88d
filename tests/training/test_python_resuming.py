"""D3 for environments in Python: saved, or played again from their seeds; and it is said where neither helps."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from gymnasium.vector import SyncVectorEnv

import raceway
from raceway.errors import RunFolderError, SettingError
from raceway.training.checkpoints import Checkpoints
from tests.training.interrupting import SMALL, StopAt, interrupted, train
from tests.training.killing import folder, kill_at_random, same
from tests.training.killing import train as train_in_process
from tests.training.probes import ChanceWalk, Everything, MaskedWalk, Recall, SavedWalk, Walk, limited

pytestmark = pytest.mark.usefixtures("compiled_without_optimizing")


@pytest.mark.parametrize(
    ("env", "settings"),
    [
        (Walk, {}),
        (SavedWalk, {}),
        pytest.param(partial(limited, Walk), {"lane": "inline"}, marks=pytest.mark.slow),
        pytest.param(partial(limited, SavedWalk), {"collector": "central"}, marks=pytest.mark.slow),
        pytest.param(MaskedWalk, {"schedule": "serial"}, marks=pytest.mark.slow),
        (Everything, {"num_workers": 2}),
        pytest.param(Recall, {"network": {"gru": 8}, "batch_size": 32}, marks=pytest.mark.slow),
    ],
    ids=["replayed", "saved", "inline", "central", "masked", "nested", "recurrent"],
)
def test_they_go_on_where_they_were(tmp_path: Path, env: Any, settings: dict[str, Any]) -> None:
    run = interrupted(tmp_path / "stopped", env, **settings)
    whole = train(tmp_path / "whole", env, callbacks=[StopAt(-1)], **settings)
    assert raceway.resume(run, env=env, callbacks=[StopAt(-1)]).digest == whole.digest
    assert same(run, whole.directory) == []
    assert json.loads((run / "resumed.jsonl").read_text())["environments"] == "as they were"


def test_lane_and_number_of_workers_may_change_on_the_way(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"callbacks": [StopAt(-1)], "total_steps": SMALL["total_steps"]}
    interrupted(tmp_path / "stopped", Walk, num_workers=3)
    ended = train(tmp_path / "stopped", Walk, lane="inline", **settings)
    assert ended.digest == train(tmp_path / "whole", Walk, num_workers=1, **settings).digest
    interrupted(tmp_path / "native")
    with pytest.raises(SettingError, match="lane='native'"):
        train(tmp_path / "native", lane="process", callbacks=[StopAt(-1)])


def test_those_that_are_not_deterministic_begin_new_episodes_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = {"directory": str(tmp_path), "name": "run", "interval_s": 100.0}
    run = interrupted(tmp_path, partial(limited, ChanceWalk), log=log, num_workers=2)
    capsys.readouterr()
    ended = raceway.resume(run, env=partial(limited, ChanceWalk), callbacks=[StopAt(-1)])
    assert ended.steps == SMALL["total_steps"]
    told = json.loads((run / "resumed.jsonl").read_text())["environments"]
    assert "began new episodes" in told
    numbers = [int(number) for number in told.partition(" (")[0].split(", ")]
    assert numbers
    assert set(numbers) <= set(range(4))
    assert f"Of its environments {told}" in capsys.readouterr().out


def test_a_vector_environment_that_cannot_tell_begins_new_episodes(tmp_path: Path) -> None:
    envs = SyncVectorEnv([Walk] * 4)
    run = interrupted(tmp_path, envs)
    raceway.resume(run, env=SyncVectorEnv([Walk] * 4), callbacks=[StopAt(-1)])
    assert "they cannot tell their state" in (run / "resumed.jsonl").read_text()
    run = interrupted(tmp_path / "saved", SyncVectorEnv([SavedWalk] * 4))
    ended = raceway.resume(run, env=SyncVectorEnv([SavedWalk] * 4), callbacks=[StopAt(-1)])
    assert ended.digest == train(tmp_path / "whole", SyncVectorEnv([SavedWalk] * 4), callbacks=[StopAt(-1)]).digest


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Walk", "SavedWalk"])
def test_a_run_that_is_killed_equals_one_that_never_was(tmp_path: Path, kind: str) -> None:
    settings = {"env": f"tests.training.probes:{kind}", "n_steps": 32, "total_steps": 32 * 8 * 200, "num_workers": 2}
    whole = train_in_process(tmp_path / "whole", settings)
    assert kill_at_random(tmp_path / "killed", settings, 0.4, in_writing=False), "it was over before it was killed"
    train_in_process(tmp_path / "killed", settings)
    killed = folder(tmp_path / "killed", settings)
    assert same(killed, whole) == []
    assert "as they were" in (killed / "resumed.jsonl").read_text()


def spoiled(run: Path, how: Any) -> None:
    """Changes the newest checkpoint, in a file that is sound."""
    checkpoints = Checkpoints(run / "checkpoints", keep=1)
    found = checkpoints.newest()
    assert found is not None
    how(found.snapshot.reactors["collector"]["sampler"]["envs"]["python"]["envs"])
    checkpoints.write(found.snapshot, found.facts)


def test_a_spoiled_state_is_refused_in_words(tmp_path: Path) -> None:
    run = interrupted(tmp_path, Walk, lane="inline")
    for how in (lambda envs: envs.pop(), lambda envs: envs[0].update(base=None), lambda envs: envs[1].clear()):
        shutil.copytree(run, tmp_path / "copy")
        spoiled(tmp_path / "copy", how)
        with pytest.raises(RunFolderError, match="its environments' state does not fit this run"):
            raceway.resume(tmp_path / "copy", env=Walk, callbacks=[StopAt(-1)])
        shutil.rmtree(tmp_path / "copy")


def test_an_observation_that_is_not_the_one_that_was_saved_begins_a_new_episode(tmp_path: Path) -> None:
    run = interrupted(tmp_path, Walk, num_workers=2)
    spoiled(run, lambda envs: envs[3].update(hash="another"))
    raceway.resume(run, env=Walk, callbacks=[StopAt(-1)])
    told = json.loads((run / "resumed.jsonl").read_text())["environments"]
    assert told.startswith("3 (1 in all) began new episodes")
