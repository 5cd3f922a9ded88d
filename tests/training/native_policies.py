"""Small networks for the native collector, and the same in plain NumPy; pools and arrays for its rollouts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import gymnasium as gym
import numpy as np

import raceway
from raceway import _core
from raceway.envs import NativePool

TASKS = {
    "CartPole-v1": {},
    "FrozenLake-v1": {},
    "Blackjack-v1": {},
    "Taxi-v3": {},
    "Pendulum-v1": {"max_episode_steps": 13},
    "HalfCheetah-v5": {"max_episode_steps": 13},
}
NUM_ENVS, NUM_STEPS = 11, 40
Layout = dict[str, Any]


def leaves(space: gym.Space[Any]) -> list[gym.Space[Any]]:
    return list(space) if isinstance(space, gym.spaces.Tuple) else [space]


class Net:
    """A small actor-critic with random weights: its description for the core, and the same in plain NumPy."""

    def __init__(self, pool: NativePool, hidden: tuple[int, ...] = (16, 8), trunk: bool = False, log_std: float = 0.0):
        self.rng = np.random.default_rng(3)
        self.pieces: list[np.ndarray] = []
        self.spaces = leaves(pool.single_observation_space)
        inputs: list[dict[str, Any]] = [
            {"kind": "discrete", "n": int(space.n)}
            if isinstance(space, gym.spaces.Discrete)
            else {"kind": "box", "size": int(np.prod(space.shape))}  # type: ignore[arg-type]
            for space in self.spaces
        ]
        features = sum(int(each.get("n", 0)) + int(each.get("size", 0)) for each in inputs)
        action = pool.single_action_space
        self.discrete = isinstance(action, gym.spaces.Discrete)
        outputs = int(action.n) if isinstance(action, gym.spaces.Discrete) else int(np.prod(action.shape))  # type: ignore[arg-type]
        shared = self._chain([features, *hidden]) if trunk else []
        start = [hidden[-1]] if trunk else [features, *hidden]
        self.layout: Layout = {
            "inputs": inputs,
            "trunk": shared,
            "actor": self._chain([*start, outputs]),
            "critic": self._chain([*start, 1]),
            "activation": "tanh",
            "action": {"kind": "categorical", "nvec": [outputs]}
            if self.discrete
            else {"kind": "gaussian", "size": outputs, "log_std": self._add(np.full(outputs, log_std))},
        }
        self.log_std = log_std
        self.params = np.concatenate(self.pieces)
        boxed = sum(each.get("size", 0) for each in inputs)
        self.mean = self.rng.normal(size=boxed).astype(np.float32)
        self.rate = self.rng.uniform(0.5, 2.0, boxed).astype(np.float32)

    def _add(self, array: np.ndarray) -> int:
        offset = sum(piece.size for piece in self.pieces)
        self.pieces.append(array.astype(np.float32).ravel())
        return offset

    def _chain(self, sizes: list[int]) -> list[dict[str, int]]:
        return [
            {
                "weights": self._add(self.rng.normal(size=(i, o)) / np.sqrt(i)),
                "bias": self._add(self.rng.normal(size=o) * 0.1),
                "inputs": i,
                "outputs": o,
            }
            for i, o in pairwise(sizes)
        ]

    def policy(self) -> _core.Policy:
        policy = _core.Policy(self.layout)
        policy.load(self.params, self.mean, self.rate)
        return policy

    def features(self, obs: list[np.ndarray]) -> np.ndarray:
        """[..., features] of leaves [..., *shape]."""
        parts, boxed = [], 0
        for space, leaf in zip(self.spaces, obs, strict=True):
            if isinstance(space, gym.spaces.Discrete):
                parts.append(np.eye(int(space.n))[leaf])
                continue
            size = leaf.shape[-1]
            mean, rate = self.mean[boxed : boxed + size], self.rate[boxed : boxed + size]
            parts.append(np.clip((leaf - mean) * rate, -10, 10).astype(np.float64))
            boxed += size
        return np.concatenate(parts, axis=-1)

    def _run(self, layers: list[dict[str, int]], x: np.ndarray, linear_end: bool) -> np.ndarray:
        for index, layer in enumerate(layers):
            w, b, i, o = layer["weights"], layer["bias"], layer["inputs"], layer["outputs"]
            x = x @ self.params[w : w + i * o].reshape(i, o).astype(np.float64) + self.params[b : b + o]
            if not (linear_end and index == len(layers) - 1):
                x = np.tanh(x)
        return x

    def outputs(self, obs: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Logits (or means) and values."""
        shared = self._run(self.layout["trunk"], self.features(obs), False)
        actor, critic = self.layout["actor"], self.layout["critic"]
        return self._run(actor, shared, True), self._run(critic, shared, True)[..., 0]


def make(task: str, num_envs: int = NUM_ENVS, seed: int = 5, **kwargs: Any) -> NativePool:
    pool = raceway.make(task, num_envs, autoreset="same_step", **{**TASKS.get(task, {}), **kwargs})
    assert isinstance(pool, NativePool)
    pool.reset(seed=seed)
    return pool


def buffers(pool: NativePool, runner: _core.Rollout, steps: int = NUM_STEPS) -> dict[str, Any]:
    envs, action = pool.num_envs, pool.single_action_space
    discrete = isinstance(action, gym.spaces.Discrete)
    num_logits = int(action.n) if isinstance(action, gym.spaces.Discrete) else 0
    obs = [
        np.full((steps + 1, envs, *(space.shape or ())), -7, np.int32)
        if isinstance(space, gym.spaces.Discrete)
        else np.full((steps + 1, envs, *(space.shape or ())), np.nan, np.float32)
        for space in leaves(pool.single_observation_space)
    ]
    floats = {
        name: np.full((steps, envs), np.nan, np.float32)
        for name in ("rewards", "log_probs", "final_values", "episode_returns")
    }
    return floats | {
        "obs": obs,
        "actions": np.full((steps, envs, *(action.shape or ())), -7, np.int32 if discrete else np.float32),
        "values": np.full((steps + 1, envs), np.nan, np.float32),
        "terminated": np.ones((steps, envs), bool),
        "truncated": np.ones((steps, envs), bool),
        "action_mask": np.zeros((steps, envs, num_logits), np.bool_) if runner.has_action_mask else None,
        "episode_lengths": np.full((steps, envs), -7, np.int32),
        "info_means": np.full(len(runner.info_names), np.nan),
    }


def collected(
    pool: NativePool, net: Net, rounds: int = 1, group: int = 0, greedy: bool = False, steps: int = NUM_STEPS
) -> list[dict[str, Any]]:
    runner = _core.Rollout(pool._pool, net.policy())
    runner.set_group_size(group)
    result = []
    for number in range(rounds):
        filled = buffers(pool, runner, steps)
        runner.collect(filled, steps, 17, number * steps, greedy)
        result.append(filled)
    return result


def arrays_of(rollout: dict[str, Any]) -> list[np.ndarray]:
    named = [value for name, value in sorted(rollout.items()) if name != "obs" and value is not None]
    return [*rollout["obs"], *named]


def assert_same_bits(left: dict[str, Any], right: dict[str, Any]) -> None:
    for one, other in zip(arrays_of(left), arrays_of(right), strict=True):
        np.testing.assert_array_equal(one, other)
