"""The settings of a training run: a tree of dataclasses. The text under a field is its help on the command line."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from raceway.algos.configs import A2CConfig, AlgorithmConfig, ImpalaConfig, NetworkConfig, PPOConfig, PQNConfig
from raceway.errors import SettingError
from raceway.names import did_you_mean
from raceway.training.settings import fitted, types_of

_NUMBER = "number"
"""Marks what JSON has no number for: infinity, and what is none."""

ALGORITHMS: Mapping[str, str] = {
    "ppo": "Proximal Policy Optimization (Schulman et al. 2017)",
    "a2c": "Advantage Actor-Critic (Mnih et al. 2016; HTS-RL: Liu et al. 2020)",
    "impala": "Importance Weighted Actor-Learner, V-trace (Espeholt et al. 2018)",
    "pqn": "Parallelised Q-Network, Q-learning without replay (Gallici et al. 2024)",
}
"""What `algo` may be. Each has a group of settings of the same name."""

SCHEDULES: Mapping[str, Literal["concurrent", "serial", "async"]] = {"impala": "async"}
"""The schedule of those algorithms that are made for another than the usual one."""


@dataclass(frozen=True)
class EvaluationConfig:
    """Evaluation beside training: greedy episodes in environments of their own. The best policy is kept."""

    enabled: bool = True
    """Whether to evaluate at all. Without it the policy of the end is the only one kept."""
    times: int = 10
    """How often over the whole run, evenly spread; the last is at its end."""
    episodes: int = 10
    """Episodes of each evaluation."""
    max_steps: int = 10_000
    """An episode that has not ended by then is given up: without a time limit it might never end."""
    num_envs: int | None = None
    """Environments that they run in. None: one for each episode, so that short ones are not counted more often."""

    def __post_init__(self) -> None:
        _at_least(1, "evaluation.times", self.times)
        _at_least(1, "evaluation.episodes", self.episodes)
        _at_least(1, "evaluation.num_envs", self.num_envs)
        _at_least(1, "evaluation.max_steps", self.max_steps)


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
        _at_least(1, "checkpoint.keep", self.keep)
        if not self.interval_s > 0:
            raise SettingError(f"checkpoint.interval_s={self.interval_s} must be above 0.")


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
        if not self.interval_s > 0:
            raise SettingError(f"log.interval_s={self.interval_s} must be above 0.")
        if self.name is not None and (not self.name or "/" in self.name or self.name in (".", "..")):
            raise SettingError(f"log.name={self.name!r} is no name for a folder: it goes into log.directory and env.")


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
    """async: rounds that may wait for the learner, the one that it learns from included."""
    seed: int = 1
    """The same seed gives the same bits, whatever the number of workers."""
    total_steps: int = 1_000_000
    """Environment steps in all, rounded up to whole rounds."""
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
    """Whether to heed the "action_mask" that an environment puts into its infos."""
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
        if not 0 <= self.seed < 2**64:
            raise SettingError(f"seed={self.seed} is out of range. Use a number from 0 to 2**64 - 1.")
        for name in ("total_steps", "num_envs", "num_workers", "group_size", "queue"):
            _at_least(1, name, getattr(self, name))
        if self.worker_timeout is not None and not self.worker_timeout > 0:
            raise SettingError(f"worker_timeout={self.worker_timeout} must be above 0 seconds, or None.")
        if self.group_size is not None and self.num_envs % self.group_size:
            divisors = [str(n) for n in range(1, self.num_envs + 1) if self.num_envs % n == 0]
            raise SettingError(
                f"num_envs={self.num_envs} cannot be split into groups of group_size={self.group_size}. "
                f"Use {', '.join(divisors[:-1]) + ' or ' if divisors[1:] else ''}{divisors[-1]}."
            )

    @property
    def algorithm(self) -> AlgorithmConfig:
        """The settings of the algorithm that was chosen."""
        chosen: AlgorithmConfig = getattr(self, self.algo)
        return chosen

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON. Of the algorithms' settings only those of the chosen one are in it."""
        values = dataclasses.asdict(self)
        return _plain({name: values[name] for name in values if name not in ALGORITHMS or name == self.algo})

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TrainConfig:
        """What `to_dict` gave. Settings that it lacks have their defaults."""
        return _built(cls, _restored(values), "")


def check_algorithm(name: Any) -> None:
    """Refuses one that there is not."""
    if name not in ALGORITHMS:
        near = did_you_mean(str(name), ALGORITHMS)
        raise SettingError(f"No algorithm {name!r}.{near} There are: {', '.join(ALGORITHMS)}.")


def _built(kind: Any, values: Mapping[str, Any], prefix: str) -> Any:
    types = types_of(kind)
    given = {}
    for name, value in values.items():
        if name not in types:
            raise SettingError(f"No setting {prefix + name!r}.{did_you_mean(name, types)}")
        nested = dataclasses.is_dataclass(types[name])
        if nested and not isinstance(value, Mapping):
            raise SettingError(f"{prefix}{name}={value!r} is not a group of settings.")
        given[name] = (
            _built(types[name], value, f"{prefix}{name}.") if nested else fitted(prefix + name, value, types[name])
        )
    return kind(**given)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if hasattr(value, "tolist"):  # of NumPy
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return {_NUMBER: str(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return {"not saved": repr(value)}  # an argument of an environment that is given from Python only


def _restored(value: Any) -> Any:
    """What `_plain` has changed, as far as it can be told."""
    if isinstance(value, Mapping):
        return float(value[_NUMBER]) if set(value) == {_NUMBER} else {k: _restored(v) for k, v in value.items()}
    return [_restored(each) for each in value] if isinstance(value, list) else value


def _at_least(least: int, name: str, value: int | None) -> None:
    if value is not None and value < least:
        raise SettingError(f"{name}={value} is out of range. Use a number from {least} up.")
