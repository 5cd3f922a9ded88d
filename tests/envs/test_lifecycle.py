"""Pools come and go without a trace: threads, memory, forks and the end of the interpreter."""

from __future__ import annotations

import os

import pytest

import raceway
from tests.envs.gymnasium_twin import in_turn
from tests.envs.processes import output_of, pool_threads, run_script
from tests.envs.transitions import PATIENCE_S

# --- threads


def test_cheap_environments_get_no_threads() -> None:
    before = len(pool_threads())
    pool = raceway.make("CartPole-v1", 8, num_workers=4)
    pool.reset()
    for _ in range(100):
        pool.step([0] * 8)
    assert len(pool_threads()) == before


def test_threads_start_when_they_are_needed_and_end_with_the_pool() -> None:
    before = len(pool_threads())
    pool = raceway.make("Busy-v0", 16, step_us=300.0, wait=True, num_workers=4)
    pool.reset()
    assert len(pool_threads()) == before
    for _ in range(50):
        pool.step([0] * 16)
        assert len(pool_threads()) <= before + 3  # the calling thread is the fourth
    assert len(pool_threads()) == before + 3
    pool.close()
    assert len(pool_threads()) == before


@pytest.mark.parametrize("batch_size", [2, 8])
def test_dropping_a_pool_ends_its_threads(batch_size: int) -> None:
    before = len(pool_threads())
    pool = raceway.make("Busy-v0", 8, batch_size=batch_size, step_us=2000.0, wait=True, num_workers=4)
    pool.reset()
    pool.step([0] * 8)
    pool.send([0] * 8)
    assert len(pool_threads()) > before
    del pool
    assert len(pool_threads()) == before


def test_more_workers_than_environments_are_not_kept() -> None:
    assert raceway.make("CartPole-v1", 3, num_workers=64).num_workers == 3


def test_pinned_workers_stay_on_one_cpu_each_and_the_caller_where_it_was() -> None:
    allowed = os.sched_getaffinity(0)
    before = set(pool_threads())
    pool = raceway.make("Busy-v0", 8, step_us=500.0, wait=True, num_workers=3, pin=True, seed=0)
    plain = raceway.make("Busy-v0", 8, step_us=500.0, wait=True, num_workers=3, seed=0)
    assert pool.reset()[0].tobytes() == plain.reset()[0].tobytes()
    for _ in range(10):
        pool.step([0] * 8)
    workers = set(pool_threads()) - before
    assert len(workers) == 2
    assert all(len(os.sched_getaffinity(worker)) == 1 for worker in workers)
    assert os.sched_getaffinity(0) == allowed


def test_the_default_number_of_workers_follows_the_affinity_mask() -> None:
    output = output_of("""
        import os, raceway
        from raceway import _core
        print(raceway.make("CartPole-v1", 64).num_workers == min(64, _core.usable_cpus()))
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        print(raceway.make("CartPole-v1", 64).num_workers)
    """)
    assert output.split() == ["True", "1"]


# --- leaks

CYCLES = """
    import sys
    import raceway
    from tests.envs.processes import open_files, resident_kib, threads

    def cycle(index):
        batch_size = (4, 2, 4, 1)[index % 4]
        pool = raceway.make("Busy-v0", 4, batch_size=batch_size, step_us=50.0, num_workers=3, seed=index)
        pool.reset()
        pool.step([0] * 4)
        if batch_size < 4:
            pool.send([0] * 4)
        if index % 3 == 0:
            pool.recv(timeout=5) if batch_size < 4 else pool.step([0] * 4)
        if index % 5 != 0:
            pool.close()  # the others are dropped

    for index in range(200):
        cycle(index)
    before = resident_kib(), len(threads()), open_files()
    for index in range(int(sys.argv[1])):
        cycle(index)
    after = resident_kib(), len(threads()), open_files()
    print(*(now - then for now, then in zip(after, before)))
"""


def check_cycles(count: int) -> None:
    grown_kib, new_threads, new_files = map(int, output_of(CYCLES, str(count), timeout_s=280).split())
    assert (new_threads, new_files) == (0, 0)
    assert grown_kib < 1000


def test_pools_made_and_closed_leak_nothing() -> None:
    check_cycles(400)


@pytest.mark.slow
def test_ten_thousand_pools_made_and_closed_leak_nothing() -> None:
    check_cycles(10_000)


STEPS = """
    import sys
    import numpy as np
    import raceway
    from tests.envs.processes import resident_kib

    task, mode, env_steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
    pool = raceway.make(task, 64, batch_size=16, seed=0, autoreset="same_step", record_episodes=True)
    actions = np.zeros(64, dtype=np.int64)

    def run(env_steps):
        if mode == "step":
            for _ in range(env_steps // 64):
                pool.step(actions)
            return
        for _ in range(env_steps // 16):
            infos = pool.recv(timeout=5)[4]
            pool.send(actions[:16], infos["env_id"])

    pool.reset()
    if mode == "send":
        pool.async_reset()
    run(100_000)
    before = resident_kib()
    run(env_steps)
    print(resident_kib() - before)
"""


@pytest.mark.parametrize(("task", "mode"), in_turn(["CartPole-v1", "FrozenLake-v1", "Blackjack-v1"], ["step", "send"]))
def test_many_steps_leave_memory_where_it_was(task: str, mode: str) -> None:
    assert int(output_of(STEPS, task, mode, "300000", timeout_s=120)) < 512


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["step", "send"])
def test_many_million_steps_leave_memory_where_it_was(mode: str) -> None:
    assert int(output_of(STEPS, "CartPole-v1", mode, "30000000", timeout_s=280)) < 512


def test_refused_calls_leave_memory_where_it_was() -> None:
    output = output_of("""
        import raceway
        from tests.envs.processes import resident_kib
        pool = raceway.make("CartPole-v1", 1024, batch_size=1024)
        pool.reset()
        def refuse(times):
            for _ in range(times):
                for call in (lambda: pool.step([9] * 1024), lambda: pool.recv(), lambda: pool.recv(timeout=0)):
                    try:
                        call()
                    except (RuntimeError, ValueError, TimeoutError):
                        continue
                    raise AssertionError("not refused")
        refuse(100)
        before = resident_kib()
        refuse(2000)
        print(resident_kib() - before)
    """)
    assert int(output) < 512


# --- fork


def test_a_child_of_fork_is_told_and_can_make_its_own_pool() -> None:
    ended = run_script("""
        import os, sys
        import raceway
        pool = raceway.make("Busy-v0", 8, batch_size=2, step_us=500.0, wait=True, num_workers=4, seed=0)
        idle = raceway.make("CartPole-v1", 4, seed=0)
        pool.reset()
        pool.send([0] * 8)
        pool.recv()
        child = os.fork()
        if child == 0:
            for call in (pool.reset, pool.recv, pool.state, lambda: idle.reset(), lambda: idle.step([0] * 4)):
                try:
                    call()
                except RuntimeError as error:
                    print("child:", error, flush=True)
            pool.close()
            del pool
            own = raceway.make("Busy-v0", 8, batch_size=2, step_us=500.0, wait=True, num_workers=4, seed=0)
            own.reset()
            own.send([0] * 8)
            print("own:", sum(len(own.recv(timeout=5)[4]["env_id"]) for _ in range(4)), flush=True)
            sys.exit(0)
        _, status = os.waitpid(child, 0)
        print("status:", status)
        print("parent:", sum(len(pool.recv(timeout=5)[4]["env_id"]) for _ in range(3)))
        pool.step([0] * 8)
    """)
    told = "child: this pool was made before a fork, and its threads stayed in the parent. Make it in the child."
    assert ended.output.splitlines() == [told] * 5 + ["own: 8", "status: 0", "parent: 6"], ended
    assert (ended.code, ended.errors) == (0, "")


def test_a_child_of_fork_ends_though_a_thread_was_inside_the_pool() -> None:
    output = output_of("""
        import os, sys, threading, time
        import raceway
        pool = raceway.make("CartPole-v1", 4, seed=0)
        pool.reset()
        def act():
            while True:
                pool.step([0] * 4)
        threading.Thread(target=act, daemon=True).start()
        codes = []
        for _ in range(20):
            until = time.perf_counter() + 0.002
            while time.perf_counter() < until:
                pass
            child = os.fork()
            if child == 0:
                sys.exit(0)
            codes.append(os.waitpid(child, 0)[1])
        print(set(codes))
    """)
    assert output == "{0}"


def test_a_forked_worker_process_that_ignores_the_pool_ends_cleanly() -> None:
    output = output_of("""
        import multiprocessing
        import raceway
        pool = raceway.make("Busy-v0", 8, step_us=500.0, wait=True, num_workers=4, seed=0)
        pool.reset()
        pool.step([0] * 8)
        with multiprocessing.get_context("fork").Pool(2) as workers:
            print(workers.map(abs, [-1, -2]))
        pool.step([0] * 8)
    """)
    assert output == "[1, 2]"


# --- the end of the interpreter

PENDING = """
    import raceway
    def pending(step_us=8e6):
        pool = raceway.make("Busy-v0", 64, batch_size=16, step_us=step_us, wait=True, num_workers=4, seed=0)
        pool.reset()
        pool.send([0] * 64)
        return pool
"""
ENDINGS = {
    "a pool at module level": "pool = pending()",
    "a pool in a cycle": "pool = [pending()]; pool.append(pool)",
    "three pools": "pools = [pending() for _ in range(3)]",
    "a pool that was dropped": "pending()",
    "a pool closed by hand": "pending().close()",
    "short steps": "pool = pending(200.0)",
    "sys.exit": "pool = pending(); raise SystemExit(0)",
    "arrays that outlive their pool": "pool = pending(200.0); kept = pool.recv(); pool.close()",
}
DAEMONS = {
    "a daemon thread that receives": ("pool = pending()", "pool.recv()"),
    "a daemon thread that sends and receives": (
        "pool = pending(200.0)",
        "pool.send([0] * 16, pool.recv()[4]['env_id'])",
    ),
    "a daemon thread that steps": (
        "pool = raceway.make('Busy-v0', 8, step_us=2000.0, wait=True, num_workers=2); pool.reset()",
        "pool.step([0] * 8)",
    ),
    "a daemon thread in a long step": (
        "pool = raceway.make('Busy-v0', 2, step_us=8e6, wait=True, num_workers=2); pool.reset()",
        "pool.step([0] * 2)",
    ),
}


def assert_clean_and_quick(script: str) -> None:
    ended = run_script(script, timeout_s=40)
    assert (ended.code, ended.errors, ended.output) == (0, "", ""), ended
    assert ended.seconds < 6.0  # steps of eight seconds are under way


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_the_interpreter_ends_cleanly_with_work_pending(ending: str) -> None:
    assert_clean_and_quick(f"{PENDING}\n    {ending}\n")


@pytest.mark.parametrize(("make", "act"), DAEMONS.values(), ids=DAEMONS)
def test_the_interpreter_ends_cleanly_under_a_daemon_thread(make: str, act: str) -> None:
    assert_clean_and_quick(f"""{PENDING}
    import threading, time
    {make}
    def act():
        while True:
            {act}
    threading.Thread(target=act, daemon=True).start()
    time.sleep(0.3)
    """)


def test_a_handler_at_exit_may_join_a_thread_that_uses_a_pool() -> None:
    assert_clean_and_quick("""
        import atexit, threading, time
        stop = threading.Event()
        atexit.register(lambda: (stop.set(), thread.join()))
        import raceway
        pool = raceway.make("Busy-v0", 8, batch_size=4, step_us=200.0, num_workers=2, seed=0)
        pool.async_reset()
        def act():
            while not stop.is_set():
                pool.send([0] * 4, pool.recv()[4]["env_id"])
        thread = threading.Thread(target=act, daemon=True)
        thread.start()
        time.sleep(0.2)
    """)


def test_close_waits_for_a_step_under_way_and_drops_the_rest() -> None:
    pool = raceway.make("Busy-v0", 64, batch_size=16, step_us=3e5, wait=True, num_workers=2)
    pool.reset()
    pool.send([0] * 64)
    with pytest.raises(TimeoutError):
        pool.recv(timeout=0.05)
    before = len(pool_threads())
    pool.close()
    assert len(pool_threads()) == before - 2


def test_a_pool_in_use_elsewhere_is_not_disturbed_by_the_end_of_another() -> None:
    stays, goes = (raceway.make("Busy-v0", 8, batch_size=2, step_us=300.0, num_workers=2) for _ in range(2))
    for pool in (stays, goes):
        pool.reset()
        pool.send([0] * 8)
    goes.close()
    assert sum(len(stays.recv(timeout=PATIENCE_S)[4]["env_id"]) for _ in range(4)) == 8
