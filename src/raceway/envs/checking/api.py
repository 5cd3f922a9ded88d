"""Whether it is an environment of Gymnasium's: what it is made of, what its methods take and return."""

from __future__ import annotations

import inspect
import time
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from raceway.algos.spaces import observation_leaves
from raceway.envs.checking.masks import Masks
from raceway.envs.checking.notebook import Facts, Notebook
from raceway.envs.checking.returns import WrongReturnError, read_reset, read_step
from raceway.envs.checking.subject import EnvBrokeError, Subject, layers
from raceway.envs.checking.values import kind_of, shown

_SEED = "def reset(self, *, seed=None, options=None): and in it super().reset(seed=seed)"


class StopError(Exception):
    """Nothing more can be looked at."""


def made(subject: Subject, notes: Notebook, facts: Facts) -> None:
    """Making it, and what comes of that."""
    started = time.perf_counter()
    env = subject.make()
    facts.make_s = time.perf_counter() - started
    _is_env(env, notes)
    for name in ("observation_space", "action_space"):
        _is_space(env, name, notes)
    facts.time_limit = _time_limit(env)
    if facts.is_native:
        facts.obs_size = sum(leaf.size for leaf in observation_leaves(env.observation_space))


def _is_env(env: Any, notes: Notebook) -> None:
    if isinstance(env, gymnasium.Env):
        return
    family = {base.__module__.partition(".")[0] for base in type(env).__mro__}
    what = f"It is {kind_of(env)}"
    if isinstance(env, VectorEnv):
        text, fix = f"{what}, a vector environment.", "give the function that makes one environment"
    elif "gym" in family:
        text = f"{what} of the package gym, which Gymnasium has replaced."
        fix = "import gymnasium as gym; or wrap it: gymnasium.make('GymV21Environment-v0', env=...) (package shimmy)"
    elif hasattr(env, "reset") and hasattr(env, "step"):
        text, fix = f"{what}, not a gymnasium.Env.", f"class {type(env).__name__}(gymnasium.Env)"
    else:
        text, fix = f"{what}, not an environment.", "give a class, or a function that returns an environment"
    notes.problem("not-an-env", text, fix)
    raise StopError


def _is_space(env: Any, name: str, notes: Notebook) -> None:
    space = getattr(env, name, None)
    if isinstance(space, gymnasium.Space):
        return
    what = "is missing" if space is None else f"is {shown(space)}, not a gymnasium.Space"
    notes.problem("no-space", f"{name} {what}.", f"set self.{name} = gymnasium.spaces.Box(...) or another in __init__")
    raise StopError


def _time_limit(env: gymnasium.Env) -> int | None:
    limiting = [layer for layer in layers(env) if isinstance(layer, gymnasium.wrappers.TimeLimit)]
    limits: list[int | None] = [layer._max_episode_steps for layer in limiting]
    if not limits and env.spec is not None and not isinstance(env, gymnasium.Wrapper):
        limits = [env.spec.max_episode_steps]
    known = [int(limit) for limit in limits if limit and limit > 0]
    return min(known) if known else None


def called(subject: Subject, notes: Notebook, facts: Facts) -> None:
    """The first calls of `reset` and `step`, and what these take."""
    env = subject.make()
    _signatures(env, notes)
    takes_seed = not notes.has("reset-takes-no-seed")
    first = subject.raw_reset(env, **({"seed": 0} if takes_seed else {}))
    _obs, info = read_reset(first)
    facts.has_masks = "action_mask" in info
    masks = Masks(env.action_space)
    masks.after_reset(info)
    started = time.perf_counter()
    step = read_step(subject.raw_step(env, subject.actions(env).at(0, info)))
    facts.step_s = time.perf_counter() - started
    masks.after_step(step.info, step.is_end)
    for oddity in step.oddities:
        notes.note(*oddity)
    if not takes_seed:
        raise StopError
    try:
        subject.close(env)
    except EnvBrokeError as error:
        notes.note("close-raises", error.text, "make close harmless, also after a failure", error.details)
    notes.ok("api", "reset and step take and return what Gymnasium says")


def early(subject: Subject, notes: Notebook, facts: Facts) -> None:
    """A step before the first reset. Nobody here takes one; but whoever does should not lose the process by it."""
    env = subject.make()
    action = subject.actions(env).at(0, {})
    try:
        read_step(subject.raw_step(env, action))
    except EnvBrokeError as error:
        if isinstance(error.error, SystemExit):
            notes.note("exits-before-reset", f"Before the first reset, {error.text}", "raise an error instead")
    except WrongReturnError:
        pass


def _signatures(env: gymnasium.Env, notes: Notebook) -> None:
    """Of the environment itself: Gymnasium's wrappers take everything."""
    reset, step = _parameters(env.unwrapped.reset), _parameters(env.unwrapped.step)
    if reset is not None and not _takes(reset, "seed"):
        notes.problem("reset-takes-no-seed", f"reset takes no seed: it is reset({', '.join(reset)}).", _SEED)
    elif reset is not None and not _takes(reset, "options"):
        notes.note("reset-takes-no-options", f"reset takes no options: it is reset({', '.join(reset)}).", _SEED)
    if step is not None:
        needed = [each for each in step.values() if each.default is each.empty and each.kind < each.VAR_POSITIONAL]
        takes_more = any(each.kind == each.VAR_POSITIONAL for each in step.values())
        if len(needed) > 1 or (not step and not takes_more):
            notes.problem(
                "step-signature", f"step takes one action, but it is step({', '.join(step)}).", "def step(self, action)"
            )
            raise StopError


def _parameters(method: Any) -> dict[str, inspect.Parameter] | None:
    try:
        return dict(inspect.signature(method).parameters)
    except (TypeError, ValueError):  # some that are not written in Python do not tell
        return None


def _takes(parameters: dict[str, inspect.Parameter], name: str) -> bool:
    return name in parameters or any(each.kind == each.VAR_KEYWORD for each in parameters.values())
