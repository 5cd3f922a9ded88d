"""Runs that differ in nothing but the seed are one group, and a group's label says only what sets it apart."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from raceway.errors import RunFolderError
from raceway.messages import printable
from raceway.names import NOT_IN_RESULTS
from raceway.report.runs import LoggedRun, RunsLike, describe, find_runs

_HEADLINE = ("algo", "schedule")
"""Told by their bare values, and of all groups if of any."""
_CANNOT_CHANGE_RESULTS = (*NOT_IN_RESULTS, "seed", "preset", "evaluation", "checkpoints")
"""Settings, and groups of settings."""
_AT_MOST = 3
"""Settings in a label, unless more are needed to tell groups apart."""
_DEFAULT = object()


@dataclass(frozen=True)
class Group:
    """The seeds of one thing."""

    env: str
    label: str
    runs: tuple[LoggedRun, ...]
    """By seed."""


@dataclass(frozen=True)
class Groups:
    """All that is to be compared, environment by environment."""

    groups: tuple[Group, ...]
    notes: tuple[str, ...]
    """What was left out, and why."""


def group_runs(runs: RunsLike) -> Groups:
    """The groups among `runs`. Runs that have measured nothing yet, and the same run twice, are left out."""
    found = find_runs(runs)
    logged = [run for run in found if run.rows]
    if not logged:
        what = "has" if len(found) == 1 else "have"
        raise RunFolderError(f"{describe(found)} {what} no metrics yet. They come with the first rounds of training.")
    notes = [f"{run.path} is left out: it has no metrics yet." for run in found if not run.rows]
    by_key: dict[Any, list[LoggedRun]] = {}
    for run in logged:
        by_key.setdefault((run.env, run.label, json.dumps(_deciding(run), sort_keys=True)), []).append(run)
    unique = [_without_repeats(members, notes) for members in by_key.values()]
    labels = _labels([members[0] for members in unique])
    groups = [Group(members[0].env, label, tuple(members)) for members, label in zip(unique, labels, strict=True)]
    order = {env: place for place, env in enumerate(dict.fromkeys(group.env for group in groups))}
    return Groups(tuple(sorted(groups, key=lambda group: order[group.env])), tuple(notes))


def _deciding(run: LoggedRun) -> dict[str, Any]:
    """The settings that results depend on, but for the seed."""
    return {path: value for path, value in run.settings.items() if path.partition(".")[0] not in _CANNOT_CHANGE_RESULTS}


def _without_repeats(members: Sequence[LoggedRun], notes: list[str]) -> list[LoggedRun]:
    """Of runs that are the same to the bit, the one that came farthest: another says nothing new."""
    if members[0].settings.get("schedule") == "async":  # two samples, whatever they share
        return _by_seed(members)
    kept: list[LoggedRun] = []
    for run in sorted(members, key=lambda run: run.steps, reverse=True):
        fellows = [other for other in kept if other.seed == run.seed]
        longer = next((other for other in fellows if other.began_like(run)), None)
        if longer is not None:
            notes.append(f"{run.path} is left out: {longer.path} has the same settings and seed.")
            continue
        if fellows:
            notes.append(
                f"{run.path} and {fellows[0].path} have the same settings and seed but other results, as with other "
                "callbacks, code, versions or another CPU. Both are counted. To tell them apart give labels: NAME=RUN."
            )
        kept.append(run)
    return _by_seed(kept)


def _by_seed(runs: Iterable[LoggedRun]) -> list[LoggedRun]:
    return sorted(runs, key=lambda run: (-1 if run.seed is None else run.seed, str(run.path)))


def _labels(runs: Sequence[LoggedRun]) -> list[str]:
    """What sets each group apart, told by one run of each."""
    labels = [_label(run, runs) for run in runs]
    times = Counter((run.env, label) for run, label in zip(runs, labels, strict=True))
    return [
        f"{label}, {printable(run.path.name)}" if times[run.env, label] > 1 else label
        for run, label in zip(runs, labels, strict=True)
    ]


def _label(run: LoggedRun, runs: Sequence[LoggedRun]) -> str:
    fellows = [other for other in runs if other.label == run.label]
    parts = [run.label] if run.label else []
    for path in _HEADLINE:
        if len({str(other.settings.get(path)) for other in fellows}) > 1:
            parts.append(printable(str(run.settings.get(path, "-"))))
    near = [
        other
        for other in fellows
        if other.env == run.env and all(other.settings.get(path) == run.settings.get(path) for path in _HEADLINE)
    ]
    told, untold = _telling([_deciding(other) for other in near])
    parts += [printable(f"{path.rpartition('.')[2]}={_value(run.settings.get(path, _DEFAULT))}") for path in told]
    if untold:
        parts.append(f"{untold} more")
    return ", ".join(parts) or run.algo


def _telling(settings: Sequence[Mapping[str, Any]]) -> tuple[list[str], int]:
    """The settings to tell of those that differ, and how many remain: first those that it takes to tell them apart."""
    paths = list(dict.fromkeys(path for each in settings for path in each))
    texts = {path: [_value(each.get(path, _DEFAULT)) for each in settings] for path in paths}
    differing = [path for path in paths if len(set(texts[path])) > 1]
    told: list[str] = []
    seen = [""] * len(settings)
    for path in differing:
        finer = [f"{before}|{text}" for before, text in zip(seen, texts[path], strict=True)]
        if len(set(finer)) > len(set(seen)):
            told, seen = [*told, path], finer
    told += [path for path in differing if path not in told][: max(0, _AT_MOST - len(told))]
    return told, len(differing) - len(told)


def _value(value: Any) -> str:
    if value is _DEFAULT:
        return "default"
    if isinstance(value, list):
        return "x".join(_value(each) for each in value) or "none"
    if isinstance(value, Mapping):
        return ",".join(_value(each) for each in value.values())
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return "none" if value is None else str(value)
