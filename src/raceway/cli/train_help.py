"""The help of `raceway train`: the dataclasses of the settings, as tyro shows them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Annotated, Any

import tyro

from raceway.training.config import TrainConfig

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

    def __post_init__(self) -> None:
        """Nothing is checked: the environment may be missing."""


def show_help(config: TrainConfig | None) -> None:
    """Every setting with its meaning and, as its default, the value in `config`; None: no environment is named."""
    shown = config or TrainConfig(env="ENV")
    values = {each.name: getattr(shown, each.name) for each in dataclasses.fields(shown)}
    if config is None:
        values["env"] = tyro.MISSING
    tyro.cli(Help, prog="raceway train", description=_DESCRIPTION, default=Help(**values), args=["--help"])
