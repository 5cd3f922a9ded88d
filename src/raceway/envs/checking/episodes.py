"""Whether episodes end and begin again, and whether what was handed out stays as it was."""

from __future__ import annotations

import copy
from typing import Any

from raceway.envs.checking.notebook import Facts, Notebook
from raceway.envs.checking.returns import WrongReturnError
from raceway.envs.checking.subject import EnvBrokeError, Subject
from raceway.envs.checking.values import arrays_in, digest
from raceway.report.words import count, number

_STEPS = 64
_SECONDS = 0.4
_ENOUGH = 1000
"""Steps without an end that say something."""


def ended(subject: Subject, notes: Notebook, facts: Facts) -> None:
    """How long they are, by what was seen of them."""
    limit, length = facts.time_limit, facts.mean_length
    until = f"their limit is {count(limit)}" if limit else "there is no limit"
    if length is not None:
        if length <= 1.0:
            notes.note("one-step-episodes", "Every episode ended with its first step.", "look at what sets terminated")
        else:
            notes.ok("episodes", f"episodes of {number(length)} steps by random actions; {until}")
    elif limit:
        notes.ok("episodes", f"no episode ended in {count(facts.steps_seen)} steps; {until}")
    elif facts.steps_seen >= _ENOUGH:
        notes.note(
            "never-ends",
            f"No episode ended in {count(facts.steps_seen)} steps of random actions, and there is no limit: there "
            "may never be a return to report.",
            "give max_episode_steps when it is registered, or wrap it in gymnasium.wrappers.TimeLimit(env, 1000)",
        )
    else:
        notes.ok("episodes", f"no episode ended in {count(facts.steps_seen)} steps, too few to tell; {until}")


def kept(subject: Subject, notes: Notebook, facts: Facts) -> None:
    """Whether observations, infos and actions stay as they were handed over."""
    env = subject.make()
    last: tuple[Any, bytes] | None = None
    for given, step in subject.steps(env, seed=5, most=_STEPS, seconds=_SECONDS):
        if last is not None and digest(last[0]) != last[1]:
            notes.note(
                "observation-reused",
                "An observation changed when the next step was taken: the same array is returned and overwritten. "
                "Whoever keeps it, such as a replay buffer or final_obs, has the wrong one. Raceway's lanes copy it.",
                "return a new array, or self._obs.copy()",
            )
        obs = given if step is None else step.obs
        last = obs, digest(obs)
    if not facts.is_slow:
        _scribbled(subject, notes)
        _actions_kept(subject, notes)
    if not notes.has("observation-reused", "observation-is-state", "action-changed"):
        notes.ok("arrays", "observations and actions stay as they were handed over")


def _scribbled(subject: Subject, notes: Notebook) -> None:
    """An observation that is written to must not change what follows."""
    clean = subject.trace(subject.make(), seed=5, most=_STEPS, seconds=_SECONDS)
    env = subject.make()
    found = []
    for given, step in subject.steps(env, seed=5, most=len(clean) - 1):
        obs = given if step is None else step.obs
        found.append(digest(obs) if step is None else digest(obs, float(step.reward), step.terminated, step.truncated))
        for array in arrays_in(obs):
            if array.flags.writeable and array.dtype.kind in "biuf":
                array[...] = 0
    again = subject.trace(subject.make(), seed=5, most=len(clean) - 1)
    if found[: len(clean)] != clean and again[: len(clean)] == clean:
        notes.note(
            "observation-is-state",
            "Writing into an observation changes the steps that follow: the environment hands out its own state. A "
            "wrapper that scales in place would change the task.",
            "return a copy: self.state.copy()",
        )


def _actions_kept(subject: Subject, notes: Notebook) -> None:
    env = subject.make()
    actions = subject.actions(env)
    _, info = subject.reset(env, 5)
    action = actions.at(0, info)
    before = copy.deepcopy(action)
    subject.step(env, action)
    if digest(action) != digest(before):
        notes.note(
            "action-changed",
            "step changes the action that it is given: what the trainer learns from would not be what the policy drew.",
            "work on a copy: action = action.copy(), or np.clip without out=",
        )


def gone_on(subject: Subject, notes: Notebook, facts: Facts) -> None:
    """A step after an episode's end. Nobody here does it; it must only not take the process with it."""
    if facts.mean_length is None or facts.is_slow:
        return
    env = subject.make()
    most = int(min(facts.mean_length * 20 + 100, 5000))
    is_over = False
    actions = subject.actions(env)
    _, info = subject.reset(env, 0)
    for index in range(most):
        step = subject.step(env, actions.at(index, info))
        info = step.info
        if step.is_end:
            is_over = True
            break
    if not is_over:
        return
    try:
        subject.step(env, actions.at(0, info))
    except EnvBrokeError as error:
        if isinstance(error.error, SystemExit):
            notes.note("exits-after-end", f"After an episode's end, {error.text}", "raise an error instead")
    except WrongReturnError as error:
        notes.ok("after-end", f"after an episode's end: {error.text}")
    first = subject.reset(env, 0)[0]
    if digest(first) != digest(subject.reset(subject.make(), 0)[0]) and facts.is_deterministic and facts.is_repeatable:
        notes.note(
            "reset-after-end",
            "A reset after a step past the episode's end does not begin as usual.",
            "set everything anew in reset",
        )
