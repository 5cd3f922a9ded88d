"""The picture: everything is in it, nothing lies on anything else, and it is the same every time."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import combinations, pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings

from raceway.graph.draw import Arrow, Box, Drawing, Port, Reaction
from raceway.graph.picture.card import CHEVRON, HEADER, Card
from raceway.graph.picture.layout import Area, Layout, Wire, lay_out
from raceway.graph.picture.stack import stack
from raceway.graph.picture.text import text_width
from tests.graph.drawings import EXAMPLES, drawings, loop, odd, training

SVG = "{http://www.w3.org/2000/svg}"
NEAR = 4.0  # lines nearer than this to each other look like one


def lines(wire: Wire) -> list[Area]:
    """The straight stretches of an arrow, as rectangles without width or height."""
    return [
        Area(min(x, end_x), min(y, end_y), abs(end_x - x), abs(end_y - y))
        for (x, y), (end_x, end_y) in pairwise(wire.corners)
    ]


def meets(line: Area, area: Area) -> bool:
    """Whether a line has a point inside an area."""
    level = line.x < area.right and area.x < line.right
    return level and line.y < area.bottom and area.y < line.bottom


def cover(line: Area, other: Area) -> bool:
    """Whether two lines run along each other."""
    if line.height == other.height == 0:
        return abs(line.y - other.y) < NEAR and min(line.right, other.right) - max(line.x, other.x) > 1
    if line.width == other.width == 0:
        return abs(line.x - other.x) < NEAR and min(line.bottom, other.bottom) - max(line.y, other.y) > 1
    return False


def check_layout(drawing: Drawing) -> None:
    """Boxes are apart, arrows pass no box and lie on no other arrow, labels are readable, all within the page."""
    layout = lay_out(drawing)
    assert [placed.card.box for placed in layout.placed] == list(drawing.boxes)
    assert [wire.arrow for wire in layout.wires] == list(drawing.arrows)
    for one, other in combinations(layout.placed, 2):
        assert not one.room.overlaps(other.room)
    for wire in layout.wires:
        for line in lines(wire):
            assert min(line.width, line.height) == 0
            assert not any(meets(line, placed.area) for placed in layout.placed), wire.arrow
    for wire, other_wire in combinations(layout.wires, 2):
        assert not any(cover(line, other) for line in lines(wire) for other in lines(other_wire))
    check_labels(layout)
    check_groups(layout)
    areas = [placed.room for placed in layout.placed] + [line for wire in layout.wires for line in lines(wire)]
    areas += [wire.label for wire in layout.wires if wire.label]
    for area in areas:
        assert min(area.x, area.y) >= 0
        assert area.right <= layout.width
        assert area.bottom <= layout.height


def check_labels(layout: Layout) -> None:
    """Labels are on their own arrows, and on nothing else."""
    for wire in layout.wires:
        if wire.label is None:
            assert wire.words == ""
            continue
        assert any(meets(line, wire.label) for line in lines(wire))
        for other in layout.wires:
            if other is not wire:
                assert not any(meets(line, wire.label) for line in lines(other))
                assert other.label is None or not wire.label.overlaps(other.label)
        assert not any(wire.label.overlaps(placed.area) for placed in layout.placed)


def check_groups(layout: Layout) -> None:
    """Every box with a place is in a frame of that place, no other box is, and the name fits and can be read."""
    for placed in layout.placed:
        around = {group.place for group in layout.groups if group.area.overlaps(placed.area)}
        assert around == ({placed.card.box.place} - {""})
    for group in layout.groups:
        name = Area(group.title + 16, group.area.y + 8, text_width(group.place, 11, bold=True), 14)
        assert name.right <= group.area.right
        assert not any(meets(line, name) for wire in layout.wires for line in lines(wire))
        assert not any(name.overlaps(placed.area) for placed in layout.placed)


def check_ends(drawing: Drawing) -> None:
    """An arrow begins at a slot of its output and ends at one of its input, and no slot is used twice."""
    layout = lay_out(drawing)
    placed = {each.card.box.name: each for each in layout.placed}
    ends = []
    for wire in layout.wires:
        source, target = placed[wire.arrow.source], placed[wire.arrow.target]
        leaves = [row for row in source.card.right if row.name == wire.arrow.output]
        arrives = [row for row in target.card.left if (row.name, row.glyph) == (wire.arrow.input, "port")]
        start, end = wire.corners[0], wire.corners[-1]
        assert start[0] == source.area.right
        assert start[1] - source.area.y in leaves[0].slots
        assert end[0] == target.area.x
        assert end[1] - target.area.y in arrives[0].slots
        ends += [start, end]
    assert len(set(ends)) == len(ends)


def check_card(card: Card) -> None:
    """Words stay within the card; ports, reactions and each other are kept apart."""
    left = max((row.width for row in card.left), default=0.0) + 14
    right = card.width - max((row.width for row in card.right), default=0.0) - 14
    assert left <= right
    for chevron in card.chevrons:
        assert left <= chevron.x
        assert chevron.x + chevron.width <= right
        assert text_width(chevron.reaction.name, 12) + 31 <= chevron.width - 5
    for column in (card.left, card.right, card.chevrons):
        middles = [each.middle for each in column]
        assert all(below - above >= CHEVRON for above, below in pairwise(middles))
        assert all(HEADER + CHEVRON / 2 <= middle <= card.height - CHEVRON / 2 for middle in middles)
    for row in (*card.left, *card.right):
        assert all(HEADER < slot < card.height for slot in row.slots)
    badge = text_width(f"×{card.box.width}", 11.5, bold=True) + 18 if card.box.width > 1 else 0
    assert text_width(card.box.name, 14, bold=True) + badge + 28 <= card.width
    assert text_width(card.box.kind, 11.5) + 28 <= card.width


@pytest.mark.parametrize("name", EXAMPLES)
def test_nothing_lies_on_anything_else(name: str) -> None:
    check_layout(EXAMPLES[name])
    check_ends(EXAMPLES[name])


@settings(deadline=None)
@given(drawings())
def test_nothing_lies_on_anything_else_in_any_drawing(drawing: Drawing) -> None:
    check_layout(drawing)
    check_ends(drawing)


@settings(deadline=None)
@given(drawings())
def test_words_stay_within_their_boxes(drawing: Drawing) -> None:
    for placed in lay_out(drawing).placed:
        check_card(placed.card)


@settings(deadline=None)
@given(drawings())
def test_any_drawing_is_well_formed_and_complete(drawing: Drawing) -> None:
    check_words(drawing)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_well_formed_and_complete(name: str) -> None:
    check_words(EXAMPLES[name])


def check_words(drawing: Drawing) -> None:
    """Every name, class, port, reaction, place and label is written somewhere."""
    page = ElementTree.fromstring(drawing.svg)
    shown = {element.text or "" for element in page.iter(f"{SVG}text")}
    for box in drawing.boxes:
        names = {box.name, box.kind, box.place, *(reaction.name for reaction in box.reactions)}
        names |= {word for port in (*box.inputs, *box.outputs) for word in (port.name, port.type) if len(word) < 40}
        names |= {trigger for reaction in box.reactions for trigger in reaction.triggers}
        assert names - shown - {""} == set()
    assert {drawing.label(arrow) for arrow in drawing.arrows} - shown - {""} == set()
    described = page.findtext(f"{SVG}desc") or ""
    assert page.findtext(f"{SVG}title") == drawing.title
    assert all(str(arrow) in described for arrow in drawing.arrows)


def test_the_picture_needs_nothing_from_elsewhere() -> None:
    picture = odd().svg
    page = ElementTree.fromstring(picture)
    assert {element.tag.removeprefix(SVG) for element in page.iter()} <= {
        *("svg", "title", "desc", "style", "g"),
        *("rect", "circle", "path", "text"),
    }
    assert "url(" not in picture
    assert "@import" not in picture
    assert "@media (prefers-color-scheme: dark)" in picture
    assert picture.count("http") == 1  # the name space


def test_its_style_touches_nothing_outside_the_picture() -> None:
    style = ElementTree.fromstring(loop().svg).findtext(f"{SVG}style") or ""
    selectors = [part.split("{")[0] for part in style.replace("@media (prefers-color-scheme: dark) {", "").split("}")]
    assert all(each.strip().startswith(".rw ") for part in selectors if part.strip() for each in part.split(","))


def test_characters_that_xml_cannot_hold_are_replaced() -> None:
    page = ElementTree.fromstring(Drawing("a\x00b", (Box("c\x07", "\ud800"),)).svg)
    assert page.findtext(f"{SVG}title") == "a\ufffdb"
    assert {"c\ufffd", "\ufffd"} <= {element.text for element in page.iter(f"{SVG}text")}


def test_the_picture_is_the_same_in_every_process() -> None:
    code = "from tests.graph.drawings import *\nfor each in EXAMPLES.values(): print(each.svg, each.mermaid)"
    seeds = ("1", "2")
    shown = [
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in seeds
    ]
    assert shown[0] == shown[1]
    assert shown[0].decode() == "".join(f"{each.svg} {each.mermaid}\n" for each in EXAMPLES.values())


def test_the_delay_is_what_goes_back() -> None:
    layout = lay_out(training())
    x = {placed.card.box.name: placed.area.x for placed in layout.placed}
    assert x["collector"] < x["learner"] < x["evaluator"] < x["recorder"]
    backward = [wire.arrow.label for wire in layout.wires if wire.corners[0][0] > wire.corners[-1][0]]
    assert backward == ["after 2"]


def test_a_chain_is_one_straight_line() -> None:
    assert len({y for wire in lay_out(EXAMPLES["chain"]).wires for _, y in wire.corners}) == 1


def test_boxes_of_a_place_share_a_frame_that_leaves_others_out() -> None:
    layout = lay_out(training())
    inside = {
        placed.card.box.name for placed in layout.placed for group in layout.groups if group.area.overlaps(placed.area)
    }
    assert [group.place for group in layout.groups] == ["1 process"]
    assert inside == {"evaluator", "recorder"}


def test_a_bank_is_a_pile_of_cards_with_its_width() -> None:
    def cards(drawing: Drawing) -> int:
        return drawing.svg.count('<rect class="card"')

    assert cards(Drawing("one", (Box("a", "A"),))) == 1
    assert cards(Drawing("bank", (Box("a", "A", 16),))) == 3
    assert ">×16</text>" in Drawing("bank", (Box("a", "A", 16),)).svg


def test_the_legend_has_only_the_lines_that_occur() -> None:
    boxes = (Box("a", "A", outputs=(Port("o"),)), Box("b", "B", inputs=(Port("i"),)))
    plain = Drawing("plain", boxes, (Arrow("a", "o", "b", "i"),)).svg
    assert "same round" in plain
    assert "rounds later" not in plain
    assert "newest value" not in plain
    assert "same round" not in Drawing("no arrows", boxes).svg
    assert "read, but no trigger" in training().svg


def test_the_order_of_connecting_is_the_order_at_an_input() -> None:
    sources = tuple(Box(f"s{i}", "S", outputs=(Port("o"),)) for i in range(4))
    gather = Box("gather", "G", inputs=(Port("many"),), reactions=(Reaction("all", ("many",)),))
    order = [2, 0, 3, 1]
    arrows = tuple(Arrow(f"s{i}", "o", "gather", "many") for i in order)
    layout = lay_out(Drawing("gather", (*sources, gather), arrows))
    ends = [wire.corners[-1][1] for wire in layout.wires]
    assert ends == sorted(ends)


def test_a_program_without_reactors_can_be_drawn() -> None:
    ElementTree.fromstring(Drawing("nothing", ()).svg)


@pytest.mark.parametrize(
    ("words", "size", "bold", "width"),
    [
        # Measured in DejaVu Sans.
        ("collector", 14, True, 68.5),
        ("RolloutCollector", 11.5, False, 90.9),
        ("weights", 12, False, 46.7),
        ("dict[str, tuple[Array, ...]]", 10.5, False, 128.2),
        ("WWWW@mm", 12, False, 82.8),
    ],
)
def test_words_are_never_taken_for_narrower_than_they_are(words: str, size: float, bold: bool, width: float) -> None:
    assert width <= text_width(words, size, bold=bold) <= 1.25 * width


def test_stacking_grants_wishes_where_it_can() -> None:
    assert stack([[5.0], [40.0]], [10, 10], [2]) == [5.0, 40.0]
    assert stack([[20.0], [20.0]], [10, 10], [2]) == [8.0, 20.0]
    assert stack([[], [30.0], []], [10, 10, 10], [5, 5]) == [15.0, 30.0, 45.0]
    assert stack([[90.0], [95.0]], [10, 10], [0], room=50) == [30.0, 40.0]
