"""How far down everything is: boxes within their layers, arrows at their ports, lanes of arrows that go back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from raceway.graph.picture.layers import Layers, Strand
from raceway.graph.picture.stack import stack

BOX_GAP, BEND_GAP, MIXED_GAP = 30.0, 12.0, 20.0
LANE, NUDGE = 26.0, 8.0
SWEEPS = 8

Pin = Callable[[Strand, bool], float]
"""How far below the top of its left (True) or right node a strand is fixed."""


def settle(layers: Layers, heights: Sequence[float], boxes: int, pin: Pin) -> list[float]:
    """Tops of all nodes, so that strands are level where they can be; long arrows before short ones."""
    tops = [0.0] * len(heights)
    for nodes in layers.nodes:
        _restack(nodes, [[] for _ in nodes], heights, boxes, tops)
    lefts: dict[int, list[Strand]] = {}
    rights: dict[int, list[Strand]] = {}
    for strand in (each for strands in layers.strands for each in strands):
        lefts.setdefault(strand.right, []).append(strand)
        rights.setdefault(strand.left, []).append(strand)

    def wishes(node: int, leftward: bool) -> list[float]:
        wanted = []
        for strand in (lefts if leftward else rights).get(node, ()):
            other = strand.left if leftward else strand.right
            weight = (1, 2, 8)[(node >= boxes) + (other >= boxes)]
            wanted += [tops[other] + pin(strand, leftward) - pin(strand, not leftward)] * weight
        return wanted or [tops[node]]

    for sweep in range(SWEEPS + 1):
        leftward = sweep % 2 == 0
        for nodes in layers.nodes if leftward else reversed(layers.nodes):
            _restack(nodes, [wishes(node, leftward) for node in nodes], heights, boxes, tops)
    return tops


def push_down(nodes: Sequence[int], node: int, heights: Sequence[float], boxes: int, tops: list[float]) -> None:
    """Moves a node a little further down, and those below it as far as they must."""
    tops[node] += NUDGE
    for above, below in pairwise(nodes):
        tops[below] = max(tops[below], tops[above] + heights[above] + _gap(above, below, boxes))


def _restack(
    nodes: Sequence[int],
    wishes: Sequence[Sequence[float]],
    heights: Sequence[float],
    boxes: int,
    tops: list[float],
) -> None:
    gaps = [_gap(above, below, boxes) for above, below in pairwise(nodes)]
    for node, top in zip(nodes, stack(wishes, [heights[node] for node in nodes], gaps), strict=True):
        tops[node] = top


def _gap(above: int, below: int, boxes: int) -> float:
    return (BOX_GAP, MIXED_GAP, BEND_GAP)[(above >= boxes) + (below >= boxes)]


def goes_above(layers: Layers, source: int, target: int) -> bool:
    """Whether an arrow that goes back has fewer nodes above its ends than below them."""
    above = below = 0
    for box in (source, target):
        nodes = layers.nodes[layers.layer_of[box]]
        above += nodes.index(box)
        below += len(nodes) - 1 - nodes.index(box)
    return above < below


def assign_lanes(
    spans: Mapping[int, tuple[int, int, bool]], depth: Mapping[int, float], reach: Sequence[tuple[float, float]]
) -> dict[int, float]:
    """Heights of the lanes of arrows that go back over layers first to last, above them or below.

    Short ones are nearest to the boxes, so that lanes nest; `depth` (where an arrow leaves) decides between equals.
    `reach` has the top and bottom of every layer.
    """
    lanes: dict[int, float] = {}

    def nearness(tie: int) -> tuple[int, float]:
        first, last, above = spans[tie]
        return last - first, depth[tie] if above else -depth[tie]

    for tie in sorted(spans, key=nearness):
        first, last, above = spans[tie]
        step = -LANE if above else LANE
        passed = reach[first : last + 1]
        lane = (min(top for top, _ in passed) if above else max(bottom for _, bottom in passed)) + 0.75 * step
        beside = [lanes[other] for other in lanes if spans[other][0] <= last + 1 and first <= spans[other][1] + 1]
        for taken in sorted(beside, reverse=above):
            if abs(taken - lane) < LANE:
                lane = taken + step
        lanes[tie] = lane
    return lanes
