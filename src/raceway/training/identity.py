"""Which run something belongs to: a digest of the settings that its bits depend on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from raceway.envs.user_native import is_path
from raceway.errors import RunFolderError
from raceway.messages import printable, quoted
from raceway.names import NOT_IN_RESULTS
from raceway.training.config import TrainConfig, savable
from raceway.training.environments import EnvSource
from raceway.training.folder import POLICY_FACTS
from raceway.training.policy_files import PolicyContent

_ALSO = ("total_steps", "stop_at_return", "evaluation")
"""Settings that do not show in what was trained so far."""
_RESUME = "Put the settings back, or begin another run; to continue all the same, resume it with --anyway."


def identity_of(config: TrainConfig) -> dict[str, Any]:
    """Names the run with these settings: for people, and by a digest."""
    # Where a header is makes no difference; what it says is among the facts of the system.
    env = Path(config.env).name if is_path(config.env) else config.env
    settings = {name: value for name, value in deciding_settings(config).items() if name not in _ALSO}
    text = json.dumps({**settings, "env": env}, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {"env": env, "algo": config.algo, "seed": config.seed, "sha256": digest}


def deciding_settings(config: TrainConfig) -> dict[str, Any]:
    """The settings that results depend on, as far as a file can hold them.

    Which way an environment in Python runs is none of them.
    """
    lane = "native" if EnvSource(config.env, lane=config.lane).is_native else "python"
    values = {**savable(config).to_dict(), "lane": lane}
    return {name: value for name, value in values.items() if name not in NOT_IN_RESULTS}


def check_identity(what: Any, told: Any, config: TrainConfig, anyway: bool = False, fix: str = _RESUME) -> list[str]:
    """Refuses something that says, by `told`, that it belongs to another run.

    anyway: accepts what is of the same environment, algorithm and seed. Returns what differs, in words.
    fix: what to do about settings that have changed.
    """
    here = identity_of(config)
    if told == here:
        return []
    if not isinstance(told, Mapping):
        raise RunFolderError(f"{what} does not say which run it belongs to: it is damaged, or of another version.")
    names = [name for name in ("env", "algo", "seed") if told.get(name) != here[name]]
    if not names and anyway:
        return ["settings in config.json"]
    if not names:
        raise RunFolderError(
            f"{what} was written under other settings than those in this run's config.json, which has been changed "
            f"since, or is another run's. {fix}"
        )
    differences = ", ".join(f"{name}={quoted(told.get(name), 60)} (here {quoted(here[name], 60)})" for name in names)
    raise RunFolderError(f"{what} belongs to another run: {printable(differences)}. Put it back in its own folder.")


def check_policy(directory: Path, content: PolicyContent, config: TrainConfig) -> None:
    """Refuses a policy, in a folder of a run with these settings, that belongs to another run."""
    if "run" not in content.facts:  # older ones do not say it
        return
    # A resumed run (--anyway) may have an older policy of other settings, which was better.
    other = directory.with_name("final" if directory.name == "best" else "best")
    use = f", or use the other one, --policy {other.name} (in Python which={other.name!r})"
    fix = f"Put the settings back{use if (other / POLICY_FACTS).is_file() else ''}."
    check_identity(f"The policy in {directory}", content.facts["run"], config, fix=fix)
