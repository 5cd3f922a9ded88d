"""Policy in the worker: native threads run whole rounds, each environment at its own pace, without Python."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any

import numpy as np

from raceway import _core
from raceway.algos.rollout import Episodes, Rollout, Weights
from raceway.algos.spaces import action_parts, flatten
from raceway.envs.masks import IGNORE, MaskReader
from raceway.errors import EnvError
from raceway.training.environments import env_seed
from raceway.training.native_actor import flat_scaling
from raceway.training.sampler import Sampling
from raceway.training.slots import Empty, Shape


class WorkerSampler:
    """A native pool whose threads compute the policy themselves."""

    def __init__(self, sampling: Sampling, layout: Mapping[str, Any]) -> None:
        self._sampling = sampling
        self._layout = layout

    def open(self) -> None:
        """Makes the pool and resets it."""
        sampling = self._sampling
        self._pool = sampling.source.make_native(sampling.num_envs, num_workers=sampling.num_workers)
        self._policy = _core.Policy(dict(self._layout))
        self._runner = _core.Rollout(self._pool.native, self._policy)
        self.restart()
        has_masks = sampling.action_masks and self._runner.has_action_mask
        space = self._pool.single_action_space
        self._shape = Shape(
            self._pool.single_observation_space,
            space,
            sampling.num_steps,
            sampling.num_envs,
            num_logits=action_parts(space).num_logits if has_masks else None,
        )

    def restart(self, purpose: str | None = None) -> None:
        """Begins again, with the seeds of the beginning, or those for another purpose."""
        self._pool.reset(seed=env_seed(self._sampling.seed, purpose or self._sampling.purpose))

    def collect(self, weights: Weights, round_: int, empty: Empty) -> tuple[Rollout, Episodes]:
        """T steps of every environment."""
        start = perf_counter()
        slots = self._shape.slots(empty)
        self._policy.load(weights.params, *flat_scaling(self._shape.observation, weights.scaling))
        names = self._runner.info_names
        info_means = np.empty(len(names), np.float64)
        self._runner.collect(
            {
                "obs": flatten(self._shape.observation, slots.obs),
                "actions": slots.actions,
                "rewards": slots.rewards,
                "terminated": slots.terminated,
                "truncated": slots.truncated,
                "log_probs": slots.log_probs,
                "values": slots.values,
                "final_values": slots.final_values,
                "action_mask": slots.action_mask,
                "episode_returns": slots.episode_returns,
                "episode_lengths": slots.episode_lengths,
                "info_means": info_means,
            },
            self._sampling.num_steps,
            self._sampling.seed,
            round_ * self._sampling.num_steps,
            self._sampling.greedy,
        )
        self._check_masks(slots.action_mask, round_)
        infos = dict(zip(names, info_means.tolist(), strict=True))
        return slots.rollout(weights), slots.episodes(infos, perf_counter() - start)

    def _check_masks(self, masks: np.ndarray | None, round_: int) -> None:
        """Refuses masks that allow nothing, which the native kernel takes for none. Those of our own tasks never do."""
        if masks is None or self._pool.is_built_in:
            return
        stuck = MaskReader(self._shape.action).without_choice(masks)
        if stuck.any():
            step, env = np.argwhere(stuck)[0]
            raise EnvError(
                f"Environment {env} gave an action_mask that allows no action, before step {step} of round {round_}. "
                f"Allow at least one, end the episode, {IGNORE}."
            )

    def save(self) -> dict[str, Any]:
        """The pool's state: the policy comes with every round."""
        return {"pool": self._pool.state()}

    def load(self, state: Mapping[str, Any]) -> list[int]:
        """What `save` gave. Native environments are always brought back."""
        self._pool.set_state(state["pool"])
        self._pool.observe()  # which none can be that was never reset
        return []

    def close(self) -> None:
        """Ends the threads."""
        if hasattr(self, "_pool"):  # or opening it failed
            self._pool.close()
