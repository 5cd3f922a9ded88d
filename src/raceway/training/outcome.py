"""What came of a run, in the hand and on disk."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path

from raceway.errors import RunFolderError, UserError
from raceway.graph.packing import shown
from raceway.training.config import TrainConfig
from raceway.training.evaluation import Evaluation
from raceway.training.folder import RunFolder, read_json, write_json


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
    """Of the policy of the end."""
    best_return: float | None
    """The mean return of the best policy."""
    digest: str
    """The last line of the hash chain: equal for equal runs."""
    summary: str
    """Where the time went, since it was begun or resumed."""

    @property
    def steps_per_second(self) -> float:
        return self.steps / max(self.seconds, 1e-9)

    @property
    def result(self) -> str:
        """What the policy of the end reached, in words; empty if it was not evaluated."""
        found = self.evaluation
        if found is None:
            return ""
        if not found.returns:
            return f"no episode ended within {self.config.evaluation.max_steps:,} steps"
        return f"{found.mean:.1f} ± {found.std:.1f} over {len(found.returns)} episodes"


_FACTS = ("steps", "seconds", "best_return", "digest", "summary")


def write_outcome(folder: RunFolder, run: Run) -> None:
    """Makes the run a finished one."""
    evaluation = None if run.evaluation is None else asdict(run.evaluation)
    write_json(folder.outcome, {name: getattr(run, name) for name in _FACTS} | {"evaluation": evaluation})


def read_outcome(folder: RunFolder) -> Run | None:
    """What came of it; None if it is not finished."""
    if not os.path.lexists(folder.outcome):
        return None
    told = read_json(folder.outcome)
    try:
        return Run(
            directory=folder.path,
            config=folder.read_config(),
            steps=int(told["steps"]),
            seconds=float(told["seconds"]),
            evaluation=None if told["evaluation"] is None else Evaluation.of(told["evaluation"]),
            best_return=None if told["best_return"] is None else float(told["best_return"]),
            digest=str(told["digest"]),
            summary=str(told["summary"]),
        )
    except UserError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise RunFolderError(f"{folder.outcome} is damaged: {shown(error)}.") from None
