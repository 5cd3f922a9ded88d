"""The native lane: a pool of C++ environments as a Gymnasium vector environment."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from raceway import _core
from raceway.envs import infos, state
from raceway.envs.arguments import (
    EnvArguments,
    autoreset_mode,
    env_arguments,
    reset_mask_of,
    reset_options,
    seed_list,
    timeout_of,
)
from raceway.envs.catalog import MOST_WORKERS, find_task, flag, positive
from raceway.envs.render import GymnasiumRenderer, OwnRenderer, Renderer
from raceway.envs.render_mujoco import MujocoRenderer
from raceway.envs.spaces import bytes_of, difference_of, observation_space_of, space_of
from raceway.memory import require_memory

_LEAST_BYTES = 200
"""What any environment takes: its generator, its counts, its entries in lists."""
_COPIES = 8
"""How often an environment's numbers are there: its own, rows of several steps, the bounds of its spaces."""


class NativePool(VectorEnv):
    """A batch of native environments: Gymnasium's vector API, plus `send` and `recv` for those that are ready first.

    Arrays handed out are the caller's to keep: their memory is used again only when the last of them is gone. With
    `copy=False` they are the same memory each time: valid until the next `reset` or `step` (`recv` has its own, valid
    until the next `recv`).

    Beyond Gymnasium:

    - `async_reset()`, `send(actions, env_ids)`, `recv(timeout)`: one thread may send while another receives.
    - `observe()`: the current observations again, as after `set_state`.
    - `state()`, `set_state()`: the whole pool to the bit.
    """

    lane = "native"

    def __init__(
        self,
        id: str,  # noqa: A002
        num_envs: int,
        *,
        batch_size: int | None,
        num_workers: int | None,
        seed: int | Sequence[int | None] | None,
        autoreset: str | AutoresetMode,
        max_episode_steps: int | None,
        record_episodes: bool,
        render_mode: str | None,
        copy: bool,
        pin: bool,
        env_kwargs: Sequence[Mapping[str, Any]] | None,
        **kwargs: Any,
    ) -> None:
        task = self._task = find_task(id)
        mode = autoreset_mode(autoreset)
        self.num_envs = positive("num_envs", num_envs)
        self._check_memory(_LEAST_BYTES)
        self.batch_size = positive("batch_size", batch_size if batch_size is not None else num_envs, num_envs)
        arguments = env_arguments(task, self.num_envs, max_episode_steps, kwargs, env_kwargs)
        self._arguments = arguments
        configurations = _core.Configurations(task.id, arguments.distinct)
        self._describe_spaces(configurations, arguments)
        self._renderer = self._renderer_for(render_mode, configurations)
        self.render_mode = render_mode
        self.metadata = self._renderer.metadata | {"autoreset_mode": mode}
        self._pool = _core.Pool(
            configurations,
            arguments.which,
            arguments.limits,
            {
                "batch_size": self.batch_size,
                "num_workers": positive("num_workers", num_workers, MOST_WORKERS) if num_workers is not None else 0,
                "autoreset": list(AutoresetMode).index(mode),
                "record_episodes": flag("record_episodes", record_episodes),
                "pin": flag("pin", pin),
                "copy": flag("copy", copy),
            },
        )
        if isinstance(self._renderer, OwnRenderer):
            self._renderer.pictures = self._pool.pictures
        self._native_step = self._pool.step
        # What an ended episode leaves in the infos is put together here; else a step is the native call alone.
        self._tells_ends = mode == AutoresetMode.SAME_STEP or record_episodes
        self._pool.seed(seed_list(seed if seed is not None else secrets.randbits(127), self.num_envs))

    def _check_memory(self, bytes_each: int) -> None:
        what = f"num_envs={self.num_envs} environments of {self._task.id}"
        require_memory(self.num_envs * bytes_each, what, "Use fewer.")

    def _describe_spaces(self, configurations: _core.Configurations, arguments: EnvArguments) -> None:
        self._layout = configurations.layout(0)
        self.single_observation_space = observation_space_of(self._layout)
        self.single_action_space = space_of(self._layout["action"])
        for index in range(1, len(configurations)):
            if difference := difference_of(self._layout, configurations.layout(index)):
                what, how = difference
                raise ValueError(
                    f"environment {arguments.which.index(index)} has another {what} than environment 0 ({how}): in one "
                    "pool they must be equal. Make a pool for each."
                )
        columns = [*self._layout["observation"], self._layout["action"], *self._layout["info"], *self._layout["state"]]
        self._check_memory(_LEAST_BYTES + _COPIES * sum(map(bytes_of, columns)))
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._scalar_obs = all(column["discrete"] for column in self._layout["observation"])

    def _renderer_for(self, render_mode: str | None, configurations: _core.Configurations) -> Renderer:
        task, step_s = self._task, self._layout["step_s"]
        if task.model_argument:
            return MujocoRenderer(task, render_mode, self._arguments, step_s)
        if task.is_built_in:
            return GymnasiumRenderer(task.id, render_mode, self._arguments)
        fps = max(1, round(1 / step_s)) if step_s > 0 else 30
        return OwnRenderer(task.id, render_mode, fps, has_pictures=configurations.has_pictures)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Resets all environments, or those in `options["reset_mask"]` (taken out of `options`, as Gymnasium does).

        `seed` is an int (environment i gets seed + i), a list with an entry per environment, or None: their
        generators go on. What is in flight is finished and dropped.
        """
        mask = reset_mask_of(options, self.num_envs)
        values = reset_options(self._task, options)
        seeds = [] if seed is None else seed_list(seed, self.num_envs)
        if mask is not None:
            seeds = [each if marked else None for each, marked in zip(seeds, mask, strict=False)]
        observations, *_, made = self._pool.reset(mask, values, seeds)
        return observations, infos.without_ends(made)

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Steps every environment: (observations, rewards, terminated, truncated, infos)."""
        result = self._native_step(actions)
        return self._with_ends(result) if self._tells_ends else result

    def async_reset(self) -> None:
        """Starts a reset of every environment; `recv` returns them as they are ready."""
        self._pool.async_reset()

    def send(self, actions: Any, env_ids: Any = None) -> None:
        """Starts a step of the environments in `env_ids` (None: all of them, in order), one action for each."""
        self._pool.send(actions, env_ids)

    def recv(self, timeout: float | None = None) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """The first `batch_size` environments that are ready, as `step` returns them.

        `infos["env_id"]` says which they are, in rising order. Raises TimeoutError after `timeout` seconds; nothing
        is lost by it. Without a timeout, a batch that can never be full is an error at once.
        """
        result = self._pool.recv(timeout_of(timeout))
        return self._with_ends(result) if self._tells_ends else result

    def _with_ends(self, result: tuple[Any, ...]) -> tuple[Any, ...]:
        *_, terminated, truncated, made = result
        infos.add_ends(made, terminated | truncated, scalar_obs=self._scalar_obs)
        return result

    def observe(self) -> Any:
        """The current observations: what the last reset or step returned, or where `set_state` put them."""
        return self._pool.observe()

    def state(self) -> dict[str, Any]:
        """Everything that decides how the pool goes on: environments, generators, episodes, pending autoresets."""
        return {"id": self._task.id, **state.split(self._layout["state"], self._pool.save())}

    def set_state(self, state_: Mapping[str, Any]) -> None:
        """Goes back to what `state` returned, of this pool or another of the same task, arguments and size."""
        arrays = dict(state_)
        if (name := arrays.pop("id", None)) != self._task.id:
            raise ValueError(f"the state is of {name!r}, this pool of {self._task.id!r}.")
        self._pool.load(*state.join(self._layout["state"], self.num_envs, arrays))

    def render(self) -> tuple[Any, ...] | None:
        """A picture of each environment, as Gymnasium draws it."""
        if self.render_mode is None:
            self._renderer.warn_without_mode()
            return None
        return self._renderer.draw(self.state())

    def prefer_drafts(self) -> None:
        """Pictures may be coarser than Gymnasium's where drawing takes long: MuJoCo tasks, where the CPU draws."""
        self._renderer.is_draft = True

    def follow(self) -> None:
        """Draws MuJoCo tasks with the model's camera "track", if it has one and no other was chosen.

        Gymnasium's camera stays where it is: most robots have left the picture after some dozen steps.
        """
        self._renderer.follows = True

    @property
    def coarse_by(self) -> str:
        """What OpenGL calls the software that drew coarser pictures; empty if they are as Gymnasium's."""
        return self._renderer.coarse_by

    @property
    def faults(self) -> np.ndarray:
        """How many episodes of each environment ended because a step could not be computed (`infos["fault"]`)."""
        return self._pool.faults()

    @property
    def task_id(self) -> str:
        """The task's name, without a namespace."""
        return self._task.id

    @property
    def is_built_in(self) -> bool:
        """Whether the task is one of Raceway's own, not a user's."""
        return self._task.is_built_in

    @property
    def native(self) -> _core.Pool:
        """What is below this API, for those who run whole rounds in it."""
        return self._pool

    @property
    def num_workers(self) -> int:
        """Threads at work at once, the calling one among them. They are started when they are first needed."""
        return self._pool.workers

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the threads. What is in flight is dropped; a step under way is waited for, two seconds at most."""
        try:
            self._pool.close()
        finally:  # Ctrl-C may end the wait for a step
            self._renderer.close()

    def __repr__(self) -> str:
        return f"NativePool({self._task.id}, num_envs={self.num_envs}, num_workers={self.num_workers})"
