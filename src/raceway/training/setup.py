"""A run's settings, and what follows from them and from its environment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from gymnasium import Space
from gymnasium.vector import AutoresetMode, VectorEnv

from raceway.algos.algorithm import Algorithm
from raceway.algos.build import build_algorithm
from raceway.algos.configs import NetworkConfig
from raceway.algos.networks import UserNetwork
from raceway.algos.spaces import action_parts, different_spaces, flattened_images
from raceway.envs.catalog import native_version
from raceway.envs.masks import MaskReader
from raceway.errors import SettingError
from raceway.files import KnownFolder
from raceway.memory import require_memory
from raceway.messages import quoted
from raceway.training.advice import Verb, how_to
from raceway.training.config import TrainConfig
from raceway.training.environments import EnvSource, can_draw
from raceway.training.evaluation import CHUNK_STEPS, Trial
from raceway.training.identity import identity_of
from raceway.training.policy_files import PolicyFile
from raceway.training.slots import Shape

_ROUNDS_IN_MEMORY = 3
"""One is collected, one is learnt from, and the update has another copy of it."""
_BYTES_PER_PARAMETER = 32
"""Parameters, gradients, the optimiser's two moments, weights on their way, and what making them takes."""


@dataclass(frozen=True)
class Setup:
    """A run's settings, and what follows from them and from its environment."""

    config: TrainConfig
    source: EnvSource
    observation_space: Space
    action_space: Space
    has_masks: bool
    """Whether the environment tells which actions are allowed, and that is used."""
    resets_later: bool
    """Whether some rows are no transitions, since episodes are reset on the next step."""
    network: Any = None
    """A user's own (init, apply) pair; None: the one that the settings describe."""
    draws: bool = False
    """Whether `raceway.play` can show the environment."""
    guard: Callable[[Mapping[str, Any]], None] | None = None
    """Refuses other arguments for the environments that are not to be trusted; None: all are."""

    @classmethod
    def of(cls, config: TrainConfig, source: EnvSource, network: Any = None, num_envs: int | None = None) -> Setup:
        """Looks at the environment's spaces.

        num_envs: of a vector environment that is there already, if it need not have as many as the run.
        """
        source = replace(source, lane=config.lane, on_error=config.on_error, worker_timeout=config.worker_timeout)
        env, infos = _looked_at(source, config, num_envs)
        has_masks = config.action_masks and "action_mask" in infos
        later = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP) == AutoresetMode.NEXT_STEP
        spaces = env.single_observation_space, env.single_action_space
        if has_masks:  # before anything is compiled for them
            with _told_as_setting():
                MaskReader(spaces[1]).check_first(infos, env.num_envs)
        return cls(config, source, *spaces, has_masks, later, network, can_draw(source.target, env))

    def check_memory(self) -> None:
        """Refuses rounds that the memory cannot hold, before anything is allocated."""
        with _told_as_setting():
            shape = self.shape
            num_bytes = shape.num_bytes
        require_memory(
            _ROUNDS_IN_MEMORY * num_bytes,
            f"A round of n_steps={shape.num_steps} x num_envs={shape.num_envs}, held {_ROUNDS_IN_MEMORY} times,",
            "Use fewer environments or shorter rounds.",
        )
        if self.evaluates:
            given = self.config.evaluation.num_envs
            means = "None, one for each episode" if given is None else f"{given}"
            self.check_trial(self.trial, f"Use fewer: evaluation.num_envs (now {means}).")

    def check_trial(self, trial: Trial, fix: str) -> None:
        """Refuses an evaluation that the memory cannot hold."""
        with _told_as_setting():
            num_bytes = replace(self.shape, num_steps=CHUNK_STEPS, num_envs=trial.num_envs).num_bytes
        require_memory(num_bytes, f"An evaluation with {trial.num_envs} environments", fix)

    def with_args(self, env_args: Mapping[str, Any]) -> EnvSource:
        """The environments with other arguments, as a callback wants them, beside those of the settings."""
        if env_args and self.source.is_single:
            raise SettingError(
                f"A callback has set env_args={quoted(dict(env_args))}, but the vector environment that was given "
                "cannot be made again with others. Give a callable that makes one environment instead."
            )
        if env_args and self.guard is not None:
            self.guard(env_args)
        return replace(self.source, args={**self.source.args, **env_args}) if env_args else self.source

    def check_args(self, env_args: Mapping[str, Any]) -> None:
        """Refuses arguments that a callback has set if there is no such environment, or one with other spaces."""
        try:
            env, _ = _looked_at(self.with_args(env_args), self.config)
        except (TypeError, ValueError) as error:
            if isinstance(error, SettingError):
                raise
            raise SettingError(f"A callback has set env_args={quoted(dict(env_args))}: {error}") from None
        found = env.single_observation_space, env.single_action_space
        for name, there, here in different_spaces((self.observation_space, self.action_space), found):
            raise SettingError(
                f"A callback has set env_args={quoted(dict(env_args))}, which changes the {name} space from "
                f"{there} to {here}. All environments of a run need the same spaces."
            )

    def notes(self) -> list[str]:
        """What the user should know at the start of the run."""
        is_as_asked = self.network is not None or self.config.network.kind == "mlp"
        flattened = [] if is_as_asked else flattened_images(self.observation_space)
        return [*filter(None, (self._unused(), self._unused_of_network(), self._other_version())), *flattened]

    def _other_version(self) -> str:
        """A note that another version of this environment runs natively; empty if none does."""
        name, lane = self.source.target, self.config.lane
        native = native_version(name) if isinstance(name, str) and lane == "auto" else None
        return f"{name} runs in Python; {native}, a newer version, runs natively and is much faster" if native else ""

    def _unused_of_network(self) -> str:
        """Settings of the built-in network beside one of the user's own; empty if there are none."""
        if self.network is None:
            return ""
        usual, given = asdict(NetworkConfig()), asdict(self.config.network)
        said = [f"network.{name}={quoted(given[name])}" for name in usual if given[name] != usual[name]]
        said = [each for each in said if not each.startswith("network.custom")]
        return f"without effect: {', '.join(said)}, since the network is your own" if said else ""

    def _unused(self) -> str:
        """Settings for environments in Python that these environments do not use; empty if there are none."""
        config, source = self.config, self.source
        said = [f"on_error={config.on_error!r}"] if config.on_error != "raise" else []
        said += [f"worker_timeout={config.worker_timeout:g}"] if config.worker_timeout is not None else []
        if not said or not (source.is_native or source.is_single):
            return ""
        why = "runs natively" if source.is_native else "is a vector environment, which sees to its own faults"
        return f"without effect: {', '.join(said)}, since {source.name} {why}"

    @property
    def steps_per_round(self) -> int:
        return self.config.algorithm.n_steps * self.config.num_envs

    @property
    def evaluates(self) -> bool:
        """Whether there is an evaluator: it needs environments of its own."""
        return self.config.evaluation.enabled and not self.source.is_single

    @property
    def trial(self) -> Trial:
        """How its policies are evaluated."""
        wanted = self.config.evaluation
        return Trial(wanted.num_envs or wanted.episodes, wanted.episodes, wanted.max_steps)

    @property
    def shape(self) -> Shape:
        """Of a round's arrays."""
        logits = action_parts(self.action_space).num_logits if self.has_masks else None
        sizes = self.config.algorithm.n_steps, self.config.num_envs
        memory = (self.config.network.gru or 0) if self.network is None else 0
        return Shape(self.observation_space, self.action_space, *sizes, logits, self.resets_later, memory)

    @property
    def rounds(self) -> int:
        return -(-self.config.total_steps // self.steps_per_round)

    def algorithm(self) -> Algorithm:
        """The algorithm, for these spaces."""
        config = self.config
        network = own_or(self.network, config.network)
        with _told_as_setting():
            built = build_algorithm(config.algorithm, self.observation_space, self.action_space, network)
        require_memory(
            _BYTES_PER_PARAMETER * built.network.num_params,
            f"A network with {built.network.num_params:,} parameters (hidden={quoted(config.network.hidden)}, "
            f"gru={config.network.gru})",
            "Make network.hidden or network.gru smaller.",
        )
        return built

    def policy_file(self, directory: Path, home: KnownFolder | None = None) -> PolicyFile:
        """Where a policy of this run is kept, in its folder `home`."""
        config = self.config
        facts = {
            "env": config.env,
            "env_args": config.to_dict()["env_args"],
            "algo": config.algo,
            "seed": config.seed,
            "run": identity_of(config),
            "has_own_network": self.network is not None,
            "has_masks": self.has_masks,
        }
        return PolicyFile(directory, self.observation_space, self.action_space, facts, home)

    def how_to(self, verb: Verb, path: Path, **more: Any) -> str:
        """The command or call for this run, with the environment that it uses now if its folder names another one."""
        name = self.source.full_name
        return how_to(verb, path, self.config, env=None if name == self.config.env else name, **more)


@contextmanager
def _told_as_setting() -> Iterator[None]:
    """Spaces or a network that cannot be trained with, which the algorithms tell in words, are wrong settings here."""
    try:
        yield
    except SettingError:
        raise
    except ValueError as error:
        raise SettingError(str(error)) from None


def _looked_at(source: EnvSource, config: TrainConfig, num_envs: int | None = None) -> tuple[VectorEnv, dict[str, Any]]:
    """An environment of this kind, closed again (unless it is the only one), and the infos of its first reset."""
    # One that may hang is looked at where it can be given up.
    looked_at = source.inline if config.worker_timeout is None else source
    env = looked_at.make((num_envs or config.num_envs) if source.is_single else 1)
    try:
        _, infos = env.reset(seed=0)
    finally:
        if not source.is_single:
            env.close()
    return env, infos


def own_or(own: Any, described: NetworkConfig) -> NetworkConfig | UserNetwork:
    """A user's (init, apply) pair, or the network that the settings describe."""
    return described if own is None else UserNetwork(*own)
