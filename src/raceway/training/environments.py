"""Where the environments of a run come from: a name, a callable, or a vector environment that is there already."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

import raceway
from raceway.envs.catalog import tasks
from raceway.envs.native import NativePool
from raceway.errors import SettingError
from raceway.names import did_you_mean

Target = str | Callable[..., Any] | VectorEnv


@dataclass(frozen=True)
class EnvSource:
    """How to make the environments of a run, as many as are wanted, in any process."""

    target: Target
    args: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """For folders and reports."""
        if isinstance(self.target, str):
            return self.target.rpartition(":")[2]
        if isinstance(self.target, VectorEnv):
            return self.target.spec.id if self.target.spec else type(self.target.unwrapped).__name__
        return getattr(self.target, "__name__", type(self.target).__name__)

    @property
    def is_native(self) -> bool:
        """Whether the task runs in the native pool, and so can have its policy in the worker."""
        return isinstance(self.target, str) and self.target.removeprefix("raceway/") in tasks()

    @property
    def is_single(self) -> bool:
        """Whether there is only this one: no second can be made, here or in another process."""
        return isinstance(self.target, VectorEnv)

    def make(self, num_envs: int, *, num_workers: int | None = None, render_mode: str | None = None) -> VectorEnv:
        """A vector environment of this kind, reset within the step where that can be chosen."""
        if isinstance(self.target, VectorEnv):
            if self.target.num_envs != num_envs:
                raise SettingError(
                    f"num_envs={num_envs}, but the vector environment that was given has {self.target.num_envs}. "
                    f"Leave num_envs out, or use {self.target.num_envs}."
                )
            return self.target
        if self.is_native:
            return self.make_native(num_envs, num_workers=num_workers, render_mode=render_mode)
        make_one = self._maker(render_mode)
        sample = make_one()
        sample.close()
        if not isinstance(sample, gymnasium.Env):
            raise SettingError(
                f"{self.name} made a {type(sample).__name__}, not a gymnasium.Env. A callable makes one environment; a "
                "vector environment is given itself: raceway.train(envs)."
            )
        return SyncVectorEnv([make_one] * num_envs, autoreset_mode=AutoresetMode.SAME_STEP)

    def make_native(
        self, num_envs: int, *, num_workers: int | None = None, render_mode: str | None = None
    ) -> NativePool:
        """The same as a native pool, which episodes are recorded in."""
        assert isinstance(self.target, str)
        return raceway.make(
            self.target,
            num_envs,
            num_workers=num_workers,
            autoreset="same_step",
            record_episodes=True,
            render_mode=render_mode,
            **self.args,
        )

    def _maker(self, render_mode: str | None) -> Callable[[], Any]:
        assert not isinstance(self.target, VectorEnv)
        args = dict(self.args) if render_mode is None else {**self.args, "render_mode": render_mode}
        if not isinstance(self.target, str):
            return called_with(self.target, args)
        if ":" in self.target:
            return called_with(find_callable(self.target), args)
        check_known(self.target)
        return partial(gymnasium.make, self.target, **args)


def called_with(target: Callable[..., Any], args: Mapping[str, Any]) -> Callable[[], Any]:
    """Refuses arguments that it does not take, with a near name."""
    if not callable(target):
        raise SettingError(
            f"env={target!r} is no environment. Give a name (raceway list envs), 'package.module:callable', a callable "
            "that makes one, or a vector environment."
        )
    try:
        names = inspect.signature(target).parameters
    except (TypeError, ValueError):  # some that are not written in Python do not tell
        return partial(target, **args)
    takes_all = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in names.values())
    for name in args:
        if name not in names and not takes_all:
            there_are = f"It takes: {', '.join(names)}." if names else "It takes none."
            raise SettingError(f"The environment has no argument {name!r}.{did_you_mean(name, names)} {there_are}")
    return partial(target, **args)


def find_callable(target: str) -> Callable[..., Any]:
    """What `package.module:callable` names."""
    if "<" in target or target.startswith("functools:"):
        raise SettingError(
            f"The environment of this run was made by {target!r}, which no name leads to. From Python it can be "
            "given again: raceway.evaluate(run, env=...). A function with a name in a module is found."
        )
    module_name, _, path = target.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not module_name.startswith(error.name):
            raise
        raise SettingError(
            f"No module {module_name!r} for the environment {target!r}. Modules are looked for in the current folder "
            "and among installed packages."
        ) from None
    for part in path.split("."):
        if not hasattr(found, part):
            names = [name for name in vars(found) if not name.startswith("_")]
            raise SettingError(f"Module {module_name!r} has no {path!r}.{did_you_mean(part, names)}")
        found = getattr(found, part)
    if not callable(found):
        raise SettingError(f"{target!r} is a {type(found).__name__}, not something to call for an environment.")
    return found


def check_known(name: str) -> None:
    """Refuses an id that neither Raceway nor Gymnasium knows, and suggests near ones."""
    if name.removeprefix("raceway/") in tasks() or name in gymnasium.registry:
        return
    known = sorted({*tasks(), *(id_ for id_ in gymnasium.registry if "/" not in id_)})
    raise SettingError(f"No environment {name!r}.{did_you_mean(name, known)} All native names: raceway list envs.")


def env_seed(seed: int, purpose: str) -> int:
    """The seed of the first environment of a run; environment i gets the i-th after it.

    Spread out, so that runs with neighbouring seeds hardly ever share one, and neither do training and evaluation.
    """
    return int(np.random.SeedSequence([seed, *purpose.encode()]).generate_state(1)[0]) % (1 << 30)
