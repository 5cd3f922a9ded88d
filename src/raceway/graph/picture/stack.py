"""Puts things one below another, each as near as possible to where it wants to be."""

from __future__ import annotations

from collections.abc import Sequence


def stack(
    wishes: Sequence[Sequence[float]], heights: Sequence[float], gaps: Sequence[float], room: float | None = None
) -> list[float]:
    """Tops of things in their given order, at least `gaps[i]` between i and i + 1, within [0, room] if that is given.

    The distances to everyone's wishes (none, one or several tops each) add up to the least possible: isotonic
    regression of medians by pooling adjacent violators. Medians, unlike means, grant some wishes exactly, and an
    arrow whose wish is granted is a straight line.
    """
    shifts = [0.0]
    for height, gap in zip(heights[:-1], gaps, strict=True):
        shifts.append(shifts[-1] + height + gap)
    pools: list[tuple[list[float], int]] = []  # wishes in the coordinate where everything touches, and how many agree
    for each, shift in zip(wishes, shifts, strict=False):
        pool, members = sorted(wish - shift for wish in each), 1
        while pools and (not pool or not pools[-1][0] or _median(pools[-1][0]) > _median(pool)):
            before, count = pools.pop()
            pool, members = sorted(before + pool), members + count
        pools.append((pool, members))
    levels = [_median(pool) if pool else 0.0 for pool, members in pools for _ in range(members)]
    if room is not None and levels:
        last = max(0.0, room - shifts[len(levels) - 1] - heights[-1])
        levels = [min(max(level, 0.0), last) for level in levels]
    return [level + shift for level, shift in zip(levels, shifts, strict=False)]


def _median(ordered: Sequence[float]) -> float:
    return ordered[(len(ordered) - 1) // 2]
