"""The folder of a run: where everything that it leaves behind is, and how it gets there whole."""

from __future__ import annotations

import itertools
import json
import os
import re
import stat
import time
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from raceway.envs.user_native import fingerprint, is_path
from raceway.errors import RunFolderError, SettingError
from raceway.report.system import system_facts

if TYPE_CHECKING:
    from raceway.training.config import TrainConfig

POLICY_FACTS = "policy.json"

_DTYPES = (
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    "float16",
    "float32",
    "float64",
)

_DEEPEST = 50
"""Objects within objects in JSON: whoever goes through what was read is not to run out of stack."""

LARGEST_TEXT = 1 << 26
"""Bytes of a JSON file. No run has one that comes near, and one that is read must fit in memory many times over."""


class RunFolder:
    """`runs/<env>/<algo>-<seed>-<time>/` and what is in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def at(cls, config: TrainConfig) -> RunFolder:
        """The folder for a run with these settings: of its name, whether it was there or not, or else a new one."""
        parent = cls.parent_for(config)
        try:
            parent.mkdir(parents=True, exist_ok=True)
            if config.log.name is None:
                name = f"{config.algo}-{config.seed}-{time.strftime('%Y%m%d-%H%M%S')}"
                return cls(_new_directory(parent, name))
            (parent / config.log.name).mkdir(exist_ok=True)
        except OSError as error:
            raise RunFolderError(
                f"No run folder can be made in {parent}: {error.strerror}. Name another place: --log.directory."
            ) from None
        return cls(parent / config.log.name)

    @staticmethod
    def parent_for(config: TrainConfig) -> Path:
        """Where the folders of runs with these settings go."""
        return Path(config.log.directory) / _folder_name(config.env)

    @property
    def is_begun(self) -> bool:
        """Whether there is a run in it."""
        return self.config.is_file()

    def begin(self, config: TrainConfig) -> None:
        """Writes the settings and the facts of the system."""
        try:
            self.videos.mkdir(exist_ok=True)
            write_json(self.system, facts_of(config))
            write_json(self.config, config.to_dict())  # last, for this is what makes it a run folder
        except OSError as error:
            raise RunFolderError(
                f"No run can be begun in {self.path}: {error.strerror}. Name another place: --log.directory."
            ) from None

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> RunFolder:
        """A folder that is there; of a folder of runs, such as runs/CartPole-v1, the newest."""
        folder = cls(Path(path))
        try:
            if folder.config.is_file():
                return folder
            inside = _by_age(folder.path.glob("*/config.json"))
            if not inside:
                raise RunFolderError(_why_not_a_run(folder.path))
        except RunFolderError:
            raise
        except OSError as error:
            raise RunFolderError(f"{folder.path} cannot be read: {error.strerror}.") from None
        return cls(inside[-1].parent)

    def read_config(self) -> TrainConfig:
        """The settings that the run was started with."""
        from raceway.training.config import TrainConfig

        values = read_json(self.config)
        if not isinstance(values, dict):
            raise RunFolderError(f"{self.config} is damaged: it has no settings.")
        try:
            return TrainConfig.from_dict(values)
        except SettingError as error:
            raise SettingError(f"{self.config}: {printable(str(error))}") from None
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise RunFolderError(f"{self.config} is damaged: {printable(str(error))}.") from None

    @property
    def config(self) -> Path:
        """All settings, resolved. `raceway train --config` takes it."""
        return self.path / "config.json"

    @property
    def system(self) -> Path:
        """Versions, CPU, cores: what the bits depend on beside the settings."""
        return self.path / "system.json"

    @property
    def metrics(self) -> Path:
        """A line for each step that was logged."""
        return self.path / "metrics.jsonl"

    @property
    def chain(self) -> Path:
        """The hash chain over parameters and rollouts."""
        return self.path / "chain.jsonl"

    @property
    def graph(self) -> Path:
        """The picture of the run's graph."""
        return self.path / "graph.svg"

    @property
    def mermaid(self) -> Path:
        """The same as Mermaid text."""
        return self.path / "graph.mmd"

    @property
    def best(self) -> Path:
        """The policy with the best evaluation."""
        return self.path / "best"

    @property
    def final(self) -> Path:
        """The policy of the end."""
        return self.path / "final"

    @property
    def checkpoints(self) -> Path:
        """What the run is resumed from."""
        return self.path / "checkpoints"

    @property
    def outcome(self) -> Path:
        """What came of the run; it is there when the run is finished."""
        return self.path / "outcome.json"

    @property
    def resumed(self) -> Path:
        """A line for each time that the run was resumed."""
        return self.path / "resumed.jsonl"

    @property
    def videos(self) -> Path:
        return self.path / "videos"

    def policy(self, which: str | None = None) -> Path:
        """The folder of a policy, "best" or "final"; None: the best, or the final one if none was evaluated."""
        if which not in (None, "best", "final"):
            raise RunFolderError(f"No policy {which!r}. There are: best, final.")
        wanted = [which] if which else ["best", "final"]
        for name in wanted:
            if (self.path / name / POLICY_FACTS).is_file():
                return self.path / name
        others = [name for name in ("best", "final") if (self.path / name / POLICY_FACTS).is_file()]
        hint = f"There is: {others[0]}." if others else "It is written when an evaluation or the training ends."
        raise RunFolderError(f"{self.path} has no policy{f' {which!r}' if which else ' yet'}. {hint}")

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r})"


def facts_of(config: TrainConfig) -> dict[str, Any]:
    """What a run's bits depend on beside its settings: the system, and what a header of the user's own says."""
    return {**system_facts(), "header": fingerprint(config.env)}


def _folder_name(env: str) -> str:
    """An environment's name without what a path or a shell would take for something else."""
    name = Path(env).stem if is_path(env) else env
    return re.sub(r"[^\w.+-]+", "-", name).strip("-.") or "env"


def _new_directory(parent: Path, name: str) -> Path:
    """Makes a folder that was not there: `name`, or `name-2`, ... if others were quicker."""
    for number in itertools.count(1):
        path = parent / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise AssertionError("counting ends")


def _by_age(files: Iterable[Path]) -> list[Path]:
    """The newest last, without what is no file."""
    return sorted((file for file in files if file.is_file()), key=lambda file: file.stat().st_mtime)


def _why_not_a_run(path: Path) -> str:
    if not path.exists():
        return (
            f"There is no {path}. Runs are in runs/<env>/<algo>-<seed>-<time>, unless --log.directory said otherwise."
        )
    if not path.is_dir():
        return f"{path} is not a run folder: it is a file. Give the folder that it is in."
    if (path / POLICY_FACTS).is_file():
        return f"{path} is a policy, not a run folder. Give the folder above it: {path.parent}."
    inside = _by_age(path.glob("**/config.json"))
    newest = f" The newest run in it is {inside[-1].parent}." if inside else ""
    return f"{path} is not a run folder: it has no config.json.{newest}"


def read_json(path: Path) -> Any:
    """What is in a JSON file of a run folder."""
    return parse_json(read_whole(path, LARGEST_TEXT), path)


def parse_json(content: bytes, path: Path) -> Any:
    """What the content of a file, at `path`, says."""
    try:
        value = json.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise RunFolderError(f"{path} is damaged: {error}.") from None
    level, depth = [value], 0
    while level := [part for each in level if isinstance(each, (dict, list)) for part in _parts(each)]:
        depth += 1
        if depth > _DEEPEST:
            raise RunFolderError(f"{path} is damaged: more than {_DEEPEST} things in it are within each other.")
    return value


def _parts(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def write_json(path: Path, value: Any) -> None:
    """Writes JSON for people to read, whole or not at all."""
    write_whole(path, (json.dumps(value, indent=2, allow_nan=False) + "\n").encode())


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes arrays as safetensors, whole or not at all."""
    write_whole(path, pack_arrays(arrays))


def pack_arrays(arrays: Mapping[str, np.ndarray]) -> bytes:
    """The content of a safetensors file."""
    from safetensors.numpy import save

    for name, array in arrays.items():
        if array.dtype.name not in _DTYPES:
            raise TypeError(
                f"{name!r} is of {array.dtype}, which cannot be stored. Make it one of {', '.join(_DTYPES)}."
            )
    return save({name: np.asarray(array, order="C") for name, array in arrays.items()})


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """What `write_arrays` wrote."""
    return unpack_arrays(read_whole(path), path)


def unpack_arrays(content: bytes, path: Path) -> dict[str, np.ndarray]:
    """The arrays in the content of a file, at `path`."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = load(content)
    except KeyError as error:
        raise RunFolderError(
            f"{path} is damaged: it has numbers of the kind {error}, which are not used here."
        ) from None
    except (SafetensorError, ValueError, MemoryError) as error:
        raise RunFolderError(f"{path} is damaged: {printable(str(error))}.") from None
    for name, array in arrays.items():
        if array.dtype == bool and (array.view(np.uint8) > 1).any():
            raise RunFolderError(f"{path} is damaged: {name!r} has truth values that are neither true nor false.")
    return arrays


def printable(text: str, most: int = 1000) -> str:
    """A message that may have words of a file in it: not too long, and nothing that a terminal obeys."""
    return "".join(each if each.isprintable() else "?" for each in text[:most])


def read_whole(path: Path, most: int | None = None, last: int | None = None) -> bytes:
    """What is in a file, if that is `most` bytes or less; or only its `last` bytes.

    A pipe, a device or a folder in its place is not waited for.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise RunFolderError(f"{path} cannot be read: {error.strerror}.") from None
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            raise RunFolderError(f"{path} cannot be read: it is not a file.")
        if most is not None and facts.st_size > most:
            raise RunFolderError(f"{path} is damaged: {facts.st_size:,} bytes, where at most {most:,} can be meant.")
        with open(handle, "rb", closefd=False) as file:
            file.seek(0 if last is None else max(0, facts.st_size - last))
            return file.read(-1 if most is None else most)
    except RunFolderError:
        raise
    except OSError as error:
        raise RunFolderError(f"{path} cannot be read: {error.strerror}.") from None
    except MemoryError:
        raise RunFolderError(f"{path} cannot be read: it is larger than the memory.") from None
    finally:
        os.close(handle)


def open_to_append(path: Path) -> IO[bytes]:
    """Opens a log of a run. A link or a pipe in its place is refused: what it leads to is not the run's to change."""
    return _opened(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, "ab")


def cut(path: Path, length: int) -> int:
    """Leaves at most so many bytes of a log, if there is one. Returns how many there were."""
    if not os.path.lexists(path):
        return 0
    with _opened(path, os.O_RDWR, "r+b") as file:
        there = os.fstat(file.fileno()).st_size
        if there > length:
            file.truncate(length)
        return there


def _opened(path: Path, flags: int, mode: str) -> IO[bytes]:
    try:
        handle = os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        raise RunFolderError(f"{path} cannot be written: {error.strerror}.") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise RunFolderError(f"{path} cannot be written: it is not a file.")
    return open(handle, mode)


def write_whole(path: Path, content: bytes) -> None:
    """Nobody, whenever they look and whatever is killed, sees a part of it: written aside, synced, renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with aside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Makes a file's content last, or the names in a folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
