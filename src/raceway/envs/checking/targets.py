"""What is to be checked: a name, a file or a callable, and how to make one of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from raceway.envs import user_native
from raceway.envs.catalog import tasks
from raceway.envs.python.makers import check_known, makers_of, takes_argument
from raceway.errors import SettingError


@dataclass(frozen=True)
class Target:
    """An environment that is to be checked."""

    env: Any
    """A name, the path of a header, or a callable."""
    args: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        if user_native.is_path(self.env):
            return os.path.basename(self.env)
        if isinstance(self.env, str):
            return self.env
        return getattr(self.env, "__name__", type(self.env).__name__)

    @property
    def is_header(self) -> bool:
        """Whether it is a native environment of the user's own."""
        return user_native.is_path(self.env)

    @property
    def is_native(self) -> bool:
        """Whether it runs in the native pool."""
        return self.is_header or (isinstance(self.env, str) and self.env.removeprefix("raceway/") in tasks())

    @property
    def in_python(self) -> bool:
        """Whether the lanes for Python environments can run it."""
        return not self.is_native or (isinstance(self.env, str) and self.env in gymnasium.registry)

    def loaded(self) -> Target:
        """With its own code made known to this process, where it is a file that must be compiled."""
        return Target(user_native.resolve(self.env) or self.env, self.args)

    def maker(self) -> Callable[..., Any]:
        """What makes one, with further arguments if there are any. Imports the module that it is named in."""
        if self.is_native:
            from raceway.envs.checking.native_view import NativeView

            return lambda **more: NativeView(self.env, **{**self.args, **more})
        make = self._maker({})
        return lambda **more: self._maker(more)() if more else make()

    def takes(self, name: str) -> bool:
        """Whether it may be made with an argument of this name."""
        return self.is_native or takes_argument(self.env, name)

    def _maker(self, more: Mapping[str, Any]) -> Callable[[], Any]:
        return makers_of(self.env, 1, shared={**self.args, **more}).makers[0]


def target_of(env: Any, args: Mapping[str, Any] | None) -> Target:
    """Refuses what no second one can be made of, and names that nobody knows."""
    if isinstance(env, (gymnasium.Env, VectorEnv)):
        raise SettingError(
            f"{type(env).__name__} is one environment that is there already: a check makes several, in processes of "
            "their own. Give what makes it: its name, its class, or a function."
        )
    if not isinstance(env, (str, os.PathLike)) and not callable(env):
        raise SettingError(
            f"env={env!r} is no environment. Give a name (raceway list envs), 'package.module:callable', the path of a "
            ".hpp file, or a callable that makes one."
        )
    if user_native.is_path(env):
        env = os.path.abspath(env)
    elif isinstance(env, str) and ":" not in env:
        check_known(env)
        env = env.removeprefix("raceway/")
    return Target(env, dict(args or {}))
