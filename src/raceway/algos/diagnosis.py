"""Which number was the first that is not finite, and whether the environment gave it or learning made it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from raceway.algos.rollout import Rollout

FIX_ENVIRONMENT = "Correct the environment; raceway check tests it"
FIX_LEARNING = (
    "The environment's rewards and observations are finite: a lower learning_rate, a smaller max_grad_norm or "
    "normalised observations and rewards may help"
)


class Culprit(NamedTuple):
    """The cause of numbers that are not finite."""

    what: str
    is_environment: bool
    """Whether an environment gave a number that is not finite: then learning is not to blame."""

    def __str__(self) -> str:
        return f"{self.what}. {FIX_ENVIRONMENT if self.is_environment else FIX_LEARNING}."


def fault_of_environment(names: Sequence[str], leaves: Sequence[Any], rollout: Rollout) -> str | None:
    """The first reward or observation in a rollout that is not finite: whose, when, and which value."""
    found: list[tuple[int, str]] = []
    if (place := _first_float(rollout.rewards)) is not None:
        value = _shown(np.asarray(rollout.rewards)[place])
        found.append((place[0], f"environment {place[1]} gave the reward {value} in step {place[0]} of the round"))
    for name, leaf in zip(names, leaves, strict=True):
        if (place := _first_float(leaf)) is not None:
            value = _shown(np.asarray(leaf)[place])
            # The observation of index t is the one that step t - 1 returned.
            when = f"after step {place[0] - 1} of the round" if place[0] else "at the start of the round"
            found.append((place[0] - 1, f"environment {place[1]} gave {value} in {_entry(name, place[2:])} {when}"))
    return min(found)[1] if found else None


def _shown(value: Any) -> str:
    return f"{value} (or a value beyond 3.4e38, the largest float32)" if np.isinf(value) else str(value)


def fault_of_last_observation(rollout: Rollout) -> str | None:
    """A value that is not finite of the last observation of a truncated episode, which a rollout does not hold."""
    place = _first_float(rollout.final_values)
    if place is None:
        return None
    return (
        f"environment {place[1]} gave a last observation, of the episode that was truncated in step {place[0]} of the "
        f"round, whose value is {rollout.final_values[place]}"
    )


def not_finite_in(names: Sequence[str], leaves: Sequence[Any]) -> str | None:
    """The first number that is not finite in one observation, and where in it."""
    for name, leaf in zip(names, leaves, strict=True):
        if (place := _first_float(leaf)) is not None:
            return f"{np.asarray(leaf)[place]} in {_entry(name, place)}"
    return None


def culprit_in_policy(rollout: Rollout) -> str | None:
    """The first array with a number that is not finite among those that the policy computed, and where in it."""
    for name in ("actions", "values", "log_probs"):
        values = np.asarray(getattr(rollout, name))
        if (place := _first_float(values)) is not None:
            where = f" at step {place[0]} of environment {place[1]}"
            return f"{_entry(name, place[2:])} holds {values[place]}{where}"
    return None


def culprit_in_params(params: Any, name_of: Callable[[int], str]) -> str | None:
    """The first parameter that is not finite."""
    place = _first(np.asarray(params))
    return None if place is None else f"the parameters {name_of(int(place[0]))} are not finite"


def culprit_in_metrics(metrics: Mapping[str, Any], names: Iterable[str]) -> tuple[str, int] | None:
    """The first metric that is not finite, in the earliest minibatch in which one is, and that minibatch's number."""
    found = [(place[0], name) for name in names if (place := _first(np.atleast_1d(np.asarray(metrics[name]))))]
    if not found:
        return None
    earliest = min(index for index, _ in found)
    return next((name, int(index)) for index, name in found if index == earliest)


def layers_not_finite(gradient: Any, name_of: Callable[[int], str]) -> list[str]:
    """The layers that have an entry of the gradient that is not finite, in order."""
    wrong = np.flatnonzero(~np.isfinite(np.asarray(gradient)))
    return list(dict.fromkeys(name_of(int(index)) for index in wrong))


def _entry(name: str, place: Sequence[int]) -> str:
    return f"{name}[{', '.join(map(str, place))}]" if place else name


def _first_float(values: Any) -> tuple[int, ...] | None:
    """`_first`, of arrays that can hold such numbers at all."""
    array = np.asarray(values)
    return _first(array) if np.issubdtype(array.dtype, np.floating) else None


def _first(values: np.ndarray) -> tuple[int, ...] | None:
    """Where the first entry stands that is not finite."""
    wrong = np.argwhere(~np.isfinite(values))
    return tuple(int(i) for i in wrong[0]) if len(wrong) else None
