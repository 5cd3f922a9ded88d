"""Several Python threads at one pool, and signals: an exception or a defined result, no hang, the pool still usable."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError

import raceway
from raceway.envs import NativePool
from tests.envs.processes import output_of, run_script
from tests.envs.transitions import PATIENCE_S, action_plan, step_all


def test_one_thread_may_send_while_another_receives() -> None:
    pool = raceway.make("Busy-v0", 16, batch_size=4, step_us=30.0, spread="exponential", max_episode_steps=-1, seed=0)
    received = np.zeros(16, dtype=np.int64)
    idle: queue.SimpleQueue[np.ndarray | None] = queue.SimpleQueue()

    def receive() -> None:
        for _ in range(1000):
            *_, infos = pool.recv(timeout=PATIENCE_S)
            received[infos["env_id"]] += 1
            idle.put(infos["env_id"])
        idle.put(None)

    def send() -> None:
        while (env_ids := idle.get(timeout=PATIENCE_S)) is not None:
            pool.send([0] * len(env_ids), env_ids)

    pool.async_reset()
    with ThreadPoolExecutor() as threads:
        for done in [threads.submit(receive), threads.submit(send)]:
            done.result(timeout=60)
    in_flight = 16
    while in_flight >= 4:
        received[pool.recv(timeout=PATIENCE_S)[4]["env_id"]] += 1
        in_flight -= 4
    assert (pool.state()["episode.steps"] + 1).tolist() == received.tolist()  # the reset was received too


@pytest.mark.parametrize("step_us", [0.0, 100.0])
def test_threads_that_step_at_once_take_turns_or_are_told(step_us: float) -> None:
    pool = raceway.make("Busy-v0", 8, step_us=step_us, num_workers=2, max_episode_steps=-1, seed=0)
    pool.reset()

    refusals: set[str] = set()

    def step_often() -> int:
        steps = 0
        for _ in range(200):
            try:
                pool.step([0] * 8)
                steps += 1
            except RuntimeError as error:
                refusals.add(str(error).split(".")[0])
        return steps

    with ThreadPoolExecutor() as threads:
        taken = [threads.submit(step_often) for _ in range(4)]
        total = sum(each.result(timeout=60) for each in taken)
    assert total > 0
    assert refusals <= {"another call is inside this pool"}
    assert pool.state()["episode.steps"].tolist() == [total] * 8


def waiting_receiver(pool: NativePool) -> tuple[threading.Thread, list[BaseException]]:
    """A thread that waits in recv, and what it is told there."""
    told: list[BaseException] = []

    def receive() -> None:
        try:
            pool.recv()
        except Exception as error:
            told.append(error)

    thread = threading.Thread(target=receive, daemon=True)
    thread.start()
    time.sleep(0.1)
    return thread, told


def test_close_ends_a_recv_that_waits() -> None:
    pool = raceway.make("Busy-v0", 4, batch_size=1, step_us=5e5, wait=True, num_workers=2)
    pool.reset()
    pool.send([0] * 4)
    thread, told = waiting_receiver(pool)
    start = time.perf_counter()
    pool.close()
    thread.join(timeout=PATIENCE_S)
    assert time.perf_counter() - start < PATIENCE_S / 4
    assert isinstance(told[0], ClosedEnvironmentError)
    assert "closed while recv() waited" in str(told[0])


@pytest.mark.parametrize(
    "call",
    [lambda pool: pool.recv(), lambda pool: pool.step([0] * 4), lambda pool: pool.reset(), lambda pool: pool.state()],
    ids=["recv", "step", "reset", "state"],
)
def test_a_second_thread_is_told_that_one_is_inside(call: Callable[[NativePool], object]) -> None:
    pool = raceway.make("Busy-v0", 4, batch_size=4, step_us=3e5, wait=True, num_workers=4)
    pool.reset()
    pool.send([0] * 4)
    thread, told = waiting_receiver(pool)
    with pytest.raises(RuntimeError, match=r"another call is inside this pool.*use a lock, or one pool per thread"):
        call(pool)
    thread.join(timeout=PATIENCE_S)
    assert not told
    pool.step([0] * 4)


def test_a_pool_per_thread_gives_what_it_gives_alone() -> None:
    def roll(seed: int) -> list[list[tuple[object, ...]]]:
        pool = raceway.make("CartPole-v1", 8, seed=seed)
        pool.reset()
        return step_all(pool, action_plan(pool, 200))

    alone = [roll(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(roll, range(4), timeout=60)) == alone


# --- signals, in processes of their own: a wait that cannot be interrupted would take the tests with it


def test_ctrl_c_ends_a_long_recv_and_loses_nothing() -> None:
    output = output_of("""
        import os, signal, threading, time
        import raceway
        pool = raceway.make("Busy-v0", 2, batch_size=1, step_us=4e6, wait=True, num_workers=2)
        pool.reset()
        pool.send([0, 0])
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        start = time.perf_counter()
        try:
            pool.recv()
        except KeyboardInterrupt:
            print(time.perf_counter() - start < 3)
        print(sorted(int(pool.recv()[4]["env_id"][0]) for _ in range(2)))
    """)
    assert output.splitlines() == ["True", "[0, 1]"]


def test_a_signal_handler_may_close_the_pool_that_recv_waits_for() -> None:
    output = output_of(
        """
        import signal
        import raceway
        pool = raceway.make("Busy-v0", 2, batch_size=1, step_us=1e6, wait=True, num_workers=2)
        pool.reset()
        pool.send([0, 0])
        signal.signal(signal.SIGALRM, lambda *_: pool.close())
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        try:
            pool.recv()
        except Exception as error:
            print(type(error).__name__)
        """,
        timeout_s=10,
    )
    assert output in ("ClosedEnvironmentError", "RuntimeError")


def test_worker_threads_leave_signals_to_the_callers_thread() -> None:
    output = output_of("""
        import os, signal, threading
        import raceway
        told = []
        signal.signal(signal.SIGUSR1, lambda *_: told.append(threading.current_thread() is threading.main_thread()))
        pool = raceway.make("Busy-v0", 4, step_us=200.0, wait=True, num_workers=4)
        pool.reset()
        for _ in range(200):
            os.kill(os.getpid(), signal.SIGUSR1)
            pool.step([0] * 4)
        print(set(told), pool.state()["episode.steps"].tolist())
    """)
    assert output == "{True} [200, 200, 200, 200]"


def test_a_thread_that_cannot_be_started_is_an_error_and_no_hang() -> None:
    ended = run_script(
        """
        import resource, signal
        import raceway
        pool = raceway.make("Busy-v0", 8, batch_size=2, step_us=1000.0, wait=True, num_workers=4, seed=0)
        pool.reset()
        size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + 2_000_000, resource.RLIM_INFINITY))  # no room for a stack
        try:
            pool.send([0] * 8)
        except (RuntimeError, MemoryError) as error:
            print("refused")
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print(len(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
        pool.reset()
        pool.send([0] * 8)
        print(sum(len(pool.recv(timeout=5)[4]["env_id"]) for _ in range(4)))
        """,
        timeout_s=20,
    )
    assert ended.output.splitlines()[-2:] == ["0", "8"], ended


def test_the_first_pools_of_a_process_may_be_made_by_many_threads_at_once() -> None:
    """Whichever of them Python gives its lock to, and whenever it takes that away."""
    ended = run_script(
        """
        import sys, threading
        import raceway
        from raceway import _core
        sys.setswitchinterval(1e-6)
        configurations = _core.Configurations("CartPole-v1", [{}])
        settings = dict(batch_size=1, num_workers=1, autoreset=0, record_episodes=False, pin=False, copy=True)
        barrier = threading.Barrier(8)
        def work():
            barrier.wait()
            _core.Pool(configurations, [0], [0], settings)
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print("done")
        """,
        timeout_s=60,
    )
    assert ended.output == "done", ended
