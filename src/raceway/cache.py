"""The cache: what is worth keeping between runs. It may be deleted at any time.

Libraries in it are loaded and compiled programs are run, so only files that nobody else could have written are used.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def cache_home() -> Path:
    """Where the cache is: `~/.cache/raceway`, or in XDG_CACHE_HOME."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "raceway"


def private_folder(name: str) -> Path | None:
    """A folder of the cache that only this user can write to, made if it is not there; None if there can be none.

    One that others could write to may hold anything: it is emptied first. A link is not used, for what it leads to is
    not the cache's to empty.
    """
    try:
        path = cache_home()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for part in Path(name).parts:
            path /= part
            if not _make_private(path):
                return None
    except (OSError, RuntimeError):  # no home at all among them
        return None
    return path


def _make_private(path: Path) -> bool:
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    facts = os.lstat(path)
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid():
        return False
    if not os.access(path, os.W_OK | os.X_OK) or not _is_safe_below(path):
        return False
    if facts.st_mode & _OTHERS_WRITE:
        os.chmod(path, 0o700)
        _empty(path)
    return True


def is_private(path: Path) -> bool:
    """Whether a file of the cache is this user's and nobody else could have written it."""
    try:
        facts = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid() and not facts.st_mode & _OTHERS_WRITE


def remove_foreign(folder: Path, most: int) -> None:
    """Removes from a private folder what is not a file of this user's, or has more than `most` bytes."""
    with suppress(OSError):
        for entry in os.scandir(folder):
            if not is_private(Path(entry.path)) or entry.stat(follow_symlinks=False).st_size > most:
                _remove(entry)


def _is_safe_below(path: Path) -> bool:
    """Whether no other user could put another folder in its place: none but root, and those of a group that may write.

    The group is often the user's own (umask 002), and who is in it cannot be told.
    """
    for above in Path(os.path.realpath(path)).parents:
        facts = os.stat(above)
        is_open = facts.st_mode & stat.S_IWOTH and not facts.st_mode & stat.S_ISVTX
        if facts.st_uid not in (0, os.geteuid()) or is_open:
            return False
    return True


def _empty(path: Path) -> None:
    for entry in os.scandir(path):
        _remove(entry)


def _remove(entry: os.DirEntry[str]) -> None:
    with suppress(OSError):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)
