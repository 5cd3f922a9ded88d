"""Whether code that a run folder names may be run: its environment may be any `package.module:callable` or C++ header.

A folder from elsewhere could name any function with any arguments, and any header. So what was trained with here, by
this user, is remembered, and everything else is asked about.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path

from raceway.envs.user_native import is_path
from raceway.errors import SettingError
from raceway.report.system import cache_home
from raceway.training.config import TrainConfig
from raceway.training.folder import RunFolder, printable


def remember_code(config: TrainConfig) -> None:
    """Remembers the callable and its arguments, or the header's place: who says so in a command or program means it."""
    if _names_code(config):
        with contextlib.suppress(OSError, RuntimeError):  # then it will be asked about
            _mark(config).parent.mkdir(parents=True, exist_ok=True)
            _mark(config).touch()


def check_code(folder: RunFolder, config: TrainConfig, trust: bool) -> None:
    """Refuses to call what a folder names if it is code that nothing was trained with here, unless it is trusted."""
    if trust or not _names_code(config):
        return
    with contextlib.suppress(OSError, RuntimeError):
        if _mark(config).exists():
            return
    arguments = ", ".join(f"{name}={value!r}" for name, value in config.env_args.items())
    what, done = (config.env, "compiled") if is_path(config.env) else (f"{config.env}({arguments})", "called")
    raise SettingError(
        f"{folder.path} wants {printable(what, 200)} to be {done} for its environment, which "
        "was not trained with here. That runs code: if you know it, say --trust (in Python trust=True, or env=...)."
    )


def _names_code(config: TrainConfig) -> bool:
    return ":" in config.env or is_path(config.env)


def _mark(config: TrainConfig) -> Path:
    # What a header is given are numbers and names, which it checks.
    args = {} if is_path(config.env) else config.to_dict()["env_args"]
    what = json.dumps([config.env, args], sort_keys=True)
    return cache_home() / "trusted" / hashlib.sha256(what.encode()).hexdigest()
