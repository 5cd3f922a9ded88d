"""Processes that a run can do without: what is kept of their reactors, and what becomes of them when they are lost."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

from raceway.graph.assignment import Start
from raceway.graph.channels import Channel, LatestChannel
from raceway.graph.cuts import KEPT, Part
from raceway.graph.messages import BEGIN, FINISH, Post
from raceway.graph.places import Place
from raceway.graph.plan import Plan
from raceway.graph.reactor import Reactor
from raceway.graph.scheduler import Scheduler
from raceway.graph.summary import HostReport
from raceway.graph.values import copy_plain


@dataclass(frozen=True)
class Loss:
    """A process that a run was ready to do without is lost, or a reaction in it failed."""

    reactors: tuple[str, ...]
    """Those that lived in it."""
    why: str
    is_final: bool
    """Whether they are left out from now on; else they are started again."""


class Expendables:
    """The processes with `restarts`, seen from host 0. Used under its lock while other threads run."""

    def __init__(self, plan: Plan, places: Mapping[int, Place], post: Post | None) -> None:
        self._plan = plan
        self._post = post
        self._restarts = {host: place.restarts for host, place in places.items() if place.restarts is not None}
        self._left_out: set[int] = set()
        self._kept: dict[int, Part] = {}
        """By member: its state when it last wrote for another process, and what was on its way to it."""
        self.losses: deque[Loss] = deque()
        """Those that nobody has been told of yet."""

    @property
    def hosts(self) -> Set[int]:
        return self._restarts.keys()

    def is_left_out(self, host: int) -> bool:
        return host in self._left_out

    def keep(self, part: Part) -> None:
        self._kept[part.member] = part

    def parts(self, scheduler: Scheduler) -> dict[int, Part]:
        """Their parts of a snapshot: what is kept, with the newest values that were sent to them."""
        channels = scheduler.channels
        return {
            member: replace(part, values={c: _newest(channels.get(c), old) for c, old in part.values.items()})
            for member, part in self._kept.items()
        }

    def start_again(self, start: Start, host: int) -> Start:
        """Where a process begins that takes the place of one that was lost."""
        rounds, values, states = list(start.rounds), dict(start.values), dict(start.states)
        for part in self._kept.values():
            if self._plan.members[part.member].host == host:
                rounds[part.member], states[part.member] = part.round + 1, part.state
                values |= part.values
        return Start(rounds, values, states, start.stops)

    def lose(self, host: int, why: str) -> bool:
        """Its process has died. Returns whether it is to be started again."""
        self._silence(host)
        self._restarts[host] -= 1
        is_final = self._restarts[host] < 0
        if is_final:
            self._left_out.add(host)
        self._tell(host, why, is_final)
        return not is_final

    def leave_out(self, host: int, why: str) -> None:
        """Goes on without it, from now on."""
        self._silence(host)
        self._left_out.add(host)
        self._tell(host, why, is_final=True)

    def hear(self, reports: Mapping[int, HostReport]) -> None:
        """What went wrong in them at shutdown is told, and no reason for the run to fail."""
        for host in self.hosts & reports.keys():
            for trouble in reports[host].troubles:
                lines = trouble.splitlines()
                self._tell(host, lines[0] if len(lines) == 1 else f"{lines[0]} {lines[-1]}", is_final=True)

    def welcome(self, host: int, scheduler: Scheduler) -> None:
        """A process is up. If it takes the place of another, it is told where the run stands."""
        if self._post is None or host not in self._post.silenced:
            return
        self._post.silenced.remove(host)
        if scheduler.has_begun:
            scheduler.tell(host, BEGIN)
        for channel in _channels_to(host, scheduler):
            channel.sending, channel.pending = False, None
            if channel.value is not None:
                scheduler.send_latest(channel, channel.value)
        if scheduler.is_over:
            scheduler.tell(host, FINISH)

    def close(self) -> None:
        """Lets go of the shared memory."""
        self._post = None
        self._kept.clear()

    def _silence(self, host: int) -> None:
        if self._post is not None:
            self._post.silence(host)

    def _tell(self, host: int, why: str, is_final: bool) -> None:
        names = tuple(member.name for member in self._plan.members if member.host == host)
        self.losses.append(Loss(names, why, is_final))


def kept_at_first(plan: Plan, reactors: Mapping[int, Reactor], start: Start) -> Iterator[Part]:
    """What there is of them before they have told anything."""
    for member in plan.members:
        if member.is_expendable:
            state = start.states.get(member.id)
            if state is None:
                state = copy_plain(reactors[member.id].save(), f"{member.name}.save()")
            values = {c.id: start.values[c.id] for c in plan.by_target.get(member.id, ())}
            yield Part(KEPT, member.id, start.rounds[member.id] - 1, state, values)


def _newest(channel: Channel | None, values: list[Any]) -> list[Any]:
    """What was sent last, from this process; else the values that it had itself."""
    if isinstance(channel, LatestChannel) and channel.value is not None:
        return [channel.value]
    return values


def _channels_to(host: int, scheduler: Scheduler) -> list[LatestChannel]:
    """The writer's halves of the connections from this process to another."""
    latest = [channel for channel in scheduler.channels.values() if isinstance(channel, LatestChannel)]
    return [channel for channel in latest if scheduler.plan.members[channel.connection.target].host == host]
