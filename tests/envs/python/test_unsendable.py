"""Infos and errors that do not survive the way out of a worker process: one environment fails, not the pool."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

import raceway
from raceway.errors import EnvError
from tests.envs.python.scripted import Counting, Step

LONG = 50_000_000


class Unreadable:
    """Can be pickled, but not made again."""

    def __reduce__(self) -> Any:
        return _refuse, ()


def _refuse() -> None:
    raise LookupError("not to be made again")


class AtHome:
    """Can be read in the process that made it alone."""

    def __reduce__(self) -> Any:
        return _at_home, (os.getpid(),)


def _at_home(pid: int) -> AtHome:
    if os.getpid() != pid:
        raise ConnectionError("not in this process")
    return AtHome()


class SilentError(Exception):
    """Refuses to be read."""

    def __str__(self) -> str:
        raise ValueError("no words")

    __repr__ = __str__


VALUES: dict[str, Any] = {"lock": threading.Lock, "unreadable": Unreadable, "at home": AtHome}


class Difficult(Counting):
    """Its actions are: 0 nothing special, 1 an info that cannot be sent, and an error that is hard to tell: 2 and 3."""

    action_space = spaces.Discrete(4)
    kind = "lock"
    resets = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        obs, info = super().reset(seed=seed)
        return obs, self._info() if self.resets else info

    def step(self, action: Any) -> Step:
        if action == 2:
            raise RuntimeError("x" * LONG + " the end")
        if action == 3:
            raise SilentError
        *result, _ = super().step(0)
        return *result, self._info() if action == 1 else {"fine": 1}

    def _info(self) -> dict[str, Any]:
        return {"fine": 1, "deep": {"bad": VALUES[self.kind]()}}


@contextmanager
def difficult(**settings: Any) -> Iterator[Any]:
    """Four of them in two workers, reset."""
    given: dict[str, Any] = {"lane": "process", "num_workers": 2} | settings
    pool = raceway.make([partial(Difficult, number) for number in range(4)], **given)
    try:
        pool.reset(seed=0)
        yield pool
    finally:
        pool.close()


def actions(env: int, action: int) -> np.ndarray:
    return np.where(np.arange(4) == env, action, 0)


@pytest.mark.parametrize("kind", VALUES)
def test_an_info_that_cannot_be_sent_is_an_error_of_its_environment(kind: str) -> None:
    with difficult() as pool:
        pool.set_attr("kind", kind)
        pool.step(actions(0, 0))
        with pytest.raises(EnvError) as raised:
            pool.step(actions(3, 1))
        assert (raised.value.env, raised.value.worker) == (3, 1)
        assert "step 2 of its episode" in str(raised.value)
        assert "info['deep']['bad']" in str(raised.value)
        pool.reset()
        assert pool.step(actions(0, 0))[0][:, 2].tolist() == [1] * 4


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("autoreset", ["next_step", "same_step", "disabled"])
def test_by_choice_its_environment_is_made_anew(kind: str, autoreset: str) -> None:
    with difficult(on_error="restart", autoreset=autoreset) as pool:
        pool.set_attr("kind", kind)
        pool.step(actions(0, 0))
        obs, rewards, terminated, truncated, infos = pool.step(actions(3, 1))
        assert pool.faults.tolist() == [0, 0, 0, 1]
        assert truncated.tolist() == [False, False, False, True]
        assert not terminated.any()
        assert rewards[3] == 0
        assert infos["fine"].tolist() == [1, 1, 1, 0]
        told = infos["final_info"] if autoreset == "same_step" else infos
        assert "info['deep']['bad']" in told["fault"][3]
        last = infos["final_obs"][3] if autoreset == "same_step" else obs[3]
        assert last[2] == 1  # the last good one
        if autoreset == "disabled":
            pool.reset(options={"reset_mask": truncated})
        assert pool.step(actions(0, 0))[0][:3, 2].tolist() == [3] * 3


@pytest.mark.parametrize("kind", VALUES)
def test_an_environment_whose_last_info_of_an_episode_cannot_be_sent_is_made_anew(kind: str) -> None:
    with difficult(on_error="restart", autoreset="same_step", max_episode_steps=2) as pool:
        pool.set_attr("kind", kind)
        pool.step(actions(0, 0))
        obs, _, terminated, truncated, infos = pool.step(actions(3, 1))
        assert (pool.faults.tolist(), truncated.tolist()) == ([0, 0, 0, 1], [True] * 4)
        assert not terminated.any()
        assert obs[:, 2].tolist() == [0] * 4
        assert [final[2] for final in infos["final_obs"]] == [2, 2, 2, 1]
        assert "info['final_info']['deep']['bad']" in infos["final_info"]["fault"][3]


@pytest.mark.parametrize("kind", VALUES)
def test_by_send_and_recv_only_that_environment_fails(kind: str) -> None:
    for on_error in ("restart", "raise"):
        with difficult(on_error=on_error, batch_size=1) as pool:
            pool.set_attr("kind", kind)
            pool.send(actions(0, 1))
            found, failed = {}, []
            for _ in range(4):
                try:
                    obs, *_, truncated, infos = pool.recv(timeout=60)
                    found[int(infos["env_id"][0])] = bool(truncated[0]), int(obs[0, 2])
                except EnvError as error:
                    failed.append((error.env, "info['deep']['bad']" in str(error)))
            assert failed == ([] if on_error == "restart" else [(0, True)])
            # The others took one step each, whether they were told together with it or not.
            assert {env: found[env] for env in (1, 2, 3)} == dict.fromkeys((1, 2, 3), (False, 1))
            assert found.get(0, (None,))[0] == (True if on_error == "restart" else None)


@pytest.mark.parametrize("kind", VALUES)
def test_infos_of_every_reset_that_cannot_be_sent_end_the_restarts(kind: str) -> None:
    for on_error, said in (("raise", "during reset"), ("restart", "made anew 10 times")):
        with difficult(on_error=on_error) as pool:
            pool.set_attr("kind", kind)
            pool.set_attr("resets", [False, False, True, False])
            if on_error == "restart":  # the new ones have what the class says
                pool.close()
                pool = raceway.make([Counting, partial(_resetting, kind)], on_error="restart", num_workers=1)
            with pytest.raises(EnvError, match=rf"(?s)info\['deep'\]\['bad'\].*{said}"):
                pool.reset()
            pool.close()


class Resetting(Difficult):
    action_space = Counting.action_space
    resets = True


def _resetting(kind: str) -> Resetting:
    env = Resetting()
    env.kind = kind
    return env


@pytest.mark.parametrize("lane", ["inline", "process"])
@pytest.mark.parametrize(("action", "said"), [(2, "the end"), (3, "cannot be read")])
def test_errors_that_are_long_or_refuse_to_be_read_are_told_in_short(lane: str, action: int, said: str) -> None:
    with difficult(lane=lane) as pool:
        with pytest.raises(EnvError, match=said) as raised:
            pool.step(actions(1, action))
        assert raised.value.env == 1
        assert len(str(raised.value)) < 50_000
        if action == 2:
            assert f"{LONG + len(' the end'):,} characters" in str(raised.value)
        pool.reset()
        pool.step(actions(0, 0))
    with difficult(lane=lane, on_error="restart") as pool:
        *_, truncated, infos = pool.step(actions(1, action))
        assert (truncated.tolist(), pool.faults.tolist()) == ([False, True, False, False], [0, 1, 0, 0])
        assert said in infos["fault"][1]
        assert len(infos["fault"][1]) < 5000


class Saying:
    """A runner whose errors are hard to tell."""

    def open(self, env: Any, first: int) -> None:
        pass

    def run(self, progress: Any, action: int) -> None:
        raise RuntimeError("x" * LONG + " the end") if action == 2 else SilentError


@pytest.mark.parametrize(("action", "said"), [(2, "the end"), (3, "cannot be read")])
def test_long_and_silent_errors_of_other_work_in_workers_are_shortened(action: int, said: str) -> None:
    with difficult() as pool:
        pool.install(Saying())
        with pytest.raises(RuntimeError, match=said) as raised:
            pool.run((action,), [None, None])
        assert len(str(raised.value)) + sum(map(len, raised.value.__notes__)) < 50_000
        pool.reset()
        pool.step(actions(0, 0))
