"""When Ctrl-C gives up on a header whose code does not return."""

from __future__ import annotations

import time
from typing import Any

import pytest

from raceway.training import stuck


@pytest.fixture
def moments(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The clock, and what the core says of threads in headers: (inside now, entered so far)."""
    now: dict[str, Any] = {"clock": 0.0, "user_code": (0, 0)}
    monkeypatch.setattr(time, "monotonic", lambda: now["clock"])
    monkeypatch.setattr(stuck, "user_code", lambda: now["user_code"])
    return now


def asked_for(moments: dict[str, Any], watch: stuck.StuckHeader, seconds: int, *, steps: bool) -> bool:
    answer = False
    inside, entered = moments["user_code"]
    for second in range(1, seconds + 1):
        moments["clock"] = float(second)
        moments["user_code"] = (inside, entered + second * steps)
        answer = watch()
    return answer


@pytest.mark.parametrize(
    ("inside", "steps", "expected"),
    [(1, False, True), (1, True, False), (0, False, False)],
    ids=["one that does not return", "one that goes on", "none"],
)
def test_it_gives_up_only_on_code_that_does_not_return(
    moments: dict[str, Any], inside: int, steps: bool, expected: bool
) -> None:
    told: list[str] = []
    watch = stuck.StuckHeader(told.append)
    moments["user_code"] = (inside, 7)
    assert asked_for(moments, watch, 10, steps=steps) is expected
    assert told[0] == "Ends after this round. Press Ctrl-C again to end at once."


def test_a_thread_that_an_earlier_pool_left_behind_does_not_count(moments: dict[str, Any]) -> None:
    moments["user_code"] = (1, 7)
    watch = stuck.StuckHeader(lambda text: None)
    assert not asked_for(moments, watch, 10, steps=False)
