"""Calls of a pool, of which there is one at a time."""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import get_ident
from typing import Any, Protocol, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])


class Called(Protocol):
    """What remembers who is in a call of it."""

    _caller: int | None


def one_at_a_time(method: Method) -> Method:
    """Refuses a call while another is under way: both would take the same rows, and wait for each other's answers.

    The other one may be of another thread, or of this one, which then is inside code of the user's own: an argument
    that is converted to an array, an environment in this thread, a signal handler.
    """

    @functools.wraps(method)
    def call(self: Called, *args: Any, **kwargs: Any) -> Any:
        if self._caller is not None:
            raise RuntimeError(_refusal(method.__name__, self._caller == get_ident()))
        try:
            self._caller = get_ident()  # in here: an interrupt right after it must not leave it set
            return method(self, *args, **kwargs)
        finally:
            self._caller = None

    return call  # type: ignore[return-value]


def refuse_inside(pool: Called, name: str) -> None:
    """Refuses what may be called beside a call of another thread, but not from inside one."""
    if pool._caller == get_ident():
        raise RuntimeError(_refusal(name, is_ours=True))


def _refusal(name: str, is_ours: bool) -> str:
    if is_ours:
        return (
            f"{name}() from inside another call of the same pool, which takes one at a time. It was called by an "
            "argument of that call, by an environment, or by a signal handler: call it before or afterwards."
        )
    return (
        f"{name}() while another thread is in a call of this pool, which takes one at a time. Give each thread a pool "
        "of its own, or use a lock."
    )
