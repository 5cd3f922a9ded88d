"""Wrappers that carry something over from episode to episode: above all the running statistics of normalisation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import gymnasium

from raceway.envs.checking.notebook import Facts, Notebook
from raceway.envs.checking.subject import Subject, layers
from raceway.envs.checking.values import digest

_STEPS = 8
_MEAN = re.compile(r"^_*(\w+_)?(mean|avg|average)$")
_REST = re.compile(r"^_*(\w+_)?(var|variance|std|m2|count|n)$", re.IGNORECASE)
_OF_ALL_WRAPPERS = ("env", "_action_space", "_observation_space", "_metadata", "_cached_spec", "_saved_kwargs")


def without_statistics(subject: Subject, notes: Notebook, facts: Facts) -> Subject:
    """The environment without wrappers that keep running statistics, which are noted.

    What they carry over would hide what is underneath, or be taken for it: a seed that is ignored.
    """
    found = _keepers(subject)
    if not found:
        return subject
    facts.carriers = tuple(type(layer).__name__ for layer in found)
    _note_statistics(found, notes)
    kinds = {type(layer) for layer in found}
    return subject.changed(partial(peeled, leaves_out=lambda layer: type(layer) in kinds and bool(statistics(layer))))


def _keepers(subject: Subject) -> list[gymnasium.Wrapper]:
    """The wrappers whose statistics are not what they were when a second episode begins with the same seed."""
    env = subject.make()
    wrappers = [layer for layer in layers(env) if isinstance(layer, gymnasium.Wrapper) and statistics(layer)]
    if not wrappers:
        return []
    subject.reset(env, 1)
    before = [digest(statistics(layer)) for layer in wrappers]
    actions = subject.actions(env)
    info: dict[str, Any] = {}
    for index in range(_STEPS):
        step = subject.step(env, actions.at(index, info))
        info = step.info
        if step.is_end:
            break
    subject.reset(env, 1)
    after = [digest(statistics(layer)) for layer in wrappers]
    return [layer for layer, one, two in zip(wrappers, before, after, strict=True) if one != two]


def statistics(layer: gymnasium.Wrapper) -> dict[str, Any]:
    """What looks like running statistics among the attributes of a wrapper, as plain values by name; empty: nothing."""
    own = {name: value for name, value in vars(layer).items() if name not in _OF_ALL_WRAPPERS}
    found: dict[str, Any] = {}
    for name, value in own.items():
        inside = _attributes(value)
        if inside and (name.endswith("rms") or "RunningMeanStd" in type(value).__name__ or _are_moments(inside)):
            found[name] = inside
    return found | (_moments(own) if _are_moments(own) else {})


def _attributes(value: Any) -> Mapping[str, Any]:
    is_part = not isinstance(value, (type, gymnasium.Env, gymnasium.Space)) and hasattr(value, "__dict__")
    return vars(value) if is_part else {}


def _are_moments(names: Mapping[str, Any]) -> bool:
    """Whether there is a mean, and how many it is of or how far apart they are."""
    return any(map(_MEAN.match, names)) and any(map(_REST.match, names))


def _moments(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if _MEAN.match(name) or _REST.match(name)}


def _note_statistics(found: Sequence[gymnasium.Wrapper], notes: Notebook) -> None:
    names = " and ".join(dict.fromkeys(type(layer).__name__ for layer in found))
    settings = list(dict.fromkeys(each for layer in found for each in _settings(layer)))
    what = " and ".join(each.removeprefix("normalize_") for each in settings)
    evaluated = (
        "policies are evaluated with other statistics than they were trained with"
        if "normalize_observations" in settings
        else "evaluations count the scaled rewards"
    )
    notes.note(
        "running-statistics",
        f"{names} {'keeps' if len(found) == 1 else 'keep'} running statistics from episode to episode, and they differ "
        f"from worker to worker: the same seed gives other {what}. Runs cannot be repeated, nor resumed exactly, and "
        f"{evaluated}.",
        f"take {names} out, and train with {' and '.join(f'{each}=True' for each in settings)}: these statistics are "
        "shared by all environments and saved with the run",
    )


def _settings(layer: gymnasium.Wrapper) -> list[str]:
    """The settings of training that do what a wrapper does."""
    words = " ".join([type(layer).__name__, *statistics(layer)]).lower()
    found = []
    if isinstance(layer, gymnasium.ObservationWrapper) or "obs" in words:
        found.append("normalize_observations")
    if isinstance(layer, gymnasium.RewardWrapper) or re.search("rew|ret", words):
        found.append("normalize_rewards")
    return found or ["normalize_observations", "normalize_rewards"]


def peeled(env: Any, leaves_out: Callable[[Any], bool], most: int | None = None) -> Any:
    """An environment without some of its wrappers, and with at most so many of them, counted from the inside."""
    chain = [layer for layer in layers(env) if not isinstance(layer, gymnasium.Wrapper) or not leaves_out(layer)]
    if most is not None:
        chain = chain[max(len(chain) - 1 - most, 0) :]
    for outer, inner in pairwise(chain):
        outer.env = inner
    return chain[0]


def carrier(subject: Subject, repeats: Callable[[Subject], bool]) -> str:
    """The innermost wrapper with which episodes do not repeat though they do without it; empty: there is none.

    repeats: whether the same seed gives the same twice in one instance.
    """
    most = sum(isinstance(layer, gymnasium.Wrapper) for layer in layers(subject.make()))
    for count in range(most + 1):
        part = subject.changed(partial(peeled, leaves_out=lambda layer: False, most=count))
        if not repeats(part):
            return "" if count == 0 else type(part.make()).__name__
    return ""
