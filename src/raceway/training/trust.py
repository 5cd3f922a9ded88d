"""Whether code that a run folder names may be called: its environment may be any `package.module:callable`.

A folder from elsewhere could name any function with any arguments. So what was trained with here, by this user, is
remembered, and everything else is asked about.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path

from raceway.errors import SettingError
from raceway.report.system import cache_home
from raceway.training.config import TrainConfig
from raceway.training.folder import RunFolder, printable


def remember_code(config: TrainConfig) -> None:
    """Remembers the callable and its arguments: whoever says them in a command or a program means them."""
    if ":" in config.env:
        with contextlib.suppress(OSError, RuntimeError):  # then it will be asked about
            _mark(config).parent.mkdir(parents=True, exist_ok=True)
            _mark(config).touch()


def check_code(folder: RunFolder, config: TrainConfig, trust: bool) -> None:
    """Refuses to call what a folder names if it is code that nothing was trained with here, unless it is trusted."""
    if ":" not in config.env or trust:
        return
    with contextlib.suppress(OSError, RuntimeError):
        if _mark(config).exists():
            return
    arguments = ", ".join(f"{name}={value!r}" for name, value in config.env_args.items())
    raise SettingError(
        f"{folder.path} wants {printable(f'{config.env}({arguments})', 200)} to be called for its environment, which "
        "was not trained with here. That runs code: if you know it, say --trust (in Python trust=True, or env=...)."
    )


def _mark(config: TrainConfig) -> Path:
    what = json.dumps([config.env, config.to_dict()["env_args"]], sort_keys=True)
    return cache_home() / "trusted" / hashlib.sha256(what.encode()).hexdigest()
