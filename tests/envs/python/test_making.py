"""What a pool can be made of, which lane it gets, and what is refused."""

from __future__ import annotations

import functools
import re
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import NameNotFound
from gymnasium.vector import SyncVectorEnv

import raceway
from raceway.envs import NativePool
from raceway.envs.python import crew
from raceway.errors import EnvError, SettingError
from tests.envs.python.faulty import actions, faulty
from tests.envs.python.scripted import Counting, Scripted, maker
from tests.envs.python.watching import children, wait_until


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


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"seed": 0}, "seed=0"),
        ({"seed": np.arange(2)}, r"seed=array\(\[0, 1\]\)"),
        ({"autoreset": "same_step", "copy": False}, "autoreset='same_step', copy=False"),
        ({"lane": "process", "num_workers": 1}, "lane='process', num_workers=1"),
        ({"on_error": "restart", "worker_timeout": 5}, "on_error='restart', worker_timeout=5"),
        ({"gravity": 3}, "gravity=3"),
    ],
    ids=str,
)
def test_what_cannot_be_done_to_a_vector_environment_is_refused(arguments: dict[str, Any], named: str) -> None:
    vector = SyncVectorEnv([maker()] * 2)
    with pytest.raises(ValueError, match=f"^{named}, but SyncVectorEnv is a vector environment that is there already"):
        raceway.make(vector, **arguments)
    assert raceway.make(vector, 2, seed=None, autoreset="next_step", lane="auto", copy=True) is vector
    vector.close()


@pytest.mark.parametrize(
    ("task", "arguments", "message"),
    [
        ("CartPole-v1", {"on_error": "restart"}, r"^on_error='restart' .* CartPole-v1 runs natively.* lane='process'"),
        ("raceway/CartPole-v1", {"worker_timeout": 5}, r"^worker_timeout=5 .* CartPole-v1 runs natively"),
        ("CartPole-v1", {"on_error": "retry", "lane": "native"}, "^on_error='retry' .* CartPole-v1 runs natively"),
        ("Busy-v0", {"worker_timeout": 5}, r"Busy-v0 runs natively.* Leave it out\.$"),
        ("CartPole-v1", {"worker_timeout": 5, "lane": "inline"}, r"^worker_timeout=5 is for worker processes"),
    ],
    ids=str,
)
def test_what_is_for_worker_processes_is_refused_elsewhere(task: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        raceway.make(task, 2, **arguments)


@pytest.mark.parametrize("lane", ["process", "inline"])
def test_what_is_only_native_has_no_lane_for_python(lane: str) -> None:
    with pytest.raises(ValueError, match=f"^lane='{lane}' runs environments in Python, and Busy-v0 is written in C"):
        raceway.make("Busy-v0", 2, lane=lane)
    pool = raceway.make("raceway/CartPole-v1", 2, lane=lane, num_workers=1)
    assert pool.reset()[0].shape == (2, 4)
    pool.close()


def test_a_native_task_takes_them_in_a_lane_for_python() -> None:
    pool = raceway.make("CartPole-v1", 2, lane="process", num_workers=1, on_error="restart", worker_timeout=5)
    assert pool.lane == "process"
    pool.close()


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
    (Counting(), {}, "is an environment instance, but more copies are needed"),
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


HANGS = [{}, {}, {}, {"constructor": "hang"}]
"""The last of four, which is in the second of two workers."""


def test_a_worker_whose_environment_hangs_while_it_is_made_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "_START_S", 6.0)
    start, before = time.perf_counter(), children()
    with pytest.raises(EnvError) as raised, faulty(worker_timeout=0.5, own=HANGS):
        pass
    assert 5.5 < time.perf_counter() - start < 30
    said = r"Worker 1 of Faulty, with environments 2 to 3, is gone: process \d+ had not made them after"
    assert re.match(said, str(raised.value))
    assert "worker_timeout=0.5 for each of them" in str(raised.value)
    assert raised.value.worker == 1
    wait_until(lambda: children() <= before, 10)


def test_workers_of_other_pools_are_counted_where_a_start_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "usable_cpus", lambda: 2)
    with faulty(worker_timeout=5.0) as pool:
        alone = pool._crew._start_limit(0)
        with faulty(worker_timeout=5.0, num_workers=4):
            assert pool._crew._start_limit(0) == alone + 2 * crew._START_S
        assert pool._crew._start_limit(0) == alone


def test_a_slow_start_is_waited_for_if_there_are_many_to_make(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "_START_S", 0.01)
    with faulty(worker_timeout=10.0) as pool:
        assert pool.reset()[0].shape == (4, 3)


def test_a_worker_that_hangs_when_it_is_started_again_is_started_once_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(crew, "_START_S", 6.0)
    hangs = tmp_path / "hung"
    hangs.touch()  # not at first
    own = [{**each, "once": str(hangs)} for each in HANGS]
    with faulty(worker_timeout=0.5, on_error="restart", own=own) as pool:
        pool.reset()
        hangs.unlink()
        truncated = pool.step(actions(4, 2, "kill"))[3]
        assert truncated.tolist() == [False, False, True, True]
        assert hangs.exists()
        assert pool.restarts == 2
        assert pool.step(actions(4))[0][:, 2].tolist() == [2, 2, 0, 0]


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


class Spaceless(gymnasium.Env):
    pass


class Halved(gymnasium.Env):
    observation_space = spaces.Discrete(2)
    action_space = 3  # type: ignore[assignment]


class Failing(Halved):
    @property
    def observation_space(self) -> Any:  # type: ignore[override]
        return spaces.Discrete(self.size)  # type: ignore[attr-defined]


@pytest.mark.parametrize("lane", ["inline", "process"])
@pytest.mark.parametrize(
    ("kind", "error", "said"),
    [
        (Spaceless, SettingError, r"^Spaceless has no observation_space\. Set self\.observation_space in __init__"),
        (Halved, SettingError, "^Halved has action_space=3, which is no gymnasium.Space"),
        (Failing, EnvError, "AttributeError: 'Failing' object has no attribute 'size'"),
    ],
)
def test_an_environment_without_spaces_is_told(lane: Any, kind: Any, error: Any, said: str) -> None:
    with pytest.raises(error, match=said):
        raceway.make(kind, 2, lane=lane)
