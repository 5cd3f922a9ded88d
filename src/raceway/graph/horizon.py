"""How far a run goes and where it is cut for snapshots: rounds that are decided on while reactors are on their way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from raceway.graph.cuts import KEPT
from raceway.graph.node import ENDLESS, Node
from raceway.graph.plan import Plan


class Horizon:
    """The rounds at which the domains end or give their parts of snapshots, as far as one process is concerned."""

    def __init__(self, plan: Plan, nodes: Mapping[int, Node], snapshot_every: int | None) -> None:
        self._plan = plan
        self._every = snapshot_every
        self.has_cuts = snapshot_every is not None or any(node.is_expendable for node in nodes.values())
        """Whether it is worth asking for them."""
        self._nodes: dict[int, list[Node]] = defaultdict(list)
        for node in nodes.values():
            self._nodes[node.domain].append(node)
        self._last_rounds: dict[int, int] = {}
        """By domain, where it was decided on the way."""
        self._marks: dict[int, dict[int, int]] = defaultdict(dict)
        """By domain: the round of each cut that somebody here still has to give a part for."""
        self._seen: dict[int, tuple[int, int]] = defaultdict(lambda: (-1, 0))
        """By domain: the highest and the lowest number of a cut so far. They are given out in order, both ways."""

    def of(self, domain: int) -> list[Node]:
        return self._nodes[domain]

    def limit(self, rounds: int | None, stops: Mapping[int, int]) -> None:
        """Lets the leading domains end after so many rounds, all told, or where reactors have stopped them before."""
        for member, last_round in stops.items():
            domain = self._plan.domains[member]
            self._last_rounds[domain] = min(last_round, self._last_rounds.get(domain, ENDLESS))
        for domain, nodes in self._nodes.items():
            for node in nodes:
                node.stops_at = stops.get(node.id)
                if rounds is not None and domain in self._plan.leaders:
                    node.last_round = rounds - 1
                node.last_round = min(node.last_round, self._last_rounds.get(domain, ENDLESS))

    def end_at(self, domain: int, last_round: int) -> bool:
        """False if an earlier end is known already."""
        if last_round >= self._last_rounds.get(domain, ENDLESS):
            return False
        self._last_rounds[domain] = last_round
        for node in self._nodes[domain]:
            node.last_round = min(node.last_round, last_round)
        return True

    def is_ending(self, domain: int) -> bool:
        return domain in self._last_rounds

    def round_ahead(self, domain: int) -> int:
        """A round that nobody of the domain is past. If all of it is here, the first such round."""
        nodes = self._nodes[domain]
        if len(nodes) == self._plan.domains.count(domain):
            return max(node.round if node.has_begun_round else node.round - 1 for node in nodes)
        return nodes[0].round + self._plan.lead(nodes[0].id)

    def mark(self, domain: int, round_: int, cut: int) -> bool:
        """False if the cut is known already."""
        highest, lowest = self._seen[domain]
        if lowest <= cut <= highest:
            return False
        self._seen[domain] = max(highest, cut), min(lowest, cut)
        if self._nodes[domain]:
            self._marks[domain][cut] = round_
            self.has_cuts = True
        return True

    def due_cuts(self, node: Node) -> list[int]:
        """The cuts after the round that it has just passed. Those that lie beyond the end are taken at the end."""
        if node.is_expendable:  # snapshots do not wait for it, and take what is kept of it instead
            return [KEPT] if node.has_told else []
        passed = node.round - 1
        is_last = passed == node.last_round
        marks = self._marks.get(node.domain, {})
        due = [c for c, round_ in marks.items() if round_ == passed or (is_last and round_ > passed)]
        is_regular = self._every is not None and node.round % self._every == 0
        if is_regular and node.domain == self._plan.pace_maker:
            due += [passed] if passed >= max(node.first_round, node.last_regular_cut + 1) else []
        return [cut for cut in due if cut not in node.cuts_taken]

    def take(self, node: Node, cut: int) -> None:
        """Remembers that a part was given, until all here have given theirs."""
        if cut == KEPT:
            node.has_told = False
            return
        if cut not in self._marks[node.domain]:
            node.last_regular_cut = cut
            return
        node.cuts_taken.add(cut)
        nodes = self._nodes[node.domain]
        if all(cut in other.cuts_taken for other in nodes):
            del self._marks[node.domain][cut]
            for other in nodes:
                other.cuts_taken.discard(cut)
