"""The settings of a training run: a tree of dataclasses. The text under a field is its help on the command line."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from raceway.algos.configs import (
    MOST_ROWS,
    A2CConfig,
    AlgorithmConfig,
    ImpalaConfig,
    NetworkConfig,
    PPOConfig,
    PQNConfig,
)
from raceway.algos.hyperparameters import divisors_in_words
from raceway.errors import SettingError
from raceway.messages import quoted
from raceway.names import LONGEST_ENV, did_you_mean
from raceway.training.absent_algorithms import instead_of
from raceway.training.settings import fitted, types_of

_MOST = 10**15
"""Of what is only counted."""
_MOST_EPISODES = 10**6
_MOST_EPISODE_STEPS = 10**6
"""Of an evaluation: this many of an environment that never ends are waited for."""
_MOST_SECONDS = 10**9
"""About thirty years. The system's own waits end at about ten times as much."""
_MOST_OF = {"total_steps": _MOST, "num_envs": 1 << 24, "num_workers": 4096, "group_size": 1 << 24, "queue": 1000}
_LONGEST_PATH = 4096
_NUMBER = "number"
"""Marks what JSON has no number for: infinity, and what is none."""

NOT_SAVED = "not saved"
"""Marks, in a file, an argument of an environment that only Python can give. What it says changes every time."""

ALGORITHMS: Mapping[str, str] = {
    "ppo": "Proximal Policy Optimization (Schulman et al. 2017)",
    "a2c": "Advantage Actor-Critic (Mnih et al. 2016; HTS-RL: Liu et al. 2020)",
    "impala": "Importance Weighted Actor-Learner, V-trace (Espeholt et al. 2018)",
    "pqn": "Parallelised Q-Network, Q-learning without replay (Gallici et al. 2024)",
}
"""What `algo` may be. Each has a group of settings of the same name."""

SCHEDULES: Mapping[str, Literal["concurrent", "serial", "async"]] = {"impala": "async"}
"""The schedule of those algorithms that are made for another than the usual one."""


_OPEN = ", or None to leave it open"
_WITHOUT: Mapping[str, str] = {
    "num_workers": _OPEN,
    "group_size": _OPEN,
    "evaluation.num_envs": _OPEN,
    "evaluation.times": "; to do without evaluations, --evaluation.no-enabled",
    "evaluation.episodes": "; to do without evaluations, --evaluation.no-enabled",
    "checkpoint.keep": "; to do without checkpoints, --checkpoint.no-enabled",
    "checkpoint.interval_s": "; to do without checkpoints, --checkpoint.no-enabled",
    "worker_timeout": _OPEN,
}
"""What to give instead of 0, where that is likely to mean none."""


@dataclass(frozen=True)
class EvaluationConfig:
    """Evaluation beside training: greedy episodes in environments of their own. The best policy is kept."""

    enabled: bool = True
    """Whether to evaluate at all. Without it the final policy is the only one kept."""
    times: int = 10
    """How often over the whole run, evenly spread; the last is at its end."""
    episodes: int = 10
    """Episodes of each evaluation."""
    max_steps: int = 10_000
    """An episode that has not ended by then is given up: without a time limit it might never end."""
    num_envs: int | None = None
    """Environments that they run in. None: one for each episode, so that short ones are not counted more often."""

    def __post_init__(self) -> None:
        _check_range("evaluation.times", self.times, _MOST)
        _check_range("evaluation.episodes", self.episodes, _MOST_EPISODES)
        _check_range("evaluation.num_envs", self.num_envs, 1 << 24)
        _check_range("evaluation.max_steps", self.max_steps, _MOST_EPISODE_STEPS)


@dataclass(frozen=True)
class CheckpointConfig:
    """Checkpoints: what a run is resumed from after it was stopped or killed."""

    enabled: bool = True
    """Whether to write any. Without them a run that is killed begins again."""
    interval_s: float = 30.0
    """Seconds from one to the next. Training goes on meanwhile."""
    keep: int = 2
    """How many are kept: the last ones. The best policy is kept beside them."""

    def __post_init__(self) -> None:
        _check_range("checkpoint.keep", self.keep, 1_000_000)
        _check_seconds("checkpoint.interval_s", self.interval_s)


@dataclass(frozen=True)
class LogConfig:
    """What a run leaves behind, and what it says meanwhile."""

    directory: str = "runs"
    """Where run folders go: <directory>/<env>/<algo>-<seed>-<time>."""
    name: str | None = None
    """The run folder's own name instead of <algo>-<seed>-<time>. A run of that name that is there goes on."""
    tensorboard: bool = True
    """Whether to write TensorBoard events, beside metrics.jsonl."""
    wandb_project: str | None = None
    """A Weights & Biases project to log to as well (pip install 'raceway[wandb]')."""
    interval_s: float = 10.0
    """Seconds between lines where the output is not a terminal."""
    quiet: bool = False
    """Say nothing but errors."""

    def __post_init__(self) -> None:
        _check_seconds("log.interval_s", self.interval_s)
        if self.name is not None and (not self.name or "/" in self.name or self.name in (".", "..")):
            raise SettingError(
                f"log.name={quoted(self.name)} is no name for a folder: it goes into log.directory and env."
            )
        for name, path in (("log.directory", self.directory), ("log.name", self.name)):
            _check_path(name, path or "")


@dataclass(frozen=True)
class TrainConfig:
    """All settings of a run."""

    env: str
    """The environment: a name (raceway list envs), any Gymnasium id, or package.module:callable."""
    env_args: dict[str, Any] = field(default_factory=dict)
    """Its keyword arguments."""
    algo: str = "ppo"
    """The algorithm (raceway list algos)."""
    schedule: Literal["concurrent", "serial", "async"] = "concurrent"
    """concurrent: collect while learning, one update behind. serial: in turns. async: at any lag, not reproducible."""
    queue: int = 2
    """async: rounds that may wait while the learner is at another, and the most updates that a round can be behind."""
    seed: int = 1
    """The same seed gives the same bits, whatever the number of workers."""
    total_steps: int = 1_000_000
    """Environment steps in all, rounded up to whole rounds."""
    stop_at_return: float | None = None
    """Stop once the mean return of the last 100 training episodes reaches this. None: train for total_steps."""
    init_from: str | None = None
    """Begin with the weights of another run: its folder, or a policy in it (RUN/best). None: random weights."""
    num_envs: int = 8
    """Environments that run side by side. Part of the algorithm: another number gives another result."""
    num_workers: int | None = None
    """Threads, or processes for those in Python, that step them. None: the CPUs there are. Changes the speed alone."""
    lane: Literal["auto", "native", "process", "inline"] = "auto"
    """auto: native where there is such a task, else process: worker processes. inline: in one thread, to debug."""
    on_error: Literal["raise", "restart"] = "raise"
    """When an environment in Python raises or its worker dies. raise: the run ends. restart: it is made anew."""
    worker_timeout: float | None = None
    """Seconds that a worker process may take for one step before it is taken for hung. None: as long as it likes."""
    device: Literal["auto", "cpu", "gpu"] = "auto"
    """Where the learner computes. auto: a GPU if JAX sees one."""
    collector: Literal["auto", "worker", "central"] = "auto"
    """worker: the policy runs inside the workers. central: batched inference, for any network."""
    group_size: int | None = None
    """Environments that central inference serves together. None: half of them, so that the others step meanwhile."""
    action_masks: bool = True
    """Whether to use the "action_mask" that an environment puts into its infos."""
    preset: bool = True
    """Whether to start from the settings that are known to work for the environment (raceway list presets)."""
    ppo: PPOConfig = field(default_factory=PPOConfig)
    """Settings of PPO."""
    a2c: A2CConfig = field(default_factory=A2CConfig)
    """Settings of A2C."""
    impala: ImpalaConfig = field(default_factory=ImpalaConfig)
    """Settings of IMPALA."""
    pqn: PQNConfig = field(default_factory=PQNConfig)
    """Settings of PQN."""
    network: NetworkConfig = field(default_factory=NetworkConfig)
    """The shape of policy and value function."""
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    """Evaluation beside training."""
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    """What a run is resumed from."""
    log: LogConfig = field(default_factory=LogConfig)
    """What is written and said."""

    def __post_init__(self) -> None:
        check_algorithm(self.algo)
        if not self.env:
            raise SettingError("env is empty. Name an environment, such as CartPole-v1 (raceway list envs).")
        if len(self.env) > LONGEST_ENV:
            raise SettingError(f"env={quoted(self.env)} is longer than any name: {LONGEST_ENV:,} characters at most.")
        if not 0 <= self.seed < 2**64:
            raise SettingError(f"seed={self.seed} is out of range. Use a number from 0 to 2**64 - 1.")
        for name, most in _MOST_OF.items():
            _check_range(name, getattr(self, name), most)
        rows = self.num_envs * self.algorithm.n_steps
        if rows > MOST_ROWS:
            raise SettingError(
                f"num_envs={self.num_envs} x n_steps={self.algorithm.n_steps} = {rows:,} rows of a round are too many. "
                f"Use fewer environments or shorter rounds, {MOST_ROWS:,} rows at most."
            )
        _check_seconds("worker_timeout", self.worker_timeout)
        if self.group_size is not None and self.num_envs % self.group_size:
            raise SettingError(
                f"num_envs={self.num_envs} cannot be split into groups of group_size={self.group_size}. "
                f"Use {divisors_in_words(self.num_envs, self.group_size)}."
            )

    @property
    def algorithm(self) -> AlgorithmConfig:
        """The settings of the algorithm that was chosen."""
        chosen: AlgorithmConfig = getattr(self, self.algo)
        return chosen

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON. Of the algorithms' settings only those of the chosen one are in it."""
        values = dataclasses.asdict(replace(self, env_args={}))  # asdict would convert dataclasses among them, too
        values["env_args"] = self.env_args
        return plain({name: values[name] for name in values if name not in ALGORITHMS or name == self.algo})

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TrainConfig:
        """What `to_dict` gave. Settings that it lacks have their defaults."""
        return _built(cls, _renewed(_restored(values)), "")


def _renewed(values: Any) -> Any:
    """Settings of earlier runs as they are called now: PPO's `decoupled` is a `correction`."""
    ppo = values.get("ppo") if isinstance(values, Mapping) else None
    if not isinstance(ppo, Mapping) or not isinstance(ppo.get("decoupled"), bool) or "correction" in ppo:
        return values
    kept = {name: value for name, value in ppo.items() if name != "decoupled"}
    return {**values, "ppo": {**kept, "correction": "decoupled" if ppo["decoupled"] else "none"}}


def lost_arguments(env_args: Mapping[str, Any]) -> list[str]:
    """The arguments of an environment that config.json cannot hold: those that are or contain Python objects.

    env_args: as they were given, or as they were read from a config.json.
    """
    return [name for name, value in env_args.items() if _is_lost(plain(value))]


def _is_lost(value: Any) -> bool:
    if isinstance(value, Mapping):
        return set(value) == {NOT_SAVED} or any(map(_is_lost, value.values()))
    return isinstance(value, list) and any(map(_is_lost, value))


def savable(config: TrainConfig) -> TrainConfig:
    """The settings without those arguments of the environment that config.json cannot hold."""
    lost = lost_arguments(config.env_args)
    return replace(config, env_args={name: it for name, it in config.env_args.items() if name not in lost})


def check_algorithm(name: Any) -> None:
    """Refuses one that there is not."""
    if not isinstance(name, str) or name not in ALGORITHMS:
        hint = "" if (instead := instead_of(str(name))) else did_you_mean(str(name), ALGORITHMS)
        there_are = f"There are: {', '.join(ALGORITHMS)} (raceway list algos)."
        raise SettingError(f"No algorithm {quoted(name)}.{hint} {there_are} {instead}".rstrip())


def _built(kind: Any, values: Mapping[str, Any], prefix: str) -> Any:
    types = types_of(kind)
    given = {}
    for name, value in values.items():
        if name not in types:
            raise SettingError(f"No setting {quoted(prefix + name)}.{did_you_mean(name, types)}")
        nested = dataclasses.is_dataclass(types[name])
        if nested and not isinstance(value, Mapping):
            raise SettingError(f"{prefix}{name}={quoted(value)} is not a group of settings.")
        given[name] = (
            _built(types[name], value, f"{prefix}{name}.") if nested else fitted(prefix + name, value, types[name])
        )
    return kind(**given)


def plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if hasattr(value, "tolist"):  # of NumPy
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return {_NUMBER: str(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return {NOT_SAVED: repr(value)}


def _restored(value: Any) -> Any:
    """What `plain` has changed, as far as it can be told."""
    if isinstance(value, Mapping):
        return float(value[_NUMBER]) if set(value) == {_NUMBER} else {k: _restored(v) for k, v in value.items()}
    return [_restored(each) for each in value] if isinstance(value, list) else value


def check_trials(episodes: Any, seed: Any, num_envs: Any = None) -> None:
    """Refuses numbers of episodes that nobody waits for, seeds that no run has, and what is no number."""
    fitted("episodes", episodes, int)
    fitted("seed", seed, int)
    fitted("num_envs", num_envs, int | None)
    _check_range("num_envs", num_envs, _MOST_OF["num_envs"])
    if not 1 <= episodes <= _MOST_EPISODES:
        raise SettingError(f"episodes={quoted(episodes)} is out of range. Use a number from 1 to {_MOST_EPISODES:,}.")
    if not 0 <= seed < 2**64:
        raise SettingError(f"seed={quoted(seed)} is out of range. Use a number from 0 to 2**64 - 1.")


def _check_path(name: str, path: str) -> None:
    """Refuses what no file system takes for a path."""
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError:
        encoded = b"\0"
    if b"\0" in encoded or len(encoded) > _LONGEST_PATH or any(len(part) > 255 for part in encoded.split(b"/")):
        raise SettingError(f"{name}={quoted(path)} cannot be a path: it is too long, or has characters of no name.")


def _check_seconds(name: str, value: float | None) -> None:
    if value is not None and not 0 < value <= _MOST_SECONDS:
        raise SettingError(
            f"{name}={quoted(value)} must be above 0 seconds, and at most {_MOST_SECONDS:,}{_WITHOUT.get(name, '')}."
        )


def _check_range(name: str, value: int | None, most: int) -> None:
    if value is not None and not 1 <= value <= most:
        raise SettingError(
            f"{name}={quoted(value)} is out of range. Use a number from 1 to {most:,}{_WITHOUT.get(name, '')}."
        )
