"""The `raceway` command: verbs, each of which calls one public function."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from gymnasium.error import Error as GymnasiumError

from raceway.cli.options import take_env_arguments
from raceway.cli.overview import overview
from raceway.cli.parser import verbs
from raceway.errors import UserError
from raceway.graph import ReactionError
from raceway.interrupts import keeping_ctrl_c
from raceway.local_code import look_in
from raceway.messages import plain, shortened

__all__ = ["answered", "main"]

_USER = 2
_INTERRUPTED = 130
_LONGEST = 10_000
"""Characters of an error that are shown."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line and returns its exit code: 2 for what the user can put right, 130 when interrupted."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    with suppress(OSError):  # the folder may be gone
        look_in(os.getcwd())  # for environments of the user's own: package.module:callable
    return answered(lambda: _run(arguments))


def answered(act: Callable[[], int], *, tells_interrupts: bool = True) -> int:
    """What `act` returns, or the exit code for the way it failed, which is told on the error output."""
    try:
        with keeping_ctrl_c():
            code = act()
            sys.stdout.flush()
    except (UserError, GymnasiumError, ReactionError) as error:
        told = error.__cause__ if isinstance(error, ReactionError) else error
        if not isinstance(told, (UserError, GymnasiumError)):
            raise
        print(f"raceway: {plain(shortened(str(told), _LONGEST))}", file=sys.stderr)
        return _USER
    except KeyboardInterrupt:
        if tells_interrupts:
            print("raceway: interrupted.", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:  # whoever read our output, such as head, has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def _run(arguments: list[str]) -> int:
    if (answer := overview(arguments)) is not None:
        return answer
    if arguments[0] == "help":  # raceway help train
        arguments = [*arguments[1:], "--help"]
    if arguments[:1] == ["train"]:  # its options are a dataclass, not an argparse
        from raceway.cli.train import run

        return run(arguments[1:])
    rest, env_args = take_env_arguments(arguments) if arguments[:1] == ["check"] else (arguments, {})
    parsed = verbs().parse(rest)
    parsed.env_args = env_args
    return int(parsed.run(parsed) or 0)
