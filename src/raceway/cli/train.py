"""`raceway train`."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import raceway
from raceway.cli.options import parse
from raceway.errors import SettingError
from raceway.training.environments import check_known, find_callable
from raceway.training.resolve import resolve


def run(arguments: Sequence[str]) -> int:
    """Trains; the run itself says how it goes and where it is."""
    options = parse(arguments)
    is_named = options.env is not None or options.config_file is not None
    if options.wants_help:
        from raceway.cli.train_help import show_help

        with contextlib.suppress(SystemExit):  # which is how tyro returns from it
            show_help(resolve(options.env, options.config_file) if is_named else None)
        return 0
    config = resolve(options.env, options.config_file, **options.settings)
    check_env(config.env)
    raceway.train(config.env, config_file=options.config_file, **options.settings)
    return 0


def check_env(env: str) -> None:
    """Refuses an environment that there is not, before anything is started."""
    try:
        if ":" in env:
            find_callable(env)
        else:
            check_known(env)
    except ValueError as error:
        raise SettingError(str(error)) from None
