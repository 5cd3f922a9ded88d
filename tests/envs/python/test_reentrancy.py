"""A call of a pool from inside another one of the same pool is refused, whoever makes it; the pool goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import raceway
from tests.envs.python.scripted import Counting

ZEROS = np.zeros(4, np.int64)

INNER: dict[str, Callable[[Any], Any]] = {
    "reset": lambda pool: pool.reset(),
    "step": lambda pool: pool.step(ZEROS),
    "send": lambda pool: pool.send(ZEROS),
    "recv": lambda pool: pool.recv(timeout=0.01),
    "async_reset": lambda pool: pool.async_reset(),
    "state": lambda pool: pool.state(),
    "close": lambda pool: pool.close(),
}


class Calling:
    """An array that calls something before it is one."""

    def __init__(self, array: Any, act: Callable[[], Any]) -> None:
        self.array = np.asarray(array)
        self.act = act

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        self.act()
        return np.array(self.array, dtype)

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, key: Any) -> Any:
        self.act()
        return self.array[key]

    def __reduce__(self) -> Any:
        self.act()
        return np.array, (self.array,)


OUTER: dict[str, Callable[[Any, Callable[[], Any]], Any]] = {
    "step": lambda pool, act: pool.step(Calling(ZEROS, act)),
    "send": lambda pool, act: pool.send(Calling(ZEROS, act)),
    "env_ids": lambda pool, act: pool.send(ZEROS[:2], Calling([0, 1], act)),
    "seeds": lambda pool, act: pool.reset(seed=[0, 1, 2, Calling(3, act)]),
    "reset_mask": lambda pool, act: pool.reset(options={"reset_mask": Calling([True] * 4, act)}),
    "options": lambda pool, act: pool.reset(options={"array": Calling([1], act)}),
    "set_state": lambda pool, act: pool.set_state({"envs": Calling([1] * 4, act), "faults": Calling(ZEROS, act)}),
}


@pytest.fixture(params=["inline", "process"], scope="module")
def pool(request: pytest.FixtureRequest) -> Iterator[Any]:
    made = raceway.make(Counting, 4, lane=request.param, num_workers=2)
    yield made
    made.close()


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("outer", OUTER)
def test_arguments_that_call_the_pool_are_refused_and_it_stays_usable(pool: Any, outer: str, inner: str) -> None:
    pool.reset(seed=0)
    errors: list[BaseException] = []

    def act() -> None:
        try:
            INNER[inner](pool)
        except Exception as error:
            errors.append(error)
            raise

    try:
        OUTER[outer](pool, act)
    except Exception as error:
        errors.append(error)
    if outer in ("step", "send", "env_ids"):
        assert "from inside another call of the same pool" in str(errors[-1])
    assert not pool.closed
    pool.reset(seed=0)
    assert len(pool.step(ZEROS)[1]) == 4


@pytest.mark.parametrize("name", ["reset", "step", "close"])
def test_an_environment_in_this_thread_cannot_call_its_pool(name: str) -> None:
    class Meddling(Counting):
        def step(self, action: Any) -> Any:
            INNER[name](pool)
            return super().step(action)

    pool = raceway.make(Meddling, 4, lane="inline")
    pool.reset()
    with pytest.raises(RuntimeError, match="from inside another call of the same pool"):
        pool.step(ZEROS)
    pool.reset()
    pool.close()
    assert pool.closed


def test_what_is_pickled_for_the_workers_cannot_call_their_pool() -> None:
    pool = raceway.make(Counting, 4, lane="process", num_workers=2)
    pool.reset()
    for call in (pool.call, pool.set_attr):
        with pytest.raises(RuntimeError, match="from inside another call of the same pool"):
            call("number", Calling([1], pool.reset))
        assert pool.get_attr("number") == (0,) * 4
    pool.close()
