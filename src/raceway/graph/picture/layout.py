"""Where everything in a picture is: boxes, arrows with their labels, groups of boxes that live in one place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from raceway.graph.draw import Arrow, Box, Drawing
from raceway.graph.picture.card import Card, make_card
from raceway.graph.picture.part import Join, Node, Part, Point, Run, make_part, port_row
from raceway.graph.picture.text import text_width

LABEL = 11.0  # font size
PILL = 18.0  # height of a label
SHEET = 5.0  # how far each of the two cards behind a bank's peeps out
LOOP_X, LOOP_Y = 9.0, 26.0  # between arrows from a box to itself
FIRST_LOOP = 20.0
GROUP, GROUP_TOP = 16.0, 30.0  # around boxes that live in a place, and above them for its name
PART_GAP = 48.0
WIDE = 960.0  # parts that fit into this stand side by side
RELUCTANCE = {"now": 0, "queue": 1, "latest": 2, "later": 3}


@dataclass(frozen=True)
class Area:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    def overlaps(self, other: Area) -> bool:
        """Whether the two have more than an edge in common."""
        level = self.x < other.right and other.x < self.right
        return level and self.y < other.bottom and other.y < self.bottom

    def within(self, other: Area) -> bool:
        """Whether all of it is inside the other."""
        level = other.x <= self.x and self.right <= other.right
        return level and other.y <= self.y and self.bottom <= other.bottom

    def around(self, other: Area) -> Area:
        """The least rectangle around both."""
        x, y = min(self.x, other.x), min(self.y, other.y)
        return Area(x, y, max(self.right, other.right) - x, max(self.bottom, other.bottom) - y)


@dataclass(frozen=True)
class Placed:
    """A card, where it is, and the room around it that is its own."""

    card: Card
    area: Area
    room: Area


@dataclass(frozen=True)
class Wire:
    """An arrow with the corners of its way and the rectangle of its label, if it has one."""

    arrow: Arrow
    corners: tuple[Point, ...]
    words: str
    label: Area | None


@dataclass(frozen=True)
class Group:
    """The boxes that live in one place: the frame around them, where its name begins, and which place it is."""

    place: str
    area: Area
    title: float
    tint: int


@dataclass(frozen=True)
class Layout:
    """A picture in coordinates from its top left corner, without title and legend."""

    placed: tuple[Placed, ...]
    wires: tuple[Wire, ...]
    groups: tuple[Group, ...]
    width: float
    height: float


def lay_out(drawing: Drawing) -> Layout:
    """Lays out the connected parts of a drawing, then sets them beside and below each other."""
    return _Desk(drawing).layout()


class _Desk:
    """A drawing with its boxes measured, on which the parts are put together."""

    def __init__(self, drawing: Drawing) -> None:
        self.drawing = drawing
        self.number = {box.name: index for index, box in enumerate(drawing.boxes)}
        self.words = [drawing.label(arrow) for arrow in drawing.arrows]
        self.arriving = self._by_port([(arrow.target, arrow.input) for arrow in drawing.arrows])
        self.leaving = self._by_port([(arrow.source, arrow.output) for arrow in drawing.arrows])
        self.nodes = [self._node(box) for box in drawing.boxes]

    def layout(self) -> Layout:
        placed: dict[int, Placed] = {}
        wires: dict[int, Wire] = {}
        components = self._components()
        parts = [self._part(boxes, arrows) for boxes, arrows in components]
        shelves = _shelves(parts)
        for (boxes, arrows), part, (x, y) in zip(components, parts, shelves, strict=True):
            for box, (left, top) in zip(boxes, part.corners, strict=True):
                placed[box] = _place(self.nodes[box], x + left, y + top)
            for arrow, run in zip(arrows, part.runs, strict=True):
                wires[arrow] = self._wire(arrow, run, x, y)
        for box, each in placed.items():
            wires.update(self._loops(self.drawing.boxes[box], each))
        return Layout(
            tuple(placed[index] for index in sorted(placed)),
            tuple(wires[index] for index in sorted(wires)),
            _groups([placed[index] for index in sorted(placed)]),
            max((x + part.width for part, (x, _) in zip(parts, shelves, strict=True)), default=0.0),
            max((y + part.height for part, (_, y) in zip(parts, shelves, strict=True)), default=0.0),
        )

    def _by_port(self, ends: Sequence[tuple[str, str]]) -> dict[str, dict[str, list[int]]]:
        """Arrows at each port of each box, in the order of connecting."""
        found: dict[str, dict[str, list[int]]] = {box.name: {} for box in self.drawing.boxes}
        for index, (box, port) in enumerate(ends):
            found[box].setdefault(port, []).append(index)
        return found

    def _loops_of(self, box: Box) -> list[int]:
        arrows = self.drawing.arrows
        return [index for index, arrow in enumerate(arrows) if arrow.source == arrow.target == box.name]

    def _node(self, box: Box) -> Node:
        """A card with the room for the sheets of a bank, arrows from the box to itself, and the frame of a place."""
        loops = self._loops_of(box)
        arriving = {port: len(arrows) for port, arrows in self.arriving[box.name].items()}
        leaving = {port: len(arrows) for port, arrows in self.leaving[box.name].items()}
        beside = [text_width(box.place, LABEL, bold=True), *(_label_width(self.words[index]) for index in loops)]
        card = make_card(box, arriving, leaving, least_width=max(beside))
        sheets = 2 * SHEET if box.width > 1 else 0.0
        around = FIRST_LOOP + len(loops) * LOOP_X if loops else 0.0
        below = FIRST_LOOP + len(loops) * LOOP_Y - LOOP_Y / 2 if loops else 0.0
        frame, frame_top = (GROUP, GROUP_TOP) if box.place else (0.0, 0.0)
        x, y = around + frame, sheets + frame_top
        return Node(card, x, y, x + card.width + sheets + around + frame, y + card.height + below + frame)

    def _components(self) -> list[tuple[list[int], list[int]]]:
        """Boxes that hang together, each time with the arrows between them, in the order of the program."""
        leader = list(range(len(self.nodes)))

        def find(box: int) -> int:
            return box if leader[box] == box else find(leader[box])

        for arrow in self.drawing.arrows:
            ends = sorted((find(self.number[arrow.source]), find(self.number[arrow.target])))
            leader[ends[1]] = ends[0]
        members: dict[int, tuple[list[int], list[int]]] = {}
        for box in range(len(self.nodes)):
            members.setdefault(find(box), ([], []))[0].append(box)
        for index, arrow in enumerate(self.drawing.arrows):
            if arrow.source != arrow.target:
                members[find(self.number[arrow.source])][1].append(index)
        return list(members.values())

    def _part(self, boxes: Sequence[int], arrows: Sequence[int]) -> Part:
        local = {self.drawing.boxes[box].name: index for index, box in enumerate(boxes)}
        joins = []
        for index in arrows:
            arrow = self.drawing.arrows[index]
            slot = self.arriving[arrow.target][arrow.input].index(index)
            source, target = local[arrow.source], local[arrow.target]
            width = _label_width(self.words[index])
            joins.append(Join(source, target, arrow.output, arrow.input, slot, RELUCTANCE[arrow.style], width))
        return make_part([self.nodes[box] for box in boxes], joins)

    def _wire(self, index: int, run: Run, x: float, y: float) -> Wire:
        corners = tuple((x + left, y + top) for left, top in run.corners)
        middle = (x + run.label[0], y + run.label[1])
        return Wire(self.drawing.arrows[index], corners, self.words[index], _pill(self.words[index], middle))

    def _loops(self, box: Box, placed: Placed) -> dict[int, Wire]:
        """Arrows from a box to itself: around it, one outside the other."""
        area, card = placed.area, placed.card
        leaves: dict[int, float] = {}
        loops = self._loops_of(box)
        for row in card.right:
            own = [index for index in self.leaving[box.name].get(row.name, ()) if index in loops]
            leaves |= dict(zip(own, row.slots[len(row.slots) - len(own) :], strict=True))
        wires = {}
        for ring, index in enumerate(sorted(loops, key=lambda each: -leaves[each])):
            arrow = self.drawing.arrows[index]
            arrives = port_row(card.left, arrow.input).slots[self.arriving[box.name][arrow.input].index(index)]
            right = area.right + (2 * SHEET if box.width > 1 else 0.0) + FIRST_LOOP + ring * LOOP_X
            left, bottom = area.x - FIRST_LOOP - ring * LOOP_X, area.bottom + FIRST_LOOP + ring * LOOP_Y
            start, end = area.y + leaves[index], area.y + arrives
            corners = ((area.right, start), (right, start), (right, bottom), (left, bottom), (left, end), (area.x, end))
            pill = _pill(self.words[index], (area.x + area.width / 2, bottom))
            wires[index] = Wire(arrow, corners, self.words[index], pill)
        return wires


def _label_width(words: str) -> float:
    return text_width(words, LABEL) + 16 if words else 0.0


def _pill(words: str, middle: Point) -> Area | None:
    width = _label_width(words)
    return Area(middle[0] - width / 2, middle[1] - PILL / 2, width, PILL) if words else None


def _place(node: Node, x: float, y: float) -> Placed:
    area = Area(x + node.x, y + node.y, node.card.width, node.card.height)
    return Placed(node.card, area, Area(x, y, node.width, node.height))


def _shelves(parts: Sequence[Part]) -> list[Point]:
    """Parts side by side as long as they are no wider than the widest of them or than WIDE, then on the next shelf."""
    limit = max([WIDE, *(part.width for part in parts)])
    corners: list[Point] = []
    x = y = deepest = 0.0
    for part in parts:
        if x and x + part.width > limit:
            x, y, deepest = 0.0, y + deepest + PART_GAP, 0.0
        corners.append((x, y))
        x, deepest = x + part.width + PART_GAP, max(deepest, part.height)
    return corners


def _groups(placed: Sequence[Placed]) -> tuple[Group, ...]:
    """One frame per place where nothing else comes between its boxes, several otherwise."""
    groups: list[Group] = []
    for tint, place in enumerate(dict.fromkeys(each.card.box.place for each in placed if each.card.box.place)):
        strangers = [each.room for each in placed if each.card.box.place != place]
        rooms = [each.room for each in placed if each.card.box.place == place]
        strangers += [group.area for group in groups]
        for area in _joined(rooms, strangers):
            highest = [room for room in rooms if room.within(area) and room.y == area.y]
            groups.append(Group(place, area, min(room.x for room in highest), tint))
    return tuple(groups)


def _joined(areas: Sequence[Area], strangers: Sequence[Area]) -> list[Area]:
    """The areas, two made one as long as there are two whose frame leaves the strangers out and cuts no other area."""
    for first, second in combinations(areas, 2):
        frame = first.around(second)
        others = [area for area in areas if not area.within(frame)]
        if not any(frame.overlaps(each) for each in (*strangers, *others)):
            return _joined([frame, *others], strangers)
    return list(areas)
