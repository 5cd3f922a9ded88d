"""The command line of `raceway train`: every setting is an option, in any spelling that can only mean one of them."""

from __future__ import annotations

import ast
import contextlib
import types
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Literal, Union, get_args, get_origin

from raceway.errors import SettingError, UserError
from raceway.training.config import TrainConfig, check_algorithm
from raceway.training.resolve import algorithms_with, known_names, path_of, read_config
from raceway.training.settings import WORDS, fitted, nearest, paths_of


@dataclass
class Options:
    """What a command line says."""

    env: str | None = None
    config_file: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    """By path, as `raceway.train` takes them."""
    wants_help: bool = False


def parse(arguments: Sequence[str]) -> Options:
    """Reads `ENV --num-envs 8 --ppo.gamma=0.9 --env.gravity 3`, in any order."""
    options = Options()
    rest = list(arguments)
    algo = _algo(arguments)
    while rest:
        token = rest.pop(0)
        if token in ("-h", "--help"):
            options.wants_help = True
        elif token.startswith("-"):
            _take_option(token, rest, options, algo)
        elif options.env is None:
            options.env = token
        else:
            raise UserError(f"{token!r} is one too many: the environment is {options.env!r}. Options begin with --.")
    return options


def _algo(arguments: Sequence[str]) -> str:
    """The algorithm that is asked for, here or in a file: it decides what --gamma means."""
    said = {name: _value(arguments, name) for name in ("algo", "algorithm", "config")}
    algo = said["algo"] or said["algorithm"]
    if algo is None and said["config"] is not None:
        with contextlib.suppress(SettingError):  # what is wrong with the file is told when it is used
            file = read_config(said["config"])
            algo = file.get("algo", file.get("algorithm"))
    if algo is None:
        return TrainConfig.algo
    check_algorithm(algo)
    return str(algo)


def _value(arguments: Sequence[str], name: str) -> str | None:
    """What follows an option, if it is there."""
    for token, following in zip_longest(arguments, arguments[1:]):
        option, equals, value = token.partition("=")
        if option == f"--{name}":
            return value if equals else following
    return None


def _take_option(token: str, rest: list[str], options: Options, algo: str) -> None:
    name, equals, value = token.lstrip("-").partition("=")
    name = name.replace("-", "_")
    if equals:
        rest.insert(0, value)
    if name == "config":
        options.config_file = _next(token, rest)
    elif name.startswith("env."):
        args = options.settings.setdefault("env_args", {})
        args[name.removeprefix("env.")] = _argument(token, rest, bool(equals))
    else:
        path, is_negated = _path(token, name, algo)
        if path in options.settings:
            raise UserError(f"{token} is given twice.")
        options.settings[path] = False if is_negated else _setting(token, path, rest, bool(equals))


def _path(token: str, name: str, algo: str) -> tuple[str, bool]:
    """The setting that an option means, and whether it is the option that turns it off."""
    group, dot, leaf = name.rpartition(".")
    attempts = [(name, False)]
    if leaf.startswith("no_"):  # --no-shared and, as the help has it, --network.no-shared
        attempts.append((f"{group}{dot}{leaf.removeprefix('no_')}", True))
    if name.startswith("no_"):
        attempts.append((name.removeprefix("no_"), True))
    types_ = paths_of(TrainConfig)
    for attempt, is_negated in attempts:
        try:
            path = path_of(attempt, algo)
        except SettingError:
            continue
        if (not is_negated or types_.get(path) is bool) and path not in ("env", "env_args"):
            return path, is_negated
    option = token.partition("=")[0]
    for attempt, _ in attempts:
        if others := algorithms_with(attempt.removeprefix(f"{algo}.")):
            raise UserError(f"No option {option} in {algo}: it is one of {' and '.join(others)}. See --algo.")
    near = nearest(name, [*known_names(algo), "config", "jobs", "seeds"])
    hint = f" Did you mean {spelled(near)}?" if near else ""
    own = "" if near or "." in name else f" An argument of the environment is given as --env.{name} VALUE."
    raise UserError(f"No option {option}.{hint} All options: raceway train --help.{own}")


def spelled(path: str) -> str:
    """A setting as an option."""
    return "--" + path.replace("_", "-")


def _setting(token: str, path: str, rest: list[str], has_value: bool) -> Any:
    type_ = paths_of(TrainConfig).get(path, Any)  # of other libraries' names, any
    if type_ is bool:
        is_given = has_value or (rest and rest[0].lower() in WORDS)
        return fitted(spelled(path), _read(rest.pop(0)), bool) if is_given else True
    if _is_list(type_):
        return _list(token, path, rest, type_)
    text = _next(token, rest)
    return fitted(spelled(path), _text(text, type_) if _is_text(type_) else _read(text), type_)


def _list(token: str, path: str, rest: list[str], type_: Any) -> Any:
    """`--network.hidden 64 64`, or `64,64`, or None."""
    texts = _next(token, rest).strip("()[]").split(",")
    while rest and rest[0].strip("()[],").isdigit():
        texts.append(rest.pop(0).strip("()[],"))
    values = [_read(text.strip()) for text in texts if text.strip()]
    return fitted(spelled(path), None if values == [None] else values, type_)


def _argument(token: str, rest: list[str], has_value: bool) -> Any:
    """A value for an environment: a number, a flag, a list, ..., or else a text. None is said: a flag that is on."""
    if not has_value and (not rest or rest[0].startswith("--")):
        return True
    return _read(_next(token, rest))


def take_env_arguments(arguments: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """A command line without the environment's own arguments (--env.gravity 3), and these."""
    others: list[str] = []
    found: dict[str, Any] = {}
    rest = list(arguments)
    while rest:
        token = rest.pop(0)
        name, equals, value = token.removeprefix("--env.").partition("=")
        if not token.startswith("--env."):
            others.append(token)
            continue
        if equals:
            rest.insert(0, value)
        found[name.replace("-", "_")] = _argument(token, rest, bool(equals))
    return others, found


def _next(token: str, rest: list[str]) -> str:
    if not rest or (rest[0].startswith("--") and rest[0] != "--"):
        raise UserError(f"{token} needs a value.")
    return rest.pop(0)


def _read(text: str) -> Any:
    """A value as Python has it, or else the text."""
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _text(text: str, type_: Any) -> str | None:
    return None if text.lower() == "none" and type(None) in get_args(type_) else text


def _alternatives(type_: Any) -> Sequence[Any]:
    return get_args(type_) if get_origin(type_) in (Union, types.UnionType) else (type_,)


def _is_text(type_: Any) -> bool:
    return any(each is str or get_origin(each) is Literal for each in _alternatives(type_))


def _is_list(type_: Any) -> bool:
    return any(get_origin(each) is tuple for each in _alternatives(type_))
