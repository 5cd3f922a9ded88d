"""The native tasks by name, and the keyword arguments that each takes."""

from __future__ import annotations

import ast
import functools
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import NameNotFound

from raceway import _core
from raceway.messages import printable, quoted
from raceway.names import did_you_mean, did_you_mean_id


@dataclass(frozen=True)
class Task:
    """A native task: its name, its keyword arguments, what reset(options=...) takes, its time limit."""

    id: str
    kinds: Mapping[str, str]
    """The kind of each keyword argument: flag, integer, real, reals, text, lines, file, name or ranges."""
    defaults: Mapping[str, str]
    """Their defaults, as Python source."""
    preset: Mapping[str, Any]
    """The values that the id stands for, such as map_name='8x8'."""
    options: Mapping[str, tuple[float, float, float]]
    """The numbers that reset(options=...) may set: default, least, most."""
    max_episode_steps: int | None
    is_built_in: bool = True
    """Whether it is one of ours; the others were loaded by `raceway.load_native`."""

    @property
    def model_argument(self) -> str | None:
        """The keyword argument that names a MuJoCo model; None for tasks that have none."""
        files = (name for name, kind in self.kinds.items() if kind == "file")
        return next(files, None) if self.is_built_in else None

    @property
    def picture_arguments(self) -> tuple[str, ...]:
        """The keyword arguments that say how it is drawn; the native side knows nothing of them."""
        return _PICTURE_ARGUMENTS if self.model_argument else ()


# What Gymnasium's MuJoCo tasks take for their pictures.
_PICTURE_ARGUMENTS = (
    "width",
    "height",
    "camera_id",
    "camera_name",
    "default_camera_config",
    "max_geom",
    "visual_options",
)

# The models of Gymnasium's MuJoCo tasks.
ASSETS = os.path.join(os.path.dirname(gymnasium.__file__), "envs", "mujoco", "assets")

# Gymnasium 1.4 has dropped these; what it can still tell and draw is that of their successors.
_SUCCESSORS = {"Taxi-v3": "Taxi-v4"}


def gymnasium_spec(task_id: str) -> EnvSpec | None:
    """Gymnasium's own specification of a task, or of the one that took its place; None for tasks that are only ours."""
    return gymnasium.registry.get(_SUCCESSORS.get(task_id, task_id))


@functools.cache
def tasks() -> Mapping[str, Task]:
    """Every native task by id, in alphabetical order."""
    found = {}
    for entry in _core.describe_tasks():
        kinds = {name: kind for name, (kind, _) in entry["parameters"].items()}
        defaults = {name: default for name, (_, default) in entry["parameters"].items()} | entry["preset"]
        limit = entry["max_episode_steps"] or None
        preset = {name: ast.literal_eval(value) for name, value in entry["preset"].items()}
        found[entry["id"]] = Task(
            entry["id"], kinds, defaults, preset, entry["options"], limit, is_built_in=entry["is_built_in"]
        )
    return dict(sorted(found.items()))


def list_envs() -> list[str]:
    """The ids that `raceway.make` takes."""
    return list(tasks())


def find_task(name: str) -> Task:
    """The task called `name`; Gymnasium's spelling with the namespace, `raceway/CartPole-v1`, is the same one."""
    if not isinstance(name, str):
        raise TypeError(f"id must be a string such as 'CartPole-v1', not {name!r}.")
    task = tasks().get(name.removeprefix("raceway/"))
    if task is None:
        raise NameNotFound(no_such_env(name, tasks()))
    return task


def no_such_env(name: str, known: Iterable[str] | None = None) -> str:
    """The message for an unknown id, with the nearest of the `known` ones; None: all native and Gymnasium ids."""
    if known is None:
        known = sorted({*tasks(), *(id_ for id_ in gymnasium.registry if "/" not in id_)})
    near = did_you_mean_id(name.removeprefix("raceway/"), known)
    message = f"No environment {quoted(name)}.{near}"
    module = name.removesuffix(".py")
    if module.isidentifier() and os.path.isfile(f"{module}.py"):
        return f"{message} For a class or function in {module}.py: {module}:NAME."
    others = "" if near else " Those of other packages: PACKAGE:ID; your own: MODULE:CLASS."
    return f"{message} All native names: raceway list envs.{others}"


def native_version(name: str) -> str | None:
    """The native task that is another version of the same id (Ant-v5 for Ant-v3); None if there is none."""
    base = re.sub(r"-v\d+$", "", name)
    versions = [each for each in tasks() if re.sub(r"-v\d+$", "", each) == base]
    return versions[-1] if versions and name not in versions else None


def native_arguments(task: Task, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """`kwargs` of one environment, checked and made into what the native side takes. None means: as if not given."""
    given = dict(task.preset)
    given |= {name: ast.literal_eval(task.defaults[name]) for name, kind in task.kinds.items() if kind == "file"}
    for name, value in kwargs.items():
        if name in task.picture_arguments:
            continue
        if name not in task.kinds:
            raise TypeError(_unknown(task, name))
        given[name] = value
    model = task.model_argument
    if model and task.defaults[model] == "None" and _is_path(given[model]) and os.path.isfile(given[model]):
        given[model] = os.path.abspath(given[model])  # the user's own robot may have the name of one of Gymnasium's
    if {"map_name", "desc"} <= task.kinds.keys() and given.get("desc") is None and given.get("map_name", "4x4") is None:
        given["desc"] = _random_map()
    return {
        name: _CONVERSIONS[task.kinds[name]](f"{task.id}: {name}", value)
        for name, value in given.items()
        if value is not None
    }


def with_whole_path(task: Task, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """`kwargs` with a model of the user's own named by its whole path, which other folders understand too."""
    model = task.model_argument
    if model is None or not _is_path(kwargs.get(model)):
        return dict(kwargs)
    path = native_arguments(task, {model: kwargs[model]})[model]
    is_gymnasiums = os.path.dirname(path) == os.path.abspath(ASSETS)
    return dict(kwargs) if is_gymnasiums else {**kwargs, model: path}


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike)) and value != ""


def _unknown(task: Task, name: Any) -> str:
    hint = did_you_mean(str(name), (*task.kinds, *task.picture_arguments))
    known = ", ".join(f"{each}={task.defaults[each]}" for each in task.kinds) or "none"
    pictures = f"; for pictures {', '.join(task.picture_arguments)}" if task.picture_arguments else ""
    return f"{task.id} takes no keyword argument {quoted(name)}.{hint} It takes: {known}{pictures}."


def _random_map() -> list[str]:
    from gymnasium.envs.toy_text.frozen_lake import generate_random_map

    return generate_random_map()


def flag(name: str, value: Any) -> bool:
    """`value` as a bool, if it is one or 0 or 1."""
    if isinstance(value, (bool, np.bool_)) or (isinstance(value, (int, np.integer)) and value in (0, 1)):
        return bool(value)
    raise TypeError(f"{name}={quoted(value)} is not a flag. Use True or False.")


MOST_WORKERS = 4096
"""Threads or processes of one pool."""


def positive(name: str, value: Any, most: int = 2**31 - 1) -> int:
    """`value` as an int from 1 to `most`."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise TypeError(f"{name}={quoted(value)} is not a whole number. Use one from 1 up.")
    if not 1 <= value <= most:
        raise ValueError(f"{name}={quoted(value)} is out of range. Use a number from 1 to {most}.")
    return int(value)


def integer(name: str, value: Any) -> int:
    """`value` as an int, if it is a whole number."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise TypeError(f"{name}={quoted(value)} is not a whole number.")
    if abs(int(value)) >= 2**63:
        raise ValueError(f"{name}={quoted(value)} is too large.")
    return int(value)


def real(name: str, value: Any) -> float:
    """`value` as a float, if it is a finite number."""
    number = _bound(name, value)
    if math.isfinite(number):
        return number
    raise ValueError(f"{name}={quoted(value)} is not finite, or too large.")


def _bound(name: str, value: Any) -> float:
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf if value > 0 else -math.inf
        if not math.isnan(number):
            return number
    raise TypeError(f"{name}={quoted(value)} is not a number.")


def _reals(name: str, value: Any) -> list[float]:
    if is_sequence(value):
        return [_bound(name, each) for each in value]
    raise TypeError(f"{name}={quoted(value)} is not a sequence of numbers.")


def _ranges(name: str, value: Any) -> dict[str, list[float]]:
    if not isinstance(value, Mapping) or not all(isinstance(each, str) and each.isprintable() for each in value):
        raise TypeError(f"{name}={quoted(value)} is not a dict with names as keys.")
    return {each: _range(f"{name}[{each!r}]", bounds) for each, bounds in value.items()}


def _range(name: str, value: Any) -> list[float]:
    bounds = _reals(name, value) if is_sequence(value) else [_bound(name, value)] * 2
    if len(bounds) != 2 or bounds[0] > bounds[1]:
        raise ValueError(f"{name}={quoted(value)} is not a number or a pair (lowest, highest).")
    return bounds


def is_sequence(value: Any) -> bool:
    """Whether `value` is a list, tuple, array, ..., and no string."""
    return isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, (str, bytes))


def text(name: str, value: Any) -> str:
    """`value`, if it is a string."""
    if isinstance(value, str):
        return value
    raise TypeError(f"{name}={quoted(value)} is not a string.")


def _file(name: str, value: Any) -> str:
    """The path of a model, found as Gymnasium finds it: a bare name is one of its own."""
    path = os.path.expanduser(text(name, os.fspath(value) if isinstance(value, os.PathLike) else value))
    if not path.startswith((".", "/")) and os.path.isfile(own := os.path.join(ASSETS, path)):
        path = own
    if not os.path.isfile(path):
        what = "that is not a file" if os.path.exists(path) else f"there is no file {printable(os.path.abspath(path))}"
        raise FileNotFoundError(f"{name}={quoted(value)}: {what}.")
    return os.path.abspath(path)


def _name(name: str, value: Any) -> str | int:
    return value if isinstance(value, str) else integer(name, value)


def _lines(name: str, value: Any) -> str:
    if isinstance(value, np.ndarray):  # of single characters, as Gymnasium keeps its maps
        value = ["".join(each.decode() if isinstance(each, bytes) else str(each) for each in row) for row in value]
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)) and all(isinstance(v, str) for v in value):
        return "\n".join(value)
    raise TypeError(f"{name}={quoted(value)} is not a list of strings.")


_CONVERSIONS: Mapping[str, Callable[[str, Any], Any]] = {
    "flag": flag,
    "integer": integer,
    "real": real,
    "reals": _reals,
    "text": text,
    "lines": _lines,
    "file": _file,
    "name": _name,
    "ranges": _ranges,
}
