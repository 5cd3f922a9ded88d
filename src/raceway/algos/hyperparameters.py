"""Hyperparameters under the names that people know: other libraries' names, near misses, values that do not fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from raceway.messages import quoted
from raceway.names import did_you_mean

Conversion = Callable[[Any, Mapping[str, Any]], Any]


def _same(value: Any, given: Mapping[str, Any]) -> Any:
    return value


def _if_on(true: Any, false: Any) -> Conversion:
    """A flag as one of two values; of the first, what it is may depend on other settings."""

    def convert(on: Any, given: Mapping[str, Any]) -> Any:
        if not isinstance(on, bool):
            raise ValueError(f"{quoted(on)} is not a flag. Use true or false.")
        return (true(given) if callable(true) else true) if on else false

    return convert


def _lr_schedule(name: Any, given: Mapping[str, Any]) -> Any:
    return {"fixed": "constant", "adaptive": "adaptive_kl"}.get(name, name) if isinstance(name, str) else name


def _batch_size(num_minibatches: Any, given: Mapping[str, Any]) -> int:
    if isinstance(num_minibatches, float) and num_minibatches.is_integer():
        num_minibatches = int(num_minibatches)
    if isinstance(num_minibatches, bool) or not isinstance(num_minibatches, int):
        raise ValueError(f"num_minibatches={quoted(num_minibatches)} is not a whole number.")
    missing = [name for name in ("n_steps", "num_envs") if name not in given]
    if missing:
        raise ValueError(
            f"num_minibatches={num_minibatches} says how many parts a round has, so {' and '.join(missing)} must be "
            "known too. Give them as well, or batch_size instead."
        )
    rows = int(given["n_steps"]) * int(given["num_envs"])
    if num_minibatches < 1 or rows % num_minibatches:
        raise ValueError(
            f"A round of n_steps={given['n_steps']} x num_envs={given['num_envs']} = {rows} rows cannot be split into "
            f"num_minibatches={num_minibatches} equal parts. Use {divisors_in_words(rows, num_minibatches)}."
        )
    return rows // num_minibatches


ALIASES: Mapping[str, tuple[str, Conversion]] = {
    # CleanRL
    "num_steps": ("n_steps", _same),
    "update_epochs": ("n_epochs", _same),
    "num_minibatches": ("batch_size", _batch_size),
    "minibatch_size": ("batch_size", _same),
    "clip_coef": ("clip_range", _same),
    "norm_adv": ("normalize_advantage", _same),
    "clip_vloss": ("clip_range_vf", _if_on(lambda given: given.get("clip_range", 0.2), None)),
    "anneal_lr": ("lr_schedule", _if_on("linear", "constant")),
    # RLlib, rsl_rl, Brax, Tianshou and the paper
    "lr": ("learning_rate", _same),
    "lambda_": ("gae_lambda", _same),
    "lam": ("gae_lambda", _same),
    "lambda": ("gae_lambda", _same),
    "discount": ("gamma", _same),
    "discounting": ("gamma", _same),
    "clip_param": ("clip_range", _same),
    "clipping_epsilon": ("clip_range", _same),
    "eps_clip": ("clip_range", _same),
    "entropy_coef": ("ent_coef", _same),
    "entropy_coeff": ("ent_coef", _same),
    "entropy_cost": ("ent_coef", _same),
    "value_loss_coef": ("vf_coef", _same),
    "vf_loss_coeff": ("vf_coef", _same),
    "grad_clip": ("max_grad_norm", _same),
    "grad_norm_clipping": ("max_grad_norm", _same),
    "baseline_cost": ("vf_coef", _same),
    "vtrace_clip_rho_threshold": ("rho_bar", _same),
    "clip_rho_threshold": ("rho_bar", _same),
    "use_rms_prop": ("optimizer", _if_on("rmsprop", "adam")),
    "num_learning_epochs": ("n_epochs", _same),
    "num_epochs": ("n_epochs", _same),
    "num_sgd_iter": ("n_epochs", _same),
    "num_mini_batches": ("batch_size", _batch_size),
    "num_steps_per_env": ("n_steps", _same),
    "unroll_length": ("n_steps", _same),
    "normalize_obs": ("normalize_observations", _same),
    "norm_obs": ("normalize_observations", _same),
    "norm_reward": ("normalize_rewards", _same),
    "normalize_reward": ("normalize_rewards", _same),
    "schedule": ("lr_schedule", _lr_schedule),
}
"""Other libraries' names: the field that each means, and how its value is turned into the field's."""


def renamed(name: str) -> str:
    """Our name of a hyperparameter that others only call otherwise; one whose value is converted keeps its name."""
    field, convert = ALIASES.get(name, (name, _same))
    return field if convert is _same else name


def resolve_names(
    given: Mapping[str, Any], known: Iterable[str], *, algo: str = "ppo", num_envs: int | None = None
) -> dict[str, Any]:
    """The hyperparameters under our names, whatever names they were given by."""
    known = list(known)
    aliases_known = [name for name, (field, _) in ALIASES.items() if field in known]
    unknown = next((name for name in given if name not in known and name not in aliases_known), None)
    if unknown is not None:
        near = did_you_mean(unknown, [*known, *aliases_known])
        raise ValueError(f"No hyperparameter {quoted(unknown)} in {algo}.{near}")
    resolved = {name: value for name, value in given.items() if name in known}
    # Names that only rename come first: num_minibatches is worked out from what they say.
    aliases = sorted((name for name in given if name not in known), key=lambda name: ALIASES[name][1] is not _same)
    for name in aliases:
        field, convert = ALIASES[name]
        if field in resolved:
            both = f"{name}={quoted(given[name])} and {field}={quoted(resolved[field])}"
            raise ValueError(f"{both} say the same thing. Give one.")
        context = resolved if num_envs is None else resolved | {"num_envs": num_envs}
        resolved[field] = convert(given[name], context)
    return resolved


def divisors(number: int) -> list[int]:
    """Of a number below 2**40 all of them, from 1 up; of a larger one those that are found in a moment."""
    low = [n for n in range(1, min(math.isqrt(number), 1 << 20) + 1) if number % n == 0]
    return low + [number // n for n in reversed(low) if n * n != number]


def divisors_in_words(number: int, near: int) -> str:
    """The divisors of a number that are closest to another, as a choice: "128, 256 or 512"."""
    return in_words(nearest(divisors(number), near))


def nearest(numbers: Iterable[int], wanted: int) -> list[int]:
    """The four numbers that are closest to another, from the smallest up."""
    return sorted(sorted(numbers, key=lambda n: abs(n - wanted))[:4])


def in_words(numbers: Sequence[int]) -> str:
    """A choice: "128, 256 or 512"."""
    return ", ".join(map(str, numbers[:-1])) + f" or {numbers[-1]}" if len(numbers) > 1 else str(numbers[0])


def require(config: Any, name: str, accept: Callable[[Any], bool], range_in_words: str, fix: Any) -> None:
    """Raises unless a field's value lies where it makes sense."""
    value = getattr(config, name)
    if not accept(value):
        raise ValueError(f"{name}={quoted(value)} must be {range_in_words}. A usual value is {fix}.")
