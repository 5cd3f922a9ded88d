"""What each lane makes of the environment, in turns with a bare loop."""

from __future__ import annotations

import contextlib
import statistics
from dataclasses import dataclass
from typing import Any

import raceway
from raceway._core import usable_cpus
from raceway.envs.checking.contestants import AsyncPool, BareLoop, Contestant, NativeLoop, Pool, cpus_to_be_had
from raceway.envs.checking.findings import LaneSpeed
from raceway.envs.checking.notebook import Facts, Notebook
from raceway.envs.checking.subject import EnvBrokeError, Subject
from raceway.envs.checking.targets import Target
from raceway.envs.checking.values import shown
from raceway.envs.python.makers import makers_of
from raceway.errors import UserError

_TURN_S = 0.3
_TURNS = 3
_MAKING_S = 2.0
"""That making the environments of one lane may take."""
_BATCH_S = 200e-6
"""That a batch of native environments shall take."""
_SLOW_S = 0.1
"""Of a step: one turn has to do."""


@dataclass(frozen=True)
class LaneSettings:
    """What lanes are measured with."""

    num_envs: int | None = None
    num_workers: int | None = None
    timeout_s: float = 30.0


def measured(subject: Subject, notes: Notebook, facts: Facts, *, target: Target, settings: LaneSettings) -> None:
    """Every lane that can run it, each turn beside one of a bare loop."""
    facts.cpus = usable_cpus()
    num_envs = settings.num_envs or how_many(facts)
    families = []
    if target.is_native:
        lanes = _opened(notes, target, ("native",), settings.num_envs or how_many_native(facts), settings)
        families.append(Family(NativeLoop(target), lanes))
    if target.in_python:
        # Of a native task this is only for comparison: Gymnasium's version may take other arguments, or miss a package.
        with contextlib.suppress(*((EnvBrokeError, UserError) if target.is_native else ())):
            bare = BareLoop(_in_python(subject, target), facts)
            lanes = _opened(notes, target, ("inline", "process", "process async"), num_envs, settings)
            families.append(Family(bare, lanes))
    try:
        _take_turns(subject, notes, families, facts)
    finally:
        for family in families:
            for lane in family.lanes:
                lane.close()
    facts.lanes = tuple(speed for family in families for speed in family.speeds(facts.cpus))
    facts.limit = families[-1].limit(facts.cpus)


def how_many(facts: Facts) -> int:
    """Environments for a lane: enough to keep it at work, and not more than are made in a moment."""
    if facts.is_slow:
        return facts.cpus
    each = 32 if facts.step_s < 1e-3 else 8 if facts.step_s < 0.02 else 2
    affordable = int(_MAKING_S / max(facts.make_s, 1e-4) / (2 * facts.cpus)) * 2
    return facts.cpus * max(min(each, affordable), 2)


def how_many_native(facts: Facts) -> int:
    """Enough that a batch takes longer than handing it over."""
    return int(min(max(_BATCH_S * facts.cpus / facts.step_s, 64), 4096))


def _in_python(subject: Subject, target: Target) -> Subject:
    """The same as Gymnasium has it, for a task that is native too."""
    return subject.of(makers_of(target.env, 1, shared=target.args).makers[0]) if target.is_native else subject


def _opened(
    notes: Notebook, target: Target, names: tuple[str, ...], num_envs: int, settings: LaneSettings
) -> list[Pool]:
    """Those lanes that can be made; what is wrong with the others is noted."""
    lanes: list[Pool] = []
    for name in names:
        lane, _, is_async = name.partition(" ")
        more: dict[str, Any] = {"batch_size": _half(num_envs)} if is_async else {}
        if lane == "process":
            more["worker_timeout"] = settings.timeout_s
        if lane != "inline":
            more["num_workers"] = settings.num_workers
        try:
            pool = raceway.make(target.env, num_envs, lane=lane, autoreset="same_step", **more, **target.args)
            lanes.append((AsyncPool if is_async else Pool)(name, pool))
        except Exception as error:
            _fails(notes, name, error)
    return lanes


def _half(num_envs: int) -> int:
    """The largest part, up to a half, that they can be divided into."""
    return max(size for size in range(1, max(num_envs // 2, 1) + 1) if num_envs % size == 0)


def _fails(notes: Notebook, lane: str, error: Exception) -> None:
    first = (str(error).splitlines() or [""])[0]
    text = f"The {lane} lane cannot run it: {type(error).__name__}: {shown(first, 200)[1:-1]}"
    notes.problem(f"lane-fails-{lane.replace(' ', '-')}", text, "", "\n".join(str(error).splitlines()[-8:]))


class Family:
    """A bare loop, which is the limit, and the lanes that are held against it."""

    def __init__(self, bare: Contestant, lanes: list[Pool]) -> None:
        self.bare = bare
        self.lanes = lanes
        self.rates: dict[Contestant, list[float]] = {each: [] for each in (bare, *lanes)}

    def drop(self, lane: Pool) -> None:
        """It is out of it."""
        self.lanes.remove(lane)
        lane.close()

    def limit(self, cpus: int) -> float:
        return statistics.median(self.rates[self.bare]) * cpus

    def speeds(self, cpus: int) -> list[LaneSpeed]:
        """Each lane's; its share is the median over turns, each of which has its own limit."""
        found = []
        for lane in self.lanes:
            pairs = zip(self.rates[lane], self.rates[self.bare], strict=True)
            share = statistics.median(rate / (bare * cpus) for rate, bare in pairs)
            rate, limit = statistics.median(self.rates[lane]), self.limit(cpus)
            found.append(LaneSpeed(lane.name, lane.num_envs, lane.num_workers, rate, limit, share))
        return found


def _take_turns(subject: Subject, notes: Notebook, families: list[Family], facts: Facts) -> None:
    """The order flips from turn to turn; the first is only for warming up, where there is time for that."""
    is_slow = facts.step_s > _SLOW_S
    shares = []
    for turn in range(1 if is_slow else _TURNS + 1):
        for family in families:
            order: list[Contestant] = [family.bare, *family.lanes]
            for each in order if turn % 2 else reversed(order):
                subject.alive("lanes")
                try:
                    rate = each.turn(_TURN_S if turn else _TURN_S / 3)
                except Exception as error:
                    if not isinstance(each, Pool):
                        raise
                    _fails(notes, each.name, error)
                    family.drop(each)
                    continue
                if turn or is_slow:
                    family.rates[each].append(rate)
        shares.append(cpus_to_be_had(facts.cpus))
    facts.free_cpus = statistics.mean(shares)
