"""`raceway.play`: watch a policy, or random actions, in a window or as a video."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from gymnasium import Space
from gymnasium.error import DependencyNotInstalled
from gymnasium.vector import AutoresetMode, VectorEnv

from raceway.algos.spaces import action_parts
from raceway.envs.masks import MaskReader
from raceway.envs.native import NativePool
from raceway.envs.packages import what_is_missing
from raceway.errors import MissingPackageError, SettingError, UserError
from raceway.interrupts import ending_on_sigterm, keeping_ctrl_c, raise_lost_ctrl_c
from raceway.messages import quoted
from raceway.report.drawing import DrawingProgress
from raceway.report.video import check_path, write_video
from raceway.report.window import has_screen, show
from raceway.training.config import TrainConfig, check_trials
from raceway.training.environments import EnvSource
from raceway.training.folder import RunFolder
from raceway.training.run_source import check_spaces, given_env, source_of_run, without_advice

_FPS = 30
_MOST_STEPS = 10_000
"""A policy that is too good for an environment without a time limit would play for ever."""


@dataclass(frozen=True)
class _Agent:
    """Who plays."""

    act: Callable[[Any, Mapping[str, Any]], Any]
    begin: Callable[[int], None] = lambda num_envs: None
    """Called with the number of environments before every episode, of the first of them."""
    check: Callable[[VectorEnv], None] = lambda env: None
    """Refuses environments that it cannot play."""


@dataclass
class Played:
    """What was seen."""

    returns: list[float] = field(default_factory=list)
    """Of the episodes that came to an end."""
    lengths: list[int] = field(default_factory=list)
    video: Path | None = None
    """The file, if it was not shown in a window."""
    notes: list[str] = field(default_factory=list)
    """Notes on the pictures. They are printed with the first picture, unless `quiet`."""


@keeping_ctrl_c()
def play(
    what: Any,
    *,
    agent: Literal["policy", "random"] = "policy",
    episodes: int = 3,
    seed: int = 0,
    which: str | None = None,
    video: str | os.PathLike[str] | None = None,
    env: Any = None,
    env_args: Mapping[str, Any] | None = None,
    network: Any = None,
    trust: bool = False,
    quality: Literal["auto", "full"] = "auto",
    quiet: bool = False,
) -> Played:
    """Shows episodes in a window; where there is no screen, or `video` names a file, writes a video.

    what: the folder of a run; with agent="random" it may also be an environment, as `raceway.train` takes it.
    agent: "policy" is the run's, "random" draws actions from the action space.
    episodes: how many.
    seed: of the environment, and of random actions.
    which: the "best" policy or the "final" one; None: the best, if there is one.
    video: the .mp4 file to write. By default it is in the run's folder; of random actions, in the current one.
    env: an environment in place of the run's, if that cannot be found by its name; anything that `train` takes. Of a
        vector environment, which must have render_mode="rgb_array", the first is shown.
    env_args: keyword arguments of the environment, over those of the run.
    network: the (init, apply) pair of a run with a network of your own, or its name, "package.module:pair".
    trust: calls the code that the folder names for its environment, even if nothing was trained with it here.
    quality: "auto" draws MuJoCo tasks with coarser shadows and unsmoothed edges where OpenGL is computed by the CPU,
        which takes a third of the time; "full" draws them as Gymnasium does everywhere.
    quiet: whether to say nothing about pictures, and how far a video is.
    """
    if agent not in ("policy", "random"):
        raise SettingError(f"agent={agent!r} is not one of policy, random.")
    if quality not in ("auto", "full"):
        raise SettingError(f"quality={quality!r} is not one of auto, full.")
    if agent == "random":
        _refuse_of_policy(which=which, network=network)
    check_trials(episodes, seed)
    if video is not None:
        check_path(Path(video))
    is_window = video is None and has_screen()
    if not is_window:
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # or pygame looks for a screen, and complains
    with ending_on_sigterm(), without_advice():
        folder = None if agent == "random" and not _is_run(what) else RunFolder.open(what)
        config = None if folder is None else folder.read_config()
        source = _source(what, folder, config, env, env_args, trust)
        with DrawingProgress(source.name, episodes, quiet=quiet, is_seen=is_window) as progress:
            # First of all the policy: if there is none, no window flashes up.
            who = None if agent == "random" else _policy(folder, config, which, network)
            uses_masks = config is None or config.action_masks
            shown = _Show(source, who, episodes, seed, quality == "auto", uses_masks, progress)
            if is_window:
                shown.in_window(f"{source.name}, {agent}")
            else:
                shown.as_video(Path(video) if video is not None else _new_file(folder, source.name, which or agent))
    return shown.played


def _refuse_of_policy(**given: Any) -> None:
    """Refuses arguments that select or build a policy, for an agent without one."""
    for name, value in given.items():
        if value is not None:
            option = {"which": "--policy"}.get(name, f"--{name}")
            raise SettingError(
                f"{name}={quoted(value)} ({option}) is for the policy of a run, but agent='random' plays without one. "
                "Leave it out."
            )


def _is_run(what: Any) -> bool:
    return isinstance(what, (str, os.PathLike)) and (Path(what) / "config.json").is_file()


def _source(
    what: Any,
    folder: RunFolder | None,
    config: TrainConfig | None,
    env: Any,
    env_args: Mapping[str, Any] | None,
    trust: bool,
) -> EnvSource:
    if folder is not None and config is not None:
        return source_of_run(folder, config, "play", env=env, env_args=env_args, trust=trust)
    if env is not None:
        raise SettingError(f"{what!r} is not the folder of a run, and env={env!r} is given besides. Give one of them.")
    args = dict(env_args or {})
    return EnvSource(given_env(what, args), args)


def _policy(folder: RunFolder | None, config: TrainConfig | None, which: str | None, network: Any) -> _Agent:
    from raceway.training.policy import load_policy  # JAX comes with it

    assert folder is not None
    assert config is not None
    policy = load_policy(folder, config, which, network, "play")
    masks = _Masks(policy.action_space) if policy.config.action_masks else None

    def act(obs: Any, infos: Mapping[str, Any]) -> Any:
        return policy.act(obs, greedy=True, action_mask=None if masks is None else masks.after(infos))

    def begin(num_envs: int) -> None:
        policy.reset(np.arange(num_envs) == 0)
        if masks is not None:
            masks.begin(num_envs)

    def check(env: VectorEnv) -> None:
        spaces = env.single_observation_space, env.single_action_space
        check_spaces("the environment", (policy.observation_space, policy.action_space), spaces)

    return _Agent(act, begin, check)


def _random(env: VectorEnv, seed: int, uses_masks: bool) -> _Agent:
    """Draws random actions, among those that the action masks allow."""
    env.action_space.seed(seed)
    masks = _Masks(env.single_action_space) if uses_masks and _has_choices(env.single_action_space) else None
    if masks is None:
        return _Agent(lambda obs, infos: env.action_space.sample())
    random = np.random.default_rng(seed)

    def act(obs: Any, infos: Mapping[str, Any]) -> Any:
        allowed = masks.after(infos)
        return env.action_space.sample() if allowed is None else masks.reader.draw(allowed, random)

    return _Agent(act, masks.begin)


def _has_choices(space: Space) -> bool:
    try:
        return action_parts(space).kind != "gaussian"
    except ValueError:  # of no kind that can be trained with
        return False


class _Masks:
    """The action masks of what is played. Only the first environment is watched, so only its masks must be right."""

    def __init__(self, space: Space) -> None:
        self.reader = MaskReader(space)
        self._steps = 0
        """Of the episode, so far."""
        self._masks: np.ndarray | None = None

    def begin(self, num_envs: int) -> None:
        """An episode of the first environment begins."""
        self._steps = 0

    def after(self, infos: Mapping[str, Any]) -> np.ndarray | None:
        """What is allowed after a reset or step with these infos; None: nobody has told so far."""
        if self._masks is None and "action_mask" in infos:
            size = len(infos["action_mask"])
            self._masks, self._has_given = np.ones((size, self.reader.num_logits), bool), np.zeros(size, bool)
        if self._masks is None:
            return None
        where = f"step {self._steps} of its episode" if self._steps else "reset()"
        expected = np.arange(len(self._masks)) == 0
        self.reader.take(self._masks, self._has_given, infos, expected, lambda row: f"Environment {row} in {where}")
        self._steps += 1
        return self._masks | self.reader.without_choice(self._masks)[:, None]


class _Show:
    """Plays episodes of one agent, and shows them."""

    def __init__(
        self,
        source: EnvSource,
        who: _Agent | None,
        episodes: int,
        seed: int,
        prefers_drafts: bool,
        uses_masks: bool,
        progress: DrawingProgress,
    ) -> None:
        self.played = Played()
        self._source = source
        self._who = who
        self._episodes = episodes
        self._seed = seed
        self._prefers_drafts = prefers_drafts
        self._uses_masks = uses_masks
        self._progress = progress

    def in_window(self, title: str) -> None:
        env = self._make()
        try:
            show(self._frames(env), _fps(env), title)
        finally:
            self._close(env)

    def as_video(self, path: Path) -> None:
        env = self._make()
        try:
            self.played.video = write_video(path, self._frames(env), _fps(env))
        finally:
            self._close(env)

    def _make(self) -> VectorEnv:
        """One that waits for its reset when an episode has ended: until then its last picture can be had."""
        source = self._source.inline
        size = source.target.num_envs if isinstance(source.target, VectorEnv) else 1
        try:
            env = source.make(size, render_mode="rgb_array", autoreset="next_step")
        except (TypeError, ValueError) as error:
            raise UserError(f"{source.name} cannot be shown: {error}") from error
        if isinstance(env, NativePool):
            env.follow()
            if self._prefers_drafts:
                env.prefer_drafts()
        try:
            if self._who is not None:
                self._who.check(env)
        except SettingError:
            self._close(env)
            raise
        return env

    def _close(self, env: VectorEnv) -> None:
        if not self._source.is_single:
            env.close()

    def _frames(self, env: VectorEnv) -> Iterator[np.ndarray]:
        """Plays, and gives a picture of every step and of every beginning."""
        who = self._who or _random(env, self._seed, self._uses_masks)
        mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        obs, infos = env.reset(seed=self._seed)
        who.begin(env.num_envs)
        yield self._picture(env)
        return_, length = 0.0, 0
        for _ in range(_MOST_STEPS):
            raise_lost_ctrl_c()
            actions = who.act(obs, infos)
            obs, rewards, terminated, truncated, infos = env.step(actions)
            return_, length = return_ + float(rewards[0]), length + 1
            yield self._picture(env)
            ended = np.logical_or(terminated, truncated)
            if mode == AutoresetMode.DISABLED and ended.any():
                obs, of_reset = env.reset(options={"reset_mask": ended})
                infos = _after_reset(infos, of_reset, ended)
            if not ended[0]:
                continue
            self.played.returns.append(return_)
            self.played.lengths.append(length)
            return_, length = 0.0, 0
            if len(self.played.returns) == self._episodes:
                break
            self._progress.episode += 1
            if mode == AutoresetMode.NEXT_STEP:
                obs, _, _, _, infos = env.step(actions)  # which only resets it
            who.begin(env.num_envs)
            if mode != AutoresetMode.SAME_STEP:
                yield self._picture(env)
        self._progress.doing = "finishing the video"

    def _picture(self, env: VectorEnv) -> np.ndarray:
        self._progress.doing = "drawing"
        name = self._source.name
        try:
            pictures = env.render()
        except NotImplementedError:
            raise UserError(
                f"{name} cannot be shown: it has no render(). Give it one that returns a picture, bytes of (height, "
                "width, 3), when it is made with render_mode='rgb_array'."
            ) from None
        except (ModuleNotFoundError, DependencyNotInstalled) as error:
            raise MissingPackageError(f"{name} cannot be drawn: {what_is_missing(error)}") from error
        if not pictures or pictures[0] is None:
            if self._source.is_single and env.render_mode != "rgb_array":
                made = f"it was made with render_mode={env.render_mode!r}"
                raise UserError(f"{name} gives no pictures: {made}. Make it with render_mode='rgb_array'.")
            raise UserError(f"{name} gives no pictures: its render() returned nothing with render_mode='rgb_array'.")
        if not self._progress.frames and isinstance(env, NativePool) and env.coarse_by:
            note = (
                f"OpenGL is computed by the CPU here ({env.coarse_by}), so shadows are coarser and edges not smoothed. "
                "quality='full' (--quality full) draws as Gymnasium does, in about three times the time."
            )
            self.played.notes.append(note)
            self._progress.note(f"raceway: {note}")
        self._progress.frames += 1
        return np.asarray(pictures[0])


def _after_reset(of_step: dict[str, Any], of_reset: dict[str, Any], ended: np.ndarray) -> dict[str, Any]:
    """The infos of a reset of those that ended, with the action masks that the others gave in the step before."""
    told = [of_reset if has_ended else of_step for has_ended in ended]
    has_mask = [
        "action_mask" in infos and ("_action_mask" not in infos or bool(infos["_action_mask"][i]))
        for i, infos in enumerate(told)
    ]
    if not any(has_mask):
        return of_reset
    masks = [infos["action_mask"][i] if has_mask[i] else None for i, infos in enumerate(told)]
    return {**of_reset, "action_mask": masks, "_action_mask": np.array(has_mask)}


def _fps(env: VectorEnv) -> float:
    return float(env.metadata.get("render_fps") or _FPS)


def _new_file(folder: RunFolder | None, env: str, who: str) -> Path:
    """A name that is not taken yet."""
    parent, stem = (folder.videos, who) if folder is not None else (Path(), f"{env.replace('/', '-')}-{who}")
    for number in itertools.count(1):
        path = parent / f"{stem}-{number}.mp4"
        if not path.exists():
            return path
    raise AssertionError("counting ends")
