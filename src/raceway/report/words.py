"""Numbers as people read them."""

from __future__ import annotations

import math

_LONGEST = 1e15
"""Larger numbers are given by their powers of ten: all their digits would fill lines."""


def clock(seconds: float) -> str:
    """`0:42`, `12:05`, `1:02:33`, `2 d 3 h`."""
    if not math.isfinite(seconds):
        return "?"
    minutes, second = divmod(round(max(seconds, 0.0)), 60)
    hours, minute = divmod(minutes, 60)
    if hours >= 48:
        return f"{count(hours // 24)} d {hours % 24} h"
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def count(value: float) -> str:
    """`1,000,000`; `2.50e+20` from 1e15 on."""
    if not math.isfinite(value):
        return "?"
    return f"{value:,.0f}" if abs(value) < _LONGEST else f"{value:.2e}"


def number(value: float | None) -> str:
    """Three or four digits that matter: `0.0123`, `-4.56`, `187.3`, `4,012`, `1.00e+308`; `-` for what is not known."""
    if value is None or math.isnan(value):
        return "-"
    if math.isinf(value):
        return str(value)
    if abs(value) >= 1000:
        return count(value)
    if abs(value) >= 100:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 1 or value == 0 else f"{value:.3g}"


def percent(share: float | None) -> str:
    """`62%`; `-` for what is not known."""
    return f"{share:.0%}" if share is not None and math.isfinite(share) else "-"
