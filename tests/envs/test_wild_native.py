"""A user's own header that writes where it must not, crashes, or does not come back: what is told, and what goes on."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import raceway
from tests.envs import own_headers
from tests.envs.processes import Ended, output_of, run_script


@pytest.fixture(scope="module")
def wild(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The header, compiled, also for processes that are started here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("CXXFLAGS", "-O0")
        header = own_headers.wild(tmp_path_factory.mktemp("wild"))
        raceway.load_native(header)
        yield str(header)


# --- raceway check


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (
            "past",
            "step 1: observe() writes past the end of its row, for which kObsSize is 2: entry 2, counted from 0, was "
            "written.",
        ),
        ("before", "step 1: observe() writes before the beginning of its row, for which kObsSize is 2."),
        ("unset", "step 1: observe() leaves entry 1 of its row, counted from 0, as it was: kObsSize is 2"),
        ("info", "step 1: info() writes past the end of column 'pair', whose size is 2: entry 2"),
        ("struct", "step 1: it writes past the end of its own struct"),
        ("action", "step 1: step() changes its action, which it may only read."),
        ("state", "get_state: archive() writes more than the 32 bytes of its state."),
    ],
)
def test_the_check_names_what_was_written_outside(wild: str, fault: str, text: str) -> None:
    report = raceway.check(wild, env_args={"fault": fault}, lanes=False)
    (problem,) = report.problems
    assert problem.code == "out-of-bounds"
    assert problem.text.startswith(text)


@pytest.mark.parametrize(("fault", "name"), [("segv", "SIGSEGV"), ("abort", "SIGABRT"), ("fpe", "SIGFPE")])
def test_the_check_survives_a_crash_and_says_where_it_was(wild: str, fault: str, name: str) -> None:
    (problem,) = raceway.check(wild, env_args={"fault": fault, "at": 5}, lanes=False).problems
    assert (problem.code, problem.text) == ("dies", f"It ended the process in step 5: killed by {name}.")
    assert "raceway check" not in problem.details
    hint = "look for code that writes outside its memory: kObsSize is 2, so observe() may write entries 0 to 1 only"
    assert problem.fix == ("" if fault == "fpe" else hint)


@pytest.mark.parametrize("env", ["CartPole-v1", "Taxi-v3", pytest.param("Hopper-v5", marks=pytest.mark.slow)])
def test_tasks_that_are_built_in_write_nothing_outside(env: str) -> None:
    assert not raceway.check(env, lanes=False).problems


# --- crashes

CRASH = """
    import faulthandler, sys
    import raceway
    header, fault, when = sys.argv[1:4]
    if when == "before":
        faulthandler.enable()
    pool = raceway.make(header, 4, fault=fault, at=9, num_workers=2)
    if when == "after":
        faulthandler.enable()
    pool.reset()
    for _ in range(20):
        pool.step([0] * 4)
"""


@pytest.mark.parametrize("faulthandler", ["off", "before", "after"])
@pytest.mark.parametrize("fault", ["segv", "abort", "fpe", "ill"])
def test_a_crash_names_the_header_and_ends_the_process_as_ever(wild: str, fault: str, faulthandler: str) -> None:
    ended = run_script(CRASH, wild, fault, faulthandler)
    number = signal.Signals[f"SIG{fault.upper()}".replace("ABORT", "ABRT")]
    assert ended.code == -number
    line = f"raceway: {number.name} in the code of {wild}. To find out why: raceway check {wild}"
    assert ended.errors.splitlines().count(line) == 1
    assert ("Fatal Python error" in ended.errors) == (faulthandler != "off")


def test_endless_recursion_is_told_too(wild: str) -> None:
    ended = run_script(CRASH, wild, "recursion", "off")
    assert ended.code == -signal.SIGSEGV
    assert ended.errors == f"raceway: SIGSEGV in the code of {wild}. To find out why: raceway check {wild}"


def test_a_crash_while_a_library_is_opened_is_told(wild: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WILD_AT_LOAD", "ill")
    ended = run_script("import sys, raceway; raceway.load_native(sys.argv[1])", wild)
    assert ended.code == -signal.SIGILL
    assert ended.errors == f"raceway: SIGILL in the code of {wild}. To find out why: raceway check {wild}"


def test_a_crash_after_a_fork_is_told(wild: str) -> None:
    script = """
        import os, sys
        import raceway
        pool = raceway.make(sys.argv[1], 1)
        pool.reset(), pool.step([0])
        if (child := os.fork()) == 0:
            pool = raceway.make(sys.argv[1], 1, fault="segv", at=20, num_workers=1)
            pool.reset()
            for _ in range(30):
                pool.step([0])
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    ended = run_script(script, wild)
    assert ended.output == str(-signal.SIGSEGV)
    assert ended.errors == f"raceway: SIGSEGV in the code of {wild}. To find out why: raceway check {wild}"


def test_a_crash_of_other_code_is_none_of_ours(wild: str) -> None:
    script = """
        import os, sys
        import raceway
        pool = raceway.make(sys.argv[1], 4)
        pool.reset(), pool.step([0] * 4)
        os.abort()
    """
    ended = run_script(script, wild)
    assert (ended.code, ended.errors) == (-signal.SIGABRT, "")


def test_handlers_are_installed_only_with_a_header(wild: str) -> None:
    script = """
        import signal, sys
        import raceway
        raceway.make(sys.argv[1], 4).reset()
        (caught,) = [int(line.split()[1], 16) for line in open("/proc/self/status") if line.startswith("SigCgt")]
        print([name for name in ("SIGSEGV", "SIGABRT") if caught >> (signal.Signals[name] - 1) & 1])
    """
    assert output_of(script, "CartPole-v1") == "[]"
    assert output_of(script, wild) == "['SIGSEGV', 'SIGABRT']"


# --- Ctrl-C

# interrupt_soon(): Ctrl-C as soon as an environment has not returned for half a second; again after another half.
INTERRUPTING = """
    import os, signal, sys, threading, time
    import raceway
    from raceway._core import user_code

    def interrupt(times, number):
        seen, since = user_code(), time.monotonic()
        while time.monotonic() - since < 0.5 or not seen[0]:
            time.sleep(0.01)
            if user_code() != seen:
                seen, since = user_code(), time.monotonic()
        for _ in range(times):
            os.kill(os.getpid(), number)
            time.sleep(0.5)

    def interrupt_soon(times=1, number=signal.SIGINT):
        threading.Thread(target=interrupt, args=(times, number), daemon=True).start()

    header = sys.argv[1]
"""


def interrupted(wild: str, script: str, *arguments: str) -> Ended:
    ended = run_script(INTERRUPTING + script, wild, *arguments, timeout_s=120.0)
    assert (ended.code, ended.errors) == (0, ""), ended
    return ended


@pytest.mark.slow
@pytest.mark.parametrize("copy", [True, False])
def test_a_slow_step_goes_on_behind_ctrl_c_and_then_the_pool_can_be_reset(wild: str, copy: bool) -> None:
    script = f"""
    pool = raceway.make(header, 3, fault="sleep", seconds=8.0, num_workers=2, copy={copy})
    pool.reset(seed=1)
    interrupt_soon()
    try:
        pool.step([0] * 3)
    except KeyboardInterrupt:
        print("interrupted, inside:", user_code()[0] > 0)
    try:
        pool.step([0] * 3)  # waits for the other one
    except Exception as error:
        print(type(error).__name__, user_code()[0])
    print(pool.reset(seed=1)[0].tolist())
    pool.close()
    """
    first, second, rows = interrupted(wild, script).output.splitlines()
    assert first == "interrupted, inside: True"
    assert second == "ResetNeeded 0"
    assert rows == "[[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]"


@pytest.mark.slow
def test_an_endless_first_step_is_left_to_its_thread(wild: str) -> None:
    script = """
    pool = raceway.make(header, 2, fault="endless")
    pool.reset()
    interrupt_soon()
    try:
        pool.step([0] * 2)
    except KeyboardInterrupt:
        print("interrupted")
    try:
        pool.reset()
    except RuntimeError as error:
        print(error)
    pool.close()
    try:
        pool.reset()
    except Exception as error:
        print(type(error).__name__)
    """
    lines = interrupted(wild, script).output.splitlines()
    assert lines[0] == "interrupted"
    assert "close() this pool and make a new one" in lines[1]
    assert lines[2] == "ClosedEnvironmentError"


LINE = "raceway: Ctrl-C: an environment of {} has not returned from its code. Press Ctrl-C again to end the process."


@pytest.mark.parametrize("num_envs", [1, 64])
@pytest.mark.parametrize("handler", ["raises", "only listens"])
def test_an_endless_step_among_cheap_ones_is_named_and_a_second_ctrl_c_ends_the_process(
    wild: str, num_envs: int, handler: str
) -> None:
    script = """
    num_envs = int(sys.argv[2])
    if sys.argv[3] == "only listens":
        signal.signal(signal.SIGINT, lambda number, frame: None)
    pool = raceway.make(header, num_envs, fault="endless", at=50, num_workers=1)  # the calling thread
    pool.reset()
    interrupt_soon(2)
    while True:
        pool.step([0] * num_envs)
    """
    ended = run_script(INTERRUPTING + script, wild, str(num_envs), handler)
    assert (ended.code, ended.errors) == (-signal.SIGINT, LINE.format(wild))


def test_sigterm_ends_a_process_that_hangs_in_a_header(wild: str) -> None:
    script = """
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    pool = raceway.make(header, 1, fault="endless", at=50, num_workers=1)
    pool.reset()
    interrupt_soon(1, signal.SIGTERM)
    while True:
        pool.step([0])
    """
    ended = run_script(INTERRUPTING + script, wild)
    assert ended.code == -signal.SIGTERM
    assert ended.errors.startswith(f"raceway: SIGTERM: an environment of {wild} has not returned from its code.")


@pytest.mark.parametrize("fault", ["spaces", "made"])
def test_an_environment_that_is_never_made_is_left(wild: str, fault: str) -> None:
    script = """
    interrupt_soon()
    try:
        raceway.make(header, 2, fault=sys.argv[2])
    except KeyboardInterrupt:
        print("interrupted")
    print(raceway.make(header, 2).reset()[0].shape)
    """
    assert interrupted(wild, script, fault).output.splitlines() == ["interrupted", "(2, 2)"]


@pytest.mark.parametrize("num_envs", [2, 33])
def test_an_environment_that_is_never_destroyed_is_left(wild: str, num_envs: int) -> None:
    script = """
    def threads_run():
        seen = [0]
        def count():
            while True:
                seen[0] += 1
                time.sleep(0.01)
        threading.Thread(target=count, daemon=True).start()
        return seen

    def stepped(num_envs):
        pool = raceway.make(header, num_envs, fault="destroyed", seconds=1e9)
        pool.reset(), pool.step([0] * num_envs)
        return pool

    pool = stepped(int(sys.argv[2]))
    interrupt_soon()
    try:
        pool.close()
    except KeyboardInterrupt:
        print("interrupted")
    other = stepped(2)
    count = threads_run()
    del other  # waits for two seconds, and others go on
    print(count[0] > 20)
    """
    assert interrupted(wild, script, str(num_envs)).output.splitlines() == ["interrupted", "True"]


def test_a_library_that_never_ends_to_open_is_left(wild: str) -> None:
    script = """
    os.environ["WILD_AT_LOAD"] = "endless"
    interrupt_soon()
    try:
        raceway.load_native(header)
    except KeyboardInterrupt:
        print("interrupted")
    os._exit(0)  # the loader's lock is still held
    """
    assert interrupted(wild, script).output == "interrupted"


@pytest.mark.parametrize("how", ["state", "set_state"])
def test_a_state_that_is_never_saved_is_left(wild: str, how: str) -> None:
    script = """
    pool = raceway.make(header, 2, fault="saved", at=1)
    pool.reset()
    state = pool.state()
    pool.step([0] * 2)
    interrupt_soon()
    try:
        pool.state() if sys.argv[2] == "state" else pool.set_state(state)
    except KeyboardInterrupt:
        print("interrupted")
    pool.close()
    try:
        pool.reset()
    except Exception as error:
        print(type(error).__name__)
    """
    assert interrupted(wild, script, how).output.splitlines() == ["interrupted", "ClosedEnvironmentError"]


LONG_AMONG_CHEAP = """
    pool = raceway.make(header, 1, fault="busy", seconds=2.0, at=19, num_workers=1)
    pool.reset()
    for _ in range(18):
        pool.step([0])
"""


@pytest.mark.parametrize("how", ["plain", "chained"])
def test_a_long_step_among_cheap_ones_ends_and_then_the_handler_is_called(wild: str, how: str) -> None:
    script = (
        LONG_AMONG_CHEAP
        + """
    heard = []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    if sys.argv[2] == "chained":
        import faulthandler
        faulthandler.register(signal.SIGINT, file=open(os.devnull, "w"), chain=True)
    interrupt_soon()
    pool.step([0])
    print(heard == [signal.SIGINT], pool.step([0])[1].tolist())
    signal.signal(signal.SIGINT, before)
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)
    except KeyboardInterrupt:
        print("as ever")
    """
    )
    ended = run_script(INTERRUPTING + script, wild, how)
    assert (ended.code, ended.errors) == (0, LINE.format(wild))
    assert ended.output.splitlines() == ["True [1.0]", "as ever"]


def test_ctrl_c_before_a_call_does_not_end_it(wild: str) -> None:
    script = (
        LONG_AMONG_CHEAP
        + """
    for _ in range(3):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
        except KeyboardInterrupt:
            pass
    print(pool.step([0])[1].tolist())
    """
    )
    assert interrupted(wild, script).output == "[1.0]"


def test_a_forked_process_hears_ctrl_c_too(wild: str) -> None:
    script = """
    pool = raceway.make(header, 1)
    pool.reset(), pool.step([0])
    if (child := os.fork()) == 0:
        pool = raceway.make(header, 1, fault="endless", at=50, num_workers=1)
        pool.reset()
        interrupt_soon(2)
        while True:
            pool.step([0])
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    ended = run_script(INTERRUPTING + script, wild)
    assert (ended.output, ended.errors) == (str(-signal.SIGINT), LINE.format(wild))


@pytest.mark.parametrize("does", ["step", "close"])
def test_a_signal_handler_may_use_another_pool_while_a_call_waits(wild: str, does: str) -> None:
    script = """
    other = raceway.make(header, 1, fault="destroyed", seconds=0.1, num_workers=1)
    other.reset(), other.step([0])
    pool = raceway.make(header, 2, fault="endless", num_workers=1)
    pool.reset()
    signal.signal(signal.SIGALRM, lambda number, frame: other.step([0]) if sys.argv[2] == "step" else other.close())
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        pool.step([0] * 2)
    except KeyboardInterrupt:
        print("interrupted")
    print(other.closed if sys.argv[2] == "close" else other.step([0])[1].tolist())
    """
    after = "True" if does == "close" else "[1.0]"
    assert interrupted(wild, script, does).output.splitlines() == ["interrupted", after]


def test_what_was_sent_to_an_endless_step_does_not_keep_recv_nor_the_end(wild: str) -> None:
    script = """
    pool = raceway.make(header, 2, fault="endless", batch_size=1)
    pool.async_reset()
    pool.recv(), pool.recv()
    interrupt_soon()
    try:
        pool.send([0, 0], [0, 1])
        pool.recv()
    except KeyboardInterrupt:
        print("interrupted")
    interrupt_soon()
    try:
        pool.reset()
    except KeyboardInterrupt:
        print("interrupted again")
    """
    assert interrupted(wild, script).output.splitlines() == ["interrupted", "interrupted again"]


def test_a_rollout_that_was_interrupted_keeps_nothing_alive(wild: str) -> None:
    script = """
    import gc
    from tests.envs.processes import pool_threads
    from tests.training.native_policies import Net, collected
    pool = raceway.make(header, 4, autoreset="same_step", fault="sleep", seconds=2.0, num_workers=2)
    pool.reset(seed=1)
    net = Net(pool)
    interrupt_soon()
    try:
        collected(pool, net, 1)
    except KeyboardInterrupt:
        print("interrupted")
    while user_code()[0]:
        time.sleep(0.05)
    del pool, net
    gc.collect()
    print(len(pool_threads()))
    """
    lines = interrupted(wild, script).output.splitlines()
    assert lines == ["interrupted", "1"]  # the thread that watches the main one


@pytest.mark.parametrize("at", [1, 2000])
def test_an_endless_step_in_a_rollout_is_left_and_nothing_hangs(wild: str, at: int) -> None:
    script = """
    from tests.training.native_policies import Net, collected
    pool = raceway.make(header, 4, autoreset="same_step", fault="endless", at=int(sys.argv[2]), num_workers=2)
    pool.reset(seed=1)
    net = Net(pool)
    interrupt_soon()
    try:
        while True:
            collected(pool, net, 1)
    except KeyboardInterrupt:
        print("interrupted")
    pool.close()
    """
    assert interrupted(wild, script, str(at)).output == "interrupted"


@pytest.mark.slow
def test_training_ends_on_the_first_ctrl_c_and_keeps_what_was_learnt(wild: str, tmp_path: Path) -> None:
    script = """
    interrupt_soon()
    try:
        raceway.train(
            header, env_args={"fault": "endless", "at": 700}, num_envs=8, total_steps=100_000,
            evaluation={"enabled": False},
            log={"directory": sys.argv[2], "name": "run", "quiet": True},
        )
    except KeyboardInterrupt:
        print("interrupted")
    """
    assert interrupted(wild, script, str(tmp_path)).output == "interrupted"
    (run,) = tmp_path.glob("*/run")
    assert list((run / "final").iterdir())


def test_a_second_signal_while_a_rollout_is_left_does_not_disturb_the_first(wild: str) -> None:
    """Its handler would run while the exception of the first is set."""
    script = """
    from tests.training.native_policies import Net, collected
    heard = []
    def handler(number, frame):
        heard.append(number)
        if len(heard) == 1:
            os.kill(os.getpid(), signal.SIGINT)  # while the groups that were told to leave are waited for
        raise KeyboardInterrupt(len(heard))
    signal.signal(signal.SIGINT, handler)
    pool = raceway.make(header, 4, autoreset="same_step", fault="endless", at=2000, num_workers=2)
    pool.reset(seed=1)
    net = Net(pool)
    interrupt_soon()
    try:
        try:
            while True:
                collected(pool, net, 1)
        finally:
            print(len(heard))
    except KeyboardInterrupt as error:
        print("interrupted", len(heard))
    pool.close()
    """
    assert interrupted(wild, script).output.splitlines()[-1] == "interrupted 2"


def test_a_handler_that_takes_its_time_leaves_a_pool_that_can_be_reset(wild: str) -> None:
    """Meanwhile the costs of a step become known, and the thread that learns them ends."""
    script = """
    def handler(number, frame):
        time.sleep(1.5)
        raise KeyboardInterrupt
    signal.signal(signal.SIGINT, handler)
    pool = raceway.make(header, 8, fault="sleep", seconds=0.3, num_workers=1)
    pool.reset(seed=1)
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        pool.step([0] * 8)
    except KeyboardInterrupt:
        print("interrupted")
    print(pool.reset(seed=1)[0].shape)
    """
    assert interrupted(wild, script).output.splitlines() == ["interrupted", "(8, 2)"]
