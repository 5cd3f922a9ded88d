"""Pools come and go without a trace: processes, descriptors, memory, forks and the end of the interpreter."""

from __future__ import annotations

import gc
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from gymnasium.error import ClosedEnvironmentError

import raceway
from tests.envs.processes import output_of, run_script
from tests.envs.python.faulty import Faulty, actions, fault, faulty
from tests.envs.python.scripted import Counting, Scripted
from tests.envs.python.watching import children, grown, holdings, wait_until

# --- close


def test_close_ends_the_workers_and_closes_the_environments(tmp_path: Path) -> None:
    class Leaving(Scripted):
        def close(self) -> None:
            (tmp_path / str(id(self))).touch()

    before = children()
    pool = raceway.make(Leaving, 5, num_workers=2, lane="process")
    pool.reset()
    assert len(children() - before) >= 2
    start = time.perf_counter()
    pool.close()
    assert time.perf_counter() - start < 4
    assert children() <= before
    assert len(list(tmp_path.iterdir())) == 5
    pool.close()


@pytest.mark.parametrize("lane", ["inline", "process"])
def test_every_call_after_close_says_so(lane: str) -> None:
    pool = raceway.make(Counting, 2, lane=lane, num_workers=1, batch_size=1)
    pool.reset()
    pool.close()
    calls = {
        "reset": pool.reset,
        "step": lambda: pool.step([0, 0]),
        "send": lambda: pool.send([0], [0]),
        "recv": pool.recv,
        "recv in time": lambda: pool.recv(timeout=0.1),
        "async_reset": pool.async_reset,
    }
    for call in calls.values():
        with pytest.raises(ClosedEnvironmentError):
            call()


@pytest.mark.parametrize("name", ["wait", "hang deaf"])
def test_close_with_steps_in_flight_does_not_wait_for_ever(name: str) -> None:
    before = children()
    with faulty(batch_size=1) as pool:
        pool.reset()
        pool.send([fault(name)] * 4)
        start = time.perf_counter()
        pool.close()
        assert time.perf_counter() - start < 6
    wait_until(lambda: children() <= before, 10)


def test_close_ends_a_recv_that_waits_in_another_thread() -> None:
    told: list[BaseException] = []
    with faulty(batch_size=1) as pool:
        pool.reset()
        pool.send([fault("hang")] * 4)

        def receive() -> None:
            try:
                pool.recv()
            except BaseException as error:
                told.append(error)

        thread = threading.Thread(target=receive, daemon=True)
        thread.start()
        time.sleep(0.2)
        pool.close()
        thread.join(timeout=20)
    assert isinstance(told[0], ClosedEnvironmentError)


def test_two_threads_in_one_pool_are_told_so_and_the_first_gets_its_result() -> None:
    got: list[Any] = []
    with faulty(batch_size=1) as pool:
        pool.reset()
        pool.send(actions(1, 0, "wait"), [0])
        thread = threading.Thread(target=lambda: got.append(pool.recv()), daemon=True)
        thread.start()
        time.sleep(0.1)
        for call in (pool.reset, pool.recv, lambda: pool.step(actions(4)), lambda: pool.send(actions(1), [1])):
            with pytest.raises(RuntimeError, match="takes one at a time"):
                call()
        thread.join(timeout=20)
        assert got[0][4]["env_id"].tolist() == [0]
        assert pool.reset()[0].shape == (4, 3)


def test_a_closed_pool_leaves_others_alone() -> None:
    with faulty(batch_size=2) as stays:
        with faulty(batch_size=2) as goes:
            for pool in (stays, goes):
                pool.reset()
                pool.send(actions(4))
        assert sum(len(stays.recv(timeout=5)[4]["env_id"]) for _ in range(2)) == 4


# --- dropped


def test_dropping_a_pool_ends_its_workers() -> None:
    before = children()
    pool = raceway.make(Counting, 4, lane="process", num_workers=2, batch_size=2)
    pool.reset()
    pool.send([50] * 4)
    del pool
    gc.collect()
    wait_until(lambda: children() <= before, 10)


def test_dropping_a_pool_in_a_cycle_ends_its_workers() -> None:
    before = children()
    pool: Any = raceway.make(Counting, 4, lane="process", num_workers=1)
    pool.reset()
    cycle = [pool]
    cycle.append(cycle)
    del pool, cycle
    gc.collect()
    wait_until(lambda: children() <= before, 10)


def test_a_pool_that_is_never_reset_ends_too() -> None:
    before = children()
    raceway.make(Counting, 4, lane="process", num_workers=2).close()
    raceway.make(Counting, 4, lane="process", num_workers=2)
    gc.collect()
    wait_until(lambda: children() <= before, 10)


# --- the end of the interpreter

ENDING = """
    import threading, time
    from tests.envs.python.faulty import actions, fault, faulty
    context = faulty(batch_size=1)
    pool = context.__enter__()
    pool.reset()
"""
ENDINGS = {
    "left open": "pool.step(actions(4))",
    "steps in flight": "pool.send([fault('hang')] * 4)",
    "in a cycle, after sys.exit": "pool.own = pool; raise SystemExit(0)",
    "a daemon thread that steps": (
        "def act():\n        while True: pool.step(actions(4))\n"
        "    threading.Thread(target=act, daemon=True).start(); time.sleep(0.2)"
    ),
    "a daemon thread that waits": (
        "pool.send([fault('hang')] * 4)\n    threading.Thread(target=pool.recv, daemon=True).start(); time.sleep(0.2)"
    ),
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_the_interpreter_ends_cleanly_without_close(ending: str) -> None:
    ended = run_script(f"{ENDING}\n    {ending}\n", timeout_s=40)
    assert (ended.code, ended.errors, ended.output) == (0, "", ""), ended
    assert ended.seconds < 12


# --- fork


def test_a_child_of_fork_is_told_and_the_parent_goes_on() -> None:
    output = output_of("""
        import os, sys
        import raceway
        from tests.envs.python.scripted import Counting
        pool = raceway.make(Counting, 4, lane="process", num_workers=2, batch_size=2)
        pool.reset()
        pool.send([0] * 4)
        child = os.fork()
        if child == 0:
            for call in (pool.reset, pool.recv, lambda: pool.step([0] * 4), lambda: pool.send([0], [0])):
                try:
                    call()
                except RuntimeError as error:
                    print("child:", "fork" in str(error), flush=True)
            pool.close()
            del pool
            sys.exit(0)
        print("status:", os.waitpid(child, 0)[1])
        print("parent:", sum(len(pool.recv(timeout=5)[4]["env_id"]) for _ in range(2)))
        print(pool.step([0] * 4)[0][:, 2].tolist())
        pool.close()
    """)
    assert output.splitlines() == ["child: True"] * 4 + ["status: 0", "parent: 4", "[2.0, 2.0, 2.0, 2.0]"]


# --- leaks

CYCLES = """
    import gc, sys
    import numpy as np
    import raceway
    from raceway.errors import EnvError
    from tests.envs.processes import resident_kib
    from tests.envs.python.faulty import Faulty, fault
    from tests.envs.python.watching import holdings

    def cycle(index):
        on_error = ("raise", "restart")[index % 2]
        pool = raceway.make(
            Faulty, 2, lane="process", num_workers=1 + index % 2, batch_size=1 + index % 3 % 2, on_error=on_error
        )
        pool.reset()
        kept = pool.step([0, 0])
        if index % 4 == 1:
            pool.step([0, fault("kill")])
        if index % 8 == 2:
            try:
                pool.step([fault("raise"), 0])
            except EnvError:
                pass
        if index % 8 == 4:
            pool.send([0, 0])
        if index % 5 != 0:
            pool.close()  # the others are dropped

    def settle():
        gc.collect()
        return holdings()

    for index in range(4):
        cycle(index)
    before, kib = settle(), resident_kib()
    for index in range(int(sys.argv[1])):
        cycle(index)
    after = settle()
    assert before == after, (before, after)
    print(resident_kib() - kib)
"""


@pytest.mark.alone
def test_pools_made_and_closed_leave_nothing_behind() -> None:
    output_of(CYCLES, "8", timeout_s=120)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.alone
def test_300_pools_made_and_closed_leave_nothing_behind() -> None:
    assert int(output_of(CYCLES, "300", timeout_s=1100)) < 4000


@pytest.mark.alone
def test_refused_pools_leave_nothing_behind() -> None:
    def refuse() -> None:
        for kwargs in ({"constructor": "raise"}, {"constructor": "os._exit"}, {"unknown": 3}):
            with pytest.raises((RuntimeError, ValueError)):
                raceway.make(Faulty, 2, lane="process", num_workers=2, **kwargs)
        gc.collect()

    refuse()
    before = holdings()
    refuse()
    assert not grown(before)
