"""A box as SVG: header, ports, reactions, the links between them, and the sheets of a bank behind it."""

from __future__ import annotations

from collections.abc import Iterator

from raceway.graph.picture.card import (
    CHEVRON,
    EDGE,
    GLYPH,
    HEADER,
    KIND,
    LONGEST_TYPE,
    NAME,
    POINT,
    PORT,
    TYPE,
    Card,
    Chevron,
    Link,
    Row,
)
from raceway.graph.picture.layout import SHEET
from raceway.graph.picture.svg import clean, path, rectangle, text
from raceway.graph.picture.text import shorten, text_width

RADIUS = 9.0
PORT_RADIUS = 4.0


def paint_card(card: Card, x: float, y: float) -> Iterator[str]:
    """The card with its top left corner at (x, y)."""
    yield f'<g transform="translate({x:.1f} {y:.1f})">'
    for sheet in (2 * SHEET, SHEET) if card.box.width > 1 else ():
        yield rectangle(sheet, -sheet, card.width, card.height, RADIUS, "card")
    yield rectangle(0, 0, card.width, card.height, RADIUS, "card")
    yield from _header(card)
    for link in card.links:
        yield _link(link)
    for chevron in card.chevrons:
        yield from _chevron(chevron)
    for row in card.left:
        yield from _row(row, 0.0, 1)
    for row in card.right:
        yield from _row(row, card.width, -1)
    yield "</g>"


def _header(card: Card) -> Iterator[str]:
    box = card.box
    yield text(EDGE, 21, box.name, NAME, "ink", bold=True)
    yield text(EDGE, 37, box.kind, KIND, "soft")
    if card.height > HEADER:
        yield path(f"M0 {HEADER:g}H{card.width:.1f}", "rule")
    if box.width > 1:
        words = f"×{box.width}"
        width = text_width(words, KIND, bold=True) + 12
        yield rectangle(card.width - EDGE - width + 4, 9, width, 18, 9, "badge")
        yield text(card.width - EDGE - width / 2 + 4, 22, words, KIND, "on-badge", bold=True, anchor="middle")


def _row(row: Row, edge: float, inward: int) -> Iterator[str]:
    """A port or an event at the left edge (inward = 1) or the right one (inward = -1) of a card."""
    x, anchor = edge + inward * EDGE, "start" if inward > 0 else "end"
    if row.glyph != "port":
        yield _sign(row, x + 5)
        yield text(x + GLYPH, row.middle + 4, row.name, PORT, "event")
        return
    if row.slots:
        first, last = row.slots[0] - PORT_RADIUS, row.slots[-1] + PORT_RADIUS
        yield rectangle(edge - PORT_RADIUS, first, 2 * PORT_RADIUS, last - first, PORT_RADIUS, "port")
    else:
        yield f'<circle class="hollow" cx="{edge:.1f}" cy="{row.middle:.1f}" r="{PORT_RADIUS:g}"/>'
    yield text(x, row.middle + (-1 if row.type else 4), row.name, PORT, "ink", anchor=anchor)
    if row.type:
        yield text(x, row.middle + 12, shorten(row.type, LONGEST_TYPE), TYPE, "soft", anchor=anchor)


def _sign(row: Row, x: float) -> str:
    """A clock for timers, as on a recorder a triangle to start and a square to stop."""
    y = row.middle
    if row.glyph == "startup":
        return path(f"M{x - 3.5:.1f} {y - 5:.1f}l9 5l-9 5z", "sign")
    if row.glyph == "shutdown":
        return rectangle(x - 4, y - 4, 8, 8, 1, "sign")
    return f'<circle class="dial" cx="{x:.1f}" cy="{y:.1f}" r="5"/>' + path(f"M{x:.1f} {y - 3:.1f}v3h2.5", "dial")


def _link(link: Link) -> str:
    (x, y), (end_x, end_y) = link.start, link.end
    half = (link.bend + link.unbend) / 2
    shape = (
        f"M{x:.1f} {y:.1f}H{link.bend:.1f}"
        f"C{half:.1f} {y:.1f} {half:.1f} {end_y:.1f} {link.unbend:.1f} {end_y:.1f}H{end_x:.1f}"
    )
    return path(shape, "link uses" if link.dotted else "link")


def _chevron(chevron: Chevron) -> Iterator[str]:
    x, top, half = chevron.x, chevron.middle - CHEVRON / 2, CHEVRON / 2
    flat = chevron.width - POINT
    yield f"<g><title>{clean(_sentence(chevron))}</title>"
    yield path(
        f"M{x:.1f} {top:.1f}h{flat:.1f}l{POINT:g} {half:g}l{-POINT:g} {half:g}h{-flat:.1f}l{POINT:g} {-half:g}z",
        "chevron",
    )
    yield text(x + POINT + 12, chevron.middle + 4, str(chevron.number), TYPE, "soft", bold=True, anchor="middle")
    yield text(x + POINT + 23, chevron.middle + 4, chevron.reaction.name, PORT, "ink")
    yield "</g>"


def _sentence(chevron: Chevron) -> str:
    reaction = chevron.reaction
    uses = f", reads {', '.join(reaction.uses)}" if reaction.uses else ""
    effects = f", writes {', '.join(reaction.effects)}" if reaction.effects else ""
    return f"{reaction.name}: triggered by {', '.join(reaction.triggers) or 'nothing'}{uses}{effects}"
