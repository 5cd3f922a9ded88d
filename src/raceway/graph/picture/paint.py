"""A layout as SVG: nothing to fetch, nothing to run; arrows and reactions say more when pointed at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from raceway.graph.draw import Drawing
from raceway.graph.picture.colours import TINTS, style_sheet
from raceway.graph.picture.layout import LABEL, PILL, Group, Layout, Wire, lay_out
from raceway.graph.picture.paint_card import PORT_RADIUS, paint_card
from raceway.graph.picture.svg import ARROWHEAD, arrowhead, clean, path, rectangle, rounded, text
from raceway.graph.picture.text import text_width

MARGIN, TITLE, LEGEND = 28.0, 40.0, 44.0
TITLE_SIZE = 15.0
SAMPLE = 44.0  # a line in the legend
LEGENDS = {
    "now": "same round",
    "later": "after n: n rounds later",
    "queue": "queue: as it arrives",
    "latest": "latest: newest value, nobody waits",
    "uses": "read, but no trigger",
}


def picture(drawing: Drawing) -> str:
    """The whole picture as the text of an SVG file."""
    layout = lay_out(drawing)
    width = max(layout.width, text_width(drawing.title, TITLE_SIZE, bold=True), 240)
    legend = _legend_rows(drawing, width)
    bottom = MARGIN + TITLE + layout.height
    full_width, full_height = width + 2 * MARGIN, bottom + (16 + 24 * len(legend) if legend else 0) + MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="rw" role="img" width="{full_width:.0f}" '
        f'height="{full_height:.0f}" viewBox="0 0 {full_width:.0f} {full_height:.0f}" '
        'font-family="system-ui, sans-serif">',
        f"<title>{clean(drawing.title)}</title>",
        f"<desc>{clean(_description(drawing))}</desc>",
        f"<style>\n{style_sheet()}\n</style>",
        f'<rect class="page" width="{full_width:.0f}" height="{full_height:.0f}"/>',
        text(MARGIN, MARGIN + 8, drawing.title, TITLE_SIZE, "ink", bold=True),
        f'<g transform="translate({MARGIN:.0f} {MARGIN + TITLE:.0f})">',
        *_paint(layout),
        "</g>",
        *_paint_legend(legend, bottom + 34),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _description(drawing: Drawing) -> str:
    boxes = ", ".join(f"{box.name} ({box.kind}{f' ×{box.width}' if box.width > 1 else ''})" for box in drawing.boxes)
    arrows = "; ".join(str(arrow) for arrow in drawing.arrows)
    return f"Reactors: {boxes or 'none'}. Connections: {arrows or 'none'}."


def _paint(layout: Layout) -> Iterator[str]:
    for group in layout.groups:
        yield from _paint_group(group)
    for placed in layout.placed:
        yield from paint_card(placed.card, placed.area.x, placed.area.y)
    for wire in layout.wires:
        yield from _paint_wire(wire)
    for wire in layout.wires:
        yield from _paint_label(wire)


def _paint_group(group: Group) -> Iterator[str]:
    area = group.area
    yield rectangle(area.x, area.y, area.width, area.height, 14, f"tint{group.tint % TINTS}")
    yield text(group.title + 16, area.y + 19, group.place, LABEL, "soft", bold=True)


def _paint_wire(wire: Wire) -> Iterator[str]:
    style, (start, level), (x, y) = wire.arrow.style, wire.corners[0], wire.corners[-1]
    tip = x - PORT_RADIUS - 1
    line = [(start + PORT_RADIUS, level), *wire.corners[1:-1], (tip - ARROWHEAD + 2, y)]
    yield f'<g class="arrow"><title>{clean(str(wire.arrow))}</title>'
    yield path(rounded(line), f"wire {style}")
    yield path(arrowhead((tip, y)), f"{style}-fill") + "</g>"


def _paint_label(wire: Wire) -> Iterator[str]:
    if wire.label is not None:
        area, style = wire.label, wire.arrow.style
        yield rectangle(area.x, area.y, area.width, area.height, PILL / 2, f"pill {style}")
        middle = area.x + area.width / 2
        yield text(middle, area.y + 13, wire.words, LABEL, f"{style}-fill", anchor="middle")


def _legend_rows(drawing: Drawing, width: float) -> list[list[str]]:
    """The kinds of lines that occur, as many to a row as fit."""
    styles = {arrow.style for arrow in drawing.arrows}
    reactions = [reaction for box in drawing.boxes for reaction in box.reactions]
    occur = [
        style for style in LEGENDS if style in styles or (style == "uses" and any(each.uses for each in reactions))
    ]
    rows: list[list[str]] = []
    for style in occur:
        if not rows or sum(map(_legend_width, [*rows[-1], style])) > width:
            rows.append([])
        rows[-1].append(style)
    return rows


def _legend_width(style: str) -> float:
    return SAMPLE + text_width(LEGENDS[style], LABEL) + 36


def _paint_legend(rows: Sequence[Sequence[str]], y: float) -> Iterator[str]:
    for row in rows:
        x = MARGIN
        for style in row:
            if style == "uses":
                yield path(f"M{x:.1f} {y:.1f}h{SAMPLE - 10:g}", "link uses")
            else:
                yield path(f"M{x:.1f} {y:.1f}h{SAMPLE - 17:g}", f"wire {style}")
                yield path(arrowhead((x + SAMPLE - 10, y)), f"{style}-fill")
            yield text(x + SAMPLE, y + 4, LEGENDS[style], LABEL, "soft")
            x += _legend_width(style)
        y += 24
