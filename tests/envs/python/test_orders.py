"""Actions in every form in which arrays come do the same, however they get to the workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import raceway
from raceway._core import Exchange, Orders, Patience
from tests.envs.gymnasium_twin import assert_same


class Echo(gymnasium.Env[np.ndarray, Any]):
    """Shows the action that it was given, and then overwrites it."""

    observation_space = spaces.Box(-100.0, 100.0, (2, 3), np.float64)
    action_space = spaces.Box(-100.0, 100.0, (2, 3), np.float64)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, Any]:
        super().reset(seed=seed)
        return np.zeros((2, 3)), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        shown = action.copy()
        action[...] = -1.0
        return shown, float(shown.sum()), False, False, {}


def read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "as they are": lambda array: array,
    "every second of more": lambda array: np.repeat(array, 2, axis=0)[::2],
    "backwards in memory": lambda array: array[::-1].copy()[::-1],
    "in Fortran's order": np.asfortranarray,
    "smaller numbers": lambda array: array.astype(np.float32),
    "another byte order": lambda array: array.astype(">f8"),
    "a list": lambda array: array.tolist(),
    "a kind of array": lambda array: array.view(np.matrix) if array.ndim == 2 else array.view(np.recarray),
    "for reading only": read_only,
}


@pytest.fixture(scope="module", params=["inline", "process"])
def pool(request: pytest.FixtureRequest) -> Iterator[Any]:
    made = raceway.make(Echo, 5, lane=request.param, num_workers=2)
    yield made
    made.close()


@pytest.mark.parametrize("form", FORMS)
def test_actions_of_any_form_are_the_same_and_stay_the_callers(pool: Any, form: str) -> None:
    pool.reset()
    for step in range(4):
        actions = np.arange(30.0).reshape(5, 2, 3) + step
        given = FORMS[form](actions)
        obs, rewards, *_ = pool.step(given)
        assert_same(obs, actions)
        assert rewards.tolist() == actions.sum(axis=(1, 2)).tolist()
        assert_same(np.asarray(given, np.float64), actions)


def orders(actions: np.ndarray | None = None, done: Any = None) -> Orders:
    exchange = Exchange(Exchange.create(2), 0)
    memory = exchange.lease(64)
    memory[:] = 0
    place = exchange.place_of(memory)
    assert place is not None
    done = np.zeros(1, np.int64) if done is None else done
    return Orders(exchange, place, actions, np.zeros(2, np.int64), done, 1)


def test_what_nobody_carries_out_ends_with_the_timeout() -> None:
    target = np.zeros(3)
    assert orders(target).step(np.ones(3), 1, 0, 0, Patience(0.0), 0.01) is None
    assert target.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("given", [np.zeros(2), np.zeros(3, np.float32), np.zeros(6)[::2], [0.0] * 3])
def test_it_takes_only_what_can_be_copied_as_it_is(given: Any) -> None:
    its = orders(np.zeros(3))
    assert its.takes(np.zeros(3))
    assert not its.takes(given)
    with pytest.raises(ValueError, match="as the board has them"):
        its.step(given, 1, 0, 0, Patience(0.0), 0.01)


def test_without_one_array_of_actions_it_takes_none() -> None:
    assert not orders(None).takes(np.zeros(3))


@pytest.mark.parametrize("done", [np.zeros(1, np.int32), np.zeros((1, 1), np.int64), [0]])
def test_what_workers_have_done_is_an_array_of_numbers(done: Any) -> None:
    with pytest.raises(ValueError, match="done is not an array"):
        orders(None, done)
