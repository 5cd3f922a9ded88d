"""Observations and actions that vary in shape take a slower way, say so once, and are the same."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest

from tests.envs.gymnasium_twin import MODES
from tests.envs.python.scripted import OBSERVATIONS, VARIABLE, maker
from tests.envs.python.sync_twin import LANES, Pair

MODE_OF = dict(zip(VARIABLE, list(MODES) * 2, strict=False))


def noticed(caught: list[warnings.WarningMessage]) -> list[str]:
    return [str(each.message) for each in caught if re.search("shared memory|pickl", str(each.message))]


def test_of_what_takes_the_slower_way_there_is_one_notice() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with Pair([maker(observation=VARIABLE["text"])] * 3, **LANES["2-workers"]) as pair:
            pair.drive(25)
    assert len(noticed(caught)) == 1, noticed(caught)
    assert re.search("slow", noticed(caught)[0])


@pytest.mark.parametrize("space", VARIABLE)
def test_observations_and_actions_that_vary_in_shape_are_the_same(space: str) -> None:
    makers = [maker(observation=VARIABLE[space], action=VARIABLE[space])] * 3
    for lane in ("inline", "2-workers"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with Pair(makers, MODE_OF[space], **LANES[lane]) as pair:
                pair.drive(25)
        assert len(noticed(caught)) == (0 if lane == "inline" else 2), noticed(caught)


def test_no_notice_where_there_is_nothing_slow() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with Pair([maker(observation=VARIABLE["text"])] * 3, **LANES["inline"]) as pair:
            pair.drive(20)
        with Pair([maker(observation=OBSERVATIONS["nested"])] * 3, **LANES["2-workers"]) as pair:
            pair.drive(20)
    assert not noticed(caught)


@pytest.mark.slow
@pytest.mark.parametrize("lane", LANES.values(), ids=LANES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("space", VARIABLE)
def test_every_variable_space_in_every_mode(space: str, mode: str, lane: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Pair([maker(observation=VARIABLE[space], action=VARIABLE[space])] * 4, mode, **lane) as pair:
            pair.drive(40)
