"""The learner: turns each round's rollout into new weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from raceway.algos.algorithm import FINITE_METRICS, Algorithm
from raceway.algos.moments import Normaliser
from raceway.algos.rollout import Collected, Episodes, Rollout, Weights
from raceway.errors import DivergedError
from raceway.graph import Effect, Input, Output, Reactor, reaction, startup
from raceway.training.callbacks import Director, check_control
from raceway.training.chain import BEGINNING, link
from raceway.training.checkpoints import fitting
from raceway.training.dump import write_dump
from raceway.training.initial import Initial
from raceway.training.slots import Shape


@dataclass(frozen=True)
class Progress:
    """What one update tells the report."""

    round: int
    lag: int
    """How many updates the rollout's weights were behind the parameters that learned from it: of every minibatch."""
    values: dict[str, float]
    """The algorithm's metrics, each the mean over the round's minibatches."""
    digest: str
    """The hash chain's line."""
    seconds: float
    """How long it took."""
    episodes: Episodes
    """Those that ended in the round that it learned from."""
    env_args: dict[str, Any] = field(default_factory=dict)
    """The `control.env_args` that they were played with."""


class Learner(Reactor):
    """Turns rollouts into weights, one update after the other."""

    collected = Input[Collected]()
    weights = Output[Weights]()
    candidate = Output[Weights]()
    """Now and then: weights to be evaluated."""
    progress = Output[Progress]()

    def __init__(
        self,
        algorithm: Algorithm,
        seed: int,
        normaliser: Normaliser,
        shape: Shape,
        rounds: int,
        candidate_every: int,
        dumps: Callable[[], Path] | None,
        director: Director,
    ) -> None:
        self._algorithm = algorithm
        self._seed = seed
        self._state = algorithm.init(seed)
        self._normaliser = normaliser
        self._shape = shape
        self._rounds = rounds
        self._candidate_every = candidate_every
        self._dumps = dumps
        self._director = director
        self._version = 0
        self._digest = BEGINNING
        self._ent_coef: float | None = None
        """What callbacks have set it to; None: as in the settings."""
        if director.callbacks:
            self._apply_control()

    @property
    def current(self) -> Weights:
        """The weights after the last update."""
        # A copy: the parameters' own memory is used again by later updates.
        params = np.array(self._algorithm.policy(self._state))
        return Weights(self._version, params, self._normaliser.scaling(), self._director.control.env_args)

    def begin_from(self, initial: Initial) -> None:
        """Begins with the parameters and the statistics of observations of another run's policy."""
        self._state = self._algorithm.with_params(self._state, initial.params)
        if initial.scaling is not None:
            self._normaliser.begin_from(initial.scaling, initial.samples)

    @property
    def digest(self) -> str:
        """The last line of the hash chain."""
        return self._digest

    @reaction(startup)
    def compile(self) -> None:
        """Before the first round, so that it is not the first round that takes so long."""
        example = self._shape.slots(np.zeros).rollout(self.current)
        self._algorithm.update(self._state, example, 0.0, self._seed, 0)

    @reaction(collected, effects=(weights, candidate, progress))
    def learn(self, collected: Collected) -> Iterator[Effect[Any]]:
        start = perf_counter()
        rollout, episodes = collected.rollout, collected.episodes
        lag = self._version - rollout.version
        metrics = self._update(rollout)
        values = None if self._director.is_idle else self._consult(collected, metrics)
        current = self.current
        yield self.weights(current)
        if self._is_candidate(self.round + 1):
            yield self.candidate(current)
        # The collector does not wait for anything below.
        self._digest = link(self._digest, rollout, current.params)
        values = values or self._means(metrics)
        seconds = perf_counter() - start
        yield self.progress(Progress(self.round, lag, values, self._digest, seconds, episodes, collected.env_args))

    def _consult(self, collected: Collected, metrics: dict[str, np.ndarray]) -> dict[str, float]:
        """Asks the callbacks, and does what they want before the weights go out."""
        values = self._means(metrics)
        steps = (self.round + 1) * self._shape.num_steps * self._shape.num_envs
        self._director.on_round(self.round, steps, (self.round + 1) / self._rounds, collected, values)
        self._apply_control()
        control = self._director.control
        if control.is_stopping:
            control.is_stopping = False  # from here on the graph remembers it; a run that is given more steps goes on
            self.stop()
        return values

    def _apply_control(self) -> None:
        """Sets what the next updates take from callbacks."""
        control, config = self._director.control, self._algorithm.config
        check_control(control, config)
        if config.lr_schedule == "constant":
            rate = config.learning_rate if control.learning_rate is None else control.learning_rate
            self._state = self._algorithm.with_learning_rate(self._state, rate)
        self._ent_coef = control.ent_coef

    def save(self) -> dict[str, Any]:
        return {
            "algorithm": self._algorithm.save(self._state),
            "normaliser": self._normaliser.save(),
            "director": self._director.save(),
            "version": self._version,
            "digest": self._digest,
        }

    def load(self, state: dict[str, Any]) -> None:
        self.load_weights(state)
        with fitting("learner"):
            self._director.load(state["director"])
            self._ent_coef = self._director.control.ent_coef

    def load_weights(self, state: dict[str, Any]) -> None:
        """All but what callbacks remember: they are to be asked once."""
        with fitting("learner"):
            self._state = self._algorithm.load(state["algorithm"])
            self._normaliser.load(state["normaliser"])
            self._version = int(state["version"])
            self._digest = str(state["digest"])

    def _is_candidate(self, rounds: int) -> bool:
        """The weights of the end are evaluated when training is over."""
        return self._candidate_every > 0 and rounds % self._candidate_every == 0 and rounds < self._rounds

    def _update(self, rollout: Rollout) -> dict[str, np.ndarray]:
        before = self._state
        scaled = self._normaliser.absorb(rollout)
        if not self._normaliser.is_finite:
            raise self._diverged(before, rollout, {})
        # The call returns before it has read the rollout, whose memory is used again: the metrics are waited for.
        progress = self.round / self._rounds
        state, found = self._algorithm.update(before, scaled, progress, self._seed, self.round, self._ent_coef)
        metrics = {name: np.asarray(value) for name, value in found.items()}
        if not all(np.isfinite(metrics[name]).all() for name in FINITE_METRICS if name in metrics):
            raise self._diverged(before, scaled, metrics)
        self._state = state
        self._version += 1
        return metrics

    def _means(self, metrics: dict[str, np.ndarray]) -> dict[str, float]:
        """The metrics of a round, each a mean over its minibatches."""
        applied = metrics["applied"]
        values = {name: _mean(value, applied) for name, value in metrics.items() if name != "applied"}
        if hasattr(self._algorithm.config, "ent_coef"):
            values["ent_coef"] = self._algorithm.ent_coef if self._ent_coef is None else self._ent_coef
        return {**values, "applied": float(applied.mean())}

    def _diverged(self, state: Any, rollout: Rollout, metrics: dict[str, np.ndarray]) -> DivergedError:
        culprit = self._algorithm.culprit(state, rollout, metrics, self.round, self._ent_coef)
        params = np.array(self._algorithm.policy(state))
        where = ""
        if self._dumps is not None:
            try:
                path = write_dump(self._dumps(), self.round, {"rollout": rollout, "params": params, "metrics": metrics})
                where = f" The data of the update is in {path}."
            except OSError as error:  # which must not hide why there was something to write
                where = f" The data of the update could not be written: {error.strerror or error}."
        return DivergedError(f"Round {self.round}: {culprit}{where}")


def _mean(value: np.ndarray, applied: np.ndarray) -> float:
    """Over the minibatches that were learnt from: target_kl may have stopped a round early."""
    return float(value[applied].mean() if value.shape == applied.shape and applied.any() else value.mean())
