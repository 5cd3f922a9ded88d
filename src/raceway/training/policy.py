"""Policies to use: `raceway.load(run).act(obs)`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.vector import VectorEnv

from raceway.algos.build import build_algorithm
from raceway.algos.rollout import Weights
from raceway.algos.spaces import counted_from_zero, environment_actions, flatten, observation_leaves, unflatten
from raceway.envs.masks import MaskReader
from raceway.errors import RunFolderError, SettingError
from raceway.interrupts import keeping_ctrl_c
from raceway.training.actor import JaxActor
from raceway.training.advice import Verb
from raceway.training.config import TrainConfig, check_trials
from raceway.training.evaluation import Evaluation, Trial
from raceway.training.folder import RunFolder
from raceway.training.identity import check_policy
from raceway.training.policy_files import read_policy
from raceway.training.programs import evaluated
from raceway.training.run_source import check_spaces, network_of_run, source_of_run, with_lane_for, without_advice
from raceway.training.setup import Setup, own_or
from raceway.training.user_network import network_of


class Policy:
    """A trained policy. It needs no environment."""

    def __init__(self, config: TrainConfig, weights: Weights, observation_space: Space, action_space: Space,
                 network: Any = None, seed: int = 0) -> None:  # fmt: skip
        self.config = config
        self.weights = weights
        self.observation_space = observation_space
        self.action_space = action_space
        self._leaves = observation_leaves(observation_space)
        self._from_zero = counted_from_zero(observation_space)
        self._for_env = environment_actions(action_space)
        spaces = observation_space, action_space
        algorithm = build_algorithm(config.algorithm, *spaces, own_or(network, config.network))
        if weights.params.size != algorithm.network.num_params:
            wanted = algorithm.network.num_params
            has = weights.params.size
            raise SettingError(
                f"The policy has {has} parameters, the network {wanted}: it was trained with another one."
            )
        self._actor = JaxActor(algorithm, seed)
        self._here = self._actor.put(weights.params, weights.scaling)
        self._calls = 0
        self.memory: np.ndarray | None = None
        """[B, H] what a recurrent policy remembers of each row that it acts for; None: of nobody."""

    @property
    def env(self) -> str:
        """The environment that it was trained in."""
        return self.config.env

    @property
    def env_args(self) -> Mapping[str, Any]:
        return self.config.env_args

    def reset(self, mask: Any = None) -> None:
        """Lets episodes begin: a recurrent policy forgets what it saw, in all rows of a batch or in those of `mask`.

        Policies without memory need no reset, and do not mind one.
        """
        if mask is None:
            self.memory = None
        elif self.memory is not None:
            self.memory = np.where(np.asarray(mask, bool).reshape(-1, 1), np.float32(0), self.memory)

    def act(self, obs: Any, *, greedy: bool = True, action_mask: Any = None) -> Any:
        """The action for an observation, or the actions for a batch of them, as the environment takes them.

        A recurrent policy remembers what it saw in earlier calls, row by row, until `reset`. An action mask has a flag
        for each choice; for MultiDiscrete, side by side or as a tuple of one mask for each component.
        """
        batch, is_single = self._batched(obs)
        size = len(flatten(self.observation_space, batch)[0])
        mask = None if action_mask is None else self._mask_of(action_mask, size, is_single)
        rows = np.arange(size, dtype=np.uint32)
        memory = self._memory_of(size)
        drawn, _, _, after = self._actor.act(self._here, batch, mask, rows, self._calls, greedy, memory)
        self.memory = None if after is None else np.asarray(after)
        self._calls += 1
        actions = self._for_env(np.asarray(drawn))
        return actions[0] if is_single else actions

    def _mask_of(self, given: Any, size: int, is_single: bool) -> np.ndarray:
        reader = MaskReader(self.action_space)
        rows = [given] if is_single else given
        if not is_single and len(rows) != size:
            raise ValueError(f"action_mask has {len(rows)} rows for {size} observations. Give one for each.")
        mask = reader.read(rows, range(size), lambda row: "The caller" if is_single else f"Row {row}")
        if (stuck := reader.without_choice(mask)).any():
            raise ValueError(f"action_mask allows no action in row {int(np.argmax(stuck))}. Allow one at least.")
        return mask

    def _memory_of(self, size: int) -> np.ndarray | None:
        """What is remembered of each row: nothing at first."""
        if not self._actor.memory_size:
            return None
        if self.memory is None:
            return np.zeros((size, self._actor.memory_size), np.float32)
        if len(self.memory) != size:
            raise ValueError(
                f"{size} observations after {len(self.memory)}: this policy remembers the episode of each row. Call "
                "reset() before rows of other episodes."
            )
        return self.memory

    def _batched(self, obs: Any) -> tuple[Any, bool]:
        arrays = [np.asarray(leaf, dtype=kind.dtype) for leaf, kind in self._pairs(self._from_zero(obs))]
        extra = {array.ndim - len(leaf.shape) for array, leaf in zip(arrays, self._leaves, strict=True)}
        fits = all(a.shape[a.ndim - len(k.shape) :] == k.shape for a, k in zip(arrays, self._leaves, strict=True))
        if not fits or extra not in ({0}, {1}):
            shapes = ", ".join(str(array.shape) for array in arrays)
            raise ValueError(
                f"an observation of shape {shapes} is neither one of {self.observation_space} nor a batch of them."
            )
        is_single = extra == {0}
        return unflatten(self.observation_space, [array[None] if is_single else array for array in arrays]), is_single

    def _pairs(self, obs: Any) -> list[tuple[Any, Any]]:
        return list(zip(flatten(self.observation_space, obs), self._leaves, strict=True))

    def __repr__(self) -> str:
        return f"Policy({self.env}, {self.config.algo}, {self.weights.version} updates)"


def load(run: str | os.PathLike[str], which: str | None = None, network: Any = None) -> Policy:
    """The policy of a run: "best" or "final"; None: the best, or the final one if none was evaluated.

    network: the (init, apply) pair of a run with a network of your own, or its name, "package.module:pair".
    """
    folder = RunFolder.open(run)
    return load_policy(folder, folder.read_config(), which, network, "load")


def load_policy(folder: RunFolder, config: TrainConfig, which: str | None, network: Any, verb: Verb = "eval") -> Policy:
    """The policy in a folder. `verb`: what it is wanted for, should there be something to give besides."""
    directory = folder.policy(which)
    content = read_policy(directory)
    check_policy(directory, content, config)
    network = network_of_run(folder, config, verb, network, is_needed=bool(content.facts.get("has_own_network")))
    spaces = content.observation_space, content.action_space
    try:
        return Policy(config, content.weights, *spaces, network)
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        if network is not None:
            raise
        told = str(error).rstrip(".")
        raise RunFolderError(f"The policy in {folder.path} does not fit its config.json: {told}.") from None


@keeping_ctrl_c()
def evaluate(
    run: str | os.PathLike[str],
    episodes: int = 100,
    *,
    seed: int = 0,
    which: str | None = None,
    num_envs: int | None = None,
    env: Any = None,
    env_args: Mapping[str, Any] | None = None,
    network: Any = None,
    trust: bool = False,
) -> Evaluation:
    """Greedy episodes of a run's policy in fresh environments.

    episodes: how many.
    seed: of the environments.
    which: the "best" policy or the "final" one; None: the best, if there is one.
    num_envs: how many environments share the episodes; 16 by default.
    env: an environment in place of the run's, if that cannot be found by its name; anything that `train` takes.
    env_args: keyword arguments of the environment, over those of the run.
    network: the (init, apply) pair of a run with a network of your own, or its name, "package.module:pair".
    trust: calls the code that the folder names for its environment, even if nothing was trained with it here.
    """
    check_trials(episodes, seed, num_envs)
    folder = RunFolder.open(run)
    config = folder.read_config()
    source = source_of_run(folder, config, "eval", env=env, env_args=env_args, trust=trust)
    policy = load_policy(folder, config, which, network)
    size = source.target.num_envs if isinstance(source.target, VectorEnv) else min(num_envs or 16, episodes)
    with without_advice():
        setup = Setup.of(with_lane_for(source, config), source, network_of(network), size)
        trained = policy.observation_space, policy.action_space
        check_spaces(setup.source.name, trained, (setup.observation_space, setup.action_space))
        trial = Trial(size, episodes, config.evaluation.max_steps)
        setup.check_trial(trial, "Use fewer: num_envs=1 takes least.")
        return evaluated(setup, setup.algorithm().native_layout(), policy.weights, trial, seed)
