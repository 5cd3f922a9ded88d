"""The settings of algorithms and networks. No JAX: the command line's help needs them too."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

from raceway.algos.hyperparameters import divisors, divisors_in_words, in_words, nearest, require
from raceway.messages import quoted

MOST_LAYERS = 100
MOST_WIDTH = 1 << 24
MOST_STEPS = 1 << 24
MOST_EPOCHS = 10_000
MOST_LOG_STD = 20
MOST_FLOAT = 1e38
MOST_ROWS = 1 << 32
"""Rows of a round. What fits in memory is known when the environment is."""


@dataclass(frozen=True)
class NetworkConfig:
    """What the network looks like."""

    hidden: tuple[int, ...] | None = None
    """Widths of the hidden layers. None: 64 and 64; none after a CNN, where actor and critic read its features."""
    activation: Literal["tanh", "relu"] = "tanh"
    """The non-linearity of the hidden layers."""
    shared: bool = False
    """One stack of hidden layers for actor and critic, instead of one each. A CNN is always shared."""
    kind: Literal["auto", "mlp", "cnn"] = "auto"
    """cnn: images (uint8) go through a Nature CNN; mlp: everything is flattened; auto: cnn if there are images."""
    gru: int | None = None
    """Width of a GRU before the hidden layers: a memory of what the last observation does not tell. None: no memory."""
    log_std_init: float = 0.0
    """The first logarithm of the standard deviation of continuous actions."""
    custom: str | None = None
    """A network of your own instead: package.module:attribute, an (init, apply) pair. For short: --network NAME."""

    def __post_init__(self) -> None:
        hidden = self.hidden or ()
        if len(hidden) > MOST_LAYERS:
            raise ValueError(f"network.hidden has {len(hidden)} layers. Use {MOST_LAYERS} at most; two are usual.")
        if self.gru is not None and not 1 <= self.gru <= MOST_WIDTH:
            raise ValueError(
                f"network.gru={quoted(self.gru)} is out of range. Use a width from 1 to {MOST_WIDTH:,}, such as 64; "
                "for a network without a GRU leave it out, or give None."
            )
        if not -MOST_LOG_STD <= self.log_std_init <= MOST_LOG_STD:
            raise ValueError(
                f"network.log_std_init={quoted(self.log_std_init)} is out of range. Use a number from {-MOST_LOG_STD} "
                f"to {MOST_LOG_STD}; 0 is usual, a standard deviation of 1."
            )
        if wrong := [width for width in hidden if not 1 <= width <= MOST_WIDTH]:
            raise ValueError(
                f"network.hidden={quoted([*hidden])} has a layer of width {quoted(wrong[0])}. Use widths from 1 to "
                f"{MOST_WIDTH:,}, such as 64 64; for a network without hidden layers give [], an empty list."
            )


@dataclass(frozen=True)
class PPOConfig:
    """PPO's hyperparameters, by SB3's names."""

    learning_rate: float = 3e-4
    """Adam's step size; the first one if lr_schedule changes it."""
    n_steps: int = 256
    """Steps of each environment in a round."""
    batch_size: int = 64
    """Rows in a minibatch; must divide n_steps x num_envs."""
    n_epochs: int = 10
    """How often each round is gone through."""
    gamma: float = 0.99
    """Discount: how much a reward counts when it comes a step later."""
    gae_lambda: float = 0.95
    """Advantages between one step of bootstrapping (0) and whole returns (1)."""
    clip_range: float = 0.2
    """How far the probability ratio may leave 1 before its gradient is cut."""
    clip_range_vf: float | None = None
    """How far values may move in an update before the larger of both errors counts; None: as far as they want."""
    correction: Literal["none", "decoupled", "vtrace"] = "vtrace"
    """For older rounds. decoupled: clip around the newest policy. vtrace: compute its values and advantages, too."""
    rho_bar: float = 2.0
    """Upper bound of the importance weights of older rows."""
    c_bar: float = 0.8
    """correction="vtrace", 0 to 1: actions with a probability ratio below this shorten the trace; 0: none do."""
    normalize_advantage: bool = True
    """Advantages to mean 0 and standard deviation 1 within each minibatch."""
    ent_coef: float = 0.0
    """Weight of the entropy bonus."""
    vf_coef: float = 0.5
    """Weight of the values' mean squared error."""
    max_grad_norm: float = 0.5
    """Gradients longer than this are shortened to it."""
    target_kl: float | None = None
    """No further updates in a round once its approximate KL divergence exceeds 1.5 times this; None: never stop."""
    lr_schedule: Literal["constant", "linear", "adaptive_kl"] = "constant"
    """linear: down to 0 at the end of the run. adaptive_kl: up and down with the divergence, towards desired_kl."""
    desired_kl: float = 0.01
    """The divergence that lr_schedule="adaptive_kl" aims at."""
    normalize_observations: bool = False
    """Observations to mean 0 and standard deviation 1 by running statistics, clipped at 10."""
    normalize_rewards: bool = False
    """Rewards divided by the running standard deviation of discounted returns, clipped at 10."""

    def __post_init__(self) -> None:
        _check_ranges(self)
        for name in ("clip_range", "desired_kl"):
            require(self, name, lambda x: x > 0, "above 0", type(self).__dict__[name])
        require(self, "rho_bar", lambda x: x >= 1, "1 or more", type(self).__dict__["rho_bar"])
        require(self, "c_bar", lambda x: 0 <= x <= 1, "from 0 to 1", type(self).__dict__["c_bar"])
        for name in ("clip_range_vf", "target_kl"):
            require(self, name, lambda x: x is None or x > 0, "above 0, or None", None)
        if self.normalize_advantage and self.batch_size < 2:
            raise ValueError(
                "batch_size=1 with normalize_advantage leaves nothing of an advantage: it is its own mean. Use 2 or "
                "more, or normalize_advantage=False."
            )
        _require_one_of(self, "lr_schedule", "constant", "linear", "adaptive_kl")
        _require_one_of(self, "correction", "none", "decoupled", "vtrace")

    def check_num_envs(self, num_envs: int, *, recurrent: bool = False) -> None:
        """Raises if a round of so many environments cannot be split into minibatches, whole ones if `recurrent`."""
        rows = self.n_steps * num_envs
        if recurrent and (self.batch_size % self.n_steps or rows % self.batch_size):
            sizes = [self.n_steps * n for n in divisors(num_envs)]
            raise ValueError(
                f"A recurrent network learns from whole environments, so batch_size={self.batch_size} must be "
                f"n_steps={self.n_steps} times a number that divides num_envs={num_envs}. "
                f"Use batch_size {in_words(nearest(sizes, self.batch_size))}."
            )
        _check_minibatches(self, num_envs)


@dataclass(frozen=True)
class A2CConfig:
    """A2C's hyperparameters, by SB3's names."""

    learning_rate: float = 7e-4
    """The optimiser's step size; the first one if lr_schedule changes it."""
    n_steps: int = 5
    """Steps of each environment in a round."""
    gamma: float = 0.99
    """Discount: how much a reward counts when it comes a step later."""
    gae_lambda: float = 1.0
    """Advantages between one step of bootstrapping (0) and whole returns (1)."""
    normalize_advantage: bool = False
    """Advantages to mean 0 and standard deviation 1 within each round."""
    ent_coef: float = 0.0
    """Weight of the entropy bonus."""
    vf_coef: float = 0.5
    """Weight of the values' mean squared error."""
    max_grad_norm: float = 0.5
    """Gradients longer than this are shortened to it."""
    optimizer: Literal["rmsprop", "adam"] = "rmsprop"
    """rmsprop: squares are averaged with 0.99, ε = 1e-5 under the root. adam: with ε = 1e-5."""
    lr_schedule: Literal["constant", "linear"] = "constant"
    """linear: down to 0 at the end of the run."""
    correction: Literal["delayed", "ratio", "none"] = "delayed"
    """For older rounds. delayed: the gradient at the parameters that collected them. ratio: importance weights."""
    rho_bar: float = 1.0
    """correction="ratio": ratios above it count as it."""
    normalize_observations: bool = False
    """Observations to mean 0 and standard deviation 1 by running statistics, clipped at 10."""
    normalize_rewards: bool = False
    """Rewards divided by the running standard deviation of discounted returns, clipped at 10."""

    def __post_init__(self) -> None:
        _check_ranges(self)
        _require_one_of(self, "optimizer", "rmsprop", "adam")
        _require_one_of(self, "lr_schedule", "constant", "linear")
        _require_one_of(self, "correction", "delayed", "ratio", "none")
        require(self, "rho_bar", lambda x: x > 0, "above 0", type(self).__dict__["rho_bar"])


@dataclass(frozen=True)
class ImpalaConfig:
    """IMPALA's hyperparameters: the paper's by its names, the others by SB3's."""

    learning_rate: float = 5e-4
    """The optimiser's step size; the first one if lr_schedule changes it."""
    n_steps: int = 32
    """Steps of each environment in a round: the length of an unroll."""
    gamma: float = 0.99
    """Discount: how much a reward counts when it comes a step later."""
    rho_bar: float = 1.0
    """Ratios above it count as it in V-trace's temporal differences: decides which values are learnt."""
    c_bar: float = 1.0
    """Ratios above it count as it in V-trace's trace: decides how far differences reach back."""
    ent_coef: float = 0.01
    """Weight of the entropy bonus."""
    vf_coef: float = 0.5
    """Weight of the values' mean squared error."""
    max_grad_norm: float = 0.5
    """Gradients longer than this are shortened to it."""
    optimizer: Literal["rmsprop", "adam"] = "rmsprop"
    """rmsprop: squares are averaged with 0.99, ε = 1e-5 under the root. adam: with ε = 1e-5."""
    lr_schedule: Literal["constant", "linear"] = "constant"
    """linear: down to 0 at the end of the run."""
    normalize_observations: bool = False
    """Observations to mean 0 and standard deviation 1 by running statistics, clipped at 10."""
    normalize_rewards: bool = False
    """Rewards divided by the running standard deviation of discounted returns, clipped at 10."""

    def __post_init__(self) -> None:
        _check_ranges(self)
        for name in ("rho_bar", "c_bar"):
            require(self, name, lambda x: x > 0, "above 0", type(self).__dict__[name])
        _require_one_of(self, "optimizer", "rmsprop", "adam")
        _require_one_of(self, "lr_schedule", "constant", "linear")


@dataclass(frozen=True)
class PQNConfig:
    """PQN's hyperparameters: exploration by the names of SB3's DQN, the others by those of its PPO."""

    learning_rate: float = 5e-4
    """Adam's step size; the first one if lr_schedule changes it."""
    n_steps: int = 64
    """Steps of each environment in a round."""
    batch_size: int = 128
    """Rows in a minibatch; must divide n_steps x num_envs."""
    n_epochs: int = 4
    """How often each round is gone through."""
    gamma: float = 0.99
    """Discount: how much a reward counts when it comes a step later."""
    q_lambda: float = 0.9
    """Targets between one step of bootstrapping (0) and whole returns (1)."""
    exploration_initial_eps: float = 1.0
    """How often actions are chosen at random, at first."""
    exploration_final_eps: float = 0.05
    """How often in the end."""
    exploration_fraction: float = 0.2
    """The part of the run over which that changes."""
    max_grad_norm: float = 10.0
    """Gradients longer than this are shortened to it."""
    lr_schedule: Literal["constant", "linear"] = "constant"
    """linear: down to 0 at the end of the run."""
    normalize_observations: bool = False
    """Observations to mean 0 and standard deviation 1 by running statistics, clipped at 10."""
    normalize_rewards: bool = False
    """Rewards divided by the running standard deviation of discounted returns, clipped at 10."""

    def __post_init__(self) -> None:
        _check_ranges(self)
        defaults = type(self).__dict__
        for name in ("q_lambda", "exploration_initial_eps", "exploration_final_eps"):
            require(self, name, lambda x: 0 <= x <= 1, "from 0 to 1", defaults[name])
        require(self, "exploration_fraction", lambda x: 0 < x <= 1, "above 0, 1 at most", 0.2)
        _require_one_of(self, "lr_schedule", "constant", "linear")

    def check_num_envs(self, num_envs: int) -> None:
        """Raises if a round of so many environments cannot be split into minibatches."""
        _check_minibatches(self, num_envs)


AlgorithmConfig: TypeAlias = PPOConfig | A2CConfig | ImpalaConfig | PQNConfig


def _check_ranges(config: Any) -> None:
    """Of the settings that every algorithm has."""
    defaults = type(config).__dict__
    for field in fields(config):
        value = getattr(config, field.name)
        if isinstance(value, float) and MOST_FLOAT < value < math.inf:
            raise ValueError(f"{field.name}={quoted(value)} is too large: updates are computed in 32-bit floats.")
    steps = f"a whole number from 1 to {MOST_STEPS:,}"
    require(config, "n_steps", lambda n: n == int(n) and 1 <= n <= MOST_STEPS, steps, defaults["n_steps"])
    if "n_epochs" in defaults:
        epochs = f"a whole number from 1 to {MOST_EPOCHS:,}"
        require(config, "n_epochs", lambda n: n == int(n) and 1 <= n <= MOST_EPOCHS, epochs, defaults["n_epochs"])
    if "batch_size" in defaults:
        rows = f"a whole number from 1 to {MOST_ROWS:,}"
        require(config, "batch_size", lambda n: n == int(n) and 1 <= n <= MOST_ROWS, rows, defaults["batch_size"])
    require(config, "learning_rate", lambda x: 0 < x < math.inf, "above 0, and finite", defaults["learning_rate"])
    require(config, "max_grad_norm", lambda x: x > 0, "above 0", defaults["max_grad_norm"])
    for name in ("gamma", "gae_lambda"):
        if name in defaults:
            require(config, name, lambda x: 0 <= x <= 1, "from 0 to 1", defaults[name])
    for name in ("ent_coef", "vf_coef"):
        if name in defaults:
            require(config, name, lambda x: 0 <= x < math.inf, "0 or more, and finite", defaults[name])


def _check_minibatches(config: Any, num_envs: int) -> None:
    rows = config.n_steps * num_envs
    if rows % config.batch_size:
        raise ValueError(
            f"A round of n_steps={config.n_steps} x num_envs={num_envs} = {rows} rows cannot be split into "
            f"minibatches of batch_size={config.batch_size}: {rows} is not a multiple of {config.batch_size}. "
            f"Use batch_size {divisors_in_words(rows, config.batch_size)}."
        )


def _require_one_of(config: Any, name: str, *choices: str) -> None:
    require(config, name, lambda chosen: chosen in choices, f"one of {', '.join(choices)}", repr(choices[0]))
