"""A linear actor-critic in NumPy and float64, to check gradients of algorithms by finite differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from raceway.algos.algorithm import Algorithm
from raceway.algos.configs import NetworkConfig
from raceway.algos.networks import ActorCritic

LINEAR = NetworkConfig(hidden=())
"""The network that this is."""


@dataclass(frozen=True)
class Evaluated:
    """What a policy says of a round with one Discrete action, [T+1, N] or [T, N]."""

    values: np.ndarray
    log_probs: np.ndarray
    entropies: np.ndarray


def evaluate(algorithm: Algorithm, params: np.ndarray, obs: np.ndarray, actions: np.ndarray) -> Evaluated:
    """Of observations [T+1, N, K] and actions [T, N]."""
    network = algorithm.network
    assert isinstance(network, ActorCritic)
    tree = {
        name: params[block.offset : block.offset + block.size].reshape(block.shape)
        for name, block in network.layout.blocks.items()
    }
    logits = obs[:-1] @ tree["actor0.weights"] + tree["actor0.bias"]
    log_probs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    return Evaluated(
        values=(obs @ tree["critic0.weights"] + tree["critic0.bias"])[..., 0],
        log_probs=np.take_along_axis(log_probs, actions[..., None], axis=-1)[..., 0],
        entropies=-(np.exp(log_probs) * log_probs).sum(axis=-1),
    )


def numeric_gradient(function: Callable[[np.ndarray], float], at: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """By central differences."""
    at = at.astype(np.float64)
    gradient = np.zeros_like(at)
    for index in range(len(at)):
        shift = np.zeros_like(at)
        shift[index] = step
        gradient[index] = (function(at + shift) - function(at - shift)) / (2 * step)
    return gradient
