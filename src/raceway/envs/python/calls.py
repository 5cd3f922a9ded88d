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
    """Two calls of different threads at once would take the same rows, and wait for each other's answers."""

    @functools.wraps(method)
    def call(self: Called, *args: Any, **kwargs: Any) -> Any:
        me = get_ident()
        if self._caller is not None and self._caller != me:
            raise RuntimeError(
                f"{method.__name__}() while another thread is in a call of this pool, which takes one at a time. Give "
                "each thread a pool of its own, or use a lock."
            )
        self._caller = me
        try:
            return method(self, *args, **kwargs)
        finally:
            self._caller = None

    return call  # type: ignore[return-value]
