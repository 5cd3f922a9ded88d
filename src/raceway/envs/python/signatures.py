"""Checks keyword arguments against the signature of a callable that makes environments."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from typing import Any

from raceway.names import did_you_mean


def argument_names(target: Any) -> list[str] | None:
    """The arguments that can be given by name; None: any, or the signature is not known."""
    parameters = _parameters(target)
    if parameters is None or any(each.kind is each.VAR_KEYWORD for each in parameters):
        return None
    return [each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]


def wrong_arguments(name: str, target: Any, args: Mapping[str, Any], usual: Collection[str] = ()) -> str:
    """Describes what is wrong with keyword arguments for `target`; empty if nothing is.

    name: what to call it in messages.
    usual: names of arguments that it gets in any case.
    """
    parameters, names = _parameters(target) or [], argument_names(target)
    unnamed = [each.name for each in parameters if each.kind is each.POSITIONAL_ONLY]
    any_number = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    needed = [each.name for each in parameters if each.default is each.empty and each.kind not in any_number]
    for each in unnamed:
        if each in needed or each in args:
            return (
                f"{name} takes {each!r} by position only, so it cannot be given by name. Give a function that takes it "
                f"by name and calls {name}."
            )
    for each in args:
        if names is not None and each not in names:
            there_are = f"It takes: {', '.join(names)}." if names else "It takes none."
            return f"{name} has no argument {each!r}.{did_you_mean(each, names)} {there_are}"
    return _lacking(name, [each for each in needed if each not in args and each not in usual])


def _lacking(name: str, lacking: list[str]) -> str:
    if not lacking:
        return ""
    which, more = " and ".join(map(repr, lacking)), "s" if len(lacking) > 1 else ""
    given = ", ".join(f"{each!r}: ..." for each in lacking)
    options = " ".join(f"--env.{each} VALUE" for each in lacking)
    return (
        f"{name} needs the argument{more} {which}. Give env_args={{{given}}}, on the command line {options}, and to "
        f"raceway.make {', '.join(f'{each}=...' for each in lacking)}."
    )


def _parameters(target: Any) -> list[inspect.Parameter] | None:
    """None if there is no signature, as for some callables that are not written in Python."""
    try:
        return list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError):
        return None
