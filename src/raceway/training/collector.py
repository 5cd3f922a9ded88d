"""The collector: runs every environment for a round under the weights it is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gymnasium.utils.env_checker import data_equivalence

from raceway.algos.rollout import Collected, Weights
from raceway.errors import DivergedError, SettingError
from raceway.graph import Effect, Input, Output, Reactor, Timer, reaction, shutdown, startup
from raceway.training.checkpoints import MisfitError, fitting
from raceway.training.sampler import Sampler

MakeSampler = Callable[[dict[str, Any], str], Sampler]
"""Of arguments for the environments, and of what their seeds are for."""
OnResumed = Callable[[list[int] | None], None]
"""Hears which environments could not go on with their episodes, and have begun others; None: all."""


class Collector(Reactor):
    """Turns weights into rollouts, one a round: under those of the round, or the newest if they come as they like."""

    round_begins = Timer()
    weights = Input[Weights]()
    collected = Output[Collected]()

    def __init__(
        self,
        make_sampler: MakeSampler,
        on_resumed: OnResumed | None = None,
        env_args: dict[str, Any] | None = None,
    ) -> None:
        self._make_sampler = make_sampler
        self._on_resumed = on_resumed
        self._env_args = env_args or {}
        self._purpose = "training"
        self._sampler: Sampler | None = None

    @reaction(startup)
    def open(self) -> None:
        sampler = self._make_sampler(self._env_args, self._purpose)
        try:
            sampler.open()
        except BaseException:
            sampler.close()
            raise
        self._sampler = sampler

    @reaction(round_begins, uses=weights, effects=collected)
    def collect(self, weights: Weights | None) -> Effect[Collected]:
        assert weights is not None
        if not data_equivalence(weights.env_args or {}, self._env_args):
            self._change(weights.env_args or {}, f"training from round {self.round}")
        assert self._sampler is not None
        try:
            rollout, episodes = self._sampler.collect(weights, self.round, self.collected.empty)
        except FloatingPointError as error:
            raise DivergedError(f"Round {self.round}: {error}") from None
        return self.collected(Collected(rollout, episodes, self._env_args))

    def _change(self, env_args: dict[str, Any], purpose: str) -> None:
        """Goes on with other environments, which have seeds of their own."""
        self.close()
        self._env_args, self._purpose = env_args, purpose
        self.open()

    def save(self) -> dict[str, Any]:
        assert self._sampler is not None
        return {"env_args": self._env_args, "purpose": self._purpose, "round": self.round,
                "sampler": self._sampler.save()}  # fmt: skip

    def load(self, state: dict[str, Any]) -> None:
        """Where environments cannot tell their state, new episodes begin, with seeds that no others have."""
        with fitting("environments' state"):
            saved = state["sampler"]
            args = state["env_args"]
            if state["purpose"] != self._purpose or not data_equivalence(args, self._env_args):
                try:
                    self._change(args, state["purpose"])
                except SettingError as error:  # which is about callbacks, and here it is the checkpoint that is wrong
                    raise MisfitError(f"its environments' arguments do not fit this run: {error}") from None
            assert self._sampler is not None
            lost = None
            if saved is None:
                self._sampler.restart(f"resumed after round {int(state['round'])}")
            else:
                lost = self._sampler.load(saved)
        if self._on_resumed is not None:
            self._on_resumed(lost)

    @reaction(shutdown)
    def close(self) -> None:
        if self._sampler is not None:  # or opening it failed, and that is the error to tell
            self._sampler.close()
            self._sampler = None
