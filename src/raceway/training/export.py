"""`raceway.export`: a run's policy as a file for other programs."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from raceway.algos.networks import OBSERVATION_LIMIT
from raceway.errors import RunFolderError, SettingError, UserError
from raceway.files import read_json, write_whole
from raceway.names import did_you_mean
from raceway.training.array_files import pack_arrays
from raceway.training.blueprint import Blueprint, blueprint
from raceway.training.config import TrainConfig
from raceway.training.described_spaces import describe
from raceway.training.folder import RunFolder
from raceway.training.identity import check_policy
from raceway.training.policy_files import PolicyContent, read_policy

FORMATS = ("onnx", "safetensors")
ORDER = (
    "Each input becomes features, flattened in C order. numbers: cast to float32; if they have mean and rate, "
    "clip((x - mean) * rate, -limit, limit); if they have a scale, times scale.",
    "choices: minus start, then one-hot, one component after the other, each as long as nvec says.",
    "image: cast to float32, times scale, as [batch, height, width, channels], through its layers.",
    "The features, joined in the order of `features`, go through gru, if there is one (the next memory is both its "
    "result and what to give it with the next observation; zeros when an episode begins), then through trunk; its "
    "result through actor and through critic.",
    "gru: d = x @ weights + bias and m = memory @ memory_weights are three parts of `width` side by side, for r, z and "
    "n. r = sigmoid(d + m), z = sigmoid(d + m), n = tanh(d + r * (m + memory_bias)), each of its own part; the next "
    "memory is (1 - z) * n + z * memory.",
    "A layer is activation(x @ weights + bias), x flattened; one with a stride is a convolution without padding, its "
    "weights [height, width, inputs, outputs]. In one with scale and shift, y = x @ weights + bias has its mean taken "
    "away in each row, is divided by sqrt(mean(y**2) + 1e-6), times scale, plus shift, before the activation.",
    "critic gives the value; without one, actor gives the values of the actions in place of logits, and the greatest "
    "is the value. categorical: actor gives logits, nvec[j] for component j; the action is the index of the "
    "largest, plus start. bernoulli: it is whether the logit is above 0. gaussian: actor gives the mean; the action is "
    "clip(mean, low, high), and log_std is for those who draw from the distribution.",
    "An action mask, if the environment gives one, is over the logits: what it forbids becomes -1e8 (of a component of "
    "which it allows nothing, all is allowed). At last the action is reshaped to shape and cast to dtype.",
)


def export(
    run: str | os.PathLike[str], to: str = "onnx", out: str | os.PathLike[str] | None = None, which: str | None = None
) -> Path:
    """Writes the policy of a run to a file for other programs, and gives its path.

    run: the folder of a run.
    to: "onnx", a model that takes observations as the environment gives them and gives actions as it takes them;
        "safetensors", the arrays by name, with a .json file beside it that says what to do with them.
    out: the file; by default policy.onnx or policy.safetensors in the run's folder. One that is there is replaced.
    which: the "best" policy or the "final" one; None: the best, or the final one if none was evaluated.
    """
    if to not in FORMATS:
        raise SettingError(f"to={to!r} is no format.{did_you_mean(to, FORMATS)} There are: {', '.join(FORMATS)}.")
    folder = RunFolder.open(run)
    directory = folder.policy(which)
    path = folder.path / f"policy.{to}" if out is None else _checked(Path(out), to)
    content = read_policy(directory)
    if content.facts.get("has_own_network"):
        arrays = directory / Path(content.facts["arrays"]).name
        raise UserError(
            f"{folder.path} was trained with a network of your own, which only its init() and apply() know. Export it "
            f"by jax.export, as docs/exporting.md shows; its parameters are in {arrays}."
        )
    config = folder.read_config()
    check_policy(directory, content, config)
    facts = _facts(folder, config, directory.name, content)
    plan = blueprint(config, content)
    try:
        return _write_onnx(path, plan, facts) if to == "onnx" else _write_safetensors(path, plan, facts)
    except RunFolderError:
        raise
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}. Name another place: --out FILE.") from None


def _checked(path: Path, to: str) -> Path:
    """A file that can be written, as far as can be told."""
    suffix = f".{to}"
    if path.is_dir():
        raise SettingError(f"{path} is a folder. Name a file in it: {path / f'policy{suffix}'}.")
    if path.suffix != suffix:
        other = path.suffix.removeprefix(".")
        fix = f"For that format: --to {other}." if other in FORMATS else f"Use {path.with_suffix(suffix).name!r}."
        raise SettingError(f"{path.name!r}: files of the format {to} end with {suffix}. {fix}")
    if not path.parent.is_dir():
        raise SettingError(f"{path} cannot be written: there is no folder {path.parent}. Make it first.")
    return path


def _facts(folder: RunFolder, config: TrainConfig, which: str, content: PolicyContent) -> dict[str, Any]:
    """What the policy is, and how it was trained. Not where: the file is for others."""
    from raceway import __version__

    system = read_json(folder.system) if folder.system.is_file() else None
    told = {name: content.facts.get(name) for name in ("env", "env_args", "algo", "seed")}
    return {
        "raceway": __version__,
        **told,
        "policy": which,
        "updates": content.weights.version,
        "evaluation": content.facts.get("evaluation"),
        "versions": system.get("versions") if isinstance(system, dict) else None,
        "config": {name: value for name, value in config.to_dict().items() if name != "log"},
    }


def _write_onnx(path: Path, plan: Blueprint, facts: Mapping[str, Any]) -> Path:
    from raceway.training.onnx_model import onnx_model

    told = {**facts, **_spaces(plan)}
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in told.items()}
    about = f"The {facts['policy']} policy of {facts['algo']} in {facts['env']}, after {facts['updates']} updates."
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, onnx_model(plan, texts, about))
    return path


def _write_safetensors(path: Path, plan: Blueprint, facts: Mapping[str, Any]) -> Path:
    content = pack_arrays(plan.arrays)
    about = {
        "format": "raceway policy 1",
        "arrays": path.name,
        "sha256": hashlib.sha256(content).hexdigest(),
        **_spaces(plan),
        **_described(plan),
        "order": ORDER,
        "trained": facts,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)
    write_whole(path.with_suffix(".json"), (json.dumps(about, indent=2) + "\n").encode())
    return path


def _spaces(plan: Blueprint) -> dict[str, Any]:
    return {"observation_space": describe(plan.observation_space), "action_space": describe(plan.action_space)}


def _described(plan: Blueprint) -> dict[str, Any]:
    """The blueprint without its arrays, as plain data."""
    space, action = plan.action_space, plan.action
    acts: dict[str, Any] = {"kind": action.kind, "dtype": np.dtype(space.dtype).name, "shape": space.shape}
    if action.kind == "categorical":
        acts |= {"nvec": action.nvec, "start": plan.action_start.tolist()}
    if action.kind == "gaussian":
        acts |= {"low": "action.low", "high": "action.high", "log_std": "log_std"}
    stacks = {name: [asdict(layer) for layer in getattr(plan, name)] for name in ("trunk", "actor", "critic")}
    return {
        "inputs": [asdict(entry) | {"dtype": entry.dtype.name} for entry in plan.inputs],
        "limit": OBSERVATION_LIMIT,
        "features": [entry.name for entry in plan.features],
        "gru": None if plan.gru is None else asdict(plan.gru),
        **stacks,
        "action": acts | {"has_masks": plan.has_masks},
    }
