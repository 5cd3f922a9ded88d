"""Policy in the worker, for environments in Python: each process runs its environments through whole rounds."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any

from raceway.algos.rollout import Episodes, Rollout, Weights
from raceway.algos.spaces import action_parts, environment_actions
from raceway.training.environments import env_seed
from raceway.training.faults import FaultCount
from raceway.training.group import Group, mean_infos
from raceway.training.runner import Part, RoundRunner
from raceway.training.sampler import Sampling
from raceway.training.slots import Empty, Shape, Slots, read
from raceway.training.underway import Underway, copied


class ProcessSampler:
    """A pool of Python environments whose workers compute the policy themselves.

    The round lies in memory that they share, so that nothing is copied; weights go there once a round. What is under
    way between rounds is kept here.
    """

    def __init__(self, sampling: Sampling, layout: Mapping[str, Any]) -> None:
        self._sampling = sampling
        self._layout = layout

    def open(self) -> None:
        """Makes the pool, resets it and hands the policy out."""
        sampling = self._sampling
        self._pool = sampling.source.make_python(sampling.num_envs, num_workers=sampling.num_workers)
        self._group = Group(self._pool, 0, sampling.action_masks)
        self._faults = FaultCount([self._pool])
        self.restart()
        space = self._pool.single_action_space
        self._shape = Shape(
            self._pool.single_observation_space,
            space,
            sampling.num_steps,
            sampling.num_envs,
            num_logits=None if self._group.mask is None else action_parts(space).num_logits,
        )
        self._for_env = environment_actions(space)
        settings = sampling.num_steps, sampling.seed, sampling.greedy, sampling.action_masks
        self._pool.install(RoundRunner(self._layout, *settings))

    def restart(self, purpose: str | None = None) -> None:
        """Begins again, with the seeds of the beginning, or those for another purpose."""
        self._group.restart(env_seed(self._sampling.seed, purpose or self._sampling.purpose))

    def collect(self, weights: Weights, round_: int, empty: Empty) -> tuple[Rollout, Episodes]:
        """T steps of every environment, in memory of the pool's own."""
        start = perf_counter()
        slots = self._shape.slots(self._pool.empty)
        group = self._group
        group.begin(slots)
        parts: list[Part] = self._pool.run(
            (slots, weights.params, weights.scaling, round_ * self._sampling.num_steps),
            [group.underway.part(envs) for envs in self._pool.ranges],
        )
        # A copy: the round's memory is used again when it is learnt from.
        group.go_on(Underway.joined([part.underway for part in parts]), copied(read(slots.obs, -1)))
        self._record(slots)
        infos = mean_infos((len(envs), part.info_sums) for envs, part in zip(self._pool.ranges, parts, strict=True))
        first = next((part.fault for part in parts if part.fault), "")
        return slots.rollout(weights), slots.episodes(infos, perf_counter() - start, self._faults.new(first))

    def _record(self, slots: Slots) -> None:
        """Tells the pool what its environments were given: it may have to do so again."""
        steps, envs = slots.rewards.shape
        actions = slots.actions.reshape(steps * envs, *slots.actions.shape[2:])
        given = self._for_env(actions)
        self._pool.record(given.reshape(steps, envs, *given.shape[1:]), slots.terminated | slots.truncated)

    def save(self) -> dict[str, Any] | None:
        """The environments, and what is under way in them; nothing of that depends on the number of workers."""
        return self._group.save()

    def load(self, state: Mapping[str, Any]) -> list[int]:
        """What `save` gave."""
        return self._group.load(state)

    def close(self) -> None:
        """Ends the processes."""
        if hasattr(self, "_pool"):  # or opening it failed
            self._pool.close()
