"""Going on with a run: whether it may, from where, and what of its files has to go."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from raceway.algos.rollout import Weights
from raceway.errors import RunFolderError, SettingError
from raceway.graph.packing import shown
from raceway.training.checkpoints import Checkpoint, MisfitError
from raceway.training.config import TrainConfig
from raceway.training.environments import EnvSource
from raceway.training.folder import RunFolder, cut, facts_of, open_to_append, printable, read_json, write_json

_MAY_CHANGE = ("log", "checkpoint", "num_workers", "on_error", "worker_timeout")
"""Settings that do not show in the results."""
_MOST_NUMBERS = 20


def check_settings(folder: RunFolder, config: TrainConfig) -> None:
    """Refuses to go on with a run under other settings than its own."""
    there, here = (_flat(_with_plain_lane(each)) for each in (folder.read_config(), config))
    names = [name for name in {**there, **here} if name.partition(".")[0] not in _MAY_CHANGE]
    names = [name for name in names if not name.endswith(".not saved")]  # told by an address, new every time
    different = [name for name in names if there.get(name) != here.get(name)]
    if not different:
        return
    said = ", ".join(f"{name}={there.get(name)!r} (now {here.get(name)!r})" for name in different[:4])
    more = f" and {len(different) - 4} more" if len(different) > 4 else ""
    longer = f" More steps: raceway resume {folder.path} --total-steps N." if different == ["total_steps"] else ""
    raise SettingError(
        f"There is a run {folder.path} already, with other settings: {said}{more}.{longer} To begin another run, give "
        f"another --log.name; to go on with that one: raceway resume {folder.path}."
    )


def _with_plain_lane(config: TrainConfig) -> dict[str, Any]:
    """Its settings. In which way an environment in Python runs does not show in the results."""
    is_native = EnvSource(config.env, lane=config.lane).is_native
    return {**config.to_dict(), "lane": "native" if is_native else "python"}


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {prefix + name: value}
    return found


def check_system(folder: RunFolder, anyway: bool) -> list[str]:
    """Refuses to go on where the bits would differ from those of a run that was never stopped, unless that is wanted.

    Returns what differs, in words.
    """
    here = facts_of(folder.read_config())
    there = read_json(folder.system) if folder.system.exists() or not anyway else {"versions": {}}
    if not isinstance(there, dict) or not isinstance(there.get("versions"), dict):
        raise RunFolderError(f"{folder.system} is damaged: it does not tell the versions that the run was begun with.")
    differences = [
        f"{name} {printable(str(there['versions'].get(name)), 60)} (here {version})"
        for name, version in here["versions"].items()
        if there["versions"].get(name) != version
    ]
    words_of = {
        "cpu": "the CPU",
        "xla_threads": "XLA threads",
        "xla_flags": "XLA_FLAGS",
        "header": "the header and its includes",
    }
    for name, words in words_of.items():
        if there.get(name) != here[name]:
            differences.append(f"{words} {printable(repr(there.get(name)), 100)} (here {here[name]!r})")
    if differences and not anyway:
        raise RunFolderError(
            f"{folder.path} was begun with {', '.join(differences)}. From here on its bits would not be those of a run "
            f"that was never stopped. To go on nevertheless: raceway resume {folder.path} --anyway."
        )
    if differences:
        write_json(folder.system, here)  # what it goes on under from now on
    return differences


def check_callbacks(checkpoint: Checkpoint, given: int) -> None:
    """Refuses to go on without the callbacks that the run was begun with, before anything is changed."""
    learner = checkpoint.snapshot.reactors.get("learner")
    director = learner.get("director") if isinstance(learner, dict) else None
    saved = director.get("callbacks") if isinstance(director, dict) else None
    if not isinstance(saved, list):
        raise RunFolderError(f"{checkpoint.path} is damaged: it does not tell of callbacks.")
    if len(saved) != given:
        raise SettingError(
            f"The run was begun with {len(saved)} callbacks, and now has {given}. Give the same ones again, from "
            "Python: raceway.resume(run, callbacks=[...])."
        )


def rewind(folder: RunFolder, checkpoint: Checkpoint | None) -> list[str]:
    """Takes back what was written after the checkpoint: all of it, if there is none. Returns what is odd, in words."""
    if checkpoint is None:
        write_json(folder.system, facts_of(folder.read_config()))
        lengths = {folder.chain: 0, folder.metrics: 0}
    else:
        reporter = checkpoint.snapshot.reactors.get("reporter")
        if not isinstance(reporter, dict):
            raise RunFolderError(f"{checkpoint.path} is damaged: it has no reporter.")
        lengths = {
            path: _length(reporter, name, checkpoint.path)
            for path, name in ((folder.chain, "chain_bytes"), (folder.metrics, "metrics_bytes"))
        }
    return [trouble for path, length in lengths.items() for trouble in _truncated(path, length)]


def _length(state: Mapping[str, Any], name: str, where: Path) -> int:
    value = state.get(name)
    if type(value) is not int or value < 0:
        raise RunFolderError(f"{where} is damaged: {name} is {value!r}.")
    return value


def _truncated(path: Path, length: int) -> list[str]:
    if (there := cut(path, length)) < length:
        return [f"{path.name} is shorter than when the checkpoint was made: {length - there:,} bytes of it are lost."]
    return []


def check_weights(checkpoint: Checkpoint, current: Weights) -> None:
    """Refuses weights that were on their way to a collector but are not like the learner's."""
    wanted = [_shapes(current.params), _shapes(current.scaling and [current.scaling.mean, current.scaling.rate])]
    for value in (value for values in checkpoint.snapshot.values.values() for value in values):
        if not isinstance(value, Mapping) or "params" not in value:
            continue
        scaling = value.get("scaling")
        found = [_shapes(value["params"]), _shapes([*scaling.values()] if isinstance(scaling, Mapping) else scaling)]
        if found != wanted:
            raise MisfitError(f"weights on their way are {shown(found)}, the learner's are {shown(wanted)}.")


def _shapes(tree: Any) -> Any:
    """A tree with the dtypes and shapes of its arrays in their places."""
    if isinstance(tree, Mapping):
        return {name: _shapes(part) for name, part in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [_shapes(part) for part in tree]
    return [tree.dtype.name, list(tree.shape)] if isinstance(tree, np.ndarray) else type(tree).__name__


def note_resumption(folder: RunFolder, checkpoint: Checkpoint, differences: list[str], lost: list[int] | None) -> None:
    """Keeps a record of it in the run's folder. `lost`: as `new_episodes` has it."""
    line = {
        "after_round": checkpoint.round,
        "time": round(time.time(), 3),
        "differences": differences,
        "environments": new_episodes(lost) or "as they were",
    }
    with open_to_append(folder.resumed) as file:
        file.write((json.dumps(line) + "\n").encode())


def new_episodes(lost: list[int] | None) -> str:
    """What to say of environments that could not be brought back to where they were; None: of all that there are."""
    if lost is None:
        return "began new episodes: they cannot tell their state"
    if not lost:
        return ""
    numbers = ", ".join(map(str, lost[:_MOST_NUMBERS])) + (", ..." if len(lost) > _MOST_NUMBERS else "")
    return f"{numbers} ({len(lost)} in all) began new episodes: they could not be brought back to where they were"
