"""In one sentence: what holds a training run up, and what would help."""

from __future__ import annotations

import math

from raceway._core import usable_cpus

_ALL_THE_TIME = 0.85
"""At work for this share of the time is at work always: rounds have seams."""


def verdict(
    collect: float,
    learn: float,
    *,
    schedule: str,
    num_workers: int | None,
    num_envs: int | None = None,
    epochs: bool = True,
    central: bool = False,
    cpus: int | None = None,
) -> str:
    """What bounds the run; empty if that cannot be told.

    Args:
        collect: the share of the time (0 to 1) in which environments are stepped.
        learn: the share in which the learner is at work. Under the concurrent schedule the two overlap.
        schedule: "serial", "concurrent" or "async".
        num_workers: threads or processes that step environments. None: they are stepped one after the other.
        num_envs: environments; more workers than these are of no use. None: not known.
        epochs: whether the algorithm goes through a round in epochs and minibatches, or takes one gradient of it.
        central: whether the policy is computed by batched inference, and not by the workers.
        cpus: CPUs that this process may use. None: those that it may.
    """
    if not (math.isfinite(collect) and math.isfinite(learn) and collect + learn > 0):
        return ""
    cpus = usable_cpus() if cpus is None else cpus
    wait = wait_share(collect, learn, schedule)
    if wait >= 0.3 and wait >= max(collect, learn):
        return (
            f"Handing over: nobody is at work for {wait:.0%} of the time; rounds are too short. "
            "More steps a round (--n-steps) would help."
        )
    if schedule == "serial":
        return _of_turns(collect, learn, cpus)
    if min(collect, learn) >= _ALL_THE_TIME:
        return "Balanced: collecting and learning are both at work all the time; only a faster machine would help."
    if learn >= collect:
        remedy = "Fewer epochs or larger minibatches" if epochs else "More steps a round (--n-steps)"
        return (
            f"Learner-bound: collecting waits {1 - collect:.0%} of the time. "
            f"{remedy} would help; more workers would not."
        )
    remedy = _more_hands(num_workers, cpus, num_envs, central)
    free = " More epochs would cost no time." if epochs else ""
    return f"Collector-bound: learning waits {1 - learn:.0%} of the time. {remedy}{free}"


def wait_share(collect: float, learn: float, schedule: str) -> float:
    """The share of the time in which neither collecting nor learning goes on, at least."""
    return max(0.0, 1.0 - (collect + learn if schedule == "serial" else max(collect, learn)))


def _of_turns(collect: float, learn: float, cpus: int) -> str:
    turns = f"Taking turns: collecting {collect:.0%} of the time, learning {learn:.0%}."
    gain = (collect + learn) / max(collect, learn)
    if cpus < 2:
        return f"{turns} With one CPU nothing could overlap."
    if gain < 1.1:
        slow = "Learner-bound" if learn > collect else "Collector-bound"
        return f"{slow}: {max(collect, learn):.0%} of the time goes into it; overlapping would gain little."
    return f"{turns} --schedule concurrent would overlap them: up to {gain:.1f} times as fast."


def _more_hands(num_workers: int | None, cpus: int, num_envs: int | None, central: bool) -> str:
    if num_workers is None:
        return (
            "Environments are stepped one after the other: a faster step would help, or worker processes, which a "
            "callable gets (--lane process)."
        )
    num_envs = cpus if num_envs is None else num_envs
    useful = min(cpus, num_envs)
    if central:
        idle = num_workers < useful
        hands = f"more workers (--num-workers {useful}) would help if steps are slow; " if idle else ""
        return f"Inference is batched: {hands}more environments (--num-envs), or a smaller network, would help."
    if num_workers < useful:
        return f"More workers would help: {num_workers} of {cpus} CPUs are used (--num-workers {useful})."
    if num_envs < cpus:
        return f"More environments would help: {num_envs} keep {num_envs} of {cpus} CPUs at work (--num-envs {cpus})."
    return "All CPUs step environments; more workers would help only if a step waits for something (--num-workers)."
