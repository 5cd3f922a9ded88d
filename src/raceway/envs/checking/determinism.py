"""Whether the same seed and actions give the same episode: again, in another instance, in another process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from raceway.envs.checking.carrying import carrier, without_statistics
from raceway.envs.checking.generators import scramble, used_generators
from raceway.envs.checking.notebook import Facts, Notebook
from raceway.envs.checking.subject import Subject
from raceway.report.words import count

MOST_STEPS = 500
SECONDS = 0.7
_SEED = 11
_OTHERWISE = "Runs cannot be repeated, nor resumed exactly"


def repeated(subject: Subject, notes: Notebook, facts: Facts) -> None:
    """Twice in one instance, and once in another while the generators that all share are set to something else."""
    subject = without_statistics(subject, notes, facts)
    scramble(1)
    env = subject.make()
    with used_generators() as used:
        trace = subject.trace(env, seed=_SEED, most=MOST_STEPS, seconds=SECONDS)
    steps = len(trace) - 1  # no fewer than it took: resets are in the trace too
    again = subject.trace(env, seed=_SEED, most=steps)
    scramble(1)
    fresh = trace if facts.is_slow else subject.trace(subject.make(), seed=_SEED, most=steps)
    scramble(2)
    scrambled = subject.trace(subject.make(), seed=_SEED, most=steps)
    facts.trace = trace
    facts.is_deterministic = trace == again[: len(trace)] == fresh[: len(trace)] == scrambled[: len(trace)]
    if used and not facts.is_deterministic:
        notes.note(
            "global-generator",
            f"Episodes draw from {' and '.join(used)}, which all code of a process shares and reset(seed=...) does not "
            f"seed: the same seed gave another episode at step {_parting(trace, again, fresh, scrambled)}. "
            f"{_OTHERWISE}.",
            "draw all random numbers from self.np_random",
        )
    elif trace != fresh[: len(trace)] or trace != scrambled[: len(trace)]:
        notes.note(
            "not-deterministic",
            f"The same seed and actions gave another episode in a new instance, at step "
            f"{_parting(trace, fresh, scrambled)}. {_OTHERWISE}.",
            "look for a clock, an unseeded generator, files, threads, or variables that all instances share",
        )
    elif trace != again[: len(trace)]:
        name = "" if facts.is_slow else carrier(subject, partial(_repeats, steps=steps))
        who = f"the wrapper {name} keeps something" if name else "something is left"
        notes.note(
            "reset-leaves-state",
            f"After a reset with the same seed the same instance gave another episode, at step "
            f"{_parting(trace, again)}: {who} of the earlier ones. {_OTHERWISE}.",
            f"set everything anew in reset{', or leave the wrapper out' if name else ''}",
        )
    facts.steps_seen = max(facts.steps_seen, steps)


def _repeats(subject: Subject, steps: int) -> bool:
    env = subject.make()
    return subject.trace(env, seed=_SEED, most=steps) == subject.trace(env, seed=_SEED, most=steps)


def _parting(trace: Sequence[bytes], *others: Sequence[bytes]) -> str:
    """Where two first differ."""
    where = [
        index for other in others for index, (one, two) in enumerate(zip(trace, other, strict=False)) if one != two
    ]
    return count(min(where)) if where else "0"


def elsewhere(subject: Subject, notes: Notebook, facts: Facts) -> None:
    """In a process that was started afresh, where sets of strings have another order."""
    if not facts.trace or not facts.is_deterministic:
        return
    subject = without_statistics(subject, notes, facts)
    trace = subject.trace(subject.make(), seed=_SEED, most=len(facts.trace) - 1)[: len(facts.trace)]
    if trace != facts.trace:
        facts.is_deterministic = False
        notes.note(
            "differs-elsewhere",
            f"In another process the same seed and actions gave another episode, at step "
            f"{_parting(facts.trace, trace)}. {_OTHERWISE}.",
            "look for hash() and the order of sets, which differ from process to process, the clock, the process id",
        )
    else:
        text = f"the same seed and actions give the same {count(len(trace))} steps, in another process too"
        notes.ok("determinism", f"{text}, without {' and '.join(facts.carriers)}" if facts.carriers else text)
