"""A connected part of a drawing: where its boxes stand and how its arrows run between them.

Arrows are level or vertical. They run vertically only in the channels before, between and behind the layers, where
there are no boxes, and level at heights that belong to them: so they pass no box and lie on no other arrow. Those
that go back from right to left take a lane below or above the layers that they pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from raceway.graph.picture.card import Card, Row
from raceway.graph.picture.heights import LANE, NUDGE, assign_lanes, goes_above, push_down, settle
from raceway.graph.picture.layers import Strand, Tie, arrange
from raceway.graph.picture.tracks import Tracks, Turn, assign_tracks

TRACK, STUB, HEAD = 10.0, 16.0, 20.0  # a channel: room before the tracks, for each, and for arrowheads behind them
NARROWEST = 56.0
PILL_GAP = 18.0  # from an arrow's label to the box it points at, the arrowhead between them
ATTEMPTS = 40

Point = tuple[float, float]


@dataclass(frozen=True)
class Join:
    """An arrow between two nodes of a part, to a slot of its input; `label` is the width of its words."""

    source: int
    target: int
    output: str
    input: str
    slot: int
    reluctance: int
    label: float = 0.0


@dataclass(frozen=True)
class Node:
    """A card with the room around it that nobody else may use; x and y are where in it the card begins."""

    card: Card
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Run:
    """The corners of an arrow from its output to its input and the middle of its label."""

    corners: tuple[Point, ...]
    label: Point


@dataclass(frozen=True)
class Part:
    """Top left corners of the nodes, runs of the arrows, and the size of it all."""

    corners: tuple[Point, ...]
    runs: tuple[Run, ...]
    width: float
    height: float


def make_part(nodes: Sequence[Node], joins: Sequence[Join]) -> Part:
    """Places the nodes and runs the arrows between them; an arrow from a node to itself has no place here."""
    return _Weaver(nodes, joins).part()


class _Weaver:
    """Settles one thing after another: layers, slots, heights, lanes, tracks, then widths."""

    def __init__(self, nodes: Sequence[Node], joins: Sequence[Join]) -> None:
        self.nodes, self.joins = nodes, joins
        self.leaves = [port_row(nodes[join.source].card.right, join.output).middle for join in joins]
        self.arrives = [port_row(nodes[join.target].card.left, join.input).middle for join in joins]
        self.layers = arrange(len(nodes), [self._tie(index) for index in range(len(joins))])
        self.spans = {index: self._span(join) for index, join in enumerate(joins) if index in self.layers.backward}
        self._take_slots()
        self.heights = [node.height for node in nodes] + [0.0] * (len(self.layers.layer_of) - len(nodes))
        self.tops = settle(self.layers, self.heights, len(nodes), self._pin)
        self.lanes: dict[int, float] = {}
        self.tracks = [self._untangled(channel) for channel in range(len(self.layers.nodes) + 1)]
        self._lay_lanes()
        self.column_widths = self._column_widths()
        self.channel_x, self.column_x = self._across()

    def part(self) -> Part:
        """Everything, moved so that its top left corner is the origin."""
        bottoms = [top + height for top, height in zip(self.tops, self.heights, strict=True)]
        top = min([*self.tops, *(lane - LANE / 2 for lane in self.lanes.values())])
        bottom = max([*bottoms, *(lane + LANE / 2 for lane in self.lanes.values())])
        corners = tuple((x, y - top) for x, y in map(self._corner, range(len(self.nodes))))
        runs = []
        for index in range(len(self.joins)):
            x, y = self._label(index)
            runs.append(Run(tuple((x, y - top) for x, y in self._corners(index)), (x, y - top)))
        width = self.column_x[-1] + self.column_widths[-1] + self._channel_width(len(self.column_widths))
        return Part(corners, tuple(runs), width, bottom - top)

    # Ends of arrows

    def _tie(self, index: int) -> Tie:
        join = self.joins[index]
        leaves = self.leaves[index] / self.nodes[join.source].card.height
        arrives = self.arrives[index] / self.nodes[join.target].card.height
        return Tie(join.source, join.target, join.reluctance, leaves, arrives)

    def _span(self, join: Join) -> tuple[int, int, bool]:
        layer_of = self.layers.layer_of
        return layer_of[join.target], layer_of[join.source], goes_above(self.layers, join.source, join.target)

    def _take_slots(self) -> None:
        """Gives every arrow its own slot: at an input in the order of connecting, at an output as they part."""
        first = {strand.tie: strand.right for strands in reversed(self.layers.strands) for strand in strands}

        def parting(index: int) -> tuple[float, float]:
            if index in self.spans:
                start, end, above = self.spans[index]
                return (0, end - start) if above else (2, start - end)
            nodes = self.layers.nodes[self.layers.layer_of[first[index]]]
            near = first[index] == self.joins[index].target
            return 1, nodes.index(first[index]) + (self._tie(index).arrives if near else 0.5)

        for index, join in enumerate(self.joins):
            self.arrives[index] = port_row(self.nodes[join.target].card.left, join.input).slots[join.slot]
        taken: Counter[tuple[int, str]] = Counter()
        for index in sorted(range(len(self.joins)), key=parting):
            port = self.joins[index].source, self.joins[index].output
            self.leaves[index] = port_row(self.nodes[port[0]].card.right, port[1]).slots[taken[port]]
            taken[port] += 1

    def _pin(self, strand: Strand, left: bool) -> float:
        node = strand.left if left else strand.right
        if node >= len(self.nodes):
            return 0.0
        return self.nodes[node].y + (self.leaves if left else self.arrives)[strand.tie]

    def _leaves_at(self, index: int) -> float:
        source = self.joins[index].source
        return self.tops[source] + self.nodes[source].y + self.leaves[index]

    def _arrives_at(self, index: int) -> float:
        target = self.joins[index].target
        return self.tops[target] + self.nodes[target].y + self.arrives[index]

    # Channels: channel i is before layer i

    def _turns(self, channel: int) -> Iterator[Turn]:
        for strand in self.layers.strands[channel - 1] if 0 < channel < len(self.layers.nodes) else ():
            start = self.tops[strand.left] + self._pin(strand, left=True)
            end = self.tops[strand.right] + self._pin(strand, left=False)
            if start != end:
                yield Turn(strand.tie, start, True, end, False)
        for index, lane in self.lanes.items():
            first, last, _ = self.spans[index]
            if channel == first:
                yield Turn(index, lane, False, self._arrives_at(index), False)
            if channel == last + 1:
                yield Turn(index, self._leaves_at(index), True, lane, True)

    def _untangled(self, channel: int) -> Tracks:
        """Tracks of a channel, after moving boxes behind it where two arrows would lie on each other."""
        for _ in range(ATTEMPTS):
            tracks = assign_tracks(list(self._turns(channel)))
            if not tracks.clashing:
                break
            rights = {strand.tie: strand.right for strand in self.layers.strands[channel - 1]}
            node = rights[tracks.clashing[-1]]
            push_down(self.layers.nodes[channel], node, self.heights, len(self.nodes), self.tops)
        return tracks

    def _lay_lanes(self) -> None:
        """Lanes, a bit further out where one would lie on an arrow that arrives or leaves beside it."""
        reach = [
            (min(self.tops[node] for node in nodes), max(self.tops[node] + self.heights[node] for node in nodes))
            for nodes in self.layers.nodes
        ]
        self.lanes = assign_lanes(self.spans, {index: self._leaves_at(index) for index in self.spans}, reach)
        for _ in range(ATTEMPTS):
            self.tracks = [assign_tracks(list(self._turns(channel))) for channel in range(len(self.tracks))]
            clashing = {index for tracks in self.tracks for index in tracks.clashing if index in self.lanes}
            if not clashing:
                break
            above = self.spans[min(clashing)][2]
            for index in self.lanes:
                if self.spans[index][2] == above:
                    self.lanes[index] += -NUDGE if above else NUDGE

    # Across

    def _column_widths(self) -> list[float]:
        widths = [
            max((self.nodes[n].width for n in nodes if n < len(self.nodes)), default=0.0) for nodes in self.layers.nodes
        ]
        for index, (first, last, _) in self.spans.items():
            middle = (first + last) // 2
            widths[middle] = max(widths[middle], self.joins[index].label)
        return widths

    def _channel_width(self, channel: int) -> float:
        tracks = self.tracks[channel].count * TRACK
        if channel in (0, len(self.layers.nodes)):
            return tracks + HEAD if tracks else 0.0
        arriving = [
            join.label + PILL_GAP
            for index, join in enumerate(self.joins)
            if index not in self.spans and join.label and self.layers.layer_of[join.target] == channel
        ]
        return max(NARROWEST, STUB + tracks + max(arriving, default=0.0) + HEAD)

    def _across(self) -> tuple[list[float], list[float]]:
        channels, columns, x = [], [], 0.0
        for layer, width in enumerate(self.column_widths):
            channels.append(x)
            columns.append(x + self._channel_width(layer))
            x = columns[-1] + width
        return [*channels, x], columns

    def _corner(self, index: int) -> Point:
        layer = self.layers.layer_of[index]
        return self.column_x[layer] + (self.column_widths[layer] - self.nodes[index].width) / 2, self.tops[index]

    def _track_x(self, channel: int, index: int) -> float:
        return self.channel_x[channel] + (STUB if channel else TRACK) + self.tracks[channel].of[index] * TRACK

    def _corners(self, index: int) -> list[Point]:
        """The way of one arrow, a corner wherever it turns."""
        join = self.joins[index]
        source, target = self.nodes[join.source], self.nodes[join.target]
        start = (self._corner(join.source)[0] + source.x + source.card.width, self._leaves_at(index))
        end = (self._corner(join.target)[0] + target.x, self._arrives_at(index))
        way = [start]
        if index in self.spans:
            first, last, _ = self.spans[index]
            out, back = self._track_x(last + 1, index), self._track_x(first, index)
            way += [(out, start[1]), (out, self.lanes[index]), (back, self.lanes[index]), (back, end[1])]
        else:
            for channel, strands in enumerate(self.layers.strands, start=1):
                for strand in strands:
                    if strand.tie == index and index in self.tracks[channel].of:
                        x = self._track_x(channel, index)
                        way += [(x, way[-1][1]), (x, self.tops[strand.right] + self._pin(strand, left=False))]
        return [*way, end]

    def _label(self, index: int) -> Point:
        """Before the box that an arrow points at; on its lane, above or below a column, if it goes back."""
        join = self.joins[index]
        if index in self.spans:
            first, last, _ = self.spans[index]
            middle = (first + last) // 2
            return self.column_x[middle] + self.column_widths[middle] / 2, self.lanes[index]
        node, left = self.nodes[join.target], self._corner(join.target)[0]
        return min(left + node.x - PILL_GAP, left - 4) - join.label / 2, self._arrives_at(index)


def port_row(rows: Sequence[Row], name: str) -> Row:
    """The row of a port among those of a card's side."""
    return next(row for row in rows if row.glyph == "port" and row.name == name)
