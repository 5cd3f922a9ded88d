"""Which number was the first that is not finite."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from raceway.algos.rollout import Rollout


def culprit_in_rollout(names: Sequence[str], leaves: Sequence[Any], rollout: Rollout) -> str | None:
    """The first array of a rollout with a number that is not finite, and where in it."""
    arrays: list[tuple[str, Any]] = [*zip(names, leaves, strict=True)]
    arrays += [(name, getattr(rollout, name)) for name in ("rewards", "actions", "values", "final_values", "log_probs")]
    for name, array in arrays:
        values = np.asarray(array)
        if not np.issubdtype(values.dtype, np.floating):
            continue
        place = _first(values)
        if place is not None:
            rest = f", entry {tuple(int(i) for i in place[2:])}" if len(place) > 2 else ""
            return f"{name} holds {values[place]} at step {place[0]} of environment {place[1]}{rest}"
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


def _first(values: np.ndarray) -> tuple[int, ...] | None:
    """Where the first entry stands that is not finite."""
    wrong = np.argwhere(~np.isfinite(values))
    return tuple(int(i) for i in wrong[0]) if len(wrong) else None
