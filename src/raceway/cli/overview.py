"""What `raceway` says without a verb, with `help`, or with a verb that it does not have."""

from __future__ import annotations

import argparse
import sys
import textwrap

import raceway
from raceway.cli.parser import Parser, verbs
from raceway.names import did_you_mean

_USER = 2
_WIDTH = 80


def overview(arguments: list[str]) -> int | None:
    """Prints the list of verbs if that answers a command line, and returns the exit code; None if it does not."""
    first, *rest = arguments or [""]
    if first in ("-h", "--help", "help") and not rest:
        print(_listing())
        return 0
    if not first:
        print(_listing(), file=sys.stderr)
        return _USER
    wanted = rest[0] if first == "help" else first
    if wanted in (*_verbs(), "--version"):
        return None
    kind, known = ("option", ["--help", "--version"]) if wanted.startswith("-") else ("verb", [*_verbs()])
    print(f"raceway: no {kind} {wanted!r}.{did_you_mean(wanted, known)}\n\n{_listing()}", file=sys.stderr)
    return _USER


def _listing() -> str:
    width = max(map(len, _verbs()))
    lines = [f"  {name:<{width}}  {about}" for name, about in _verbs().items()]
    return "\n".join(
        [
            textwrap.fill(raceway.__doc__ or "", _WIDTH),
            "",
            "usage: raceway VERB ...",
            "",
            *lines,
            "",
            "raceway VERB --help: what a verb takes. raceway --version: the version.",
        ]
    )


def _verbs() -> dict[str, str]:
    """Every verb with a line about it, in the order of the parser."""
    return _listed(verbs())


def _listed(parser: Parser) -> dict[str, str]:
    (added,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return {choice.dest: choice.help or "" for choice in added._choices_actions}
