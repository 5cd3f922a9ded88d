"""Infos of several environments as one dict, whatever the environments put into them."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import raceway
from raceway.envs.python.infos import collected


@pytest.mark.parametrize(
    "values",
    [
        (np.ones(3, np.int8), np.ones(2, np.int8)),
        (np.ones(3, np.int8), np.ones(1, np.int8)),
        (np.ones(3, np.int8), np.array([0.0, -np.inf, 0.5])),
        (np.ones(3, np.int8), [1, 1, 1]),
        (np.ones(3), {"first": 1}),
        ({"first": 1, "more": {"x": "text"}}, np.ones(3)),
        (1, "text"),
        (1, 2**70),
        (2**70, 1),
    ],
    ids=lambda pair: " and ".join(type(each).__name__ for each in pair),
)
def test_values_that_do_not_fit_one_array_are_kept_as_they_are(values: tuple[Any, Any]) -> None:
    infos = collected([(0, {"it": values[0]}), (2, {"it": values[1]})], 3)
    assert infos["it"].dtype == object
    assert infos["_it"].tolist() == [True, False, True]
    assert infos["it"][1] is None
    for row, value in zip((0, 2), values, strict=True):
        np.testing.assert_equal(infos["it"][row], value)


def test_values_that_do_are_an_array() -> None:
    notes = [(0, {"it": np.ones(3, np.int8), "n": {"x": 1}}), (2, {"it": np.zeros(3, np.int8), "n": {"x": 2}})]
    infos = collected(notes, 3)
    assert (infos["it"].dtype, infos["it"].tolist()) == (np.int8, [[1, 1, 1], [0, 0, 0], [0, 0, 0]])
    assert infos["n"]["x"].tolist() == [1, 0, 2]


class OwnInfo(gymnasium.Env[Any, Any]):
    """Its info contains itself, and a dict in a dict in a dict ..."""

    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = {"height": 2.5}
        deep: dict[str, Any] = {}
        for _ in range(300):
            deep = {"deeper": deep}
        return info | {"itself": info, "also": [info], "deep": deep, "round": {"about": info}}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.info = self._info()
        self.info["itself"] = self.info["round"]["about"] = self.info
        return np.zeros(2, np.float32), self.info

    def step(self, action: Any) -> Any:
        return np.zeros(2, np.float32), 1.0, False, False, self.info


@pytest.mark.parametrize("lane", ["inline", "process"])
def test_an_info_may_contain_itself(lane: str) -> None:
    envs = raceway.make(OwnInfo, 2, lane=lane, num_workers=1)
    try:
        _, infos = envs.reset(seed=1)
        assert infos["height"].tolist() == [2.5, 2.5]
        *_, infos = envs.step(np.zeros(2, np.int64))
        assert infos["itself"]["height"].tolist() == [2.5, 2.5]
        assert infos["round"]["about"]["itself"][0]["height"] == 2.5
    finally:
        envs.close()
