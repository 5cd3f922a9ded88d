"""Policies on disk: parameters and the normaliser's statistics as safetensors, what they belong to as JSON."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from gymnasium import Space

from raceway.algos.rollout import Scaling, Weights
from raceway.algos.spaces import flatten, observation_leaves, unflatten
from raceway.errors import RunFolderError
from raceway.files import MOST_TEXT, KnownFolder, opened_folder, read_json, remove, write_json
from raceway.graph.packing import shown
from raceway.report.metrics import STEPS_END
from raceway.training.array_files import read_arrays, write_arrays
from raceway.training.config import plain
from raceway.training.described_spaces import describe, described
from raceway.training.evaluation import Evaluation
from raceway.training.folder import POLICY_FACTS

T = TypeVar("T")

_ARRAYS = re.compile(r"policy-\d+\.safetensors")


@dataclass(frozen=True)
class PolicyFile:
    """Where a policy is kept, and what is told about it."""

    directory: Path
    observation_space: Space
    action_space: Space
    facts: Mapping[str, Any] = field(default_factory=dict)
    home: KnownFolder | None = None
    """The run's folder: nothing is written to another one that was put in its place. None: it is not looked at."""

    @property
    def version(self) -> int | None:
        """Of the policy that is there; None if there is none."""
        return _told(self.directory / POLICY_FACTS, lambda facts: int(facts["version"]))

    def write(self, weights: Weights, evaluation: Evaluation | None = None) -> None:
        """Replaces the policy that is there."""
        self.check_home()
        arrays = {"params": weights.params}
        if weights.scaling is not None:
            for name in ("mean", "rate"):
                leaves = flatten(self.observation_space, getattr(weights.scaling, name))
                arrays |= {f"{name}.{i}": leaf for i, leaf in enumerate(leaves) if leaf is not None}
        facts = {
            **self.facts,
            "version": weights.version,
            "observation_space": describe(self.observation_space),
            "action_space": describe(self.action_space),
        }
        if evaluation is not None:
            facts["evaluation"] = _evaluation_facts(evaluation)
        # Two files that belong together: the second names the first, and changes from one pair to the next at once.
        name = f"policy-{weights.version}.safetensors"
        write_arrays(self.directory / name, arrays)
        write_json(self.directory / POLICY_FACTS, {**facts, "arrays": name})
        with opened_folder(self.directory) as folder:
            others = [each for each in os.listdir(folder) if _ARRAYS.fullmatch(each) and each != name]
        self.check_home()  # writing takes its time
        for each in others:
            remove(self.directory / each)

    def check_home(self) -> None:
        """Refuses a run's folder that is not the one from before."""
        if self.home is not None:
            self.home.check()


def _evaluation_facts(evaluation: Evaluation) -> dict[str, Any] | None:
    """None if it says nothing: no episode ended, or returns are not finite."""
    if not math.isfinite(evaluation.mean):
        return None
    return {
        "steps": evaluation.steps,
        "return": evaluation.mean,
        "return_std": evaluation.std if math.isfinite(evaluation.std) else None,
        "episodes": len(evaluation.returns),
        **({} if evaluation.env_args is None else {"env_args": plain(evaluation.env_args)}),
    }


def _told(path: Path, what: Callable[[Any], T]) -> T | None:
    """Something that a policy's facts tell; None if there is no policy."""
    if not path.is_file():
        return None
    facts = read_json(path, MOST_TEXT)
    try:
        return what(facts)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise RunFolderError(f"{path} is damaged: {shown(error)}.") from None


@dataclass(frozen=True)
class PolicyContent:
    """What is in a policy's folder."""

    weights: Weights
    observation_space: Space
    action_space: Space
    facts: Mapping[str, Any]


def read_policy(directory: Path) -> PolicyContent:
    """What `PolicyFile.write` wrote."""
    path = directory / POLICY_FACTS
    facts = read_json(path, MOST_TEXT)
    try:
        arrays = read_arrays(directory / Path(facts["arrays"]).name)
        space = described(facts["observation_space"])
        if arrays["params"].ndim != 1 or arrays["params"].dtype != np.float32:
            raise ValueError(f"its parameters are {arrays['params'].dtype} of shape {arrays['params'].shape}")
        return PolicyContent(
            Weights(int(facts["version"]), arrays["params"], _scaling(space, arrays)),
            space,
            described(facts["action_space"]),
            facts,
        )
    except RunFolderError:
        raise
    except Exception as error:  # whatever Gymnasium and NumPy say to spaces that cannot be
        raise RunFolderError(f"{path} is damaged: {shown(error)}.") from None


def _scaling(space: Space, arrays: Mapping[str, np.ndarray]) -> Scaling | None:
    if not any(name.startswith("mean.") for name in arrays):
        return None
    leaves = observation_leaves(space)
    for i, leaf in enumerate(leaves):
        for name in (f"mean.{i}", f"rate.{i}"):
            if leaf.kind == "box" and arrays[name].shape != leaf.shape:
                raise ValueError(f"{name} has the shape {arrays[name].shape}, the observation {leaf.shape}")
    trees = [unflatten(space, [arrays.get(f"{name}.{i}") for i in range(len(leaves))]) for name in ("mean", "rate")]
    return Scaling(*trees)


class Best:
    """Keeps the policy whose evaluation was best so far. How good that was stands with it, on disk."""

    def __init__(self, file: PolicyFile) -> None:
        self._file = file

    @property
    def evaluation(self) -> dict[int, dict[str, float]]:
        """Metrics of the best policy's evaluation, by the steps that it was trained for.

        Empty if there is none, or if it was written under other settings.
        """

        def metrics(facts: Any) -> dict[int, dict[str, float]]:
            told = facts["evaluation"]
            if told is None or facts.get("run") != self._file.facts.get("run"):
                return {}
            if not 0 <= int(told["steps"]) < STEPS_END:
                raise ValueError(f"{told['steps']} steps")
            names = [name for name in ("return", "return_std", "episodes") if told.get(name) is not None]
            return {int(told["steps"]): {f"evaluation/{name}": float(told[name]) for name in names}}

        return _told(self._file.directory / POLICY_FACTS, metrics) or {}

    @property
    def score(self) -> float | None:
        """The mean return of the one that is kept; None if there is none."""
        return _told(self._file.directory / POLICY_FACTS, lambda facts: float(facts["evaluation"]["return"]))

    def offer(self, weights: Weights, evaluation: Evaluation) -> None:
        """Keeps it, if no earlier one was better: of equals, the newer has learnt longer.

        One that was evaluated in environments with other arguments, or written under other settings, cannot be
        compared: the newer one stays.
        """
        self._file.check_home()  # or the policy of another run would be read
        conditions = _told(
            self._file.directory / POLICY_FACTS,
            lambda facts: (dict(facts["evaluation"]).get("env_args"), facts.get("run")),
        )
        score = self.score if conditions == (plain(evaluation.env_args), self._file.facts.get("run")) else None
        if math.isfinite(evaluation.mean) and (score is None or evaluation.mean >= score):
            self._file.write(weights, evaluation)
