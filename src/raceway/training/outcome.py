"""What came of a run, in the hand and on disk."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raceway.errors import RunFolderError, UserError
from raceway.files import MOST_TEXT, read_json, write_json
from raceway.graph.packing import shown
from raceway.messages import quoted
from raceway.training.config import TrainConfig, plain
from raceway.training.evaluation import Evaluation
from raceway.training.folder import RunFolder
from raceway.training.identity import check_identity, identity_of


@dataclass(frozen=True)
class Run:
    """A run that has come to its end."""

    directory: Path
    """Settings, metrics, policies, checkpoints, the hash chain and the picture of its graph are here."""
    config: TrainConfig
    steps: int
    """Environment steps."""
    seconds: float
    """Of training: from the first step to the last update, without starting, compiling and being stopped."""
    evaluation: Evaluation | None
    """Evaluation of the final policy."""
    best_return: float | None
    """The mean return of the best policy."""
    digest: str
    """The last line of the hash chain: equal for equal runs."""
    summary: str
    """Where the time went, since it was begun or resumed."""
    stopped: str = ""
    """Why it ended before `total_steps`; empty if it did not."""
    env_args: Mapping[str, Any] | None = None
    """Arguments of its environments at the end, besides those of the settings: a curriculum's level. None: no others.
    """

    def __fspath__(self) -> str:
        """A run can be given wherever its folder can."""
        return os.fspath(self.directory)

    @property
    def steps_per_second(self) -> float:
        return self.steps / max(self.seconds, 1e-9)

    @property
    def result(self) -> str:
        """What the final policy reached, in words; empty if it was not evaluated."""
        found = self.evaluation
        if found is None:
            return ""
        if not found.returns:
            return f"no episode ended within {self.config.evaluation.max_steps:,} steps"
        level = ", ".join(f"{name}={quoted(value, 60)}" for name, value in (found.env_args or {}).items())
        return f"{found.mean:.1f} ± {found.std:.1f} over {len(found.returns)} episodes{level and f' with {level}'}"


_FACTS = ("steps", "seconds", "best_return", "digest", "summary", "stopped")


def write_outcome(folder: RunFolder, run: Run) -> None:
    """Makes the run a finished one."""
    evaluation = None if run.evaluation is None else plain(run.evaluation.to_dict())
    facts = {name: getattr(run, name) for name in _FACTS}
    told = {"evaluation": evaluation, "env_args": plain(run.env_args), "run": identity_of(run.config)}
    write_json(folder.outcome, {**facts, **told})


def read_outcome(folder: RunFolder) -> Run | None:
    """What came of it; None if it is not finished."""
    if not os.path.lexists(folder.outcome):
        return None
    told = read_json(folder.outcome, MOST_TEXT)
    config = folder.read_config()
    if isinstance(told, dict) and "run" in told:  # older ones do not say it
        check_identity(folder.outcome, told["run"], config, fix="Put the settings back, or begin another run.")
    try:
        return Run(
            directory=folder.path,
            config=config,
            steps=int(told["steps"]),
            seconds=float(told["seconds"]),
            evaluation=None if told["evaluation"] is None else Evaluation.of(told["evaluation"]),
            best_return=None if told["best_return"] is None else float(told["best_return"]),
            digest=str(told["digest"]),
            summary=str(told["summary"]),
            stopped=str(told.get("stopped", "")),
            env_args=None if told.get("env_args") is None else dict(told["env_args"]),
        )
    except UserError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise RunFolderError(f"{folder.outcome} is damaged: {shown(error)}.") from None
