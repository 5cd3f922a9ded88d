"""Run folders that somebody has spoiled are read, or refused with the file's name: no crash, no hang, no code run."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import raceway
from raceway.errors import RunFolderError, UserError
from raceway.files import cut, open_to_append, read_whole
from raceway.training.checkpoints import Checkpoints
from tests.training.fuzz_hostile import AREAS
from tests.training.fuzz_hostile import try_cases as try_hostile
from tests.training.fuzz_run_folders import template, try_cases

FEW, MANY, MANY_OF_AN_AREA = 120, 5_000, 1_000
"""With those of the cache (tests/envs/test_native_cache.py) `make test-all` tries ten thousand cases."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return template(tmp_path_factory.mktemp("runs"))


def check(run: Path, scratch: Path, numbers: range) -> None:
    tally = try_cases(run, scratch, numbers)
    assert tally.faults == []
    # Most is spoiled where only one of the readers looks.
    assert tally.readings["refused"] > len(numbers) / 4
    assert tally.readings["read"] > len(numbers)


@pytest.mark.filterwarnings("ignore")
def test_spoiled_runs_are_read_or_refused_in_words(run: Path, tmp_path: Path) -> None:
    check(run, tmp_path, range(FEW))


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.filterwarnings("ignore")
def test_thousands_of_spoiled_runs_are_read_or_refused_in_words(run: Path, tmp_path: Path) -> None:
    check(run, tmp_path, range(MANY))


# --- with a run that is really gone on with


@pytest.fixture
def copied(run: Path, tmp_path: Path) -> Path:
    import shutil

    shutil.copytree(run, tmp_path / "run", symlinks=True)
    return tmp_path / "run"


def change(run: Path, how: Callable[[Any], None]) -> Path:
    """Changes the newest checkpoint, in a file that is sound."""
    checkpoints = Checkpoints(run / "checkpoints", keep=1)
    found = checkpoints.newest()
    assert found is not None
    how(found.snapshot)
    return checkpoints.write(found.snapshot, found.facts)


def without_pool(snapshot: Any) -> None:
    snapshot.reactors["collector"]["sampler"] = {"pool": None}


def of_a_cart_that_is_nowhere(snapshot: Any) -> None:
    pool = snapshot.reactors["collector"]["sampler"]["pool"]
    pool["episode.status"] = pool["episode.status"] + 9


def without_a_version(snapshot: Any) -> None:
    del snapshot.reactors["learner"]["version"]


def with_other_arguments(snapshot: Any) -> None:
    snapshot.reactors["collector"] |= {"env_args": {"gravity": 3}, "purpose": "training from round 3"}


def with_evaluations_of_text(snapshot: Any) -> None:
    snapshot.reactors["evaluator"]["evaluations"] = ["x"]


def with_a_report_of_text(snapshot: Any) -> None:
    snapshot.reactors["reporter"]["rows"] = "x"


def with_other_weights_on_their_way(snapshot: Any) -> None:
    (name,) = [name for name in snapshot.values if "collector.weights" in name]
    for weights in snapshot.values[name]:
        weights["params"] = np.zeros(3, np.float32)


def with_text_on_its_way(snapshot: Any) -> None:
    (name,) = [name for name in snapshot.values if "collector.weights" in name]
    snapshot.values[name] = ["x"] * len(snapshot.values[name])


MISFITS = [
    without_pool,
    of_a_cart_that_is_nowhere,
    without_a_version,
    with_other_arguments,
    with_evaluations_of_text,
    with_a_report_of_text,
    with_other_weights_on_their_way,
    with_text_on_its_way,
]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("how", MISFITS)
def test_a_sound_checkpoint_that_does_not_fit_is_named(copied: Path, how: Callable[[Any], None]) -> None:
    path = change(copied, how)
    with pytest.raises(UserError) as raised:
        raceway.resume(copied)
    assert str(path) in str(raised.value)


def test_the_run_that_was_spoiled_can_be_gone_on_with(copied: Path) -> None:
    """So that what is refused above is refused for what was done to it."""
    change(copied, lambda snapshot: None)
    assert raceway.resume(copied).steps == 4 * 8 * 12


@pytest.mark.parametrize(("place", "is_read"), [("time/seconds", True), ("step", False)])
def test_a_metric_that_json_reads_as_infinite_is_missing_and_a_step_is_refused(
    copied: Path, place: str, is_read: bool
) -> None:
    config = json.loads((copied / "config.json").read_text())
    config["log"]["tensorboard"] = True  # which is written anew from the rows
    (copied / "config.json").write_text(json.dumps(config))
    first, *others = (copied / "metrics.jsonl").read_text().splitlines(keepends=True)
    spoiled = re.sub(rf'("{place}": )[^,]*(, )(.*)', r"\g<1>1e400\g<2>\g<3>", first.rstrip("\n"))
    (copied / "metrics.jsonl").write_text(spoiled[:-1].ljust(len(first) - 2) + "}\n" + "".join(others))
    if is_read:
        assert raceway.resume(copied).steps == 4 * 8 * 12
        assert raceway.compare(copied).rows[0].steps == (4 * 8 * 12, 4 * 8 * 12)
        return
    for act in (raceway.resume, raceway.compare, raceway.plot):
        with pytest.raises(RunFolderError, match=r"metrics\.jsonl, line 1 is damaged: its step is inf"):
            act(copied)


# --- links and pipes


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["chain.jsonl", "metrics.jsonl", "resumed.jsonl", "lock"])
def test_what_a_link_leads_to_is_not_changed(copied: Path, tmp_path: Path, name: str) -> None:
    precious = tmp_path / "precious"
    precious.write_text("years of work\n" * 1000)
    (copied / name).unlink()
    (copied / name).symlink_to(precious)
    with pytest.raises(RunFolderError, match=name):
        raceway.resume(copied)
    assert precious.read_text() == "years of work\n" * 1000


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_a_run_goes_on_without_a_log_of_evaluations_that_is_none(
    copied: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    precious, log = tmp_path / "precious", copied / "evaluations.jsonl"
    precious.write_text("years of work\n")
    log.unlink(missing_ok=True)
    if kind == "link":
        log.symlink_to(precious)
    elif kind == "pipe":
        os.mkfifo(log)
    else:
        log.mkdir()
    (copied / "outcome.json").unlink(missing_ok=True)
    raceway.resume(copied)
    assert kind == "link" or "evaluations.jsonl" in capsys.readouterr().err
    assert not log.is_symlink()  # but a file of its own
    assert precious.read_text() == "years of work\n"


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "name", ["chain.jsonl", "metrics.jsonl", "resumed.jsonl", "lock", "system.json", "config.json"]
)
def test_a_pipe_is_not_waited_for(copied: Path, name: str) -> None:
    (copied / name).unlink()
    os.mkfifo(copied / name)
    with pytest.raises(RunFolderError):
        raceway.resume(copied)


def test_logs_are_cut_and_gone_on_with(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert cut(log, 5) == 0
    with open_to_append(log) as file:
        file.write(b"0123456789")
    assert cut(log, 20) == 10
    assert cut(log, 5) == 10
    with open_to_append(log) as file:
        file.write(b"x")
        assert file.tell() == 6
    assert log.read_bytes() == b"01234x"
    assert read_whole(log, 2, last=2) == b"4x"
    with pytest.raises(RunFolderError, match="6 bytes, where 3 bytes is the most"):
        read_whole(log, most=3)


# --- settings, links and marks of trust


@pytest.mark.parametrize("area", AREAS)
def test_what_is_hostile_is_refused_within_bounds(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, area: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert try_hostile(area, run, tmp_path, range(FEW // 2)) == []


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("area", AREAS)
def test_a_thousand_hostile_ones_are_refused_within_bounds(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, area: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert try_hostile(area, run, tmp_path, range(MANY_OF_AN_AREA)) == []
