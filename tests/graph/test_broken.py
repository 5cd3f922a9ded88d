"""When things break: failures, killed processes, Ctrl-C, a parent that is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raceway.graph import (
    Effect,
    GraphError,
    Input,
    Output,
    PlaceLostError,
    Processes,
    Program,
    ReactionError,
    Reactor,
    StuckError,
    Timer,
    reaction,
    shutdown,
    startup,
)
from tests.envs.python.watching import children, is_alive
from tests.graph.parts import Counter, Sink


class Diary(Reactor):
    """Writes to a file when it is opened and closed, wherever it lives."""

    tick = Timer()
    out = Output[int]()

    def __init__(self, path: Path, sleep_s: float = 0.0, fails_in: int = -1, dies_in: int = -1) -> None:
        self.path = str(path)
        self.sleep_s, self.fails_in, self.dies_in = sleep_s, fails_in, dies_in

    def note(self, text: str) -> None:
        with open(self.path, "a") as file:
            file.write(f"{self.name} {text} {os.getpid()}\n")

    @reaction(startup)
    def open(self) -> None:
        self.note("opened")

    @reaction(tick, effects=out)
    def write(self) -> Effect[int]:
        time.sleep(self.sleep_s)
        if self.round == self.fails_in:
            self.deep_inside()
        if self.round == self.dies_in:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.out(self.round)

    def deep_inside(self) -> None:
        raise ZeroDivisionError("on purpose")

    @reaction(shutdown)
    def close(self) -> None:
        self.note("closed")


def program_of(*diaries: Diary, placed: tuple[int, ...] = ()) -> Program:
    program = Program()
    for i, diary in enumerate(diaries):
        program.add(diary, name=f"diary_{i}")
        program.connect(diary.out, program.add(Sink()).inp)
        if i in placed:
            program.place(diary, Processes())
    return program


def notes(path: Path) -> list[str]:
    return sorted(line.rsplit(" ", 1)[0] for line in path.read_text().splitlines())


ALL_CLOSED = ["diary_0 closed", "diary_0 opened", "diary_1 closed", "diary_1 opened"]


@pytest.mark.parametrize("placed", [(), (0,), (1,), (0, 1)])
def test_a_failure_stops_all_names_itself_and_keeps_its_traceback(tmp_path, placed):
    diaries = Diary(tmp_path / "notes", fails_in=7), Diary(tmp_path / "notes", sleep_s=0.001)
    begin = time.monotonic()
    with pytest.raises(
        ReactionError, match=r"diary_0\.write failed in round 7: ZeroDivisionError: on purpose"
    ) as caught:
        program_of(*diaries, placed=placed).run()
    assert time.monotonic() - begin < 20
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    text = "".join(traceback.format_exception(caught.value))
    assert "deep_inside" in text
    assert "test_broken.py" in text
    assert notes(tmp_path / "notes") == ALL_CLOSED


class UnpicklableError(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


class Thrower(Reactor):
    tick = Timer()

    @reaction(tick)
    def throw(self) -> None:
        raise UnpicklableError(1, 2)


def test_an_exception_that_cannot_travel_is_told_in_words():
    program = Program()
    program.place(program.add(Thrower()), Processes())
    with pytest.raises(ReactionError, match=r"thrower.throw failed in round 0.*UnpicklableError: 1 and 2") as caught:
        program.run()
    assert "raise UnpicklableError(1, 2)" in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("placed", [(), (0,)])
def test_a_startup_that_fails_is_named(tmp_path, placed):
    class Broken(Diary):
        def open(self) -> None:
            super().open()
            raise OSError("no such device")

    diaries = Broken(tmp_path / "notes"), Diary(tmp_path / "notes", sleep_s=0.01)
    with pytest.raises(ReactionError, match=r"diary_0\.open failed at startup: OSError: no such device"):
        program_of(*diaries, placed=placed).run()
    assert "diary_0 closed" in notes(tmp_path / "notes")


class BadClose(Diary):
    def close(self) -> None:
        super().close()
        raise RuntimeError("stuck door")


@pytest.mark.parametrize("placed", [(), (0,)])
def test_a_shutdown_that_fails_does_not_keep_others_from_theirs(tmp_path, placed):
    diaries = BadClose(tmp_path / "notes"), Diary(tmp_path / "notes")
    with pytest.raises(ReactionError, match=r"(?s)diary_0\.close failed at shutdown.*stuck door"):
        program_of(*diaries, placed=placed).run(3)
    assert notes(tmp_path / "notes") == ALL_CLOSED


def test_a_failure_is_not_hidden_by_a_shutdown_that_fails_too(tmp_path):
    with pytest.raises(ReactionError, match="on purpose") as caught:
        program_of(BadClose(tmp_path / "notes", fails_in=1)).run(3)
    assert any("stuck door" in note for note in caught.value.__notes__)


def test_a_killed_process_is_noticed_at_once(tmp_path):
    killed, other = Diary(tmp_path / "notes", dies_in=20, sleep_s=0.01), Diary(tmp_path / "notes", sleep_s=0.01)
    program = program_of(killed, other, placed=(0, 1))
    end = 0.0

    class Watch(Reactor):
        inp = Input[int]()

        @reaction(inp)
        def see(self, value: int) -> None:
            nonlocal end
            end = time.monotonic()

    program.connect(killed.out, program.add(Watch()).inp)
    with pytest.raises(PlaceLostError, match=r"killed by SIGKILL.*diary_0"):
        program.run()
    assert time.monotonic() - end < 4, "noticed too late"
    assert notes(tmp_path / "notes") == ["diary_0 opened", "diary_1 closed", "diary_1 opened"]


class DiesAtImport(Reactor):
    tick = Timer()

    @reaction(startup)
    def open(self) -> None:
        os._exit(3)

    @reaction(tick)
    def work(self) -> None: ...


def test_a_process_that_does_not_come_up_is_noticed():
    program = Program()
    program.place(program.add(DiesAtImport(), name="short_lived"), Processes())
    with pytest.raises(PlaceLostError, match=r"exit code 3.*short_lived"):
        program.run()


class Holder(Reactor):
    tick = Timer()

    def __init__(self) -> None:
        self.lock = threading.Lock()

    @reaction(tick)
    def work(self) -> None: ...


def test_what_cannot_travel_to_a_process_is_named():
    program = Program()
    program.place(program.add(Holder()), Processes())
    with pytest.raises(GraphError, match=r"holder cannot be placed.*attribute lock \(a lock\).*startup reaction"):
        program.run(1)


@pytest.mark.parametrize("placed", [(), (0,)])
@pytest.mark.parametrize("inline", [False, True])
def test_ctrl_c_ends_at_one_round_and_shuts_down(tmp_path, placed, inline):
    if placed and inline:
        pytest.skip("inline, places do not matter")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    diary = Diary(tmp_path / "notes", sleep_s=0.01)
    program = program_of(diary, Diary(tmp_path / "notes"), placed=placed)
    watch = threading.Thread(target=interrupt_when_opened, args=(tmp_path / "notes",))
    watch.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            program.run(inline=inline, snapshot_at_end=True)
    finally:
        watch.join()
        handler = signal.signal(signal.SIGINT, before)
    assert handler is signal.default_int_handler, "the handler from before is back"
    assert notes(tmp_path / "notes") == ALL_CLOSED
    outcome = program.outcome
    assert outcome is not None
    assert outcome.reason == "interrupted"
    assert outcome.snapshot is not None
    assert outcome.snapshot.rounds["diary_0"] == outcome.snapshot.rounds["sink"] > 0


def interrupt_when_opened(path: Path, number: int = signal.SIGINT) -> None:
    while not path.exists() or path.read_text().count("opened") < 2:
        time.sleep(0.01)
    time.sleep(0.2)
    os.kill(os.getpid(), number)


def test_sigterm_ends_at_one_round_too(tmp_path):
    program = program_of(Diary(tmp_path / "notes", sleep_s=0.01), Diary(tmp_path / "notes"))
    watch = threading.Thread(target=interrupt_when_opened, args=(tmp_path / "notes", signal.SIGTERM))
    watch.start()
    with pytest.raises(SystemExit) as ended:
        program.run(snapshot_at_end=True)
    watch.join()
    assert ended.value.code == 143
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, "the handler from before is back"
    assert notes(tmp_path / "notes") == ALL_CLOSED
    assert program.outcome is not None
    assert program.outcome.reason == "terminated"
    assert program.outcome.snapshot is not None


class Told(Reactor):
    """Is told to end, twice, while it starts."""

    tick = Timer()

    @reaction(startup)
    def open(self) -> None:
        for _ in range(2):
            signal.raise_signal(signal.SIGTERM)

    @reaction(tick)
    def work(self) -> None: ...


def test_a_second_sigterm_at_startup_is_not_the_reactions_failure():
    program = Program()
    program.add(Told())
    with pytest.raises(SystemExit) as ended:
        program.run(1)
    assert ended.value.code == 143


class Quitter(Reactor):
    tick = Timer()

    @reaction(startup)
    def open(self) -> None:
        raise SystemExit(3)

    @reaction(tick)
    def work(self) -> None: ...


def test_a_system_exit_raised_by_a_reaction_is_a_failure():
    program = Program()
    program.add(Quitter())
    with pytest.raises(ReactionError, match=r"quitter\.open failed at startup: SystemExit: 3"):
        program.run(1)


def test_a_sigterm_that_somebody_else_listens_to_is_theirs(tmp_path):
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    program = program_of(Diary(tmp_path / "notes", sleep_s=0.01), Diary(tmp_path / "notes"))
    watch = threading.Thread(target=interrupt_when_opened, args=(tmp_path / "notes", signal.SIGTERM))
    watch.start()
    try:
        program.run(100)
    finally:
        watch.join()
        signal.signal(signal.SIGTERM, before)
    assert heard == [signal.SIGTERM]
    assert program.outcome is not None
    assert program.outcome.reason == "rounds"


SCRIPT = """
    import sys, time
    from pathlib import Path
    sys.path.insert(0, {root!r})
    from tests.graph.test_broken import Diary, program_of
    from raceway.graph import Processes
    diaries = [Diary(Path({path!r}), sleep_s=0.005) for _ in range(3)]
    program_of(*diaries, placed=(0, 1)).run()
"""


def living_children() -> set[int]:
    return {pid for pid in children() if is_alive(pid)}


@pytest.mark.alone
def test_nothing_is_left_after_the_parent_is_killed(tmp_path):
    path = tmp_path / "notes"
    shared = set(Path("/dev/shm").glob("*"))
    script = textwrap.dedent(SCRIPT.format(root=str(Path.cwd()), path=str(path)))
    parent = subprocess.Popen([sys.executable, "-c", script])
    deadline = time.monotonic() + 30
    while not path.exists() or path.read_text().count("opened") < 3:
        assert time.monotonic() < deadline
        assert parent.poll() is None
        time.sleep(0.02)
    workers = {int(line.split()[-1]) for line in path.read_text().splitlines()} - {parent.pid}
    assert len(workers) == 2
    assert all(map(is_alive, workers))
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 10
    while any(map(is_alive, workers)):
        assert time.monotonic() < deadline, "workers outlive their parent"
        time.sleep(0.01)
    assert set(Path("/dev/shm").glob("*")) <= shared


def test_a_run_leaves_no_process_thread_or_descriptor_behind(tmp_path):
    def run() -> None:
        program_of(Diary(tmp_path / "notes"), placed=(0,)).run(5)

    run()
    processes = living_children()
    descriptors, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
    maps = Path("/proc/self/maps").read_text().count("memfd")
    for _ in range(3):
        run()
    # No more: what an earlier test has left may have ended meanwhile.
    assert len(os.listdir("/proc/self/fd")) <= descriptors
    assert threading.active_count() <= threads
    assert Path("/proc/self/maps").read_text().count("memfd") <= maps
    assert living_children() <= processes


class Sleeper(Reactor):
    tick = Timer()

    def __init__(self, sleep_s: float) -> None:
        self.sleep_s = sleep_s

    @reaction(tick)
    def sleep(self) -> None:
        time.sleep(self.sleep_s)


@pytest.mark.slow
def test_a_failure_does_not_wait_for_ever_for_a_reaction_that_does_not_end(tmp_path):
    program = program_of(Diary(tmp_path / "notes", fails_in=1, sleep_s=0.1))
    program.add(Sleeper(30.0))
    begin = time.monotonic()
    with pytest.raises(ReactionError, match="on purpose") as caught:
        program.run()
    assert time.monotonic() - begin < 10
    assert any("sleeper.sleep still runs" in note for note in caught.value.__notes__)


class Hopeful(Reactor):
    """Waits for a queue that gets nothing."""

    tick = Timer()
    inp = Input[int]()
    out = Output[int]()

    @reaction((tick, inp), effects=out)
    def hope(self, value: int | None) -> Effect[int] | None:
        return self.out(self.round) if value is not None else None


@pytest.mark.parametrize("inline", [False, True])
def test_reactors_that_wait_for_each_other_are_told_apart_from_a_long_wait(inline):
    program = Program()
    first, second = program.add(Hopeful()), program.add(Hopeful())
    program.connect(first.out, second.inp, queue=1)
    program.connect(second.out, first.inp, queue=1)
    with pytest.raises(StuckError, match=r"hopeful \(round 0\) for inp, hopeful_2 \(round 0\) for inp"):
        program.run(inline=inline)


def test_a_callback_that_fails_ends_the_run(tmp_path):
    def keep(snapshot: Any) -> None:
        raise OSError("disk full")

    program = program_of(Diary(tmp_path / "notes"), Diary(tmp_path / "notes"))
    with pytest.raises(OSError, match="disk full"):
        program.run(snapshot_every=5, on_snapshot=keep)
    assert notes(tmp_path / "notes") == ALL_CLOSED


class Keeper(Reactor):
    """Keeps every array it ever got, and looks at them again."""

    inp = Input[np.ndarray]()

    def __init__(self) -> None:
        self.kept: list[np.ndarray] = []

    @reaction(inp)
    def keep(self, array: np.ndarray) -> None:
        self.kept.append(array)
        assert all((kept == i).all() for i, kept in enumerate(self.kept)), "memory was used again too early"


class Filler(Reactor):
    tick = Timer()
    out = Output[np.ndarray]()

    @reaction(tick, effects=out)
    def fill(self) -> Effect[np.ndarray]:
        array = self.out.empty((100, 100), np.int64)
        array[:] = self.round
        return self.out(array)


@pytest.mark.parametrize("placed", [False, True])
def test_memory_on_loan_is_not_used_again_while_a_reader_keeps_it(placed):
    program = Program()
    filler, keeper = program.add(Filler()), program.add(Keeper())
    program.connect(filler.out, keeper.inp)
    if placed:
        program.place(keeper, Processes())
    program.run(40)


def test_a_run_within_another_thread_works():
    program = Program()
    counter, sink = program.add(Counter()), program.add(Sink())
    program.connect(counter.out, sink.inp)
    program.place(counter, Processes())
    thread = threading.Thread(target=program.run, args=(5,))
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    assert len(sink.seen) == 5


class LongOpening(Reactor):
    tick = Timer()

    @reaction(startup)
    def open(self) -> None:
        time.sleep(60)

    @reaction(tick)
    def work(self) -> None: ...


@pytest.mark.slow
def test_ctrl_c_is_heard_while_a_worker_process_starts():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    program = Program()
    program.place(program.add(LongOpening()), Processes())
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begin = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            program.run(1)
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - begin < 20
    assert any("long_opening" in note for note in caught.value.__notes__)
