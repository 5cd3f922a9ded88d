"""Workers that are killed, stopped or hang; parents that are killed or interrupted."""

from __future__ import annotations

import os
import random
import signal
import threading
import time

import numpy as np
import pytest

from raceway.errors import EnvError
from tests.envs.python.faulty import actions, fault, faulty, worker_pids
from tests.envs.python.scripts import running
from tests.envs.python.watching import children, is_alive, wait_until

# --- workers


@pytest.mark.parametrize(("name", "how"), [("kill", "SIGKILL"), ("os._exit", "7")])
def test_a_worker_that_dies_in_a_step_is_noticed_at_once_and_named(name: str, how: str) -> None:
    before = children()
    with faulty() as pool:
        pool.reset()
        start = time.perf_counter()
        with pytest.raises(EnvError, match=rf"(?i)worker 1\b.*{how}") as raised:
            pool.step(actions(4, 2, name))
        assert time.perf_counter() - start < 3
        assert raised.value.worker == 1
    wait_until(lambda: children() <= before, 10)


def test_a_worker_killed_between_steps_is_noticed_by_the_next() -> None:
    with faulty() as pool:
        _, infos = pool.reset()
        os.kill(worker_pids(infos)[0], signal.SIGKILL)
        time.sleep(0.05)
        start = time.perf_counter()
        with pytest.raises(EnvError, match=r"(?i)worker 0\b.*SIGKILL"):
            pool.step(actions(4))
        assert time.perf_counter() - start < 3


def test_a_worker_killed_while_recv_waits_is_noticed_at_once() -> None:
    with faulty(batch_size=2) as pool:
        _, infos = pool.reset()
        pool.send([fault("hang"), 0], [3, 0])
        threading.Timer(0.2, os.kill, (worker_pids(infos)[3], signal.SIGKILL)).start()
        start = time.perf_counter()
        with pytest.raises(EnvError, match=r"(?i)worker 1\b.*SIGKILL"):
            pool.recv()
        assert time.perf_counter() - start < 3


def test_a_dead_worker_is_noticed_though_its_children_live_on() -> None:
    with faulty() as pool:
        _, infos = pool.reset()
        pool.step(actions(4, 1, "fork"))
        threading.Timer(0.2, os.kill, (worker_pids(infos)[1], signal.SIGKILL)).start()
        start = time.perf_counter()
        with pytest.raises(EnvError, match=r"(?i)worker 0\b"):
            pool.step(actions(4, 1, "hang"))
        assert time.perf_counter() - start < 3
    assert time.perf_counter() - start < 8


def test_by_choice_the_environments_of_a_killed_worker_are_made_anew() -> None:
    with faulty(on_error="restart") as pool:
        _, infos = pool.reset()
        first = worker_pids(infos)
        pool.step(actions(4))
        obs, rewards, terminated, truncated, infos = pool.step(actions(4, 3, "kill"))
        assert truncated.tolist() == [False, False, True, True]
        assert rewards.tolist() == [1, 1, 0, 0]
        assert not terminated.any()
        assert obs[:, 2].tolist() == [2, 2, 1, 1]
        assert all("SIGKILL" in infos["fault"][env] for env in (2, 3))
        assert pool.faults.tolist() == [0, 0, 1, 1]
        obs, *_, infos = pool.step(actions(4))
        assert obs.tolist() == [[0, 0, 3], [1, 0, 3], [2, 0, 0], [3, 0, 0]]
        now = worker_pids(infos)
        assert now[:2] == first[:2]
        assert now[2] == now[3] != first[2]
        assert pool.step(actions(4))[0][:, 2].tolist() == [4, 4, 1, 1]


def kill_at_random(rounds: int) -> None:
    """Kills a worker again and again while the pool steps; nobody's count may ever be wrong."""
    chance = random.Random(0)
    with faulty(on_error="restart", autoreset="next_step") as pool:
        obs, infos = pool.reset()
        pids = worker_pids(infos)
        begins = np.zeros(4, bool)
        for _ in range(rounds):
            victim = pids[chance.randrange(4)]
            threading.Timer(chance.uniform(0, 0.05), os.kill, (victim, signal.SIGKILL)).start()
            faults = pool.faults.sum()
            until = time.perf_counter() + 8
            while pool.faults.sum() == faults:
                assert time.perf_counter() < until
                before = obs
                obs, rewards, _, truncated, infos = pool.step(actions(4))
                expected = np.where(begins, 0, before[:, 2] + ~truncated)
                assert obs[:, 2].tolist() == expected.tolist()
                assert rewards.tolist() == (~begins & ~truncated).tolist()
                begins = truncated
            obs, *_, infos = pool.step(actions(4))  # the new ones reset and tell who runs them
            pids, begins = worker_pids(infos), np.zeros(4, bool)


def test_workers_killed_at_random_moments() -> None:
    kill_at_random(3)


@pytest.mark.slow
def test_workers_killed_at_many_random_moments() -> None:
    kill_at_random(60)


def test_sent_actions_come_back_truncated_when_their_worker_dies() -> None:
    with faulty(on_error="restart", batch_size=2) as pool:
        pool.reset()
        pool.send(actions(4, 2, "kill"))
        seen: dict[int, bool] = {}
        for _ in range(2):
            *_, truncated, infos = pool.recv(timeout=8)
            seen |= dict(zip(infos["env_id"].tolist(), truncated.tolist(), strict=True))
        assert seen.keys() == {0, 1, 2, 3}
        assert (seen[0], seen[1], seen[2]) == (False, False, True)
        pool.reset()
        assert pool.step(actions(4))[0][:, 2].tolist() == [1] * 4


@pytest.mark.parametrize("name", ["hang", "hang deaf", "stop"])
def test_a_worker_that_hangs_is_named_after_the_timeout(name: str) -> None:
    before = children()
    with faulty(worker_timeout=0.5) as pool:
        pool.reset()
        start = time.perf_counter()
        with pytest.raises(EnvError, match=r"(?si)environment 2\b.*worker 1\b|worker 1\b.*environment 2\b") as raised:
            pool.step(actions(4, 2, name))
        assert 0.4 < time.perf_counter() - start < 5
        assert "0.5" in str(raised.value)
        start = time.perf_counter()
    assert time.perf_counter() - start < 10
    wait_until(lambda: children() <= before, 10)


def test_by_choice_a_worker_that_hangs_is_replaced() -> None:
    with faulty(worker_timeout=0.5, on_error="restart") as pool:
        pool.reset()
        _, _, _, truncated, infos = pool.step(actions(4, 1, "hang deaf"))
        assert truncated.tolist() == [True, True, False, False]
        assert infos["_fault"].tolist() == [True, True, False, False]
        assert pool.faults.tolist() == [1, 1, 0, 0]
        assert pool.step(actions(4))[0][:, 2].tolist() == [0, 0, 2, 2]


def test_a_step_that_is_slow_but_not_too_slow_is_waited_for() -> None:
    with faulty(worker_timeout=3.0) as pool:
        pool.reset()
        time.sleep(0.3)  # an idle worker does not hang
        assert pool.step(actions(4, 1, "wait"))[0][:, 2].tolist() == [1] * 4


# --- parents

WITH_POOL = """
    import os, signal, sys, threading, time
    from tests.envs.python.faulty import Faulty, actions, fault, faulty
    context = faulty()
    pool = context.__enter__()
    pool.reset()
    print("ready", flush=True)
"""


@pytest.mark.parametrize("name", ["none", "hang deaf"])
def test_busy_workers_end_when_their_parent_is_killed(name: str) -> None:
    wait = "while True: pool.step(actions(4))" if name == "none" else f"pool.step([fault({name!r})] * 4)"
    with running(f"{WITH_POOL}\n    {wait}") as script:
        script.line()
        workers = script.workers()
        assert len(workers) >= 2
        time.sleep(0.2)
        script.process.send_signal(signal.SIGKILL)
        wait_until(lambda: not any(is_alive(pid) for pid in workers), 3)


def test_idle_workers_end_when_their_parent_is_killed() -> None:
    with running(f"{WITH_POOL}\n    time.sleep(60)") as script:
        script.line()
        workers = script.workers()
        script.process.send_signal(signal.SIGKILL)
        wait_until(lambda: not any(is_alive(pid) for pid in workers), 3)


def test_ctrl_c_ends_a_step_and_the_program_cleanly() -> None:
    script = f"""{WITH_POOL}
    try:
        while True:
            pool.step([fault("wait"), 0, 0, fault("wait")])
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    pool.close()
    print("closed", flush=True)
    """
    with running(script) as started:
        started.line()
        workers = started.workers()
        time.sleep(0.6)
        os.killpg(started.process.pid, signal.SIGINT)  # as a terminal does
        start = time.perf_counter()
        assert started.end() == (0, "interrupted\nclosed", "")
        assert time.perf_counter() - start < 3
        assert not any(is_alive(pid) for pid in workers)


def test_ctrl_c_that_nobody_catches_ends_all() -> None:
    with running(f"{WITH_POOL}\n    pool.step([fault('hang')] * 4)") as started:
        started.line()
        workers = started.workers()
        time.sleep(0.3)
        os.killpg(started.process.pid, signal.SIGINT)
        start = time.perf_counter()
        code, _, errors = started.end()
        assert time.perf_counter() - start < 4
        assert code in (130, -signal.SIGINT, 1)
        assert errors.count("Traceback") == 1, errors
        assert errors.endswith("KeyboardInterrupt")
        wait_until(lambda: not any(is_alive(pid) for pid in workers), 3)


def test_after_ctrl_c_in_a_step_a_reset_begins_anew() -> None:
    script = f"""{WITH_POOL}
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        pool.step([fault("wait")] * 4)
    except KeyboardInterrupt:
        pass
    print(pool.reset()[0][:, 2].tolist(), pool.step(actions(4))[0][:, 2].tolist())
    pool.close()
    """
    with running(script) as started:
        started.line()
        assert started.end() == (0, "[0.0, 0.0, 0.0, 0.0] [1.0, 1.0, 1.0, 1.0]", "")
