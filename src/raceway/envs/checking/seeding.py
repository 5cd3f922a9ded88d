"""Whether a seed decides how an episode begins."""

from __future__ import annotations

from typing import Any

import gymnasium

from raceway.envs.checking.carrying import carrier, without_statistics
from raceway.envs.checking.generators import used_generators
from raceway.envs.checking.notebook import Facts, Notebook
from raceway.envs.checking.subject import Subject
from raceway.envs.checking.values import digest

_SUPER = "call super().reset(seed=seed) first thing in reset, and draw all random numbers from self.np_random"
_SEEDS = (1, 2, 3, 4)


def seeded(subject: Subject, notes: Notebook, facts: Facts) -> None:
    """First observations of the same seed, of others, and of none."""
    subject = without_statistics(subject, notes, facts)
    env = subject.make()
    seeds = _SEEDS[:2] if facts.is_slow else _SEEDS
    with used_generators() as used:
        first = _beginning(subject, env, 1)
        passes_on = _passes_on(env, 1)
        again = _beginning(subject, env, 1)
        other = _beginning(subject, subject.make(), 1)
        of_seeds = {_beginning(subject, env, seed) for seed in seeds}
        going_on = {_beginning(subject, env, None) for _ in seeds}
    if first == other and first != again and first != _beginning(subject, subject.make(), 2):
        _note_leftover(subject, notes)  # the seed decides, but so does what was before
    elif first != again or first != other:
        what = "Resets with the same seed begin with different observations: the seed is ignored."
        if used:
            notes.note("seed-ignored", f"{what} It draws from {' and '.join(used)}.", _SUPER)
        else:
            notes.note("seed-ignored", what, _SUPER)
    elif len(of_seeds) == 1 and len(going_on) > 1:
        notes.note("seed-constant", "Every seed begins with the same observation, though resets without vary.", _SUPER)
    elif not passes_on:
        notes.note(
            "seed-not-passed-on",
            "reset(seed=...) does not reach gymnasium.Env: self.np_random is not seeded.",
            "call super().reset(seed=seed) first thing in reset",
        )
    else:
        begins = "every seed begins the same way" if len(of_seeds) == 1 else "other seeds begin differently"
        notes.ok("seeding", f"the same seed begins with the same observation; {begins}")


def _note_leftover(subject: Subject, notes: Notebook) -> None:
    def repeats(part: Subject) -> bool:
        env = part.make()
        return _beginning(part, env, 1) == _beginning(part, env, 1)

    name = carrier(subject, repeats)
    who = f"the wrapper {name} keeps" if name else "it keeps"
    notes.note(
        "reset-leaves-state",
        f"A second reset with the same seed begins with another observation: {who} something of earlier episodes.",
        f"set everything anew in reset{', or leave the wrapper out' if name else ''}",
    )


def _beginning(subject: Subject, env: Any, seed: int | None) -> bytes:
    return digest(subject.reset(env, seed)[0])


def _passes_on(env: gymnasium.Env, seed: int) -> bool:
    """Whether the generator that Gymnasium gives an environment has the seed."""
    try:
        return env.unwrapped.np_random_seed == seed
    except Exception:
        return False
