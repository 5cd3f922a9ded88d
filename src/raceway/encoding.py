"""Messages between processes: their structure as bytes, and the memory of their arrays beside it."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import cloudpickle
import numpy as np

_ARRAY = "\0array"


def dumps(value: Any) -> bytes:
    """A pickle that another process can read, with its arrays in it."""
    try:
        pickled = pickle.dumps(value, protocol=5)
        if b"__main__" not in pickled:
            return pickled
    except (pickle.PicklingError, AttributeError, TypeError):
        pass
    # Classes of the main script have no module that another process could find them in.
    return cloudpickle.dumps(value, protocol=5)


def encode(*message: Any) -> tuple[bytes, Sequence[Any]]:
    """The message's structure as bytes, and its arrays' memory, untouched, beside it."""
    last = message[-1]
    if type(last) is np.ndarray and last.dtype.isbuiltin == 1 and last.flags.c_contiguous and not last.dtype.hasobject:
        # By far the most frequent value. Its dtype alone takes longer to pickle than this.
        return pickle.dumps((*message[:-1], _ARRAY, last.dtype.str, last.shape), protocol=5), [last]
    buffers: list[pickle.PickleBuffer] = []
    try:
        head = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
        by_name = b"__main__" not in head
    except (pickle.PicklingError, AttributeError, TypeError):
        by_name = False
    if not by_name:
        # Classes of the main script have no module that another process could find them in.
        buffers.clear()
        head = cloudpickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    return head, [buffer.raw() for buffer in buffers]


def decode(head: bytes, parts: Sequence[Any]) -> tuple[Any, ...]:
    """The message again, its arrays over `parts`, in place."""
    message = pickle.loads(head, buffers=parts)
    if len(message) > 3 and message[-3] == _ARRAY:
        return (*message[:-3], np.ndarray(message[-1], message[-2], parts[0]))
    return message
