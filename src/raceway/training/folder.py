"""The folder of a run: where everything that it leaves behind is, and how it gets there whole."""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raceway.envs.user_native import fingerprint, is_path
from raceway.errors import RunFolderError, SettingError
from raceway.files import opened_folder, read_json, write_json
from raceway.local_code import digest_of
from raceway.messages import printable
from raceway.report.system import system_facts

if TYPE_CHECKING:
    from raceway.training.config import TrainConfig

POLICY_FACTS = "policy.json"

_SEARCH_DEPTH = 3
_MOST_SEARCHED = 10_000
"""Folders that are searched to suggest a run, so that naming / by mistake does not search the whole disk."""


class RunFolder:
    """`runs/<env>/<algo>-<seed>-<time>/` and what is in it.

    The folder itself may be named by way of a link. Below it no link is followed to write or delete anything.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.realpath(path)) if path.is_symlink() else path

    @classmethod
    def at(cls, config: TrainConfig) -> RunFolder:
        """The folder for a run with these settings: of its name, whether it was there or not, or else a new one."""
        parent = cls.parent_for(config)
        try:
            parent.mkdir(parents=True, exist_ok=True)
            if config.log.name is None:
                name = f"{config.algo}-{config.seed}-{time.strftime('%Y%m%d-%H%M%S')}"
                return cls(new_directory(parent, name))
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

    def begin(self, config: TrainConfig, initial_sha256: str | None = None) -> None:
        """Writes the settings and the facts of the system, the digest of the initial weights with them."""
        try:
            with opened_folder(self.videos, create=True):
                pass
            write_json(self.system, facts_of(config, initial_sha256))
            write_json(self.config, config.to_dict())  # last, for this is what makes it a run folder
        except RunFolderError:
            raise
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
            hint = " The run may be of another version of Raceway." if "No setting" in str(error) else ""
            raise SettingError(f"{self.config}: {printable(str(error), 1000)}{hint}") from None
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise RunFolderError(f"{self.config} is damaged: {printable(str(error)).rstrip('.')}.") from None

    def check_links(self) -> None:
        """Refuses a folder in which something that a run writes to is a link."""
        ours = self.best, self.checkpoints, self.dumps, self.final, self.initial, self.tensorboard, self.videos
        for path in ours:
            if path.is_symlink():
                with opened_folder(path):  # which says why not
                    pass

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
    def evaluations(self) -> Path:
        """A line for each evaluation."""
        return self.path / "evaluations.jsonl"

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
        """The final policy."""
        return self.path / "final"

    @property
    def initial(self) -> Path:
        """The weights that the run begins with, copied from another run: `init_from`."""
        return self.path / "initial"

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
    def tensorboard(self) -> Path:
        """TensorBoard's events."""
        return self.path / "tensorboard"

    @property
    def dumps(self) -> Path:
        """What went into an update that failed."""
        return self.path / "dumps"

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


def facts_of(config: TrainConfig, initial_sha256: str | None = None) -> dict[str, Any]:
    """What a run's bits depend on beside its settings: the system, the user's own code, and the initial weights."""
    own = {"header": fingerprint(config.env), "code": _code_of(config)}
    return {**system_facts(), **own, "initial_sha256": initial_sha256}


def _code_of(config: TrainConfig) -> dict[str, str | None]:
    """Digests of the modules that the settings name for environment and network, by `package.module:callable`.

    A script is none: it is another module in every process, and most of what is changed in it is no environment.
    """
    names = [name for name in (config.env, config.network.custom) if name is not None and ":" in name]
    modules = {name: name.partition(":")[0] for name in names if "<" not in name and not is_path(name)}
    return {name: digest_of(module) for name, module in modules.items() if module != "__main__"}


def _folder_name(env: str) -> str:
    """An environment's name without what a path or a shell would take for something else."""
    name = Path(env).stem if is_path(env) else env
    return re.sub(r"[^\w.+-]+", "-", name).strip("-.") or "env"


def new_directory(parent: Path, name: str) -> Path:
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
    inside = _by_age(_configs_below(path))
    newest = f" The newest run in it is {inside[-1].parent}." if inside else ""
    return f"{path} is not a run folder: it has no config.json.{newest}"


def _configs_below(path: Path) -> Iterator[Path]:
    """Every config.json not too far below a folder, in the first so many folders."""
    walk = os.walk(path)
    for folder, below, files in itertools.islice(walk, _MOST_SEARCHED):
        if "config.json" in files:
            yield Path(folder) / "config.json"
        if len(Path(folder).relative_to(path).parts) >= _SEARCH_DEPTH:
            below.clear()
