"""Going on with a run: whether it may, from where, and what of its files has to go."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from raceway.algos.rollout import Weights
from raceway.envs.user_native import is_path
from raceway.errors import RunFolderError, SettingError
from raceway.files import cut, open_to_append, read_json
from raceway.graph.packing import shown
from raceway.messages import printable, quoted
from raceway.training.advice import how_to, is_found_by_command
from raceway.training.checkpoints import Checkpoint, MisfitError
from raceway.training.config import TrainConfig, lost_arguments
from raceway.training.environments import EnvSource
from raceway.training.evaluation_log import forget_evaluations
from raceway.training.folder import RunFolder, facts_of
from raceway.training.identity import deciding_settings

_OF_RESUME = {"total_steps": "N", "stop_at_return": "R"}
"""Settings that `raceway resume` can change, and what to give."""
_FIRST = ("env", "algo", "seed")
"""Settings that tell one run from another: what is wrong with a name that is taken, if they differ."""
_MOST_TOLD = 4
_MOST_NUMBERS = 20


def check_settings(folder: RunFolder, config: TrainConfig) -> None:
    """Refuses to go on with a run under other settings than its own."""
    there, here = (_flat(deciding_settings(each)) for each in (folder.read_config(), config))
    different = [name for name in {**there, **here} if there.get(name) != here.get(name)]
    if not different:
        return
    saved = folder.read_config()
    option = different[0] if len(different) == 1 and different[0] in _OF_RESUME else None
    how: dict[str, Any] = {} if option is None else {option: _OF_RESUME[option]}
    longer = f" To change that of the run: {how_to('resume', folder.path, saved, **how)}." if how else ""
    raise SettingError(
        f"There is a run {folder.path} already, {_different_words(different, there, here)}.{longer} To begin another "
        f"run, give another --log.name; to go on with that one: {how_to('resume', folder.path, saved)}."
    )


def _different_words(different: Sequence[str], there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """What differs: first what makes it another run altogether, then the other settings as far as there is room."""

    def listed(names: Sequence[str]) -> str:
        pairs = [f"{name}={quoted(there.get(name))} (now {quoted(here.get(name))})" for name in names[:_MOST_TOLD]]
        return ", ".join(pairs) + (f" and {len(names) - _MOST_TOLD} more" if len(names) > _MOST_TOLD else "")

    first = [name for name in _FIRST if name in different]
    # Another algorithm has other settings of its own, which is all there is to say of them.
    groups = {there.get("algo"), here.get("algo")} if "algo" in first else set()
    others = [name for name in different if name not in first and name.partition(".")[0] not in groups]
    if not first:
        return f"with other settings: {listed(others)}"
    too = f"; other settings differ too: {listed(others)}" if others else ""
    return f"and it is another one: {listed(first)}{too}"


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {prefix + name: value}
    return found


def facts_now(folder: RunFolder, source: EnvSource) -> dict[str, Any]:
    """What the bits of a run depend on beside its settings, as it is here and now."""
    config = folder.read_config()
    # A header may be elsewhere than it was. What it says is what counts.
    env = source.full_name if is_path(source.full_name) else config.env
    return facts_of(replace(config, env=env), recorded_digest(folder, config))


def check_system(folder: RunFolder, source: EnvSource, anyway: bool) -> list[str]:
    """Refuses to go on where the bits would differ from those of a run that was never stopped, unless that is wanted.

    Returns what differs, in words.
    """
    here = facts_now(folder, source)
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
    before = there["code"] if isinstance(there.get("code"), dict) else {}
    for name, digest in here["code"].items():
        if digest is not None and before.get(name) not in (None, digest):  # what is not found cannot be compared
            differences.append(f"other code of {quoted(name)[1:-1]}")
    if differences and not anyway:
        call = how_to("resume", folder.path, folder.read_config(), anyway=True)
        raise RunFolderError(
            f"{folder.path} was begun with {', '.join(differences)}. From here on its bits would not be those of a run "
            f"that was never stopped. To continue anyway, resume with --anyway (in Python anyway=True): {call}."
        )
    return differences


def recorded_digest(folder: RunFolder, config: TrainConfig) -> str | None:
    """The digest of a run's initial weights in its system facts; None if it begins with random ones."""
    facts = read_json(folder.system) if config.init_from is not None and folder.system.exists() else None
    found = facts.get("initial_sha256") if isinstance(facts, dict) else None
    return found if isinstance(found, str) and re.fullmatch("[0-9a-f]{64}", found) else None


def check_arguments(folder: RunFolder, config: TrainConfig, env_args: Mapping[str, Any], anyway: bool) -> list[str]:
    """Refuses other arguments for a run's environment than its own, unless that is wanted. Returns what differs."""
    there = config.to_dict()["env_args"]
    here = replace(config, env_args=dict(env_args)).to_dict()["env_args"]
    lost = lost_arguments(there)
    different = [name for name in env_args if name not in lost and (name not in there or there[name] != here[name])]
    differences = [
        f"env_args.{name} {printable(repr(there[name]), 60) if name in there else 'left out'} (now {here[name]!r})"
        for name in different
    ]
    if differences and not anyway:
        raise SettingError(
            f"{folder.path} was begun with {', '.join(differences)}. From here on it would not be the same run. To "
            "continue all the same, add --anyway (in Python anyway=True)."
        )
    return differences


def check_environment(folder: RunFolder, config: TrainConfig, source: EnvSource, anyway: bool) -> list[str]:
    """Refuses another environment than the run's own if that is still there, unless it is wanted.

    Returns what differs. Where a header lies makes no difference: what it says is among the facts of the system.
    """
    there, here = config.env, source.full_name
    if here.removeprefix("raceway/") == there.removeprefix("raceway/") or (is_path(here) and is_path(there)):
        return []
    difference = f"env {printable(there, 100)} (now {printable(here, 100)})"
    if is_found_by_command(there) and not anyway:
        raise SettingError(
            f"{folder.path} was begun with {difference}. From here on it would not be the same run. To "
            "continue all the same, add --anyway (in Python anyway=True)."
        )
    return [difference]


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


def rewind(folder: RunFolder, checkpoint: Checkpoint | None, steps_per_round: int) -> list[str]:
    """Takes back what was written after the checkpoint: all of it, if there is none. Returns what is odd, in words."""
    if checkpoint is None:
        lengths = {folder.chain: 0, folder.metrics: 0}
    else:
        reporter = checkpoint.snapshot.reactors.get("reporter")
        if not isinstance(reporter, dict):
            raise RunFolderError(f"{checkpoint.path} is damaged: it has no reporter.")
        lengths = {
            path: _length(reporter, name, checkpoint.path)
            for path, name in ((folder.chain, "chain_bytes"), (folder.metrics, "metrics_bytes"))
        }
    rounds = 0 if checkpoint is None else checkpoint.round + 1
    troubles = [trouble for path, length in lengths.items() for trouble in _truncated(path, length)]
    try:
        forget_evaluations(folder.evaluations, rounds * steps_per_round)
    except (OSError, RunFolderError) as error:  # the run can do without that log
        troubles.append(str(error))
    return troubles


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
