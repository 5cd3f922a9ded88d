"""`raceway.play`: watch a policy, or random actions, in a window or as a video."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from gymnasium.vector import VectorEnv

from raceway.errors import SettingError, UserError
from raceway.report.video import write_video
from raceway.report.window import has_screen, show
from raceway.training.environments import EnvSource
from raceway.training.folder import RunFolder
from raceway.training.trust import check_code

_FPS = 30
_MOST_STEPS = 10_000
"""A policy that is too good for an environment without a time limit would play for ever."""


@dataclass(frozen=True)
class _Agent:
    """Who plays."""

    act: Callable[[Any, Mapping[str, Any]], Any]
    begin: Callable[[], None] = lambda: None
    """Called before every episode."""


@dataclass
class Played:
    """What was seen."""

    returns: list[float] = field(default_factory=list)
    """Of the episodes that came to an end."""
    lengths: list[int] = field(default_factory=list)
    video: Path | None = None
    """The file, if it was not shown in a window."""


def play(
    what: str | os.PathLike[str],
    *,
    agent: Literal["policy", "random"] = "policy",
    episodes: int = 3,
    seed: int = 0,
    which: str | None = None,
    video: str | os.PathLike[str] | None = None,
    env_args: Mapping[str, Any] | None = None,
    network: Any = None,
    trust: bool = False,
) -> Played:
    """Shows episodes in a window; where there is no screen, or `video` names a file, writes a video.

    what: the folder of a run; with agent="random" it may also be an environment, as `raceway.train` takes it.
    agent: "policy" is the run's, "random" draws actions from the action space.
    episodes: how many.
    seed: of the environment, and of random actions.
    which: the "best" policy or the "final" one; None: the best, if there is one.
    video: the .mp4 file to write. By default it is in the run's folder; of random actions, in the current one.
    env_args: keyword arguments of the environment, over those of the run.
    network: the (init, apply) pair of a run that was trained with one.
    trust: calls the code that the folder names for its environment, even if nothing was trained with it here.
    """
    if agent not in ("policy", "random"):
        raise SettingError(f"agent={agent!r} is not one of policy, random.")
    if episodes < 1:
        raise SettingError(f"episodes={episodes} is out of range. Use a number from 1 up.")
    folder = None if agent == "random" and not (Path(what) / "config.json").is_file() else RunFolder.open(what)
    source = _source(what, folder, env_args or {}, trust)
    # First of all the policy: if there is none, no window flashes up.
    policy = None if agent == "random" else _policy(folder, which, network)
    is_window = video is None and has_screen()
    if not is_window:
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # or pygame looks for a screen, and complains
    env = _make(source)
    played = Played()
    try:
        env.action_space.seed(seed)
        who = policy or _Agent(lambda obs, infos: env.action_space.sample())
        frames = _frames(env, who, episodes, seed, played)
        fps = float(env.metadata.get("render_fps", _FPS))
        if is_window:
            show(frames, fps, f"{source.name}, {agent}")
        else:
            path = Path(video) if video is not None else _new_file(folder, source.name, which or agent)
            played.video = write_video(path, frames, fps)
    finally:
        env.close()
    return played


def _source(
    what: str | os.PathLike[str], folder: RunFolder | None, env_args: Mapping[str, Any], trust: bool
) -> EnvSource:
    if folder is None:
        return EnvSource(os.fspath(what), env_args)
    config = folder.read_config()
    check_code(folder, config, trust)
    return EnvSource(config.env, {**config.env_args, **env_args})


def _policy(folder: RunFolder | None, which: str | None, network: Any) -> _Agent:
    from raceway.training.policy import load  # JAX comes with it

    assert folder is not None
    policy = load(folder.path, which, network)
    heeds_masks = policy.config.action_masks

    def act(obs: Any, infos: Mapping[str, Any]) -> Any:
        return policy.act(obs, greedy=True, action_mask=infos.get("action_mask") if heeds_masks else None)

    return _Agent(act, policy.reset)


def _make(source: EnvSource) -> VectorEnv:
    try:
        return source.inline.make(1, render_mode="rgb_array")
    except (TypeError, ValueError) as error:
        raise UserError(f"{source.name} cannot be shown: {error}") from error


def _frames(env: VectorEnv, who: _Agent, episodes: int, seed: int, played: Played) -> Iterator[np.ndarray]:
    """Plays, and gives a picture of every step."""
    obs, infos = env.reset(seed=seed)
    who.begin()
    yield _picture(env)
    return_, length = 0.0, 0
    for _ in range(_MOST_STEPS):
        obs, rewards, terminated, truncated, infos = env.step(who.act(obs, infos))
        return_, length = return_ + float(rewards[0]), length + 1
        yield _picture(env)
        if terminated[0] or truncated[0]:
            played.returns.append(return_)
            played.lengths.append(length)
            return_, length = 0.0, 0
            who.begin()
            if len(played.returns) == episodes:
                return


def _picture(env: VectorEnv) -> np.ndarray:
    pictures = env.render()
    if not pictures or pictures[0] is None:
        raise UserError(f"{env} gives no pictures: its render() returned nothing with render_mode='rgb_array'.")
    return np.asarray(pictures[0])


def _new_file(folder: RunFolder | None, env: str, who: str) -> Path:
    """A name that is not taken yet."""
    parent, stem = (folder.videos, who) if folder is not None else (Path(), f"{env.replace('/', '-')}-{who}")
    for number in itertools.count(1):
        path = parent / f"{stem}-{number}.mp4"
        if not path.exists():
            return path
    raise AssertionError("counting ends")
