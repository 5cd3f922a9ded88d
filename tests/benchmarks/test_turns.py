"""The protocol, with small real processes at its other end."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.paired import Plan, measure
from benchmarks.turns import Contestant, ContestantError, ContestantProcess

ROOT = Path(__file__).parents[2]

SETUP = f"""
import os, subprocess, sys, time
sys.path.insert(0, {str(ROOT)!r})
from benchmarks.turns import serve
"""


def contestant(name: str, body: str) -> Contestant:
    return Contestant(name, sys.executable, ("-c", SETUP + body))


def sleeper(name: str, step_s: float) -> Contestant:
    """Takes batches of ten steps, each step as long as given, and counts its turns in its facts."""
    return contestant(
        name,
        f"""
def turn(steps):
    calls = -(-steps // 10)
    start = time.perf_counter()
    time.sleep(calls * 10 * {step_s})
    return calls * 10, time.perf_counter() - start

serve(lambda: (turn, {{"versions": {{"sleeper": "1"}}}}))
""",
    )


def test_turn_gives_steps_seconds_and_memory():
    with ContestantProcess(sleeper("sleeper", 1e-4)) as process:
        assert process.facts == {"versions": {"sleeper": "1"}}
        result = process.turn(95)
    assert result.steps == 100
    assert result.seconds >= 0.01
    assert result.rate == pytest.approx(100 / result.seconds)
    assert result.rss_bytes > 2**20


def test_noise_on_standard_output_does_not_break_the_protocol():
    noisy = contestant(
        "noisy",
        """
def set_up():
    print("hello from Python", flush=True)
    os.write(1, b"hello from native code\\n")
    subprocess.run(["echo", "hello from a child"], check=True)
    def turn(steps):
        print('{"steps": 0}', flush=True)
        return steps, 0.5
    return turn, {}
serve(set_up)
""",
    )
    with ContestantProcess(noisy) as process:
        assert [process.turn(7).steps, process.turn(8).steps] == [7, 8]


def test_death_while_setting_up_shows_its_last_words():
    dying = contestant("dying", "serve(lambda: 1 / 0)")
    with pytest.raises(ContestantError, match=r"'dying' died while it was to get ready(?s:.*)ZeroDivisionError"):
        ContestantProcess(dying)


def test_death_in_a_turn_is_noticed_even_when_a_child_holds_the_pipe():
    dying = contestant(
        "dying",
        """
def set_up():
    def turn(steps):
        os.fork() or time.sleep(60)
        print("about to go", file=sys.stderr, flush=True)
        os._exit(3)
    return turn, {}
serve(set_up)
""",
    )
    start = time.monotonic()
    with ContestantProcess(dying) as process, pytest.raises(ContestantError, match=r"died(?s:.*)about to go"):
        process.turn(1)
    assert time.monotonic() - start < 20


def test_turn_after_death_is_an_error():
    dying = contestant("dying", "serve(lambda: (lambda steps: os._exit(3), {}))")
    with ContestantProcess(dying) as process:
        for _ in range(2):
            with pytest.raises(ContestantError, match="'dying'"):
                process.turn(1)


def test_hang_while_setting_up_ends_by_timeout():
    hanging = contestant("hanging", "print('waiting', file=sys.stderr, flush=True); time.sleep(60)")
    with pytest.raises(ContestantError, match=r"did not get ready within 2 s(?s:.*)waiting"):
        ContestantProcess(hanging, ready_timeout_s=2.0)


def test_hang_in_a_turn_ends_by_timeout():
    hanging = contestant("hanging", "serve(lambda: (lambda steps: time.sleep(60), {}))")
    plan = Plan(turn_timeout_s=0.3)
    with pytest.raises(ContestantError, match=r"did not finish a turn of 1 steps within 0.3 s"):
        measure([sleeper("sleeper", 1e-3), hanging], plan, report=lambda line: None)


def test_contestant_that_ignores_the_protocol_is_named():
    chatty = Contestant("chatty", sys.executable, ("-c", "print('hello'); import time; time.sleep(60)"))
    with pytest.raises(ContestantError, match="'chatty' was to get ready and wrote b'hello'"):
        ContestantProcess(chatty)


def test_missing_interpreter_is_an_error_that_names_the_contestant():
    with pytest.raises(ContestantError, match="'ghost' could not be started"):
        ContestantProcess(Contestant("ghost", "no/such/python", ()))


def test_closing_leaves_no_process_behind():
    parent = contestant(
        "parent",
        """
def set_up():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    return (lambda steps: (child.pid, 1.0)), {}
serve(set_up)
""",
    )
    with ContestantProcess(parent) as process:
        child = process.turn(1).steps
        assert Path(f"/proc/{child}").exists()
    deadline = time.monotonic() + 5
    while _running(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _running(child)


def test_closing_ends_workers_of_other_process_groups_too():
    parent = contestant(
        "parent",
        """
def set_up():
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    child = subprocess.Popen(command, process_group=0)
    return (lambda steps: (child.pid, 1.0)), {}
serve(set_up)
""",
    )
    with ContestantProcess(parent) as process:
        child = process.turn(1).steps
    deadline = time.monotonic() + 5
    while _running(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _running(child)


def test_restless_contestants_stand_still_between_turns(tmp_path: Path):
    log = tmp_path / "log"
    body = f"""
import threading
def count():
    with open({str(log)!r}, "ab", buffering=0) as file:
        while True:
            file.write(b".")
            time.sleep(0.001)
threading.Thread(target=count, daemon=True).start()
serve(lambda: ((lambda steps: time.sleep(0.05) or (steps, 0.05)), {{}}))
"""
    for restless in (True, False):
        log.write_bytes(b"")
        with ContestantProcess(replace(contestant("busy", body), restless=restless)) as process:
            for _ in range(2):
                before = log.stat().st_size
                process.turn(1)
                after = log.stat().st_size
                assert after > before
                time.sleep(0.1)
                assert (log.stat().st_size == after) is restless


def test_stopped_contestants_end_when_the_measurement_is_killed():
    measurement = f"""
import os, signal, sys
sys.path.insert(0, {str(ROOT)!r})
from benchmarks.turns import Contestant, ContestantProcess
body = "import os, sys; from benchmarks.turns import serve; serve(lambda: (lambda steps: (os.getpid(), 1.0), {{}}))"
process = ContestantProcess(Contestant("stopped", sys.executable, ("-c", body), restless=True))
print(process.turn(1).steps, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", measurement], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL
    deadline = time.monotonic() + 10
    while _running(int(done.stdout)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _running(int(done.stdout))


def test_a_contestant_can_be_given_several_settings():
    many = contestant(
        "many",
        """
from benchmarks.turns import serve_settings
def set_up(setting):
    return (lambda steps: (steps * setting["times"], 1.0)), {"digest": str(setting["times"])}
serve_settings(set_up)
""",
    )
    with ContestantProcess(many) as process:
        for times in (2, 3):
            process.set_up({"times": times})
            assert process.facts == {"digest": str(times)}
            assert process.turn(10).steps == 10 * times


def test_measurement_drops_the_warm_up_flips_the_order_and_finds_the_ratio(tmp_path: Path):
    log = tmp_path / "turns"
    contestants = [_logging(name, step_s, log) for name, step_s in (("slow", 2e-4), ("fast", 1e-4))]
    lines: list[str] = []
    found = measure(contestants, Plan(rounds=4, warmup_rounds=1, turn_s=0.02), report=lines.append)
    assert {name: len(rates) for name, rates in found.rates.items()} == {"slow": 4, "fast": 4}
    assert [line.split(":")[0].strip() for line in lines] == ["warm-up", *(f"round {n}/4" for n in range(1, 5))]
    assert " ".join(log.read_text().split()[-10:]) == "fast slow slow fast fast slow slow fast fast slow"
    assert found.rates["fast"][0] > found.rates["slow"][0]


def test_contestants_of_the_same_name_are_refused():
    with pytest.raises(ValueError, match="different names"):
        measure([sleeper("a", 1e-4), sleeper("a", 1e-4)], Plan())


def _logging(name: str, step_s: float, log: Path) -> Contestant:
    """A contestant that appends its name to a file every turn and sleeps through its steps."""
    return contestant(
        name,
        f"""
def turn(steps):
    with open({str(log)!r}, "a") as file:
        print({name!r}, file=file)
    time.sleep(steps * {step_s})
    return steps, steps * {step_s}
serve(lambda: (turn, {{}}))
""",
    )


def _running(pid: int) -> bool:
    """Whether there is such a process that is not just waiting to be reaped."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z" and os.getpid() != pid
