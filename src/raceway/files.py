"""Files in folders that may come from anywhere: read within bounds, written whole, never through a link."""

from __future__ import annotations

import errno
import json
import os
import stat
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from raceway.errors import RunFolderError
from raceway.messages import printable, quantity

MOST_SETTINGS = 1 << 20
"""Bytes of a JSON file that a run has one of: settings, facts, what it reached."""
MOST_TEXT = 1 << 24
"""Bytes of any other JSON file. Read, it takes up to twenty times as much memory."""
MOST_LOG = 1 << 26
"""Bytes of a log that is read. A run writes about a thousand rows, less than a megabyte."""
_MOST_LINE = 1 << 20
_DEEPEST = 50
"""Objects within objects in JSON or TOML."""


def read_whole(path: Path, most: int, last: int | None = None) -> bytes:
    """What is in a file of at most `most` bytes; or only its `last` bytes, however large it is.

    A pipe, a device or a folder in its place is not waited for.
    """
    with opened_to_read(path) as file, _told(path, "read"):
        size = os.fstat(file.fileno()).st_size
        if last is not None:
            file.seek(max(0, size - last))
            return file.read(last)
        if size > most:
            raise RunFolderError(
                f"{path} has {quantity(size)}, where {quantity(most)} is the most that is read. It is damaged, or not "
                "a file of Raceway's."
            )
        return file.read(most)


def read_lines(path: Path) -> Iterator[tuple[bytes, bool]]:
    """The lines of a log, and whether each is whole: the writer of the last one may have been killed."""
    with opened_to_read(path) as file, _told(path, "read"):
        size = os.fstat(file.fileno()).st_size
        if size > MOST_LOG:
            raise RunFolderError(f"{path} has {quantity(size)}: more than {quantity(MOST_LOG)} of a log is not read.")
        while line := file.readline(_MOST_LINE + 1):
            if len(line) > _MOST_LINE:
                raise RunFolderError(f"{path} is damaged: a line in it has more than {quantity(_MOST_LINE)}.")
            yield line.removesuffix(b"\n"), line.endswith(b"\n")


def read_json(path: Path, most: int = MOST_SETTINGS) -> Any:
    """What is in a JSON file."""
    return parse_json(read_whole(path, most), path)


def parse_json(content: bytes, path: Path) -> Any:
    """What the content of a file, at `path`, says."""
    try:
        value = json.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise RunFolderError(f"{path} is damaged: {printable(str(error))}.") from None
    check_depth(value, path)
    return value


def check_depth(value: Any, path: Path) -> None:
    """Refuses values nested so deep that going through them could run out of stack."""
    level, depth = [value], 0
    while level := [part for each in level if isinstance(each, (dict, list)) for part in _parts(each)]:
        depth += 1
        if depth > _DEEPEST:
            raise RunFolderError(f"{path} is damaged: its values are nested more than {_DEEPEST} deep.")


def _parts(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


@contextmanager
def opened_to_read(path: Path) -> Iterator[IO[bytes]]:
    """A regular file, open."""
    with _told(path, "read"):
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise RunFolderError(f"{path} cannot be read: it is not a file.")
    with open(handle, "rb") as file:
        yield file


@contextmanager
def opened_folder(path: Path, *, create: bool = False) -> Iterator[int]:
    """The descriptor of a folder that is to be written to, made if it is not there. A link to one is refused.

    The folder above it is not made: if a run's folder is deleted, what writes below it must not bring half of it back.
    Links above it are the user's own: what is opened is a run's folder, or one below it.
    """
    if create:
        with suppress(FileExistsError):
            os.mkdir(path)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR) and path.is_symlink():
            raise RunFolderError(
                f"{path} is a link, and nothing is written or deleted through links in a run's folder. Remove the "
                "link, or put a folder in its place."
            ) from None
        raise
    try:
        yield handle
    finally:
        os.close(handle)


class KnownFolder:
    """A folder as it is now: one that is put in its place later is not taken for it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with _told(path, "read"):
            self._identity = _identity(path)

    def what_happened(self) -> str:
        """Why it is not there any more, in words; empty if it is, or if nobody can tell."""
        try:
            there = _identity(self._path)
        except OSError:  # of the disk or the network: it may be back at the next look
            return ""
        if there == self._identity:
            return ""
        if there is None:
            return f"{self._path} was deleted or moved while the run was writing to it"
        what = "a link" if self._path.is_symlink() else "something else"
        return f"{self._path} was replaced by {what} while the run was writing to it"

    def check(self) -> None:
        """Refuses another one in its place, before that is written to."""
        if why := self.what_happened():
            raise RunFolderError(f"{why}.")


def _identity(path: Path) -> tuple[int, int] | None:
    """Which folder it is, by whatever name; None if there is none. A link is not the folder."""
    try:
        facts = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return (facts.st_dev, facts.st_ino) if stat.S_ISDIR(facts.st_mode) else (-1, facts.st_ino)


def write_json(path: Path, value: Any, *, mode: int = 0o666) -> None:
    """Writes JSON for people to read, whole or not at all."""
    write_whole(path, (json.dumps(value, indent=2, allow_nan=False) + "\n").encode(), mode=mode)


def write_whole(path: Path, content: bytes | Iterable[bytes], *, mode: int = 0o666) -> None:
    """Writes a file, in one piece or several, so that nobody ever sees a part of it.

    It is written under another name, synced, then renamed.
    """
    aside = f".{path.name}.{uuid.uuid4().hex}"
    with opened_folder(path.parent, create=True) as folder:
        try:
            handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode, dir_fd=folder)
            with open(handle, "wb") as file:
                file.writelines([content] if isinstance(content, bytes) else content)
                file.flush()
                os.fsync(handle)
            os.replace(aside, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException as error:
            if isinstance(error, OSError):
                error.filename = os.fspath(path)  # not the name aside
            with suppress(OSError):
                os.unlink(aside, dir_fd=folder)
            raise
        os.fsync(folder)


def pieces(handle: int, most: int | None = None) -> Iterator[bytes]:
    """The content of an open file, from its beginning, whatever its position, and `most` bytes of it at most."""
    place = 0
    while piece := os.pread(handle, 1 << 20 if most is None else min(1 << 20, most - place), place):
        place += len(piece)
        yield piece


def remove(path: Path) -> None:
    """Removes a file, or a link itself, if it is there; never through a linked folder."""
    try:
        with opened_folder(path.parent) as folder:
            os.unlink(path.name, dir_fd=folder)
    except RunFolderError:
        raise
    except FileNotFoundError:
        pass


def open_to_append(path: Path) -> IO[bytes]:
    """Opens a log. A link or a pipe in its place is refused, and one with other names becomes a file of its own."""
    return _opened(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, "ab")


def cut(path: Path, length: int) -> int:
    """Leaves at most so many bytes of a log, if there is one. Returns how many there were."""
    if not os.path.lexists(path):
        return 0
    with _told(path, "read"):
        there = os.lstat(path).st_size
    with _opened(path, os.O_RDWR, "r+b", length) as file:
        if os.fstat(file.fileno()).st_size > length:
            file.truncate(length)
        return there


def _opened(path: Path, flags: int, mode: str, most: int | None = None) -> IO[bytes]:
    """A log, to be changed. `most`: the bytes of it that are wanted; None: all."""
    with _told(path, "written"), opened_folder(path.parent) as folder:
        handle = os.open(path.name, flags | os.O_NONBLOCK | os.O_NOFOLLOW, 0o666, dir_fd=folder)
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            os.close(handle)
            raise RunFolderError(f"{path} cannot be written: it is not a file.")
        if facts.st_nlink > 1:  # a copy made by links: the other one is not this run's to change
            os.close(handle)
            with opened_to_read(path) as file:
                write_whole(path, pieces(file.fileno(), most))
            handle = os.open(path.name, flags | os.O_NONBLOCK | os.O_NOFOLLOW, 0o666, dir_fd=folder)
    return open(handle, mode)


def sync(path: Path) -> None:
    """Makes a file's content last, or the names in a folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _told(path: Path, what: str) -> Iterator[None]:
    """What the system says, as an error of this folder."""
    try:
        yield
    except RunFolderError:
        raise
    except OSError as error:
        raise RunFolderError(f"{path} cannot be {what}: {error.strerror or error}.") from None
    except ValueError as error:  # a name that no file can have
        raise RunFolderError(f"{printable(str(path))} cannot be {what}: {error}.") from None
    except MemoryError:
        raise RunFolderError(f"{path} cannot be {what}: it is larger than the memory.") from None
