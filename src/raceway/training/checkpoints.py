"""Checkpoints on disk: the last few snapshots of a run, each a pair of files that is there whole or not at all.

`checkpoint-000000120.safetensors` has the arrays, `checkpoint-000000120.json` everything else: the snapshot's text, the
arrays' file and checksum, facts for resuming. The JSON file begins with a checksum of the rest of itself, and is
written last: it is what makes the pair count. Nothing in the files is code, and nothing that is read is believed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raceway.errors import RunFolderError, SettingError, UserError
from raceway.files import MOST_TEXT, KnownFolder, opened_folder, parse_json, read_whole, remove, sync, write_whole
from raceway.graph import GraphError, Snapshot
from raceway.messages import quantity, quoted
from raceway.training.array_files import pack_arrays, read_packed, unpack_arrays

FORMAT = 1

_NAME = re.compile(r"checkpoint-(-?\d{8,18})(-[0-9a-f]{8})?\.(json|safetensors)")
_BEGUN = ".checkpoint-"  # what write_whole calls a file that it has not finished
_HEAD = re.compile(rb'\{"sha256": "([0-9a-f]{64})",\n')
_MOST_TRIED = 10
"""Checkpoints that are looked at, the newest first, for one that is good. Few are kept, and each may take seconds."""
_MOST_READ = 1 << 26
"""Bytes of the JSON files of those that are looked at after the first."""
_MOST_TOLD = 3
_KINDS = {"format": int, "round": int, "arrays": str, "arrays_sha256": str, "snapshot": str, "facts": dict}


@dataclass(frozen=True)
class Checkpoint:
    """A snapshot that was found on disk, and what was told about it."""

    path: Path
    round: int
    snapshot: Snapshot
    facts: Mapping[str, Any]


class MisfitError(RunFolderError):
    """A checkpoint that is whole, but not of the run that it is in."""


class Checkpoints:
    """The checkpoints in a folder, of which the last `keep` stay. One process at a time writes them: see `lock`."""

    def __init__(self, directory: Path, keep: int) -> None:
        if keep < 1:
            raise ValueError(f"keep={keep} checkpoints. Keep at least one.")
        self.directory = directory
        self.keep = keep
        self.home: KnownFolder | None = None
        """The run's folder: nothing is written to another one that was put in its place. None: it is not looked at."""
        self.troubles: list[str] = []
        """Why `newest` passed over newer ones, a sentence for each."""

    def write(self, snapshot: Snapshot, facts: Mapping[str, Any]) -> Path:
        """Writes one, then removes those that it makes superfluous. If it cannot be written, the others stay."""
        arrays, text = snapshot.pack()
        content = pack_arrays(arrays)
        path = self.directory / f"{_stem(snapshot.round)}.json"
        try:
            self._make_directory()
            data = self._arrays_file(snapshot.round, content)
            told = {
                "format": FORMAT,
                "round": snapshot.round,
                "arrays": data.name,
                "arrays_sha256": _digest(content),
                "facts": dict(facts),
                "snapshot": text,
            }
            self._write_pair(data, content, path, _with_digest(told))
            self._check_home()
        except RunFolderError:
            raise
        except OSError as error:
            raise RunFolderError(
                f"{path} could not be written: {error.strerror or error}. The checkpoints before it are whole. Make "
                f"room for more in {self.directory}, or start the run in another place: --log.directory."
            ) from None
        self._remove_all_but(snapshot.round, data.name)
        return path

    def _write_pair(self, data: Path, content: bytes, path: Path, told: bytes) -> None:
        """The arrays, then the JSON file that names them. If that does not come to pass, neither do the arrays."""
        is_ours = not data.exists()
        try:
            self._check_home()
            write_whole(data, content)
            self._check_home()  # writing takes its time
            write_whole(path, told)
        except BaseException:
            is_home = self.home is None or not self.home.what_happened()
            if is_ours and is_home and not (path.is_file() and read_whole(path, MOST_TEXT) == told):
                remove(data)
            raise

    def _check_home(self) -> None:
        if self.home is not None:
            self.home.check()

    @property
    def are_there(self) -> bool:
        return bool(self._rounds())

    def newest(self) -> Checkpoint | None:
        """The newest that is good; None if there are none at all. Damaged ones are passed over: see `troubles`."""
        self.troubles = []
        read = 0
        for round_ in sorted(self._rounds(), reverse=True)[:_MOST_TRIED]:
            read += self._size(round_)
            if self.troubles and read > _MOST_READ:
                self.troubles.append(f"Those before round {round_ + 1} were not read: there is too much in them.")
                break
            try:
                return self._read(round_)
            except RunFolderError as error:
                self.troubles.append(str(error))
        if self.troubles:
            why = " ".join(self.troubles[:_MOST_TOLD])
            more = f" And {len(self.troubles) - _MOST_TOLD} more." if len(self.troubles) > _MOST_TOLD else ""
            raise RunFolderError(
                f"None of the checkpoints in {self.directory} can be used: {why}{more} Train again, or put a good copy "
                "there."
            )
        return None

    def _size(self, round_: int) -> int:
        """Bytes that are read of it before anything else."""
        try:
            size = os.stat(self.directory / f"{_stem(round_)}.json").st_size
        except OSError:
            return 0
        return size if size <= MOST_TEXT else 0

    def _read(self, round_: int) -> Checkpoint:
        path = self.directory / f"{_stem(round_)}.json"
        told = _read_told(path)
        if told["round"] != round_ or not _is_arrays_file(told["arrays"], round_):
            raise RunFolderError(f"{path} is damaged: it names round {told['round']} and {quoted(told['arrays'])}.")
        data = self.directory / told["arrays"]
        content = read_packed(data)
        if _digest(content) != told["arrays_sha256"]:
            raise RunFolderError(f"{data} is damaged: its checksum is not the one in {path.name}.")
        arrays = unpack_arrays(content, data)
        try:
            snapshot = Snapshot.unpack(arrays, told["snapshot"])
        except GraphError as error:
            raise RunFolderError(f"{path} is damaged: {error}") from None
        if snapshot.round != round_:
            raise RunFolderError(f"{path} is damaged: its snapshot is of round {snapshot.round}.")
        return Checkpoint(path, round_, snapshot, told["facts"])

    def _make_directory(self) -> None:
        is_new = not os.path.lexists(self.directory)
        with opened_folder(self.directory, create=True):
            if is_new:
                sync(self.directory.parent)

    def _arrays_file(self, round_: int, content: bytes) -> Path:
        """Where the arrays go. A pair that is there keeps its arrays until its JSON file names the new ones."""
        path = self.directory / f"{_stem(round_)}.safetensors"
        return self.directory / f"{path.stem}-{_digest(content)[:8]}.safetensors" if os.path.lexists(path) else path

    def _rounds(self) -> list[int]:
        """Of all that look like checkpoints."""
        return [round_ for name in self._names() if (round_ := _round_of(name, "json")) is not None]

    def _names(self) -> list[str]:
        try:
            with opened_folder(self.directory) as folder:
                return os.listdir(folder)
        except RunFolderError:
            raise
        except FileNotFoundError:
            return []
        except OSError as error:
            raise RunFolderError(f"{self.directory} cannot be read: {error.strerror}.") from None

    def _remove_all_but(self, newest: int, data: str) -> None:
        """Leaves the newest and those before it that are kept.

        Later ones go too: they were passed over, and the run has gone on from an earlier round. So do arrays that
        nothing names, and what writers that were killed had begun.
        """
        kept = sorted((round_ for round_ in self._rounds() if round_ <= newest), reverse=True)[: self.keep]
        named = {data, *(self._named(round_) for round_ in kept if round_ != newest)}
        for name in sorted(self._names(), key=lambda name: not name.endswith(".json")):  # it goes before its arrays
            json_round, data_round = _round_of(name, "json"), _round_of(name, "safetensors")
            is_out = json_round not in (None, *kept) or (data_round is not None and name not in named)
            if is_out or name.startswith(_BEGUN):
                with suppress(OSError):  # it only takes up room
                    remove(self.directory / name)

    def _named(self, round_: int) -> str:
        """The arrays' file of a checkpoint; of one that is damaged, nothing has to stay."""
        try:
            return str(_read_told(self.directory / f"{_stem(round_)}.json")["arrays"])
        except RunFolderError:
            return ""


@contextmanager
def fitting(what: str) -> Iterator[None]:
    """Around the loading of saved state: whatever is wrong with it, it is the checkpoint that does not fit."""
    try:
        yield
    except SettingError as error:  # a setting that was saved
        raise MisfitError(f"its {what} does not fit this run: {error}") from error
    except UserError:
        raise
    except Exception as error:
        said = str(error) if isinstance(error, ValueError) else repr(error)
        raise MisfitError(f"its {what} does not fit this run: {said}") from error


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Has a run folder for this process alone. If another process has it, that is an error at once."""
    path = folder / "lock"
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        raise RunFolderError(f"{path} cannot be opened: {error.strerror}. A run wants it for itself.") from None
    try:
        _take(handle, folder)
        _put(handle, b"%d\n" % os.getpid())
        yield
    finally:
        os.close(handle)  # and with it the lock goes


def _take(handle: int, folder: Path) -> None:
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise RunFolderError(f"{folder / 'lock'} is not a file. Remove it.")
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = os.pread(handle, 20, 0).strip().decode("ascii", "replace")
        who, how = (f"process {pid}", f": kill {pid}") if pid.isdecimal() else ("another process", "")
        raise RunFolderError(f"{folder} is in use by {who}. Wait until that ends, or end it{how}.") from None
    except RunFolderError:
        raise
    except OSError as error:
        raise RunFolderError(
            f"{folder / 'lock'} cannot be locked: {error.strerror}. Use a disk that has locks."
        ) from None


def _put(handle: int, content: bytes) -> None:
    """The lock is what counts; who has it is said as far as the disk can take it, and in no file of another folder."""
    if os.fstat(handle).st_nlink > 1:
        return
    with suppress(OSError):
        os.ftruncate(handle, 0)
        os.pwrite(handle, content, 0)


def _stem(round_: int) -> str:
    return f"checkpoint-{round_:09d}"


def _round_of(name: str, kind: str) -> int | None:
    """The round in the name of a checkpoint's file of that kind; None if it is none."""
    found = _NAME.fullmatch(name)
    if not found or found[3] != kind or not name.startswith(_stem(int(found[1]))) or (kind == "json" and found[2]):
        return None
    return int(found[1])


def _is_arrays_file(name: str, round_: int) -> bool:
    """Such a name leads nowhere but to a file beside its JSON file."""
    return _round_of(name, "safetensors") == round_


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _with_digest(told: Mapping[str, Any]) -> bytes:
    """JSON that begins with the checksum of what comes after it."""
    rest = (json.dumps(told, indent=2, allow_nan=False)[2:] + "\n").encode()
    if len(rest) > MOST_TEXT - 100:  # it could not be read again
        raise RunFolderError(
            f"What is to be saved beside arrays has {quantity(len(rest))}, and {quantity(MOST_TEXT)} is the most. Let "
            "callbacks and environments save large data as NumPy arrays."
        )
    return b'{"sha256": "%s",\n' % _digest(rest).encode() + rest


def _read_told(path: Path) -> dict[str, Any]:
    """What `_with_digest` was given."""
    content = read_whole(path, MOST_TEXT)
    head = _HEAD.match(content)
    if not head or _digest(content[head.end() :]) != head[1].decode():
        raise RunFolderError(f"{path} is damaged: its checksum is not that of its content.")
    told = parse_json(content, path)
    if isinstance(told.get("format"), int) and told["format"] != FORMAT:
        raise RunFolderError(
            f"{path} has the format {told['format']}, this Raceway {FORMAT}. Use the one that wrote it."
        )
    for name, kind in _KINDS.items():
        if type(told.get(name)) is not kind:
            raise RunFolderError(f"{path} is damaged: its {name!r} is not what it must be.")
    return told
