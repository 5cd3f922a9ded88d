"""Central inference: one thread acts for fixed groups of environments, whatever they are; the ready are served first.

A group has always the same environments and the same shape: batches of changing shape would change the floats. So what
is computed does not depend on who was ready when.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice
from queue import SimpleQueue
from threading import Thread
from time import monotonic, perf_counter
from typing import Any, Protocol

import numpy as np
from gymnasium.vector import VectorEnv

from raceway._core import usable_cpus
from raceway.algos.hyperparameters import divisors_in_words
from raceway.algos.rollout import Episodes, Rollout, Scaling, Weights
from raceway.envs.python import InlinePool
from raceway.errors import SettingError
from raceway.training.environments import env_seed
from raceway.training.faults import FaultCount
from raceway.training.group import Group, mean_infos
from raceway.training.parts import InParts, joined, split
from raceway.training.sampler import Sampling
from raceway.training.slots import Empty, Shape

_CLOSE_S = 2.0
"""How long a step that is under way is waited for."""


class Actor(Protocol):
    """A policy as central inference calls it, on a whole group. Its arrays are NumPy's or JAX's."""

    num_logits: int
    memory_size: int
    """How many numbers it remembers of each environment; 0: none, and `memory` is None everywhere."""

    def prepare(self, obs: Any, mask: Any, envs: np.ndarray, greedy: bool, memory: Any) -> None:
        """Whatever takes long the first time."""

    def put(self, params: np.ndarray, scaling: Scaling | None) -> Any:
        """The weights, where they are computed with."""

    def act(
        self, weights: Any, obs: Any, mask: Any, envs: np.ndarray, step: int, greedy: bool, memory: Any
    ) -> tuple[Any, ...]:
        """Actions, their log-probabilities, values, and what is remembered from then on."""

    def value(self, weights: Any, obs: Any, memory: Any) -> Any: ...


class CentralSampler:
    """One thread computes the policy, others step the groups."""

    def __init__(self, sampling: Sampling, make_actor: Callable[[], Actor], group_size: int | None = None) -> None:
        self._sampling = sampling
        self._make_actor = make_actor
        self._group_size = group_size
        self._groups: list[Group] = []
        self._threads: list[Thread] = []

    def open(self) -> None:
        """Makes the groups and resets them."""
        sampling = self._sampling
        self._actor = self._make_actor()
        sizes = group_sizes(sampling, self._group_size)
        self._served = sizes[0]
        self._together = stepped_together(sampling, len(sizes))
        if len(self._together) < len(sizes):
            self._actor = InParts(self._actor, self._served)
            sizes = [count * self._served for count in self._together]
        self._groups = self._make_all(sizes)
        self._faults = FaultCount(group.env for group in self._groups)
        self.restart()
        self._shape = self._shape_of(self._groups[0].env)
        for group in self._groups[:1]:
            group.begin(self._shape.slots(np.zeros))
            self._actor.prepare(group.observations, group.mask, group.envs, sampling.greedy, group.underway.memory)
        self._ready: SimpleQueue[tuple[Group, BaseException | None]] = SimpleQueue()
        self._waiting: SimpleQueue[Group | None] = SimpleQueue()
        self._threads = [Thread(target=self._work, daemon=True) for _ in range(self._num_threads(len(sizes)))]
        for thread in self._threads:
            thread.start()

    def restart(self, purpose: str | None = None) -> None:
        """Begins again, with the seeds of the beginning, or those for another purpose."""
        for group in self._groups:
            group.restart(env_seed(self._sampling.seed, purpose or self._sampling.purpose))

    def save(self) -> dict[str, Any] | None:
        """Of every group, whichever are stepped together, if their environments can tell."""
        states = [group.save() for group in self._groups]
        if any(state is None for state in states):
            return None
        counted = zip(states, self._together, strict=True)
        parts = [[state] if count == 1 else split(state, self._served) for state, count in counted]
        return {"groups": list(chain.from_iterable(parts))}

    def load(self, state: Mapping[str, Any]) -> list[int]:
        """What `save` gave."""
        states = state["groups"]
        if len(states) != sum(self._together):
            raise ValueError(f"the state is of {len(states)} groups, here are {sum(self._together)}.")
        left = iter(states)
        parts = [list(islice(left, count)) for count in self._together]
        pairs = zip(self._groups, [its[0] if len(its) == 1 else joined(its) for its in parts], strict=True)
        return [int(group.envs[row]) for group, its in pairs for row in group.load(its)]

    def _make_all(self, sizes: list[int]) -> list[Group]:
        """Processes take their time to start, so those of all groups start at once."""
        firsts = [sum(sizes[:index]) for index in range(len(sizes))]
        source = self._sampling.source
        if len(sizes) == 1 or source.is_native or source.lane == "inline":
            return [self._make(size, first, len(sizes)) for size, first in zip(sizes, firsts, strict=True)]
        with ThreadPoolExecutor(len(sizes)) as threads:
            making = [threads.submit(self._make, *each, len(sizes)) for each in zip(sizes, firsts, strict=True)]
        if failed := [error for each in making if (error := each.exception()) is not None]:
            for each in making:
                if each.exception() is None:
                    each.result().env.close()
            raise failed[0]
        return [each.result() for each in making]

    def _make(self, size: int, first: int, groups: int) -> Group:
        sampling = self._sampling
        workers = max(1, (sampling.num_workers or usable_cpus()) // groups) if groups > 1 else sampling.num_workers
        env = sampling.source.make(size, first=first, num_workers=workers)
        return Group(env, first, sampling.action_masks, self._actor.memory_size)

    def _num_threads(self, groups: int) -> int:
        """None where the calling thread does it all: with one group there is nothing beside it."""
        if groups == 1 or isinstance(self._groups[0].env, InlinePool):
            return 0
        return min(groups, self._sampling.num_workers or groups)

    def _shape_of(self, env: VectorEnv) -> Shape:
        has_masks = self._groups[0].mask is not None
        return Shape(
            env.single_observation_space,
            env.single_action_space,
            self._sampling.num_steps,
            sum(group.size for group in self._groups),
            num_logits=self._actor.num_logits if has_masks else None,
            marks_valid=self._groups[0].resets_later,
            memory_size=self._actor.memory_size,
        )

    def collect(self, weights: Weights, round_: int, empty: Empty) -> tuple[Rollout, Episodes]:
        """T steps of every environment."""
        start = perf_counter()
        slots = self._shape.slots(empty)
        here = self._actor.put(weights.params, weights.scaling)
        first_step = round_ * self._sampling.num_steps
        for group in self._groups:
            group.begin(slots)
            self._serve(group, here, first_step)
        at_work = len(self._groups)
        while at_work:
            group, error = self._ready.get()
            if error is not None:
                raise error
            if (last := group.last_observations()) is not None:
                group.keep_last_values(np.asarray(self._actor.value(here, last, group.underway.memory)))
            group.advance()
            if group.time < self._sampling.num_steps:
                self._serve(group, here, first_step)
            else:
                group.end(np.asarray(self._actor.value(here, group.observations, group.underway.memory)))
                at_work -= 1
        infos = mean_infos((group.size, group.info_sums) for group in self._groups)
        first = next((group.fault for group in self._groups if group.fault), "")
        return slots.rollout(weights), slots.episodes(infos, perf_counter() - start, self._faults.new(first))

    def _serve(self, group: Group, weights: Any, first_step: int) -> None:
        """Computes a group's actions and lets it step."""
        step = first_step + group.time
        given = group.observations, group.mask, group.envs, step, self._sampling.greedy, group.underway.memory
        *results, memory = self._actor.act(weights, *given)
        group.keep_actions(*(np.asarray(each) for each in results))
        if memory is not None:
            group.underway.memory = np.asarray(memory)
        if self._threads:
            self._waiting.put(group)
        else:
            self._step(group)

    def _work(self) -> None:
        """What every thread does until it is told to end."""
        while (group := self._waiting.get()) is not None:
            self._step(group)

    def _step(self, group: Group) -> None:
        group.is_stepping = True
        try:
            group.step()
        except BaseException as error:
            group.is_stepping = False
            self._ready.put((group, error))
        else:
            group.is_stepping = False
            self._ready.put((group, None))

    def close(self) -> None:
        """Ends the threads and the environments. A step that does not end is given up, and its environment left."""
        for _ in self._threads:
            self._waiting.put(None)
        deadline = monotonic() + _CLOSE_S
        for thread in self._threads:
            thread.join(max(0.0, deadline - monotonic()))
        for group in self._groups:
            if self._sampling.source.is_single:
                continue  # it is the caller's to close
            if not group.is_stepping:  # what native code is in the middle of something cannot be taken away from it
                group.env.close()


def stepped_together(sampling: Sampling, groups: int) -> list[int]:
    """How many groups share a pool: none do, unless there are to be fewer worker processes than groups."""
    source, pools = sampling.source, groups
    if not (source.is_native or source.is_single or source.lane == "inline"):
        pools = min(groups, sampling.num_workers or groups)
    return [(pool + 1) * groups // pools - pool * groups // pools for pool in range(pools)]


def group_sizes(sampling: Sampling, wanted: int | None) -> list[int]:
    """How the environments are shared out: equal groups, since each shape is compiled once."""
    total = sampling.num_envs
    if sampling.source.is_single:
        if wanted not in (None, total):
            raise SettingError(
                f"group_size={wanted}, but the vector environment that was given steps all of its {total} at once. "
                "Give a callable that makes one environment instead."
            )
        return [total]
    # While one half is stepped the other can be served. Not a matter of the lane, for JAX's floats depend on the size.
    size = wanted or (total // 2 if total % 2 == 0 else total)
    if total % size:
        raise SettingError(
            f"num_envs={total} cannot be split into groups of group_size={size}: {total} is not a multiple of {size}. "
            f"Use group_size {divisors_in_words(total, size)}."
        )
    return [size] * (total // size)
