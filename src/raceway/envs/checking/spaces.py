"""Whether observations are what their space says, and whether trainers can use the spaces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium import Space, spaces

from raceway.algos.spaces import SMALLEST_IMAGE, action_parts, image_size, observation_leaves
from raceway.envs.checking.masks import Masks
from raceway.envs.checking.notebook import Facts, Notebook
from raceway.envs.checking.observations import Sizes, faults
from raceway.envs.checking.returns import Step
from raceway.envs.checking.subject import EnvBrokeError, Subject
from raceway.envs.checking.values import shown
from raceway.report.words import count, number

MOST_STEPS = 2000
SECONDS = 1.5
_LARGE, _SMALL = 50.0, 0.02
"""Of an observation's mean size: a network that is not told otherwise expects about 1."""


def seen(subject: Subject, notes: Notebook, facts: Facts) -> None:
    """Some episodes by random actions, each observation held against its space."""
    env = subject.make()
    _usable(env.observation_space, env.action_space, notes, facts)
    sizes = Sizes()
    lengths: list[int] = []
    length = steps = 0
    for given, step in subject.steps(env, seed=0, most=MOST_STEPS, seconds=SECONDS, masks=Masks(env.action_space)):
        obs = given if step is None else step.obs
        for code, text, fix, is_bad in faults(env.observation_space, obs, "The observation"):
            (notes.problem if is_bad else notes.note)(code, _when(text, steps + (step is not None)), fix)
        sizes.add(obs)
        if step is None:
            length = 0
            continue
        steps, length = steps + 1, length + 1
        _odd(step, notes)
        if step.is_end:
            lengths.append(length)
    facts.steps_seen = steps
    facts.step_s = float(np.median(subject.step_times))
    facts.mean_length = float(np.mean(lengths)) if lengths else None
    facts.obs_bytes = sizes.bytes
    _scale(env.observation_space, sizes, notes, facts.is_native)
    _actions(env.action_space, notes)
    if not facts.has_masks:
        _edges(subject, env, notes)
    if not notes.has(*_OBSERVATION_CODES):
        what = shown_space(env.observation_space)
        notes.ok("observation", f"observations: {what}, within it in {count(steps)} steps")
    if not notes.has("action-unsupported", "action-unbounded", "action-scale", "action-edge"):
        notes.ok("action", f"actions: {shown_space(env.action_space)}")


def _when(text: str, steps: int) -> str:
    return f"{text[:-1]}, {f'at step {count(steps)}' if steps else 'after a reset'}."


def _odd(step: Step, notes: Notebook) -> None:
    for oddity in step.oddities:
        notes.note(*oddity)


_OBSERVATION_CODES = (
    "observation-kind",
    "observation-keys",
    "observation-shape",
    "observation-dtype",
    "observation-not-finite",
    "observation-range",
    "observation-outside",
    "observation-unsupported",
)


def _usable(observation: Space, action: Space, notes: Notebook, facts: Facts) -> None:
    try:
        observation_leaves(observation)
    except ValueError as error:
        facts.is_variable = _is_variable(observation)
        slower = " The process lane carries it, more slowly." if facts.is_variable else ""
        notes.problem("observation-unsupported", f"Trainers cannot use it: {error}{slower}")
    try:
        action_parts(action)
    except ValueError as error:
        facts.is_variable |= _is_variable(action)
        notes.problem("action-unsupported", str(error))


def _is_variable(space: Space) -> bool:
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        return any(map(_is_variable, space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces))
    return not isinstance(space, (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary))


def _leaves(space: Space, where: str = "") -> Iterator[tuple[str, Space]]:
    if isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            yield from _leaves(part, f"{where}[{key!r}]")
    elif isinstance(space, spaces.Tuple):
        for index, part in enumerate(space.spaces):
            yield from _leaves(part, f"{where}[{index}]")
    else:
        yield where, space


def _scale(space: Space, sizes: Sizes, notes: Notebook, is_native: bool) -> None:
    for where, leaf in _leaves(space):
        if not isinstance(leaf, spaces.Box):
            continue
        name = f"The observation{where}"
        if leaf.dtype == np.float64 and not is_native and not notes.has("observation-dtype"):
            notes.note(
                "observation-float64",
                f"{name} is float64: training rounds it to float32, after twice the bytes have been moved.",
                "return float32, the space too; or gymnasium.wrappers.DtypeObservation(env, np.float32)",
            )
        if leaf.dtype == np.uint8:
            _image(leaf, name, notes)
            continue
        size = sizes.mean(where)
        if size is not None and (size > _LARGE or 0.0 < size < _SMALL):
            notes.note(
                "observation-scale",
                f"{name} has a mean size of {number(size)}; networks learn best from numbers about 1.",
                "scale it, or train with --normalize-observations",
            )


def _image(space: spaces.Box, name: str, notes: Notebook) -> None:
    if len(space.shape) not in (2, 3) or np.prod(space.shape) < 256:
        return
    height, width, _channels = image_size(space.shape)
    if min(height, width) < SMALLEST_IMAGE:
        notes.note(
            "observation-image",
            f"{name} is an image of {height} x {width}: below {SMALLEST_IMAGE} x {SMALLEST_IMAGE} it is read as a "
            "flat row of numbers, without convolutions.",
            "return a larger one, or give a network of your own",
        )


def _actions(space: Space, notes: Notebook) -> None:
    if not isinstance(space, spaces.Box) or not np.issubdtype(space.dtype, np.floating):
        return
    if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
        notes.note(
            "action-unbounded",
            "Actions have no bounds: a policy begins with a spread of 1, whatever yours mean.",
            "bound the space, to -1 to 1 best, and scale within step",
        )
        return
    half = (space.high.astype(np.float64) - space.low) / 2
    middle = (space.high.astype(np.float64) + space.low) / 2
    if (half > 4).any() or (half < 0.2).any() or (np.abs(middle) > half).any():
        low, high = number(float(space.low.min())), number(float(space.high.max()))
        notes.note(
            "action-scale",
            f"Actions go from {low} to {high}: a policy begins with a spread of 1 around 0.",
            "gymnasium.wrappers.RescaleAction(env, -1.0, 1.0)",
        )


def _edges(subject: Subject, env: Any, notes: Notebook) -> None:
    """Policies send the bounds themselves, clipped, far more often than a random draw does."""
    space = env.action_space
    if not isinstance(space, spaces.Box) or not np.issubdtype(space.dtype, np.floating):
        return
    for bound in (space.low, space.high):
        if not np.isfinite(bound).all():
            continue
        subject.reset(env, 0)
        try:
            subject.step(env, bound.copy())
        except EnvBrokeError as error:
            text = f"With the action {shown(bound)}, which is within its space, {error.text}"
            notes.problem("action-edge", text, "take all of the space: policies are clipped to its bounds")
            return


def shown_space(space: Space) -> str:
    """Short: `Box(17,) of float32`, `Discrete(4)`."""
    if isinstance(space, spaces.Box):
        return f"Box{space.shape} of {space.dtype}"
    if isinstance(space, spaces.Dict):
        return f"Dict of {', '.join(map(str, space.spaces))}"
    return shown(space, 50)
