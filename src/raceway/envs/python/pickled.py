"""What is wrong with values that do not survive pickling."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from raceway.encoding import dumps
from raceway.messages import quoted, words_of

_DEEPEST = 8
"""How far into nested values an entry is looked for: some contain themselves."""
_PLAIN = (int, float, complex, bool, str, bytes, type(None), np.generic)
_ADVICE = 'Give plain values, such as numbers, strings and arrays, or use lane="inline", where nothing is pickled.'


class InfoError(TypeError):
    """An environment gave something that cannot be sent from its worker process to the pool."""


def unsendable_in(value: Any, where: str, why: str) -> InfoError | None:
    """What of `value` cannot be pickled, or not be read again; None: nothing. `why` sending it failed."""
    found = _broken(value, where, 0)
    return None if found is None else InfoError(f"{found[0]} does not survive pickling: {found[1]}. {_ADVICE}")


def unreadable_in(value: Any, where: str, why: str) -> InfoError | None:
    """The same of what could not be read in the pool's process, for a reason that need not hold here."""
    if (error := unsendable_in(value, where, why)) is not None:
        return error
    path = _special(value, where, 0)
    return None if path is None else InfoError(f"{path} cannot be unpickled in the pool's process: {why}. {_ADVICE}")


def _broken(value: Any, where: str, depth: int) -> tuple[str, str] | None:
    try:
        pickle.loads(dumps(value))
    except Exception as error:
        if type(value) is dict and depth < _DEEPEST:
            for key, part in value.items():
                if (found := _broken(part, f"{where}[{quoted(key)}]", depth + 1)) is not None:
                    return found
        return where, words_of(error, 300)
    return None


def _special(value: Any, where: str, depth: int) -> str | None:
    """The first part that is not a plain value."""
    if isinstance(value, _PLAIN) or (isinstance(value, np.ndarray) and not value.dtype.hasobject):
        return None
    if depth < _DEEPEST and type(value) in (dict, list, tuple):
        parts = value.items() if type(value) is dict else enumerate(value)
        found = (_special(part, f"{where}[{quoted(key)}]", depth + 1) for key, part in parts)
        return next((each for each in found if each is not None), None)
    return where
