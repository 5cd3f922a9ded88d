"""What a pool can be made of, which lane it gets, and what is refused."""

from __future__ import annotations

import functools
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import NameNotFound
from gymnasium.vector import SyncVectorEnv

import raceway
from raceway.envs import NativePool
from tests.envs.python.scripted import Counting, Scripted
from tests.envs.python.sync_twin import maker


def test_the_fastest_lane_that_can_run_it() -> None:
    made = {
        "native": raceway.make("CartPole-v1", 2),
        "process": raceway.make(Counting, 2, num_workers=1),
        "inline": raceway.make(Counting, 2, lane="inline"),
    }
    for lane, pool in made.items():
        assert pool.lane == lane
        assert pool.num_workers >= 1
        assert (lane == "native") == isinstance(pool, NativePool)
        pool.close()


def test_a_list_of_callables_is_one_environment_each() -> None:
    pool = raceway.make([functools.partial(Counting, number) for number in (7, 8, 9)], lane="inline")
    assert pool.num_envs == 3
    assert pool.reset()[0][:, 0].tolist() == [7, 8, 9]
    with pytest.raises(ValueError, match="num_envs=2, but the list has 3"):
        raceway.make([Counting] * 3, 2)
    with pytest.raises(ValueError, match="empty"):
        raceway.make([])


def test_a_vector_environment_is_taken_as_it_is() -> None:
    vector = SyncVectorEnv([maker()] * 2)
    assert raceway.make(vector) is vector
    assert raceway.make(vector, 2) is vector
    with pytest.raises(ValueError, match="num_envs=3"):
        raceway.make(vector, 3)
    vector.close()


def test_a_name_of_a_callable_in_a_module() -> None:
    pool = raceway.make("tests.envs.python.scripted:Counting", 2, lane="inline", number=4)
    assert pool.reset()[0][:, 0].tolist() == [4, 4]


REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    ("CartPol-v1", {}, r"No environment 'CartPol-v1'\. Did you mean 'CartPole-v1'"),
    (Counting, {"lane": "proces"}, r"No lane 'proces'\. Did you mean 'process'"),
    (Counting, {"lane": "native"}, "native"),
    (Counting, {"num_envs": 0}, "num_envs=0"),
    (Counting, {"num_workers": 0}, "num_workers=0"),
    (Counting, {"num_envs": 2, "batch_size": 3}, "batch_size=3"),
    (Counting, {"autoreset": "samestep"}, "No autoreset mode 'samestep'"),
    (Counting, {"numbr": 3}, r"no argument 'numbr'\. Did you mean 'number'"),
    (Counting, {"num_envs": 2, "env_kwargs": [{}]}, "env_kwargs has 1 entries for num_envs=2"),
    (Counting, {"max_episode_steps": 0}, "max_episode_steps=0"),
    (Counting, {"seed": -3}, "seed -3 is negative"),
    (Counting(), {}, "one environment that is there already"),
    (3, {}, "3"),
]


@pytest.mark.parametrize(("target", "kwargs", "message"), REFUSED, ids=[message for *_, message in REFUSED])
def test_what_makes_no_sense_is_refused_in_words(target: Any, kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError, NameNotFound), match=message):
        raceway.make(target, **({"num_envs": 2} | kwargs))


def test_no_more_workers_than_environments() -> None:
    pool = raceway.make(Counting, 2, lane="process", num_workers=64)
    assert pool.num_workers == 2
    pool.close()


def test_no_limit_of_steps() -> None:
    gymnasium.register(
        "Short-v0",
        entry_point=lambda **kwargs: Scripted(**kwargs),
        max_episode_steps=2,
        kwargs={"longest": 9, "tells": False},
    )
    try:
        for limit, longest in ((None, 2), (-1, 9), (4, 4)):
            pool = raceway.make("Short-v0", 8, lane="inline", max_episode_steps=limit, record_episodes=True)
            pool.reset(seed=0)
            lengths: list[int] = []
            for _ in range(60):
                infos = pool.step(np.zeros(8, int))[4]
                if "episode" in infos:
                    lengths += infos["episode"]["l"][infos["_episode"]].tolist()
            assert max(lengths) == longest
            pool.close()
    finally:
        del gymnasium.registry["Short-v0"]


def test_the_name_of_a_pool_says_what_it_is() -> None:
    pool = raceway.make(Counting, 3, lane="inline")
    assert "Counting" in repr(pool)
    assert "num_envs=3" in repr(pool)
