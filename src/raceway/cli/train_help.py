"""The help of `raceway train`: the dataclasses of the settings, as tyro shows them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Annotated, Any

import tyro

from raceway.training.config import ALGORITHMS, TrainConfig
from raceway.training.settings import types_of

# Paragraphs of one line each: tyro does not break them.
_DESCRIPTION = """Trains an agent.

Settings are the defaults, then ENV's preset, then --config, then options.

Short names do where they are clear (--gamma), and so do those of CleanRL.

Arguments of the environment itself are --env.NAME VALUE."""


@dataclass(frozen=True)
class Help(TrainConfig):
    """The settings, with what only the command line has."""

    env: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")]
    env_args: tyro.conf.Suppress[dict[str, Any]] = field(default_factory=dict)
    config: Annotated[str | None, tyro.conf.arg(metavar="FILE")] = None
    """Settings from a JSON or TOML file, such as the config.json of another run."""
    seeds: Annotated[str | None, tyro.conf.arg(metavar="N|A,B,...")] = None
    """Train with several seeds, each in a process of its own: how many from --seed on, or which."""
    jobs: int | None = None
    """How many of them at once. None: one for every two CPUs."""

    def __post_init__(self) -> None:
        """Nothing is checked: the environment may be missing."""


def show_help(config: TrainConfig, *, is_named: bool) -> None:
    """Every setting with its meaning and, as its default, the value in `config`; `is_named`: its environment is one."""
    values = {each.name: getattr(config, each.name) for each in dataclasses.fields(config)}
    if not is_named:
        values["env"] = tyro.MISSING
    shown = _help_for(config.algo)
    tyro.cli(shown, prog="raceway train", description=_DESCRIPTION, default=shown(**values), args=["--help"])


def _help_for(algo: str) -> type[Help]:
    """The help without the groups of other algorithms."""
    groups = {each.name: each for each in dataclasses.fields(Help) if each.name in ALGORITHMS and each.name != algo}
    hidden = [
        (name, Annotated[types_of(Help)[name], tyro.conf.Suppress], field(default_factory=each.default_factory))
        for name, each in groups.items()
    ]
    return dataclasses.make_dataclass("Help", hidden, bases=(Help,), frozen=True)
