"""The reference interpreter against results worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.graph.reference import Edge, Graph, Kind, Node, Reaction, interpret

Trace = list[tuple[int, str, int, str, tuple[Any, ...]]]

CLOCK = Kind("Clock", (Reaction("tick", ("timer",), (), ("out",)),), outputs=("out",), timers={"timer": (1, 0)})
SLOW = Kind("Slow", (Reaction("tick", ("timer",), (), ("out",)),), outputs=("out",), timers={"timer": (2, 1)})
SINK = Kind("Sink", (Reaction("take", ("inp",)),), inputs=("inp",))
PASS = Kind("Pass", (Reaction("take", ("inp",), (), ("out",)),), inputs=("inp",), outputs=("out",))
GATHER = Kind("Gather", (Reaction("take", ("all",)),), gathers=("all",))


def trace(graph: Graph, rounds: int) -> Trace:
    """What every reaction sees. Those that see nothing write ten times the round, plus their index; others sums."""
    seen_by_all: Trace = []

    def act(
        node: Node, member: int, reaction: Reaction, round_: int, seen: tuple[Any, ...]
    ) -> Iterator[tuple[str, Any]]:
        seen_by_all.append((round_, node.name, member, reaction.name, seen))
        for port in reaction.effects:
            yield port, sum(value for value in seen if value is not None) + 1 if seen else 10 * round_ + member

    interpret(graph, act, rounds)
    return seen_by_all


def of(name: str, found: Trace) -> list[tuple[Any, ...]]:
    return [(round_, *seen) for round_, node, _, _, seen in found if node == name]


def pair(source: Kind, target: Kind, edge: Edge, widths: tuple[int | None, int | None] = (None, None)) -> Graph:
    # The reader comes first in the list: the order of nodes must mean nothing.
    return Graph((Node("b", target, widths[1]), Node("a", source, widths[0])), (edge,))


def test_a_value_arrives_in_its_round():
    assert of("b", trace(pair(CLOCK, SINK, Edge(("a", "out"), ("b", "inp"))), 3)) == [(0, 0), (1, 10), (2, 20)]


def test_a_delayed_value_arrives_later_and_initial_values_before():
    plain, given = Edge(("a", "out"), ("b", "inp"), 2), Edge(("a", "out"), ("b", "inp"), 2, (None, 7))
    assert of("b", trace(pair(CLOCK, SINK, plain), 4)) == [(2, 0), (3, 10)]
    assert of("b", trace(pair(CLOCK, SINK, given), 4)) == [(1, 7), (2, 0), (3, 10)]


def test_a_timer_counts_from_its_first_round_and_absence_arrives():
    assert of("b", trace(pair(SLOW, SINK, Edge(("a", "out"), ("b", "inp"))), 6)) == [(1, 10), (3, 30), (5, 50)]


def test_a_gather_is_by_index_then_by_connection_with_none_for_absent():
    graph = Graph(
        (Node("all", GATHER), Node("slow", SLOW), Node("bank", CLOCK, 3)),
        (Edge(("bank", "out"), ("all", "all")), Edge(("slow", "out"), ("all", "all"))),
    )
    assert of("all", trace(graph, 2)) == [(0, (0, 1, 2, None)), (1, (10, 11, 12, 10))]


def test_one_is_broadcast_to_a_bank_and_banks_meet_index_by_index():
    one = trace(pair(CLOCK, SINK, Edge(("a", "out"), ("b", "inp")), (None, 3)), 1)
    assert [(member, seen) for _, node, member, _, seen in one if node == "b"] == [(0, (0,)), (1, (0,)), (2, (0,))]
    many = trace(pair(CLOCK, SINK, Edge(("a", "out"), ("b", "inp")), (3, 3)), 1)
    assert [(member, seen) for _, node, member, _, seen in many if node == "b"] == [(0, (0,)), (1, (1,)), (2, (2,))]


def test_a_self_loop_counts():
    graph = Graph((Node("a", PASS),), (Edge(("a", "out"), ("a", "inp"), 1, (5,)),))
    assert of("a", trace(graph, 3)) == [(0, 5), (1, 6), (2, 7)]


def test_uses_are_seen_but_do_not_trigger_and_reactions_keep_their_order():
    kind = Kind(
        "Two",
        (Reaction("late", ("timer",), ("inp",)), Reaction("eager", ("inp", "timer"))),
        inputs=("inp",),
        timers={"timer": (2, 1)},
    )
    found = trace(pair(CLOCK, kind, Edge(("a", "out"), ("b", "inp"))), 2)
    assert [(round_, name, seen) for round_, node, _, name, seen in found if node == "b"] == [
        (0, "eager", (0,)),
        (1, "late", (10,)),
        (1, "eager", (10,)),
    ]


def test_a_value_comes_back_to_a_later_reaction_in_the_same_round():
    kind = Kind(
        "There",
        (Reaction("send", ("timer",), (), ("out",)), Reaction("back", ("inp",))),
        inputs=("inp",),
        outputs=("out",),
        timers={"timer": (1, 0)},
    )
    graph = Graph(
        (Node("echo", PASS), Node("there", kind)),
        (Edge(("there", "out"), ("echo", "inp")), Edge(("echo", "out"), ("there", "inp"))),
    )
    assert of("there", trace(graph, 2)) == [(0,), (0, 1), (1,), (1, 11)]


@pytest.mark.parametrize("effects", [[("other", 1)], [("out", None)], [("out", 1), ("out", 2)]])
def test_bad_writes_are_refused(effects):
    with pytest.raises(ValueError, match="must not write"):
        interpret(Graph((Node("a", CLOCK),), ()), lambda *_: effects, 1)
