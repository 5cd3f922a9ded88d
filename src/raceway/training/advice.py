"""What to call to play, evaluate or resume a run: a command where one can work, else the call from Python."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import sys
import sysconfig
from collections.abc import Mapping
from importlib.metadata import entry_points
from itertools import starmap
from pathlib import Path
from typing import Any, Literal

import gymnasium

from raceway.envs.catalog import tasks
from raceway.envs.python.makers import names_callable
from raceway.envs.user_native import is_path
from raceway.training.config import TrainConfig, lost_arguments
from raceway.training.settings import WORDS

Verb = Literal["play", "eval", "resume", "load"]
_FUNCTIONS = {"play": "play", "eval": "evaluate", "resume": "resume", "load": "load"}
"""`load` is no command, and takes no environment."""
_ANY = "..."


def how_to(
    verb: Verb,
    path: Path,
    config: TrainConfig,
    *,
    env: str | None = None,
    env_args: Mapping[str, Any] | None = None,
    has_callbacks: bool = False,
    **options: Any,
) -> str:
    """The command for a run, or the call from Python if it needs objects that no name on a command line leads to.

    env: the environment that the run has now, by name; None: the one that its folder names.
    env_args: arguments of the environment to give besides those of the run.
    options: such as anyway=True, which is --anyway on the command line.
    """
    given: dict[str, str] = {}
    name, network = env or config.env, config.network.custom
    args = {each: _literal(value) for each, value in (env_args or {}).items()}
    args |= dict.fromkeys(lost_arguments({**config.env_args, **(env_args or {})}), _ANY)
    if env is not None or not is_found_by_command(name):
        given["env"] = json.dumps(name) if is_found_by_command(name) else _object(name)
    if args:
        given["env_args"] = f"{{{', '.join(f'{json.dumps(each)}: {text}' for each, text in args.items())}}}"
    if network is not None:
        given["network"] = json.dumps(network) if is_found_by_command(network) else _functions(network)
    if has_callbacks:
        given["callbacks"] = "[...]"
    if verb == "load":
        given = {"network": given.get("network", "(init, apply)")}
    is_found = verb != "load" and is_found_by_command(name) and (network is None or is_found_by_command(network))
    if not is_found or has_callbacks or _ANY in args.values():
        call = ", ".join(f"{each}={value}" for each, value in {**given, **options}.items())
        return f"raceway.{_FUNCTIONS[verb]}({json.dumps(str(path))}, {call})"
    names = {"env": env, "network": network}
    options = {each: value for each, value in names.items() if value is not None} | options
    options |= {f"env.{each}": _word(text) for each, text in args.items()}
    return " ".join([f"raceway {verb} {shlex.quote(str(path))}", *starmap(_option, options.items())])


def _literal(value: Any) -> str:
    """A value as a Python literal, or `...` if it has none."""
    try:
        return repr(value) if ast.literal_eval(repr(value)) == value else _ANY
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return _ANY


def _word(text: str) -> str:
    """A Python literal as a word of a command line. Strings that are plain names need no quotes there."""
    value = ast.literal_eval(text)
    is_name = isinstance(value, str) and value.isidentifier() and value.lower() not in WORDS
    return value if is_name else text


def _option(name: str, value: Any) -> str:
    option = name if name.startswith("env.") else name.replace("_", "-")
    return shlex.quote(f"--{option}") + ("" if value is True else f" {shlex.quote(str(value))}")


def is_found_by_command(name: str) -> bool:
    """Whether a command in the current folder would find what `name` means: it knows nothing of a script's objects."""
    if is_path(name):
        return os.path.exists(name)
    module, colon, _ = name.partition(":")
    if colon:
        if names_callable(name) and "<" in name:
            return False
        return module != "__main__" and _is_found_again(module)
    if name.removeprefix("raceway/") in tasks():
        return True
    spec = gymnasium.registry.get(name)
    if spec is None or not isinstance(spec.entry_point, str):
        return False
    registrars = {"gymnasium", *(each.value.partition(":")[0] for each in entry_points(group="gymnasium.envs"))}
    return spec.entry_point.partition(":")[0].partition(".")[0] in {each.partition(".")[0] for each in registrars}


def _is_found_again(module: str) -> bool:
    """Whether another process finds the same module: not if only this script has its folder on the path."""
    root = sys.modules.get(module.partition(".")[0])
    file = getattr(root, "__file__", None)
    if root is None or file is None:
        return True
    place = Path(file).resolve().parent
    if hasattr(root, "__path__"):
        place = place.parent
    usual = [os.getcwd(), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return place not in _added_places() or place in [Path(each).resolve() for each in usual]


def _added_places() -> list[Path]:
    """What comes before the standard library in the search path: the script's folder, and what it has inserted."""
    standard = Path(sysconfig.get_path("stdlib")).resolve()
    places = [Path(each or os.curdir).resolve() for each in sys.path]
    return places[: places.index(standard)] if standard in places else places[:1]


def _object(name: str) -> str:
    """How a script may call what it gave as an environment."""
    _, colon, rest = name.partition(":")
    if name.endswith(" of them>"):
        return "[...]"
    if colon and names_callable(name):
        return rest if all(part.isidentifier() for part in rest.split(".")) else _ANY
    return json.dumps(name) if re.search(r"-v\d+$", name) else _ANY


def _functions(name: str) -> str:
    """How a script may call the pair that it gave as a network."""
    functions = name.partition(":")[2].removeprefix("<").removesuffix(">").split(", ")
    return f"({', '.join(each if each.isidentifier() else _ANY for each in functions)})" if "<" in name else _ANY
