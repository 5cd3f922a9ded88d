"""`load_native`: a native environment of one's own, from one C++ header."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import gymnasium

from raceway import _core
from raceway.envs.catalog import tasks
from raceway.envs.compile_errors import shown
from raceway.envs.registration import register_all
from raceway.errors import NativeEnvError, RunFolderError
from raceway.files import read_whole

if TYPE_CHECKING:
    from raceway.envs.compiler import Library

_SUFFIXES = (".hpp", ".so")
_LARGEST = 1 << 28
"""Bytes of a library; no header comes near."""


@dataclass(frozen=True)
class _Loaded:
    source: Path
    library: Path


_loaded: dict[str, _Loaded] = {}
"""What was loaded, by id."""
_opened: dict[Path, str] = {}
"""The content of the libraries that were opened: a name stands for the first one for ever."""
_lock = threading.Lock()


def load_native(path: str | os.PathLike[str]) -> str:
    """Makes the environment in a C++ header known, and returns its id, which `raceway.make` and the rest take.

    The header is compiled by the system's compiler (CXX, if that is set; CXXFLAGS are added), once for its content.
    Loaded again after a change, it is compiled again: pools made from then on have the new one, the others go on with
    theirs. `raceway new native-env NAME` writes one to begin with.

    path: of a .hpp file that ends with RACEWAY_ENV(...); or of a library (.so) that was made from one.
    """
    source = Path(os.path.abspath(path))
    if not source.is_file():
        raise NativeEnvError(f"There is no file {source}.")
    if source.suffix not in _SUFFIXES:
        raise NativeEnvError(f"{shown(source)} is neither a C++ header (.hpp) nor a library made of one (.so).")
    if source.suffix == ".so":
        with _lock:
            return _known(source, source)
    library, is_new = _compiled(source)
    try:
        with _lock:
            return _known(source, library)
    except _UnusableError:
        if is_new:
            raise
    library = _compiled(source, anew=True).path  # the one in the cache may be to blame, and not the header
    with _lock:
        return _known(source, library)


class _UnusableError(NativeEnvError):
    """A library that cannot be opened, or has no environment of this version in it."""


def _compiled(header: Path, *, anew: bool = False) -> Library:
    from raceway.envs.compiler import compiled  # with all that this needs, which few have use for

    return compiled(header, anew=anew)


def resolve(target: object) -> str | None:
    """The id of the environment in the header or library at `target`, loaded now; None if it is no path of one."""
    return load_native(target) if is_path(target) else None


def is_path(target: object) -> TypeGuard[str | os.PathLike[str]]:
    """Whether `target` names a header or a library, and so code: it need not be there."""
    return isinstance(target, (str, os.PathLike)) and os.fspath(target).endswith(_SUFFIXES)


def plain(target: Any) -> Any:
    """A path as text, which is how a header is named everywhere else; whatever else it is as it is."""
    return os.fspath(target) if isinstance(target, os.PathLike) else target


def source_of(target: str) -> str:
    """What any process, wherever it is, understands: a path or an id of what was loaded as an absolute path."""
    if is_path(target):
        return os.path.abspath(target)
    loaded = _loaded.get(target.removeprefix("raceway/"))
    return target if loaded is None else str(loaded.source)


def fingerprint(target: str) -> str | None:
    """Of the content of a library, or of a header and, if it is loaded, of what of the user's own it includes.

    None if `target` names none that is there. Where files lie makes no difference.
    """
    if not is_path(target) or not Path(target).is_file():
        return None
    whole = hashlib.sha256(_content(Path(target)))
    for digest in sorted(_included(Path(os.path.abspath(target))).values()):
        whole.update(digest.encode())
    return whole.hexdigest()[:16]


def sources_of(target: str | os.PathLike[str]) -> list[Path]:
    """The files of the user's own that are compiled with a header, itself last; those it includes if it is loaded."""
    header = Path(os.path.abspath(target))
    return [*map(Path, _included(header)), header] if header.is_file() else []


def _content(path: Path) -> bytes:
    try:
        return read_whole(path, _LARGEST)
    except RunFolderError as error:
        raise NativeEnvError(str(error)) from None


def _included(header: Path) -> dict[str, str]:
    """What is compiled with a header, and its digests; none unless it is loaded, for nothing else may be compiled."""
    if header.suffix != ".hpp" or all(loaded.source != header for loaded in _loaded.values()):
        return {}
    from raceway.envs.compiler import includes_of

    return includes_of(_compiled(header).path)


def _known(source: Path, library: Path) -> str:
    for id_, loaded in _loaded.items():
        if loaded == _Loaded(source, library) and library != source:
            return id_
    digest = _digest_unless_changed(library) if library == source else None
    told = shlex.quote(shown(source))
    try:
        id_ = _core.describe_library(str(library), told)["id"]
    except ValueError as error:
        raise _UnusableError(_refusal(source, str(error).replace(str(library), shown(source)))) from None
    if digest is not None:
        _opened[library] = digest
    _check_id(id_, source)
    _core.add_library(str(library), told)
    _loaded[id_] = _Loaded(source, library)
    tasks.cache_clear()
    gymnasium.registry.pop(f"raceway/{id_}", None)
    register_all()
    return id_


def _digest_unless_changed(library: Path) -> str:
    digest = hashlib.sha256(_content(library)).hexdigest()
    if _opened.get(library, digest) != digest:
        raise NativeEnvError(
            f"{shown(library)} is another library than the one that was loaded before. Start Python again to have it, "
            "or load the header: that can be done again and again."
        )
    return digest


def _refusal(source: Path, why: str) -> str:
    if source.suffix == ".hpp" and "raceway_native_library" in why:
        return (
            f"{shown(source)} does not say which environment it has. Its last line should be "
            'RACEWAY_ENV(MyTask, "MyTask-v0", 500): the struct, its id, and after how many steps an episode is cut off.'
        )
    return why


def _check_id(id_: str, source: Path) -> None:
    if not re.fullmatch(r"[A-Za-z][\w.-]*-v\d+", id_):
        raise NativeEnvError(
            f"{shown(source)}: {id_!r} is no id. Use a name with a version, such as 'MyTask-v0', in RACEWAY_ENV."
        )
    known = tasks().get(id_)
    if known is not None and known.is_built_in:
        raise NativeEnvError(f"{shown(source)}: {id_!r} is a task of raceway's. Choose another id in RACEWAY_ENV.")
    if id_ in _loaded and _loaded[id_].source != source:
        raise NativeEnvError(
            f"{shown(source)}: {id_!r} was loaded from {shown(_loaded[id_].source)}. Choose another id in RACEWAY_ENV."
        )
