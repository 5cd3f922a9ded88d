"""A network of the user's own: an (init, apply) pair, given as an object or by the name of one."""

from __future__ import annotations

import inspect
from typing import Any

from raceway.envs.python.makers import find_named
from raceway.errors import SettingError
from raceway.graph.packing import shown
from raceway.training.environments import qualified_name

_WANTED = "a pair (init, apply) of functions, or a callable that returns one"


def network_of(given: Any) -> tuple[Any, Any] | None:
    """The (init, apply) pair that is given or named; None if none is.

    given: the pair, an object with both as methods, or "package.module:attribute" that names either of them or a
        callable that returns one.
    """
    if given is None:
        return None
    if not isinstance(given, str):
        if (pair := _pair(given)) is None:
            raise SettingError(f"network={shown(given)} is not {_WANTED}. See raceway.algos.networks.UserNetwork.")
        return pair
    found = find_named(given, "network")
    pair = _pair(found)
    if pair is None and _can_be_called(found):
        pair = _pair(found())
    if pair is None:
        raise SettingError(f"The network {given!r} is {shown(found)}, not {_WANTED}.")
    return pair


def name_of_network(given: Any) -> str:
    """What a run's settings call it: by its name, if it was given by that, or else after its functions."""
    if isinstance(given, str):
        return given
    pair = network_of(given)
    assert pair is not None
    module, _, init = qualified_name(pair[0]).partition(":")
    apply = qualified_name(pair[1]).partition(":")[2]
    return f"{module}:<{init.strip('<>')}, {apply.strip('<>')}>"


def _can_be_called(found: Any) -> bool:
    """Whether it is a callable that needs no arguments."""
    try:
        inspect.signature(found).bind()
    except (TypeError, ValueError):
        return False
    return True


def _pair(found: Any) -> tuple[Any, Any] | None:
    if isinstance(found, (tuple, list)):
        parts = tuple(found)
    elif isinstance(found, type):
        return None  # its methods need an object
    else:
        parts = getattr(found, "init", None), getattr(found, "apply", None)
    return (parts[0], parts[1]) if len(parts) == 2 and all(map(callable, parts)) else None
