"""Arrays on disk: safetensors, which cannot run code. What a file says about itself is checked before it is read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from raceway.errors import RunFolderError
from raceway.files import opened_to_read, read_whole, write_whole
from raceway.memory import available_bytes
from raceway.messages import printable, quantity, quoted
from raceway.training.shapes import size_of

_DTYPES = {
    "BOOL": "bool",
    **{f"{sign}{bits}": f"{kind}{bits}" for sign, kind in (("I", "int"), ("U", "uint")) for bits in (8, 16, 32, 64)},
    **{f"F{bits}": f"float{bits}" for bits in (16, 32, 64)},
}
"""By their names in the format."""
_MOST_HEADER = 1 << 24
_COPIES = 3
"""How often an array is in memory while it is read, checked and handed on."""


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes arrays, whole or not at all."""
    write_whole(path, pack_arrays(arrays))


def pack_arrays(arrays: Mapping[str, np.ndarray]) -> bytes:
    """The content of a safetensors file."""
    from safetensors.numpy import save

    for name, array in arrays.items():
        if array.dtype.name not in _DTYPES.values():
            known = ", ".join(_DTYPES.values())
            raise TypeError(f"{name!r} is of {array.dtype}, which cannot be stored. Make it one of {known}.")
    return save({name: np.asarray(array, order="C") for name, array in arrays.items()})


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """What `write_arrays` wrote."""
    return unpack_arrays(read_packed(path), path)


def read_packed(path: Path) -> bytes:
    """The content of a safetensors file, if the file is as long as its header says and the memory is there."""
    with opened_to_read(path) as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if length > min(_MOST_HEADER, size):
            raise RunFolderError(f"{path} is damaged: a header of {quantity(length)} in a file of {quantity(size)}.")
        described = 8 + length + _data_bytes(file.read(length), path)
    if described != size:
        raise RunFolderError(f"{path} is damaged: it has {size:,} bytes, and its header describes {described:,}.")
    available = available_bytes()
    if available is not None and size * _COPIES > available:
        raise RunFolderError(
            f"{path} has {quantity(size)} of arrays, too much for the {quantity(available)} of memory available."
        )
    return read_whole(path, size)


def _data_bytes(header: bytes, path: Path) -> int:
    """How many bytes of arrays a header describes."""
    try:
        told = json.loads(header.decode())
        sizes = [
            size_of(entry["shape"]) * np.dtype(_DTYPES[entry["dtype"]]).itemsize
            for name, entry in told.items()
            if name != "__metadata__"
        ]
    except KeyError as error:
        raise RunFolderError(f"{path} is damaged: its header has {quoted(error.args[0])}, or lacks it.") from None
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise RunFolderError(f"{path} is damaged: its header cannot be read: {printable(str(error))}.") from None
    return sum(sizes)


def unpack_arrays(content: bytes, path: Path) -> dict[str, np.ndarray]:
    """The arrays in the content of a file, at `path`."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = load(content)
    except KeyError as error:
        raise RunFolderError(
            f"{path} is damaged: it has numbers of the type {error}, which Raceway never uses."
        ) from None
    except (SafetensorError, ValueError, MemoryError) as error:
        raise RunFolderError(f"{path} is damaged: {printable(str(error))}.") from None
    for name, array in arrays.items():
        if array.dtype == bool and (array.view(np.uint8) > 1).any():
            raise RunFolderError(f"{path} is damaged: {quoted(name)} has truth values that are neither true nor false.")
    return arrays
