"""Policies to use: `raceway.load(run).act(obs)`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import Space

from raceway.algos.build import build_algorithm
from raceway.algos.rollout import Weights
from raceway.algos.spaces import counted_from_zero, environment_actions, flatten, observation_leaves, unflatten
from raceway.envs.user_native import plain
from raceway.errors import RunFolderError, UserError
from raceway.training.actor import JaxActor
from raceway.training.config import TrainConfig
from raceway.training.environments import EnvSource
from raceway.training.evaluation import Evaluation, Trial
from raceway.training.folder import RunFolder
from raceway.training.policy_files import read_policy
from raceway.training.programs import Setup, evaluated, own_or
from raceway.training.trust import check_code


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
            raise ValueError(f"the policy has {weights.params.size} parameters, its network {wanted}")
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

        A recurrent policy remembers what it saw in earlier calls, row by row, until `reset`.
        """
        batch, is_single = self._batched(obs)
        size = len(flatten(self.observation_space, batch)[0])
        mask = None
        if action_mask is not None:
            mask = np.asarray(action_mask, bool).reshape(size, self._actor.num_logits)
        rows = np.arange(size, dtype=np.uint32)
        memory = self._memory_of(size)
        drawn, _, _, after = self._actor.act(self._here, batch, mask, rows, self._calls, greedy, memory)
        self.memory = None if after is None else np.asarray(after)
        self._calls += 1
        actions = self._for_env(np.asarray(drawn))
        return actions[0] if is_single else actions

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

    A run with a network of your own needs the same (init, apply) pair again.
    """
    folder = RunFolder.open(run)
    content = read_policy(folder.policy(which))
    if content.facts.get("has_own_network") and network is None:
        raise UserError(
            f"{folder.path} was trained with a network of your own. From Python, give the same pair again: "
            "network=(init, apply)."
        )
    config = folder.read_config()
    spaces = content.observation_space, content.action_space
    try:
        return Policy(config, content.weights, *spaces, network)
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        if network is not None:
            raise
        raise RunFolderError(f"The policy in {folder.path} does not fit its config.json: {error}.") from None


def evaluate(
    run: str | os.PathLike[str],
    episodes: int = 100,
    *,
    seed: int = 0,
    which: str | None = None,
    num_envs: int | None = None,
    env: Any = None,
    network: Any = None,
    trust: bool = False,
) -> Evaluation:
    """Greedy episodes of a run's policy in fresh environments: `env`, if the run's own cannot be found by a name.

    trust: calls the code that the folder names for its environment, even if nothing was trained with it here.
    """
    policy = load(run, which, network)
    config = policy.config
    if env is None:
        check_code(RunFolder.open(run), config, trust)
    setup = Setup.of(config, EnvSource(config.env if env is None else plain(env), config.env_args), network)
    layout = setup.algorithm().native_layout()
    trial = Trial(min(num_envs or 16, episodes), episodes, config.evaluation.max_steps)
    return evaluated(setup, layout, policy.weights, trial, seed)
