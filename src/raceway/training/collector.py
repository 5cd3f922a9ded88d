"""The collector: runs every environment for a round under the weights it is given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from raceway.algos.rollout import Episodes, Rollout, Weights
from raceway.errors import DivergedError
from raceway.graph import Effect, Input, Output, Reactor, reaction, shutdown, startup
from raceway.training.sampler import Sampler


class Collector(Reactor):
    """Turns weights into rollouts."""

    weights = Input[Weights]()
    rollout = Output[Rollout]()
    episodes = Output[Episodes]()

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler
        self._is_open = False

    @reaction(startup)
    def open(self) -> None:
        self._sampler.open()
        self._is_open = True

    @reaction(weights, effects=(rollout, episodes))
    def collect(self, weights: Weights) -> Iterator[Effect[Any]]:
        try:
            rollout, episodes = self._sampler.collect(weights, self.round, self.rollout.empty)
        except FloatingPointError as error:
            raise DivergedError(f"Round {self.round}: {error}") from None
        yield self.rollout(rollout)
        yield self.episodes(episodes)

    @reaction(shutdown)
    def close(self) -> None:
        if self._is_open:  # or opening it failed, and that is the error to tell
            self._sampler.close()
