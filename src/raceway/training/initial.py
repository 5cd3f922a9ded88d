"""Initial weights from another run: `init_from`.

The source is read once, as strictly as any run folder, and no code that it names is run. What the run begins with is
copied into its own folder, and from then on the source is not needed: a run that is killed before its first checkpoint
begins again from the copy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import Space, spaces

from raceway.algos.configs import AlgorithmConfig, NetworkConfig, PQNConfig
from raceway.algos.networks import hidden_widths
from raceway.algos.rollout import Scaling, Weights
from raceway.algos.spaces import different_spaces, flatten, observation_leaves
from raceway.errors import RunFolderError, SettingError
from raceway.messages import printable, quoted
from raceway.training.config import TrainConfig
from raceway.training.folder import POLICY_FACTS, RunFolder
from raceway.training.identity import check_policy
from raceway.training.policy_files import PolicyContent, PolicyFile, read_policy
from raceway.training.resuming import recorded_digest

_MOST_SAMPLES = 2**53
_SPACE_LENGTH = 100


@dataclass(frozen=True)
class Initial:
    """What a run begins with, other than random parameters."""

    params: np.ndarray
    """All parameters of actor and critic, as `Weights.params`."""
    scaling: Scaling | None
    """How the source normalises observations; None: it does not."""
    samples: float
    """How many observations the statistics behind `scaling` are of."""
    source: str
    """The policy that it was read from."""
    version: int
    """The number of updates behind that policy."""

    def digest(self, space: Space) -> str:
        """SHA-256 of everything that the run depends on."""
        digest = hashlib.sha256(self.params.tobytes())
        if self.scaling is not None:
            for part in _statistics(self.scaling, space):
                digest.update(np.ascontiguousarray(part, np.float32).tobytes())
            digest.update(np.float64(self.samples).tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class LearnerShape:
    """What initial weights must fit: the learner of a run."""

    config: TrainConfig
    observation_space: Space
    action_space: Space
    num_params: int
    has_own_network: bool


def read_source(path: str, run: LearnerShape) -> Initial:
    """The policy at `path`, a run or a policy in it, if it fits the run that is to begin with it."""
    directory, there = _policy_of(path)
    content = read_policy(directory)
    check_policy(directory, content, there)
    differences = [*_different_spaces(content, run), *_different_networks(there, content, run)]
    if differences := differences or [*_different_sizes(content, run)]:
        raise SettingError(f"init_from={quoted(path)} does not fit this run: {'; '.join(differences)}.")
    version = content.weights.version
    if not 0 <= version <= _MOST_SAMPLES:
        raise RunFolderError(
            f"{directory / POLICY_FACTS} is damaged: no policy has {quoted(version)} updates behind it."
        )
    samples = version * there.algorithm.n_steps * there.num_envs
    return _checked(content, directory, str(directory), float(min(max(samples, 1), _MOST_SAMPLES)))


def _policy_of(path: str) -> tuple[Path, TrainConfig]:
    """The folder of the policy that is meant, and the settings of its run."""
    given = Path(path)
    try:
        is_policy, is_run = (given / POLICY_FACTS).is_file(), (given / "config.json").is_file()
        run = RunFolder(given.parent if is_policy else given)
        if is_policy and not run.is_begun:
            raise SettingError(
                f"init_from={quoted(path)} is a policy without its run: {run.config} tells what its network is. Copy "
                "the whole run folder."
            )
        if not is_policy and not is_run:
            runs = sorted(each.parent.name for each in given.glob("*/config.json"))
            hint = f" It is a folder of runs: name one, such as {given / runs[-1]}." if runs else ""
            what = "is not a run folder" if given.exists() else "is not there"
            raise SettingError(
                f"init_from={quoted(path)} {what}.{hint or ' Give the folder of a run, or a policy in it.'}"
            )
    except OSError as error:
        raise RunFolderError(f"init_from={quoted(path)} cannot be read: {error.strerror}.") from None
    return (given if is_policy else run.policy()), run.read_config()


def _different_sizes(content: PolicyContent, run: LearnerShape) -> Iterator[str]:
    if content.weights.params.size != run.num_params:
        yield f"it has {content.weights.params.size:,} parameters, this run's network {run.num_params:,}"


def _different_spaces(content: PolicyContent, run: LearnerShape) -> Iterator[str]:
    spaces_of_run = run.observation_space, run.action_space
    for name, there, here in different_spaces((content.observation_space, content.action_space), spaces_of_run):
        yield f"its {name} space is {_short(there)}, here it is {_short(here)}"


def _short(space: Space) -> str:
    text = printable(_without_bounds(space))
    return text if len(text) <= _SPACE_LENGTH else f"{text[:_SPACE_LENGTH]}..."


def _without_bounds(space: Space) -> str:
    """A space in words that a network cares about."""
    if isinstance(space, spaces.Dict):
        return f"Dict({', '.join(f'{name}: {_without_bounds(part)}' for name, part in space.items())})"
    if isinstance(space, spaces.Tuple):
        return f"Tuple({', '.join(map(_without_bounds, space))})"
    return f"Box({list(space.shape)}, {space.dtype})" if isinstance(space, spaces.Box) else str(space)


def _different_networks(there: TrainConfig, content: PolicyContent, run: LearnerShape) -> Iterator[str]:
    here, own_network = run.config, run.has_own_network
    families = [_family(each.algorithm) for each in (there, here)]
    if families[0] != families[1]:
        yield f"{there.algo} learns {families[0]}, {here.algo} learns {families[1]}"
    is_own = bool(content.facts.get("has_own_network"))
    if is_own != own_network:
        kinds = "a network of its own", "the built-in network"
        yield f"it has {kinds[not is_own]}, this run {kinds[not own_network]}"
    elif not is_own:
        yield from _different_settings(there.network, here.network, run.observation_space, here.algo)
    normalised = [each.algorithm.normalize_observations for each in (there, here)]
    if normalised[0] != normalised[1]:
        option = "--normalize-observations" if normalised[0] else "--no-normalize-observations"
        words = "normalises", "does not normalise"
        yield f"it {words[not normalised[0]]} observations, this run {words[not normalised[1]]} them ({option})"


def _family(config: AlgorithmConfig) -> str:
    return "values of actions" if isinstance(config, PQNConfig) else "a policy and values"


def _different_settings(there: NetworkConfig, here: NetworkConfig, space: Space, algo: str) -> Iterator[str]:
    pairs: list[tuple[str, Any, Any]] = [
        (name, getattr(there, name), getattr(here, name)) for name in ("kind", "activation", "gru", "shared")
    ]
    leaves = observation_leaves(space)
    try:
        pairs.append(("hidden", hidden_widths(there, leaves), hidden_widths(here, leaves)))
    except ValueError:  # a CNN of that run, and no image here: told by the spaces
        return
    for name, its, ours in pairs:
        is_same = its == ours or (name == "shared" and algo == "pqn")
        if name == "kind":  # "auto" is one of the others
            has_images = any(leaf.is_image for leaf in leaves)
            is_same = (its != "mlp" and has_images) == (ours != "mlp" and has_images)
        if not is_same:
            yield f"its network.{name} is {printable(str(its), _SPACE_LENGTH)}, here it is {ours}"


def _checked(content: PolicyContent, directory: Path, source: str, samples: float) -> Initial:
    """What a policy's files say, if all of it is finite."""
    weights = content.weights
    if not np.isfinite(weights.params).all():
        raise RunFolderError(
            f"The policy in {directory} cannot be used as initial weights: its parameters are not finite."
        )
    scaling = weights.scaling
    if scaling is not None:
        parts = _statistics(scaling, content.observation_space)
        is_good = all(part.dtype == np.float32 and np.isfinite(part).all() for part in parts)
        if not is_good or not all((rate > 0).all() for rate in parts[1::2]):
            raise RunFolderError(
                f"The policy in {directory} cannot be used as initial weights: its statistics make no sense."
            )
    return Initial(weights.params, scaling, samples, source, weights.version)


def _statistics(scaling: Scaling, space: Space) -> list[np.ndarray]:
    """Mean and rate of each part of an observation that is normalised, in turn."""
    pairs = zip(flatten(space, scaling.mean), flatten(space, scaling.rate), strict=True)
    return [np.asarray(part) for pair in pairs if pair[0] is not None for part in pair]


def write_initial(folder: RunFolder, initial: Initial, run: LearnerShape) -> str:
    """Copies what a run begins with into its folder, and returns its digest."""
    facts = {"source": initial.source, "samples": initial.samples}
    weights = Weights(initial.version, initial.params, initial.scaling)
    try:
        PolicyFile(folder.initial, run.observation_space, run.action_space, facts).write(weights)
    except OSError as error:
        raise RunFolderError(f"{folder.initial} cannot be written: {error.strerror}.") from None
    return initial.digest(run.observation_space)


def read_initial(folder: RunFolder, run: LearnerShape) -> Initial:
    """What `write_initial` wrote, if it is what the run was begun with."""
    content = read_policy(folder.initial)
    if differences := [*_different_spaces(content, run), *_different_sizes(content, run)]:
        raise RunFolderError(f"{folder.initial} does not fit the run that it is in: {'; '.join(differences)}.")
    samples, source = content.facts.get("samples"), content.facts.get("source")
    if type(samples) is not float or not 1 <= samples <= _MOST_SAMPLES or not isinstance(source, str):
        raise RunFolderError(f"{folder.initial / POLICY_FACTS} is damaged: it does not tell what it was copied from.")
    initial = _checked(content, folder.initial, printable(source, 200), samples)
    if initial.digest(content.observation_space) != recorded_digest(folder, run.config):
        raise RunFolderError(
            f"{folder.initial} is not what the run was begun with: its digest is not the one in {folder.system.name}. "
            "Put a good copy there, or begin another run."
        )
    return initial
