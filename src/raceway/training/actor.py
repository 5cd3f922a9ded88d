"""An algorithm's policy as central inference calls it."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from raceway.algos.algorithm import Algorithm
from raceway.algos.moments import Normaliser
from raceway.algos.rollout import Scaling


class _Placed(NamedTuple):
    """Weights that are on the device already."""

    params: Any
    scaling: Scaling | None


class JaxActor:
    """Compiled once for each shape of group. The weights stay on the device for a round."""

    def __init__(self, algorithm: Algorithm, seed: int) -> None:
        self.num_logits = algorithm.action.num_logits
        self.memory_size = algorithm.network.memory_size
        self._algorithm = algorithm
        self._seed = seed

    def prepare(self, obs: Any, mask: Any, envs: np.ndarray, greedy: bool, memory: np.ndarray | None) -> None:
        """Compiles."""
        algorithm = self._algorithm
        config = algorithm.config
        wants = {"observations": config.normalize_observations, "rewards": False}
        scaling = Normaliser(algorithm.observation_space, 1, config.gamma, **wants).scaling()
        weights = self.put(np.array(algorithm.policy(algorithm.init(0))), scaling)
        self.act(weights, obs, mask, envs, 0, greedy, memory)
        self.value(weights, obs, memory)

    def put(self, params: np.ndarray, scaling: Scaling | None) -> _Placed:
        """The weights, where they are computed with."""
        if scaling is not None:
            scaling = Scaling(*jax.device_put((scaling.mean, scaling.rate)))
        return _Placed(jax.device_put(params), scaling)

    def act(
        self, weights: _Placed, obs: Any, mask: Any, envs: np.ndarray, step: int, greedy: bool, memory: Any = None
    ) -> tuple[Any, ...]:
        """Actions, their log-probabilities, values and the next memory.

        The likeliest actions are for evaluation, and come without log-probabilities and values.
        """
        if greedy:
            actions, after = self._algorithm.greedy(*weights, obs, mask, memory)
            nothing = np.zeros(len(envs), np.float32)
            return actions, nothing, nothing, after
        return self._algorithm.act(*weights, obs, mask, self._seed, envs, np.uint32(step), memory)

    def value(self, weights: _Placed, obs: Any, memory: Any = None) -> Any:
        """Of a group's observations."""
        return self._algorithm.value(*weights, obs, memory)
