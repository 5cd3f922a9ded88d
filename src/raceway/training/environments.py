"""Where the environments of a run come from: a name, callables, or a vector environment that is there already."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from gymnasium.vector import VectorEnv

import raceway
from raceway.envs import user_native
from raceway.envs.catalog import tasks
from raceway.envs.native import NativePool
from raceway.envs.python import InlinePool, ProcessPool, python_pool
from raceway.envs.python.makers import takes_argument
from raceway.errors import SettingError, UserError
from raceway.messages import printable, quoted

Target = str | Callable[..., Any] | Sequence[Callable[..., Any]] | VectorEnv
Lane = Literal["auto", "native", "process", "inline"]
OnError = Literal["raise", "restart"]


@dataclass(frozen=True)
class EnvSource:
    """How to make the environments of a run, as many as are wanted, in any process."""

    target: Target
    args: Mapping[str, Any] = field(default_factory=dict)
    lane: Lane = "auto"
    """Where those in Python run: in processes, or in the calling thread. A native task's name means its native one."""
    on_error: OnError = "raise"
    """What becomes of one in Python that raises, or of those of a worker that is lost."""
    worker_timeout: float | None = None
    """Seconds after which a worker process that does not answer is given up."""

    @property
    def name(self) -> str:
        """For folders and reports."""
        if user_native.is_path(self.target):
            return Path(self.target).stem
        if isinstance(self.target, str):
            return self.target.rpartition(":")[2]
        if isinstance(self.target, VectorEnv):
            return self.target.spec.id if self.target.spec else type(self.target.unwrapped).__name__
        one = self.target[0] if isinstance(self.target, Sequence) else self.target
        return getattr(one, "__name__", type(one).__name__)

    @property
    def full_name(self) -> str:
        """Tells it from others as far as a name can: an id, `module:callable`, or the absolute path of a header."""
        return user_native.source_of(name_of(self.target))

    @property
    def is_native(self) -> bool:
        """Whether the task runs in the native pool."""
        is_there = isinstance(self.target, str) and self.target.removeprefix("raceway/") in tasks()
        return (is_there or user_native.is_path(self.target)) and self.lane in ("auto", "native")

    @property
    def is_single(self) -> bool:
        """Whether there is only this one: no second can be made, here or in another process."""
        return isinstance(self.target, VectorEnv)

    def make(
        self,
        num_envs: int,
        *,
        first: int = 0,
        num_workers: int | None = None,
        render_mode: str | None = None,
        autoreset: str = "same_step",
    ) -> VectorEnv:
        """A vector environment of this kind, reset within the step where that can be chosen.

        first: the number of its first environment among all of the run.
        """
        if isinstance(self.target, VectorEnv):
            if self.target.num_envs != num_envs:
                raise SettingError(
                    f"num_envs={num_envs}, but the vector environment that was given has {self.target.num_envs}. "
                    f"Leave num_envs out, or use {self.target.num_envs}."
                )
            return self.target
        if self.is_native:
            return self.make_native(num_envs, num_workers=num_workers, render_mode=render_mode, autoreset=autoreset)
        how: dict[str, Any] = {"num_workers": num_workers, "render_mode": render_mode, "autoreset": autoreset}
        return self.make_python(num_envs, first=first, **how)

    @property
    def inline(self) -> EnvSource:
        """The same without processes: those in Python run where they are made."""
        return self if self.is_native or self.lane == "native" else replace(self, lane="inline")

    def make_python(
        self,
        num_envs: int,
        *,
        first: int = 0,
        num_workers: int | None = None,
        render_mode: str | None = None,
        autoreset: str = "same_step",
    ) -> InlinePool | ProcessPool:
        """A pool of environments in Python, whose episodes can be played again from their seeds."""
        if self.lane == "native":
            raise SettingError(
                f"lane='native', but {self.name} is not one of Raceway's own (raceway list envs). Use 'auto', "
                "'process' or 'inline'."
            )
        target = self.target
        if isinstance(target, Sequence) and not isinstance(target, str):  # they take turns
            target = list(islice(cycle(target), first, first + num_envs))
        args = dict(self.args)
        if render_mode is not None and takes_argument(target, "render_mode"):  # else it may draw in a mode of its own
            args["render_mode"] = render_mode
        with self._arguments_told():
            return python_pool(
                target,
                num_envs,
                lane="inline" if self.lane == "inline" else "process",
                num_workers=num_workers,
                autoreset=autoreset,
                episode_seeds=True,
                on_error=self.on_error,
                worker_timeout=self.worker_timeout,
                kwargs=args,
            )

    def make_native(
        self,
        num_envs: int,
        *,
        num_workers: int | None = None,
        render_mode: str | None = None,
        autoreset: str = "same_step",
    ) -> NativePool:
        """The same as a native pool, which episodes are recorded in."""
        assert isinstance(self.target, str)
        with self._arguments_told():
            return raceway.make(
                self.target,
                num_envs,
                num_workers=num_workers,
                autoreset=autoreset,
                record_episodes=True,
                render_mode=render_mode,
                **self.args,
            )

    @contextmanager
    def _arguments_told(self) -> Iterator[None]:
        """Arguments that do not fit the environment are the user's to put right, whether given now or in a folder."""
        try:
            yield
        except UserError:
            raise
        except (TypeError, ValueError, OverflowError, OSError, MemoryError) as error:
            said = printable(str(error) or type(error).__name__, 1000)
            given = f" (env_args={quoted(dict(self.args))})" if self.args else ""
            raise SettingError(f"{printable(self.name)} cannot be made{given}: {said}") from error


def can_draw(target: Target, env: VectorEnv) -> bool:
    """Whether pictures can be had of environments like `env`, which was made of `target`."""
    if "rgb_array" not in env.metadata.get("render_modes", ()):
        return False
    if isinstance(target, VectorEnv) or user_native.is_path(target):
        return True
    return takes_argument(target, "render_mode") or env.render_mode == "rgb_array"


def env_seed(seed: int, purpose: str) -> int:
    """The seed of the first environment of a run; environment i gets the i-th after it.

    Spread out, so that runs with neighbouring seeds hardly ever share one, and neither do training and evaluation.
    """
    return int(np.random.SeedSequence([seed, *purpose.encode()]).generate_state(1)[0]) % (1 << 30)


def name_of(env: Any) -> str:
    """An environment by a name that tells it: its id, or `module:callable`."""
    if isinstance(env, str):
        return env
    if isinstance(env, (list, tuple)):  # which no name leads to
        return f"{name_of(env[0])}<{len(env)} of them>" if env else "[]"
    spec = getattr(env, "spec", None)
    if spec is not None and hasattr(spec, "id"):
        return str(spec.id)
    return qualified_name(env) if callable(env) else type(env).__name__


def qualified_name(thing: Any) -> str:
    """`module:name`; if that does not lead to it, as for partials and what was decorated, `module:<name>`."""
    if not hasattr(thing, "__qualname__"):
        return f"{type(thing).__module__}:<{type(thing).__qualname__}>"
    module, name = thing.__module__, thing.__qualname__
    found: Any = sys.modules.get(module)
    if module == "__main__" or found is None or "<" in name:  # in every process of a run it has the same name
        return f"{module}:{name}"
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"{module}:{name}" if found is thing else f"{module}:<{name}>"
