"""The ways of running a program in this process that every example is tried in."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(params=[{"inline": True}, {"threads": 1}, {"threads": 3}], ids=["inline", "1-thread", "3-threads"])
def how(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Settings of `Program.run`."""
    return dict(request.param)
