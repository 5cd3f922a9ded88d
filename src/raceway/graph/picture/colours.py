"""The colours of a picture, for light and for dark pages, as a style sheet that touches nothing outside the picture."""

from __future__ import annotations

from string import Template

TINTS = 4

_LIGHT = {
    "page": "#ffffff",
    "ink": "#212529",
    "soft": "#6c757d",
    "card": "#ffffff",
    "edge": "#ced4da",
    "chevron": "#e9f0f6",
    "rim": "#9fb3c6",
    "now": "#495057",
    "later": "#d9480f",
    "free": "#1f6f8b",
    "tint0": "#eaf1f8",
    "tint1": "#eef6e8",
    "tint2": "#f5eef9",
    "tint3": "#fbf3e2",
}
_DARK = {
    "page": "#14171a",
    "ink": "#e9ecef",
    "soft": "#9aa5b1",
    "card": "#1f2429",
    "edge": "#454e57",
    "chevron": "#29343f",
    "rim": "#5f748a",
    "now": "#ced4da",
    "later": "#ff8a4c",
    "free": "#62b6d0",
    "tint0": "#1a2633",
    "tint1": "#1d2b1c",
    "tint2": "#2a2030",
    "tint3": "#2e2718",
}

_COLOURS = Template("""
.rw .page{fill:$page} .rw .ink,.rw .badge{fill:$ink} .rw .soft,.rw .event{fill:$soft} .rw .on-badge{fill:$page}
.rw .card{fill:$card;stroke:$edge} .rw .rule{stroke:$edge} .rw .chevron{fill:$chevron;stroke:$rim}
.rw .link{stroke:$rim} .rw .sign{fill:$soft} .rw .dial{stroke:$soft} .rw .hollow{fill:$card;stroke:$rim}
.rw .port{fill:$now} .rw .pill{fill:$page}
.rw .now{stroke:$now} .rw .later{stroke:$later} .rw .queue,.rw .latest{stroke:$free}
.rw .now-fill{fill:$now} .rw .later-fill{fill:$later} .rw .queue-fill,.rw .latest-fill{fill:$free}
.rw .tint0{fill:$tint0} .rw .tint1{fill:$tint1} .rw .tint2{fill:$tint2} .rw .tint3{fill:$tint3}
""")

_LINES = """
.rw .wire{fill:none;stroke-width:1.6} .rw .later{stroke-dasharray:6 4} .rw .queue{stroke-width:3.6}
.rw .latest{stroke-dasharray:0.1 5;stroke-width:2.6;stroke-linecap:round}
.rw .pill{stroke-width:1;stroke-dasharray:none} .rw .event{font-style:italic}
.rw .link,.rw .dial{fill:none;stroke-width:1.2}
.rw .uses{stroke-dasharray:2 3}
.rw .card,.rw .rule,.rw .chevron,.rw .hollow{stroke-width:1.2} .rw .chevron{stroke-linejoin:round}
.rw .arrow:hover .wire{stroke-width:4}
"""


def style_sheet() -> str:
    """Rules for everything of class `rw`; dark where the reader's system is."""
    light, dark = _COLOURS.substitute(_LIGHT).strip(), _COLOURS.substitute(_DARK).strip()
    return f"{_LINES.strip()}\n{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}"
