"""How wide words are, without a font to ask: never less than in the widest of the usual sans-serif fonts."""

from __future__ import annotations

import math
import unicodedata

# Widths in ems of DejaVu Sans, which is about as wide as Verdana and wider than Arial, Segoe UI or Roboto.
_WIDTHS = {
    **dict.fromkeys("ijlIJ'", 0.32),
    **dict.fromkeys(" ,.:;/\\|", 0.34),
    **dict.fromkeys('ft-()[]!r"', 0.46),
    **dict.fromkeys("*_`sz?c", 0.55),
    **dict.fromkeys("ABCDEGHKNORUVXZ&Q", 0.79),
    **dict.fromkeys("mwMW%@#+<=>^~", 1.0),
}
_OTHER_ASCII, _OTHER_LETTER, _WIDE = 0.64, 1.1, 1.3
_BOLD = 1.19


def text_width(words: str, size: float, *, bold: bool = False) -> int:
    """The width that `words` may take at this font size, in whole pixels: so all that is added up stays exact."""
    return math.ceil(sum(map(_em, words)) * size * (_BOLD if bold else 1.0))


def shorten(words: str, limit: int) -> str:
    """At most `limit` characters, with an ellipsis where something is left out."""
    return words if len(words) <= limit else words[: limit - 1].rstrip(" .,") + "…"


def _em(character: str) -> float:
    if character.isascii():
        return _WIDTHS.get(character, _OTHER_ASCII)
    if unicodedata.combining(character):
        return 0.0
    return _WIDE if unicodedata.east_asian_width(character) in "WF" else _OTHER_LETTER
