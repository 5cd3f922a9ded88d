"""A pool and Gymnasium's own vector environment of the same task, driven side by side and compared to the bit."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

import raceway

MODES = {
    "next_step": AutoresetMode.NEXT_STEP,
    "same_step": AutoresetMode.SAME_STEP,
    "disabled": AutoresetMode.DISABLED,
}


def gymnasium_id(task: str) -> str:
    """Gymnasium 1.4 has no Taxi-v3; without rain and fickle passengers Taxi-v4 is the same task."""
    return {"Taxi-v3": "Taxi-v4"}.get(task, task)


TASKS = [task for task in raceway.list_envs() if gymnasium_id(task) in gymnasium.registry]
MUJOCO = [task for task in TASKS if task.endswith("-v5")]
LIGHT = [task for task in TASKS if task not in MUJOCO]
"""Those of which Gymnasium makes thousands of steps per second."""
CONTINUOUS = ["MountainCarContinuous-v0", "Pendulum-v1"]
CLASSIC = ["Acrobot-v1", "CartPole-v0", "CartPole-v1", "MountainCar-v0", *CONTINUOUS]
TOY = [task for task in LIGHT if task not in CLASSIC]


def in_turn(tasks: Sequence[str], modes: Sequence[str] = tuple(MODES)) -> list[Any]:
    """Every task in every mode: in the quick tests one mode each, so that all tasks and all modes have their turn."""
    return [
        pytest.param(task, mode, marks=[] if at % len(modes) == turn else [pytest.mark.slow])
        for at, task in enumerate(tasks)
        for turn, mode in enumerate(modes)
    ]


Kwargs = Mapping[str, Any]
Wrap = Callable[[VectorEnv], VectorEnv]


class FloatProbability(gymnasium.Wrapper):
    """Gives `prob` as a float always.

    Some of Gymnasium's resets give the int 1, from which SyncVectorEnv makes an int array that cuts the probabilities
    of the other environments down to 0. A pool gives what each single environment says, in float64.
    """

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        obs, info = self.env.reset(seed=seed, options=options)
        return obs, _with_float_probability(info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        return obs, reward, terminated, truncated, _with_float_probability(info)


def _with_float_probability(info: dict[str, Any]) -> dict[str, Any]:
    return info | {"prob": float(info["prob"])} if "prob" in info else info


def single(task: str, **kwargs: Any) -> gymnasium.Env:
    """One environment as Gymnasium makes it; paths may be any that a pool takes."""
    if task in MUJOCO:
        _silence_mujoco()
    if isinstance(path := kwargs.get("xml_file"), os.PathLike):
        kwargs["xml_file"] = os.fspath(path)
    return gymnasium.make(gymnasium_id(task), disable_env_checker=True, **kwargs)


@functools.cache
def _silence_mujoco() -> None:
    """Keeps what MuJoCo warns of in Gymnasium's environments off the screen and out of MUJOCO_LOG.TXT."""
    import mujoco

    mujoco.set_mju_user_warning(lambda message: None)


def gymnasium_vector(task: str, all_kwargs: Sequence[Kwargs], mode: str) -> SyncVectorEnv:
    """Gymnasium's own vector environment, one set of keyword arguments per environment."""
    makers = [functools.partial(lambda given: FloatProbability(single(task, **given)), each) for each in all_kwargs]
    return SyncVectorEnv(makers, autoreset_mode=MODES[mode])


class Twins:
    """A pool and Gymnasium's vector environment; every call is made on both, and what they return must be equal."""

    def __init__(
        self,
        task: str,
        num_envs: int,
        mode: str = "next_step",
        *,
        num_workers: int | None = None,
        env_kwargs: Sequence[Kwargs] | None = None,
        wrap: Wrap = lambda env: env,
        **kwargs: Any,
    ) -> None:
        self.task, self.mode, self.num_envs = task, mode, num_envs
        self.pool = raceway.make(
            task, num_envs, autoreset=mode, num_workers=num_workers, env_kwargs=env_kwargs, **kwargs
        )
        everyones = [{**kwargs, **each} for each in env_kwargs or [{}] * num_envs]
        self.ours = wrap(self.pool)
        self.theirs = wrap(gymnasium_vector(task, everyones, mode))
        self.obs: Any = None
        self.ended = np.zeros(num_envs, dtype=bool)

    def __enter__(self) -> Twins:
        return self

    def __exit__(self, *_: object) -> None:
        self.ours.close()
        self.theirs.close()

    def reset(self, seed: Any = None, mask: np.ndarray | None = None, **options: Any) -> None:
        """Resets both, all environments or those in `mask`."""
        if mask is not None:
            options["reset_mask"] = mask
        # Each gets a dict of its own: the mask is taken out of it.
        ours = self.ours.reset(seed=seed, options=dict(options) if options else None)
        theirs = self.theirs.reset(seed=seed, options=dict(options) if options else None)
        # Nothing but Acrobot's single-precision sines is computed in a reset: equal on every machine.
        assert_same(ours, theirs, f"{self.task} after reset")
        self.obs = ours[0]
        self.ended = np.zeros_like(self.ended) if mask is None else self.ended & ~mask

    def step(self, actions: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, Any]:
        """Steps both; where nothing resets by itself, resets who ended before."""
        if self.mode == "disabled" and self.ended.any():
            self.reset(mask=self.ended.copy())
        # Each gets actions of its own: some wrappers write into them.
        ours, theirs = self.ours.step(actions.copy()), self.theirs.step(actions.copy())
        self.compare(ours, theirs)
        self.obs = ours[0]
        self.ended = ours[2] | ours[3]
        return ours

    def compare(self, ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> None:
        """Both must have stepped alike."""
        assert_same(ours, theirs, self.task, near=self.task in CLASSIC and not numpy_uses_libm())

    def drive(self, steps: int, rng: np.random.Generator) -> tuple[int, int]:
        """Steps towards the task's goal, with detours. Returns how many episodes terminated and were truncated."""
        ends = np.zeros(2, dtype=int)
        for _ in range(steps):
            _, _, terminated, truncated, _ = self.step(seeking_actions(self.task, self.obs, rng))
            ends += terminated.sum(), truncated.sum()
        return int(ends[0]), int(ends[1])


def random_actions(task: str, num_envs: int, rng: np.random.Generator) -> np.ndarray:
    """Actions drawn evenly from the action space of `task`."""
    return actions_of(single_action_space(task), num_envs, rng)


def actions_of(space: gymnasium.Space, num_envs: int, rng: np.random.Generator) -> np.ndarray:
    """Actions drawn evenly from an action space of one environment."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return rng.integers(0, space.n, num_envs)
    assert isinstance(space, gymnasium.spaces.Box)
    return rng.uniform(space.low, space.high, (num_envs, *space.shape)).astype(np.float32)


@functools.cache
def single_action_space(task: str) -> gymnasium.Space:
    return single(task).action_space


def seeking_actions(task: str, obs: Any, rng: np.random.Generator) -> np.ndarray:
    """Mostly what leads to the goal where chance would not, so that episodes end; sometimes anything."""
    num_envs = _rows(obs)
    actions = random_actions(task, num_envs, rng)
    led = rng.random(num_envs) < 0.8
    if task == "MountainCar-v0":
        wanted = np.where(obs[:, 1] >= 0, 2, 0)
    elif task == "MountainCarContinuous-v0":
        wanted = np.where(obs[:, 1:] >= 0, 1, -1).astype(np.float32)
        led = led[:, None]
    elif task == "Acrobot-v1":
        wanted = np.where(obs[:, 4] > 0, 0, 2)
    elif task.startswith("CliffWalking"):
        wanted = np.select([obs == 36, obs % 12 == 11], [0, 2], 1)
    elif task.startswith("Taxi"):
        wanted = _taxi_route(obs)
    else:
        return actions
    return np.where(led, wanted, actions)


def _rows(obs: Any) -> int:
    return len(obs[0] if isinstance(obs, tuple) else obs)


def _taxi_route(state: np.ndarray) -> np.ndarray:
    """South, north, east, west, pickup or dropoff: by the row in the middle, which has no walls."""
    row, column, passenger, destination = state // 100, state // 20 % 5, state // 4 % 5, state % 4
    aim = np.where(passenger == 4, destination, passenger)
    aim_row, aim_column = np.array([0, 0, 4, 4])[aim], np.array([0, 4, 0, 3])[aim]
    passing = np.where(column == aim_column, aim_row, 2)
    return np.select(
        [row < passing, row > passing, column < aim_column, column > aim_column, passenger == 4], [0, 1, 2, 3, 5], 4
    )


def assert_same(ours: Any, theirs: Any, where: str = "", *, near: bool = False) -> None:
    """Equal in structure, type, shape and every bit; only the measured time of an episode may differ.

    With `near`, floats in arrays may be 1e-9 apart, and the last bit of their precision.
    """
    if isinstance(theirs, dict):
        assert isinstance(ours, dict), where
        assert ours.keys() == theirs.keys(), where
        for key in theirs:
            if key != "t" or not where.endswith("['episode']"):
                assert_same(ours[key], theirs[key], f"{where}[{key!r}]", near=near)
    elif isinstance(theirs, (tuple, list)):
        assert type(ours) is type(theirs), where
        assert len(ours) == len(theirs), where
        for i, (our, their) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(our, their, f"{where}[{i}]", near=near)
    elif isinstance(theirs, np.ndarray):
        assert isinstance(ours, np.ndarray), where
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), where
        if theirs.dtype == object:
            assert_same(list(ours), list(theirs), where, near=near)
        else:
            equal = _near(ours, theirs) if near and theirs.dtype.kind == "f" else ours.tobytes() == theirs.tobytes()
            assert equal, f"{where}: {ours} is not {theirs}"
    else:
        assert type(ours) is type(theirs), f"{where}: {ours!r} is not {theirs!r}"
        assert ours == theirs, where


def _near(ours: np.ndarray, theirs: np.ndarray) -> bool:
    with np.errstate(invalid="ignore"):  # infinities have no distance: they are equal or not
        apart = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
        return bool(np.all((ours == theirs) | (apart <= 1e-9 + np.spacing(np.abs(theirs)))))


@functools.cache
def numpy_uses_libm() -> bool:
    """Whether NumPy's double-precision sines and cosines are the C library's, as a pool's are."""
    values = np.random.default_rng(0).uniform(-10, 10, 5000)
    return all(np.sin(x) == math.sin(x) and np.cos(x) == math.cos(x) for x in values)
