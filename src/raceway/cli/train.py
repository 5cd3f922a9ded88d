"""`raceway train`."""

from __future__ import annotations

import contextlib
import glob
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import raceway
from raceway.cli.options import Options, parse
from raceway.errors import SeedsError, UserError
from raceway.training.resolve import resolve
from raceway.training.run_source import check_env
from raceway.training.user_network import network_of


def run(arguments: Sequence[str]) -> int:
    """Trains; the run itself says how it goes and where it is."""
    rest, several = take_options(arguments, ("seeds", "jobs"))
    options = parse(rest)
    is_named = options.env is not None or options.config_file is not None
    if options.wants_help:
        from raceway.cli.train_help import show_help

        chosen = {name: options.settings[name] for name in ("algo",) if name in options.settings}

        with contextlib.suppress(SystemExit):  # which is how tyro returns from it
            show_help(resolve(options.env if is_named else "ENV", options.config_file, **chosen), is_named=is_named)
        return 0
    config = resolve(options.env, options.config_file, **options.settings)
    check_env(config.env)
    network_of(config.network.custom)
    if "seeds" in several:
        return _run_seeds(config.env, options, several["seeds"], several.get("jobs"), is_quiet=config.log.quiet)
    if "jobs" in several:
        raise UserError("--jobs is how many of several --seeds are trained at once. Give --seeds, or leave it out.")
    raceway.train(config.env, config_file=options.config_file, **options.settings)
    return 0


def take_options(arguments: Sequence[str], names: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """A command line without some options, which no single run has, and those with their values."""
    rest, found = [], {}
    remaining = list(arguments)
    while remaining:
        token = remaining.pop(0)
        name, equals, value = token.removeprefix("--").partition("=")
        if not token.startswith("--") or name not in names:
            rest.append(token)
            continue
        if name in found:
            raise UserError(f"--{name} is given twice.")
        if not equals:
            if not remaining or remaining[0].startswith("-"):
                raise UserError(f"--{name} needs a value.")
            value = remaining.pop(0)
        found[name] = value
    return rest, found


def _run_seeds(env: str, options: Options, seeds: str, jobs: str | None, *, is_quiet: bool) -> int:
    code = 0
    try:
        runs = raceway.train_seeds(
            env,
            seeds=_seeds(seeds, options),
            jobs=None if jobs is None else _whole("--jobs", jobs),
            config_file=options.config_file,
            **options.settings,
        )
    except SeedsError as error:  # each of which was told when it happened
        print(f"raceway: {str(error).partition(chr(10))[0]}", file=sys.stderr)
        runs, code = error.runs, error.code
    if runs and not is_quiet:
        folders = [run.directory for run in runs]
        print(f"\n{raceway.compare(folders)}\n\nraceway plot {_as_argument(folders)}")
    return code


def _seeds(text: str, options: Options) -> int | list[int]:
    """`5`: so many; `1,2,5`: these."""
    if "," not in text:
        return _whole("--seeds", text)
    if "seed" in options.settings:
        raise UserError("--seed is where --seeds N begins to count. With a list of seeds, leave it out.")
    return [_whole("--seeds", each) for each in text.split(",") if each.strip()]


def _whole(option: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        wanted = "how many (5), or a list (1,2,5)" if option == "--seeds" else "a whole number"
        raise UserError(f"{option} {text}: give {wanted}.") from None


def _as_argument(folders: Sequence[Path]) -> str:
    """Run folders for a command line: as a pattern, if it means these and no other."""
    names = [os.fspath(folder) for folder in folders]
    start = os.path.commonprefix(names)  # noqa: RUF071 (of names, not of paths)
    end = os.path.commonprefix([name[::-1] for name in names])[::-1]  # noqa: RUF071
    pattern = f"{glob.escape(start)}*{glob.escape(end)}"
    if len(names) > 1 and set(glob.glob(pattern)) == set(names):
        return shlex.quote(pattern)
    return shlex.join(names)
