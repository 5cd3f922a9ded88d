"""Where arrows turn between two layers: each vertical stretch gets a track of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

APART = 6.0  # level lines nearer than this look like one
CLASH = 1000
PASSES = 12


@dataclass(frozen=True)
class Turn:
    """A vertical stretch and, at both of its ends, a level one that leads to the left or the right."""

    arrow: int
    start: float
    start_leads_left: bool
    end: float
    end_leads_left: bool

    @property
    def low(self) -> float:
        return min(self.start, self.end)

    @property
    def high(self) -> float:
        return max(self.start, self.end)

    def level(self, left: bool) -> list[float]:
        """The heights of the level stretches that lead to one side."""
        ends = ((self.start, self.start_leads_left), (self.end, self.end_leads_left))
        return [height for height, leads_left in ends if leads_left == left]


@dataclass(frozen=True)
class Tracks:
    """The track of every turn, by arrow and counted from the left, and the arrows that still lie on another."""

    of: dict[int, int]
    count: int
    clashing: tuple[int, ...]


def assign_tracks(turns: Sequence[Turn]) -> Tracks:
    """Orders the turns of a channel so that no two lines lie on each other and few cross, then closes the gaps."""
    cost = [[_cost(first, second) for second in turns] for first in turns]
    order = sorted(range(len(turns)), key=lambda each: (turns[each].start, turns[each].end))
    for _ in range(PASSES):
        before = list(order)
        for turn in before:
            _reinsert(order, turn, cost)
        if order == before:
            break
    clashing = {
        turns[each].arrow
        for place, second in enumerate(order)
        for first in order[:place]
        if cost[first][second] >= CLASH
        for each in (first, second)
    }
    track: dict[int, int] = {}
    for place, turn in enumerate(order):
        near = [track[other] for other in order[:place] if _side_by_side(turns[other], turns[turn])]
        track[turn] = max(near, default=-1) + 1
    of = {turns[turn].arrow: place for turn, place in track.items()}
    return Tracks(of, max(of.values(), default=-1) + 1, tuple(sorted(clashing)))


def _cost(first: Turn, second: Turn) -> int:
    """Crossings of two turns if the first is on the left, and much more if one would cover the other."""
    crossings = sum(first.low < height < first.high for height in second.level(left=True))
    crossings += sum(second.low < height < second.high for height in first.level(left=False))
    clashes = sum(abs(one - other) < APART for one in first.level(left=False) for other in second.level(left=True))
    return crossings + CLASH * clashes


def _reinsert(order: list[int], turn: int, cost: Sequence[Sequence[int]]) -> None:
    """Moves one turn to where it costs least, or leaves it."""
    here = order.index(turn)
    order.remove(turn)
    costs = [sum(cost[turn][other] for other in order)]
    for other in order:
        costs.append(costs[-1] - cost[turn][other] + cost[other][turn])
    least = min(costs)
    order.insert(here if costs[here] == least else costs.index(least), turn)


def _side_by_side(first: Turn, second: Turn) -> bool:
    return first.low - 2 * APART < second.high and second.low - 2 * APART < first.high
