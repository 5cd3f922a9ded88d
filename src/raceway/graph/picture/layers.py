"""Which layer each box stands in, and in which order: arrows go from left to right, and cross as little as can be.

The method of Sugiyama, Tagawa and Toda (1981): turn some arrows back so that no cycle is left, put every box to the
right of those that feed it, let long arrows bend in every layer they pass, and sort the layers by barycentres.
Nodes are numbers: first the boxes, then the bends of long arrows.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

SWEEPS = 12


@dataclass(frozen=True)
class Tie:
    """An arrow between two boxes; `leaves` and `arrives` say how far down these it is fixed, from 0 to 1."""

    source: int
    target: int
    reluctance: int  # to be drawn forward: arrows with more of it are turned back first
    leaves: float = 0.5
    arrives: float = 0.5


@dataclass(frozen=True)
class Strand:
    """The piece of a forward arrow between a node and one in the next layer."""

    tie: int
    left: int
    right: int


@dataclass
class Layers:
    """Nodes of each layer from top to bottom, the strands from each layer to the next, the ties drawn backward."""

    nodes: list[list[int]]
    strands: list[list[Strand]]
    backward: frozenset[int]
    layer_of: list[int] = field(default_factory=list)


def arrange(boxes: int, ties: Sequence[Tie]) -> Layers:
    """Layers and orders for `boxes` boxes; a tie from a box to itself is nobody's business here."""
    backward = _backward(boxes, ties)
    forward = [index for index, tie in enumerate(ties) if index not in backward and tie.source != tie.target]
    layer_of = _assign(boxes, [(ties[index].source, ties[index].target) for index in forward])
    layers = Layers([[] for _ in range(max(layer_of) + 1)], [[] for _ in range(max(layer_of))], backward, layer_of)
    for box in range(boxes):
        layers.nodes[layer_of[box]].append(box)
    for index in forward:
        _string(layers, index, ties[index])
    _sort(layers, ties, boxes)
    return layers


def _backward(boxes: int, ties: Sequence[Tie]) -> frozenset[int]:
    """Adds arrows one by one, the least reluctant first, and turns back each that would close a cycle."""
    after: list[list[int]] = [[] for _ in range(boxes)]
    backward = set()
    for index in sorted(range(len(ties)), key=lambda each: ties[each].reluctance):
        tie = ties[index]
        if tie.source in _reachable(after, tie.target):
            if tie.source != tie.target:
                backward.add(index)
        else:
            after[tie.source].append(tie.target)
    return frozenset(backward)


def _reachable(after: Sequence[Sequence[int]], start: int) -> set[int]:
    seen, waiting = {start}, [start]
    while waiting:
        for node in after[waiting.pop()]:
            if node not in seen:
                seen.add(node)
                waiting.append(node)
    return seen


def _assign(boxes: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """The longest way from a box without predecessors; boxes that feed more than they eat then move to their eaters."""
    after: list[set[int]] = [set() for _ in range(boxes)]
    before: list[set[int]] = [set() for _ in range(boxes)]
    for source, target in pairs:
        after[source].add(target)
        before[target].add(source)
    order: list[int] = []
    waiting = [box for box in range(boxes) if not before[box]]
    missing = [len(each) for each in before]
    while waiting:
        order.append(waiting.pop(0))
        for box in sorted(after[order[-1]]):
            missing[box] -= 1
            if not missing[box]:
                waiting.append(box)
    layer_of = [0] * boxes
    for box in order:
        layer_of[box] = max((layer_of[each] + 1 for each in before[box]), default=0)
    for box in reversed(order):
        if len(after[box]) > len(before[box]):
            layer_of[box] = min(layer_of[each] for each in after[box]) - 1
    return layer_of


def _string(layers: Layers, index: int, tie: Tie) -> None:
    """Adds the strands of one arrow, with a new node wherever it passes a layer."""
    left = tie.source
    for layer in range(layers.layer_of[tie.source], layers.layer_of[tie.target]):
        right = tie.target
        if layer + 1 < layers.layer_of[tie.target]:
            right = len(layers.layer_of)
            layers.layer_of.append(layer + 1)
            layers.nodes[layer + 1].append(right)
        layers.strands[layer].append(Strand(index, left, right))
        left = right


def _sort(layers: Layers, ties: Sequence[Tie], boxes: int) -> None:
    """Sweeps to and fro, sorting each layer by where its neighbours are, and keeps the best order that turned up."""
    sides = [[_sided(strand, ties, boxes) for strand in strands] for strands in layers.strands]
    best, fewest = [list(nodes) for nodes in layers.nodes], _crossings(layers.nodes, sides)
    for sweep in range(SWEEPS):
        if fewest == 0:
            break
        rightward = sweep % 2 == 0
        inner = range(1, len(layers.nodes)) if rightward else range(len(layers.nodes) - 2, -1, -1)
        for layer in inner:
            _sort_layer(layers.nodes, layer, sides[layer - 1] if rightward else sides[layer], rightward)
        _swap_neighbours(layers.nodes, sides)
        crossings = _crossings(layers.nodes, sides)
        if crossings < fewest:
            best, fewest = [list(nodes) for nodes in layers.nodes], crossings
    layers.nodes[:] = best


Sided = tuple[int, float, int, float]


def _sided(strand: Strand, ties: Sequence[Tie], boxes: int) -> Sided:
    tie = ties[strand.tie]
    leaves = tie.leaves if strand.left < boxes else 0.5
    return strand.left, leaves, strand.right, tie.arrives if strand.right < boxes else 0.5


def _neighbours(
    nodes: Sequence[Sequence[int]], layer: int, sides: Sequence[Sided], left: bool
) -> dict[int, list[float]]:
    """Where in the layer before it (left) or behind it the neighbours of each node of a layer are."""
    place_of = {node: place for place, node in enumerate(nodes[layer - 1 if left else layer + 1])}
    found: dict[int, list[float]] = {}
    for before, leaves, behind, arrives in sides:
        if left:
            found.setdefault(behind, []).append(place_of[before] + leaves)
        else:
            found.setdefault(before, []).append(place_of[behind] + arrives)
    return {node: sorted(places) for node, places in found.items()}


def _sort_layer(nodes: list[list[int]], layer: int, sides: Sequence[Sided], rightward: bool) -> None:
    neighbours = _neighbours(nodes, layer, sides, left=rightward)
    # A node without neighbours stays where it is among the others.
    scale = len(nodes[layer - 1 if rightward else layer + 1]) / len(nodes[layer])
    keys = {node: (place + 0.5) * scale for place, node in enumerate(nodes[layer])}
    keys |= {node: sum(places) / len(places) for node, places in neighbours.items()}
    nodes[layer].sort(key=lambda node: keys[node])


def _swap_neighbours(nodes: list[list[int]], sides: Sequence[Sequence[Sided]]) -> None:
    """Swaps nodes that stand next to each other as long as that saves crossings."""
    improved = True
    while improved:
        improved = False
        for layer, column in enumerate(nodes):
            near = [_neighbours(nodes, layer, sides[layer - 1], left=True)] if layer else []
            near += [_neighbours(nodes, layer, sides[layer], left=False)] if layer < len(sides) else []
            for place in range(len(column) - 1):
                above, below = column[place : place + 2]
                now = sum(_inversions(each.get(above, []), each.get(below, [])) for each in near)
                if now > sum(_inversions(each.get(below, []), each.get(above, [])) for each in near):
                    column[place], column[place + 1] = below, above
                    improved = True


def _inversions(above: Sequence[float], below: Sequence[float]) -> int:
    """How many of the pairs cross if `above` are the neighbours of the upper node; both are sorted."""
    return sum(bisect_left(below, place) for place in above)


def _crossings(nodes: Sequence[Sequence[int]], sides: Sequence[Sequence[Sided]]) -> int:
    """Inversions between the order in which strands leave each layer and that in which they reach the next."""
    total = 0
    for layer, strands in enumerate(sides):
        lefts = {node: place for place, node in enumerate(nodes[layer])}
        rights = {node: place for place, node in enumerate(nodes[layer + 1])}
        ends = sorted((lefts[left] + leaves, rights[right] + arrives) for left, leaves, right, arrives in strands)
        reached: list[float] = []
        for _, place in ends:
            total += len(reached) - bisect_right(reached, place)
            insort(reached, place)
    return total
