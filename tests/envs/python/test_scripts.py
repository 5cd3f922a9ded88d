"""Pools in the places where people write code: plain scripts, notebooks, threads, programs with JAX."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.envs.python.scripts import run_file, run_python

PLAIN = '''
import os
import sys
import threading

import gymnasium
import numpy as np

import raceway

print("begins", flush=True)


class Mine(gymnasium.Env):
    """Adds up its actions, and a number that it is made with."""

    observation_space = gymnasium.spaces.Box(-99, 99, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(5)

    def __init__(self, start=0):
        self.start = start

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.sum = self.start
        return np.array([self.sum], np.float32), {}

    def step(self, action):
        self.sum += int(action)
        return np.array([self.sum], np.float32), 0.0, False, False, {}


def roll(target, **kwargs):
    pool = raceway.make(target, 3, num_workers=2, **kwargs)
    pool.reset()
    obs = pool.step(np.array([1, 2, 3]))[0]
    lane = pool.lane
    pool.close()
    return lane, obs[:, 0].astype(int).tolist()

'''


def test_a_plain_script_without_a_main_guard(tmp_path: Path) -> None:
    ended = run_file(
        tmp_path,
        PLAIN
        + """
start = 10
print(roll(Mine))
print(roll(lambda: Mine(start)))
print(roll([lambda each=each: Mine(each) for each in (20, 30, 40)]))
class Maker:
    def __call__(self):
        return Mine(50)
print(roll(Maker()))
gymnasium.register("Mine-v7", entry_point=Mine, kwargs={"start": 60})
print(roll("Mine-v7"))
print(roll("Mine-v7", start=70))
gymnasium.register("Mine-v8", entry_point="__main__:Mine")
print(roll("Mine-v8", start=80))
""",
    )
    assert (ended.code, ended.errors) == (0, ""), ended
    expected = [
        "begins",
        "('process', [1, 2, 3])",
        "('process', [11, 12, 13])",
        "('process', [21, 32, 43])",
        "('process', [51, 52, 53])",
        "('process', [61, 62, 63])",
        "('process', [71, 72, 73])",
        "('process', [81, 82, 83])",
    ]
    assert ended.output.splitlines() == expected


def test_a_module_beside_the_script_is_found(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text(PLAIN.replace('print("begins", flush=True)', ""))
    ended = run_file(tmp_path, "import beside\nprint(beside.roll(beside.Mine))")
    assert (ended.code, ended.output, ended.errors) == (0, "('process', [1, 2, 3])", ""), ended


def test_a_script_that_is_typed_in(tmp_path: Path) -> None:
    typed = PLAIN + "print(roll(Mine))\n"
    for arguments in (["-"], ["-c", "import sys; exec(sys.stdin.read())"]):
        ended = run_python(*arguments, typed=typed)
        assert (ended.code, ended.errors) == (0, ""), ended
        assert ended.output.splitlines() == ["begins", "('process', [1, 2, 3])"]


def test_cells_of_a_notebook() -> None:
    cells = PLAIN.split("\n\n\n")
    script = f"""
import code, sys
console = code.InteractiveConsole(locals={{"__name__": "__main__"}})
for cell in {[*cells, "print(roll(Mine))"]!r}:
    console.runcode(compile(cell, "<cell>", "exec"))
"""
    ended = run_python("-c", script)
    assert (ended.code, ended.errors) == (0, ""), ended
    assert ended.output.splitlines() == ["begins", "('process', [1, 2, 3])"]


def test_workers_outlive_the_thread_that_started_them_and_read_no_input(tmp_path: Path) -> None:
    script = (
        PLAIN
        + """
class Asking(Mine):
    def step(self, action):
        self.sum += len(sys.stdin.read())
        return super().step(action)

made = []
thread = threading.Thread(target=lambda: made.append(raceway.make(Asking, 3, num_workers=2)))
thread.start()
thread.join()
import time
time.sleep(0.3)
pool = made[0]
pool.reset()
print(pool.step(np.array([1, 2, 3]))[0][:, 0].tolist())
pool.close()
"""
    )
    path = tmp_path / "script.py"
    path.write_text(script)
    ended = run_python(str(path), typed="this is for the script alone")
    assert (ended.code, ended.errors) == (0, ""), ended
    assert ended.output.splitlines() == ["begins", "[1.0, 2.0, 3.0]"]


def test_within_a_program_that_runs_jax(tmp_path: Path) -> None:
    ended = run_file(
        tmp_path,
        PLAIN
        + """
import jax
import jax.numpy as jnp

class Telling(Mine):
    def step(self, action):
        obs, reward, terminated, truncated, info = super().step(action)
        return obs, float("jax" in sys.modules), terminated, truncated, info

double = jax.jit(lambda x: x @ x.T)
running = double(jnp.ones((300, 300)))
pool = raceway.make(Telling, 3, num_workers=2)
obs, _ = pool.reset()
for step in range(20):
    running = double(running / 300)
    obs, rewards, *_ = pool.step(np.asarray(jnp.ones(3, int)))
print(obs[:, 0].tolist(), rewards.tolist(), np.isfinite(running).all())
pool.close()
""",
    )
    assert (ended.code, ended.errors) == (0, ""), ended
    assert ended.output.splitlines() == ["begins", "[20.0, 20.0, 20.0] [0.0, 0.0, 0.0] True"]


@pytest.mark.parametrize("what", ["a lock", "an open file", "a generator"])
def test_a_callable_that_cannot_be_sent_to_a_worker_is_refused(what: str, tmp_path: Path) -> None:
    import threading

    import raceway
    from tests.envs.python.scripted import Scripted
    from tests.envs.python.watching import children

    before = children()
    with (tmp_path / "file").open("w") as file:
        held = {"a lock": threading.Lock(), "an open file": file, "a generator": iter(x for x in [1])}[what]

        def make() -> Scripted:
            assert held
            return Scripted()

        with pytest.raises((TypeError, ValueError), match=r"pickle.*lane=.inline") as raised:
            raceway.make(make, 2, lane="process")
        assert "environment" in str(raised.value) or "make" in str(raised.value)
        assert raceway.make(make, 2, lane="inline").reset(seed=0)
    assert children() <= before
