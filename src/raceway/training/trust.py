"""Whether code that a run folder or a settings file names may be run: any `package.module:callable` or C++ header.

A file from elsewhere could name any function with any arguments, and any header. So the files that were trained with
here, by this user, are remembered by path and content, and for everything else the user is asked.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from raceway.cache import is_private, private_folder
from raceway.envs.catalog import ASSETS
from raceway.envs.python.makers import not_found
from raceway.envs.user_native import is_path, sources_of
from raceway.errors import RunFolderError, SettingError
from raceway.files import MOST_SETTINGS, read_json, write_json
from raceway.local_code import digests, files_of
from raceway.messages import printable, quoted
from raceway.training.config import TrainConfig, savable
from raceway.training.folder import RunFolder

_MODEL = "xml_file"
"""The argument of Gymnasium's MuJoCo environments, and of ours, that names a model."""
_PARTS = {"environment": "environment", "model": "environment", "network": "network"}


@dataclass(frozen=True)
class _Code:
    """What settings name to be run."""

    name: str
    args: Mapping[str, Any]
    purpose: Literal["environment", "model", "network"]

    @classmethod
    def all_in(cls, config: TrainConfig) -> list[_Code]:
        """The environment, if it is named by the code that makes it, its model, and the user's own network."""
        found = cls.of_env(config)
        return found if config.network.custom is None else [*found, cls(config.network.custom, {}, "network")]

    @classmethod
    def of_env(cls, config: TrainConfig) -> list[_Code]:
        """What runs to make the environment. A MuJoCo model is no code, but can name any file, and be of any size."""
        found = [cls(config.env, config.to_dict()["env_args"], "environment")] if names_code(config) else []
        model = _own_model(config)
        return found if model is None else [*found, cls(model, {}, "model")]

    @property
    def is_header(self) -> bool:
        return self.purpose == "environment" and is_path(self.name)

    def files(self) -> list[Path]:
        """The files whose code is meant; the last one is the code's own. Empty if nothing is found."""
        if self.is_header:
            return sources_of(self.name)
        if self.purpose == "model":
            return [Path(self.name)]
        return [Path(name) for name in files_of(self.name.partition(":")[0])]

    def mark(self) -> Path | None:
        """Where it is remembered: by name, arguments and place. None if there is no place for that, or no such code."""
        place, files = private_folder("trusted"), self.files()
        if place is None or not files or "<" in self.name:
            return None
        what: list[Any] = [self.purpose, self.name, os.fspath(files[-1])]
        if self.purpose == "environment":  # a header's arguments are numbers and names, which it checks
            what = [self.name, {} if self.is_header else self.args, os.fspath(files[-1])]
        return place / hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()

    def doubt(self) -> str | None:
        """What is wanted and why it is not trusted; None if it was trained with here as it is now."""
        known, files = self._known(), self.files()
        is_same = known is not None and known == digests(known)
        if known is not None and is_same and {*map(str, files)} <= known.keys():
            return None
        args = ", ".join(f"{name}={quoted(value, 60)}" for name, value in self.args.items())
        what = f"{self.name}({args})" if self.purpose == "environment" and not self.is_header else self.name
        why = "you have not trained with" if known is None else "has changed since you trained with it"
        is_file = self.is_header or self.purpose == "model"
        where = f" of {files[-1]}" if files and not is_file else ""
        runs = "uses a model" if self.purpose == "model" else "runs code"
        return f"{runs} that {why}, {quoted(what)[1:-1]}{where}, for its {_PARTS[self.purpose]}"

    def check_is_found(self) -> None:
        """Refuses a module that is not there, for which no trust would help."""
        if not self.is_header and not self.files():
            raise not_found(self.name, self.purpose)

    def _known(self) -> dict[str, Any] | None:
        """The files and their digests, as they were trained with here; None if they were not."""
        mark = self.mark()
        if mark is None or not is_private(mark):
            return None
        with contextlib.suppress(RunFolderError):
            told = read_json(mark, MOST_SETTINGS)
            if isinstance(told, dict) and told:
                return told
        return None


def remember_code(config: TrainConfig, *, with_network: bool = True) -> None:
    """Remembers the code that the user has named in a command or a program, or that was trusted before."""
    for code in _Code.all_in(config):
        if code.purpose == "network" and not with_network:
            continue
        if (mark := code.mark()) is not None and (now := digests(map(str, code.files()))) is not None:
            with contextlib.suppress(OSError):  # then it will be asked about
                mark.parent.mkdir(parents=True, exist_ok=True)
                write_json(mark, now, mode=0o600)


def check_code(folder: RunFolder, config: TrainConfig, trust: bool, given: Collection[str] = ()) -> None:
    """Refuses to run code that a folder names, unless it was trained with here as it is now, or is trusted.

    given: arguments of the environment that the caller gives, whatever the folder has for them.
    """
    if trust:
        return
    for code in _Code.of_env(config):
        if code.purpose == "model" and _MODEL in given:
            continue
        if (doubt := code.doubt()) is not None:
            raise SettingError(
                f"{folder.path} {doubt}. If you trust it, add --trust (in Python trust=True, or env=...)."
            )


@dataclass(frozen=True)
class ArgumentsGuard:
    """Refuses arguments in a checkpoint for code that a folder names, unless it was trained with here with them."""

    folder: RunFolder
    config: TrainConfig

    def __call__(self, env_args: Mapping[str, Any]) -> None:
        check_code(self.folder, _with_args(self.config, env_args), trust=False)


def remember_arguments(config: TrainConfig, env_args: Mapping[str, Any]) -> None:
    """Remembers code that a callback has called with other arguments than those of the settings."""
    remember_code(_with_args(config, env_args), with_network=False)


def _with_args(config: TrainConfig, env_args: Mapping[str, Any]) -> TrainConfig:
    return savable(replace(config, env_args={**config.env_args, **env_args}))


def check_code_is_there(config: TrainConfig) -> None:
    """Refuses an environment whose module is not there, for which no trust would help. Nothing is imported for it."""
    for code in _Code.of_env(config):
        code.check_is_found()


def check_code_of_file(file: str | os.PathLike[str], config: TrainConfig, only_there: Collection[str]) -> None:
    """Refuses to run code that only a settings file names, unless it was trained with here as it is now.

    only_there: the settings, by path, that nobody but the file has given.
    """
    settings = {"environment": "env", "network": "network.custom"}  # a model is no code
    for code in _Code.all_in(config):
        if settings.get(code.purpose) not in only_there:
            continue
        code.check_is_found()
        if (doubt := code.doubt()) is None:
            continue
        name = shlex.quote(printable(code.name, 200))
        option = name if code.purpose == "environment" else f"--network {name}"
        call = f"raceway train {option} --config {shlex.quote(str(file))}"
        raise SettingError(f"{file} {doubt}. If you trust it, name it yourself: {call}.")


def _own_model(config: TrainConfig) -> str | None:
    """The MuJoCo model that the settings name, unless it is one of Gymnasium's."""
    given = config.env_args.get(_MODEL)
    if not isinstance(given, (str, os.PathLike)):
        return None
    try:
        path = os.path.realpath(os.path.expanduser(given))
        return path if os.path.isfile(path) and os.path.dirname(path) != os.path.realpath(ASSETS) else None
    except ValueError:  # a name that no file can have
        return None


def names_code(config: TrainConfig) -> bool:
    """Whether the environment is named by the code that makes it."""
    return ":" in config.env or is_path(config.env)
