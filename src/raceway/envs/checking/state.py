"""Whether a run that is stopped in the middle of an episode goes on exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from raceway.envs import env_state
from raceway.envs.checking.notebook import Facts, Notebook
from raceway.envs.checking.subject import Subject
from raceway.envs.checking.values import digest, shown
from raceway.report.words import count, number

_BEFORE, _AFTER = 7, 40
_SECONDS = 0.4
_TWO = "give it get_state(), which returns arrays and numbers, and set_state(state)"


def saved(subject: Subject, notes: Notebook, facts: Facts) -> None:
    """Saves, goes on, loads and goes on again, in the same instance and in another."""
    env = subject.make()
    info = _run(subject, env, 1 if facts.is_slow else _BEFORE)
    state = subject.call("get_state", env_state.save, env)
    if state is None:
        _replays(env, notes, facts)
        return
    state = _through_a_file(state, notes)
    if state is None:
        return
    first = _steps(subject, env, info, int(min(max(_SECONDS / max(facts.step_s, 1e-7), 2), _AFTER)))
    same = _loaded(subject, env, state, info, len(first))
    other_env = subject.make()
    subject.reset(other_env, 0)
    other = _loaded(subject, other_env, state, info, len(first))
    parted = next(((found, where) for found, where in ((same, "the same"), (other, "a new")) if found != first), None)
    if parted is None:
        notes.ok("state", "get_state and set_state are exact: a resumed run goes on with the same bits")
    elif not facts.is_repeatable:
        text = "Whether get_state and set_state are exact cannot be told: it is not deterministic."
        notes.note("state-unknown", text, "make it deterministic first")
    else:
        at = next(i for i, (one, two) in enumerate(zip(first, parted[0], strict=True), 1) if one != two)
        notes.problem(
            "state-inexact",
            f"After set_state with what get_state gave, {parted[1]} instance went on differently, at step {at}: a "
            "resumed run would be wrong and not know it.",
            "save all that step reads: every variable of the episode; np_random is seen to",
        )


def _through_a_file(state: Any, notes: Notebook) -> Any:
    """As a checkpoint would hold it; None if it cannot."""
    import json

    from raceway.graph.errors import GraphError
    from raceway.graph.packing import Unpacking, packed

    arrays: dict[str, Any] = {}
    try:
        text = json.dumps(packed(state, "state", arrays))
        bad = next((name for name, array in arrays.items() if array.dtype.kind not in "biuf"), None)
        if bad is not None:
            raise GraphError(f"{bad} is an array of {arrays[bad].dtype}.")
        return Unpacking({name: array.copy() for name, array in arrays.items()}).value(json.loads(text), "state")
    except (GraphError, TypeError, ValueError) as error:
        notes.problem(
            "state-not-plain",
            f"What get_state returns cannot be written to a checkpoint: {shown(str(error), 120)}",
            "return arrays, numbers, strings, and lists, tuples and dicts of them",
        )
        return None


def _replays(env: Any, notes: Notebook, facts: Facts) -> None:
    silent = env_state.silent_layers(env)
    who = f" ({', '.join(silent)} cannot tell)" if env_state.knows_its_state(env.unwrapped) else ""
    if facts.carriers and facts.is_deterministic is not False:
        notes.note(
            "state-lost",
            f"What {' and '.join(facts.carriers)} carried over is lost when a run is stopped: a resumed run begins new "
            "episodes.",
            f"take {' and '.join(facts.carriers)} out",
        )
        return
    if facts.is_deterministic is False:
        notes.note(
            "state-lost",
            f"It has no get_state and set_state{who}, and is not deterministic: a resumed run begins new episodes.",
            _TWO,
        )
        return
    length = facts.mean_length or facts.time_limit or facts.steps_seen
    seconds = length * facts.step_s
    text = f"no get_state and set_state{who}: a resumed run replays each episode from its seed, exactly"
    if seconds > 10.0:
        about = f"which takes about {number(seconds)} s for each environment"
        notes.note("state-replay-slow", f"{text[0].upper()}{text[1:]}, {about}.", _TWO)
    else:
        notes.ok("state", f"{text} ({count(length)} steps)")


def _run(subject: Subject, env: Any, steps: int) -> dict[str, Any]:
    """Some steps; the info of the last, which may have a mask."""
    actions = subject.actions(env)
    _, info = subject.reset(env, 21)
    for index in range(steps):
        step = subject.step(env, actions.at(index, info))
        info = step.info
        if step.is_end:
            _, info = subject.reset(env)
    return info


def _loaded(subject: Subject, env: Any, state: Sequence[Any], info: dict[str, Any], steps: int) -> list[bytes]:
    subject.call("set_state", env_state.load, env, state)
    return _steps(subject, env, info, steps)


def _steps(subject: Subject, env: Any, info: dict[str, Any], steps: int) -> list[bytes]:
    """The hashes of steps from where it is."""
    found = []
    actions = subject.actions(env)
    for index in range(steps):
        step = subject.step(env, actions.at(index, info))
        info = step.info
        found.append(digest(step.obs, float(step.reward), step.terminated, step.truncated))
        if step.is_end:
            obs, info = subject.reset(env)
            found[-1] = digest(found[-1], obs)
    return found
