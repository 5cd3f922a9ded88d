"""What is inside a box: ports at its sides, reactions in the middle, thin links between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from raceway.graph.draw import Box, Port, Reaction
from raceway.graph.picture.stack import stack
from raceway.graph.picture.text import shorten, text_width

NAME, KIND, PORT, TYPE = 14.0, 11.5, 12.0, 10.5  # font sizes
HEADER, PADDING, GUTTER = 46.0, 6.0, 30.0
EDGE = 14.0  # from the card's edge to the words
ROW, CHEVRON, POINT = 32.0, 24.0, 8.0  # rows and reactions have the same pitch, so that links are level
BADGE = 26.0  # the room of a reaction's number
INPUT_SLOT, OUTPUT_SLOT = 22.0, 10.0  # between arrows at one port; at an input their labels need room
LONGEST_TYPE = 40
GLYPH = 16.0  # the room of an event's sign
LEAST_WIDTH = 96.0

Glyph = Literal["port", "timer", "startup", "shutdown"]


@dataclass(frozen=True)
class Row:
    """A port or an event at the side of a card; `slots` are the heights at which arrows meet the port."""

    name: str
    type: str
    glyph: Glyph
    middle: float
    width: float
    slots: tuple[float, ...]


@dataclass(frozen=True)
class Chevron:
    """A reaction: links go in at the notch (x + POINT) and out at the tip (x + width)."""

    number: int
    reaction: Reaction
    x: float
    middle: float
    width: float


@dataclass(frozen=True)
class Link:
    """A thin line inside a card from one point to another, level but for a curve between `bend` and `unbend`."""

    start: tuple[float, float]
    bend: float
    unbend: float
    end: tuple[float, float]
    dotted: bool


@dataclass(frozen=True)
class Card:
    """A box with everything in it, in coordinates from its top left corner."""

    box: Box
    width: float
    height: float
    left: tuple[Row, ...]
    right: tuple[Row, ...]
    chevrons: tuple[Chevron, ...]
    links: tuple[Link, ...]


@dataclass(frozen=True)
class _Entry:
    """A row before its place is known: what it shows, the reactions it is linked to, the arrows that meet it."""

    port: Port
    glyph: Glyph
    reactions: list[int]
    arrows: int
    slot: float

    @property
    def height(self) -> float:
        return max(ROW, self.arrows * self.slot + 4)

    @property
    def width(self) -> float:
        words = text_width(self.port.name, PORT) + (0 if self.glyph == "port" else GLYPH)
        return max(words, text_width(shorten(self.port.type, LONGEST_TYPE), TYPE))


def make_card(box: Box, arriving: Mapping[str, int], leaving: Mapping[str, int], least_width: float = 0.0) -> Card:
    """Lays out one box, given how many arrows arrive at each input and leave each output."""
    incoming, outgoing = _incoming(box, arriving), _outgoing(box, leaving)
    pile = len(box.reactions) * ROW
    room = max(pile, *(sum(entry.height for entry in entries) for entries in (incoming, outgoing)))
    first = HEADER + PADDING + (room - pile + ROW) / 2
    middles = [first + index * ROW for index in range(len(box.reactions))]
    left, right = _column(incoming, middles, room), _column(outgoing, middles, room)

    sides = [max((row.width for row in rows), default=0.0) for rows in (left, right)]
    words = max((text_width(reaction.name, PORT) for reaction in box.reactions), default=0.0)
    chevron = words + 2 * POINT + BADGE if box.reactions else 0.0
    gutters = GUTTER * (bool(left) + bool(right) if box.reactions else bool(left and right))
    inside = sum(sides) + chevron + gutters + 2 * EDGE
    width = max(inside, _header_width(box), least_width, LEAST_WIDTH)
    start = EDGE + sides[0] + GUTTER * bool(left) + (width - inside) / 2
    chevrons = tuple(
        Chevron(number, reaction, start, middle, chevron)
        for number, (reaction, middle) in enumerate(zip(box.reactions, middles, strict=True), start=1)
    )
    links = tuple(_links(chevrons, left, right, width))
    height = HEADER + (room + 2 * PADDING if room else 0.0)
    return Card(box, width, height, left, right, chevrons, links)


def _incoming(box: Box, arriving: Mapping[str, int]) -> list[_Entry]:
    """Inputs and events (triggers that are no ports) in the order of the reactions that read them."""
    read = [(*reaction.triggers, *reaction.uses) for reaction in box.reactions]
    ports = {port.name: port for port in box.inputs}
    events = dict.fromkeys(name for names in read for name in names if name not in ports)
    entries = []
    for name in (*ports, *events):
        readers = [index for index, names in enumerate(read) if name in names]
        glyph: Glyph = "port" if name in ports else _event_glyph(name)
        entries.append(_Entry(ports.get(name, Port(name)), glyph, readers, arriving.get(name, 0), INPUT_SLOT))
    return sorted(entries, key=_mean_reaction)


def _outgoing(box: Box, leaving: Mapping[str, int]) -> list[_Entry]:
    entries = []
    for port in box.outputs:
        writers = [index for index, reaction in enumerate(box.reactions) if port.name in reaction.effects]
        entries.append(_Entry(port, "port", writers, leaving.get(port.name, 0), OUTPUT_SLOT))
    return sorted(entries, key=_mean_reaction)


def _event_glyph(event: str) -> Glyph:
    return "startup" if event == "startup" else "shutdown" if event == "shutdown" else "timer"


def _mean_reaction(entry: _Entry) -> float:
    return sum(entry.reactions) / len(entry.reactions) if entry.reactions else float("inf")


def _column(entries: Sequence[_Entry], middles: Sequence[float], room: float) -> tuple[Row, ...]:
    """The entries one below another, each as level with its reactions as can be."""
    top = HEADER + PADDING
    wishes = [[middles[index] - entry.height / 2 - top for index in entry.reactions] for entry in entries]
    heights = [entry.height for entry in entries]
    spare = (room - sum(heights)) / 2
    if not any(wishes):
        wishes = [[spare + sum(heights[:index])] for index in range(len(entries))]
    tops = stack(wishes, heights, [0.0] * (len(entries) - 1), room)
    rows = []
    for entry, offset in zip(entries, tops, strict=True):
        middle = top + offset + entry.height / 2
        slots = tuple(middle + (index - (entry.arrows - 1) / 2) * entry.slot for index in range(entry.arrows))
        rows.append(Row(entry.port.name, entry.port.type, entry.glyph, middle, entry.width, slots))
    return tuple(rows)


def _header_width(box: Box) -> float:
    badge = text_width(f"×{box.width}", KIND, bold=True) + 26 if box.width > 1 else 0.0
    return max(text_width(box.name, NAME, bold=True), text_width(box.kind, KIND)) + badge + 2 * EDGE


def _links(chevrons: Sequence[Chevron], left: Sequence[Row], right: Sequence[Row], width: float) -> Iterator[Link]:
    edge = EDGE + max((row.width for row in left), default=0.0) + 4
    far_edge = width - EDGE - max((row.width for row in right), default=0.0) - 4
    for chevron in chevrons:
        notch, tip = (chevron.x + POINT, chevron.middle), (chevron.x + chevron.width, chevron.middle)
        for row in left:
            if row.name in (*chevron.reaction.triggers, *chevron.reaction.uses):
                dotted = row.name not in chevron.reaction.triggers
                yield Link((EDGE + row.width + 4, row.middle), edge, chevron.x - 2, notch, dotted)
        for row in right:
            if row.name in chevron.reaction.effects:
                yield Link(tip, tip[0] + 2, far_edge, (width - EDGE - row.width - 4, row.middle), dotted=False)
