"""The folder of a run: where everything that it leaves behind is, and how it gets there whole."""

from __future__ import annotations

import itertools
import json
import os
import re
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from raceway.errors import RunFolderError
from raceway.report.system import system_facts

if TYPE_CHECKING:
    from raceway.training.config import TrainConfig

POLICY_FACTS = "policy.json"


class RunFolder:
    """`runs/<env>/<algo>-<seed>-<time>/` and what is in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, config: TrainConfig) -> RunFolder:
        """A new folder with the settings and the facts of the system in it."""
        parent = Path(config.log.directory) / _folder_name(config.env)
        name = config.log.name or f"{config.algo}-{config.seed}-{time.strftime('%Y%m%d-%H%M%S')}"
        try:
            parent.mkdir(parents=True, exist_ok=True)
            folder = cls(_new_directory(parent, name))
            folder.videos.mkdir()
        except OSError as error:
            raise RunFolderError(
                f"No run folder can be made in {parent}: {error.strerror}. Name another place: --log.directory."
            ) from None
        write_json(folder.system, system_facts())
        write_json(folder.config, config.to_dict())  # last, for this is what makes it a run folder
        return folder

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> RunFolder:
        """A folder that is there; of a folder of runs, such as runs/CartPole-v1, the newest."""
        folder = cls(Path(path))
        if folder.config.is_file():
            return folder
        inside = sorted(folder.path.glob("*/config.json"), key=lambda file: file.stat().st_mtime)
        if not inside:
            raise RunFolderError(_why_not_a_run(folder.path))
        return cls(inside[-1].parent)

    def read_config(self) -> TrainConfig:
        """The settings that the run was started with."""
        from raceway.training.config import TrainConfig

        return TrainConfig.from_dict(read_json(self.config))

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


def _folder_name(env: str) -> str:
    """An environment's name without what a path or a shell would take for something else."""
    return re.sub(r"[^\w.+-]+", "-", env).strip("-.") or "env"


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


def _why_not_a_run(path: Path) -> str:
    if not path.exists():
        return (
            f"There is no {path}. Runs are in runs/<env>/<algo>-<seed>-<time>, unless --log.directory said otherwise."
        )
    if not path.is_dir():
        return f"{path} is not a run folder: it is a file. Give the folder that it is in."
    if (path / POLICY_FACTS).is_file():
        return f"{path} is a policy, not a run folder. Give the folder above it: {path.parent}."
    inside = sorted(path.glob("**/config.json"), key=lambda file: file.stat().st_mtime)
    newest = f" The newest run in it is {inside[-1].parent}." if inside else ""
    return f"{path} is not a run folder: it has no config.json.{newest}"


def read_json(path: Path) -> Any:
    """What is in a JSON file of a run folder."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RunFolderError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise RunFolderError(f"{path} is damaged: {error}.") from None


def write_json(path: Path, value: Any) -> None:
    """Writes JSON for people to read, whole or not at all."""
    write_whole(path, (json.dumps(value, indent=2, allow_nan=False) + "\n").encode())


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes arrays as safetensors, whole or not at all."""
    from safetensors.numpy import save

    write_whole(path, save({name: np.asarray(array, order="C") for name, array in arrays.items()}))


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """What `write_arrays` wrote."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return load(path.read_bytes())
    except OSError as error:
        raise RunFolderError(f"{path} cannot be read: {error.strerror}.") from None
    except SafetensorError as error:
        raise RunFolderError(f"{path} is damaged: {error}.") from None


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
    _sync_directory(path.parent)


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
