"""What ends half-way: workers killed at the worst moment, Ctrl-C at any, starts that fail, states taken meanwhile."""

from __future__ import annotations

import copy
import gc
import os
import signal
import sys
import time
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ResetNeeded

import raceway
from raceway.envs.python import crew, python_pool
from raceway.errors import EnvError
from raceway.interpreter import FreshProcess
from raceway.training.collector import Collector
from raceway.training.programs import build, training_sampler
from tests.envs.gymnasium_twin import assert_same
from tests.envs.python.faulty import NUMBERED, Faulty, actions, fault, faulty
from tests.envs.python.odd import InPlace, Listing, Unwilling
from tests.envs.python.scripted import Counting
from tests.envs.python.scripts import running
from tests.envs.python.walks import Roller
from tests.envs.python.watching import children, grown, holdings, wait_until
from tests.training.small_runs import set_up

LANES = ["inline", "process"]

# --- workers killed


def test_a_worker_killed_before_it_told_what_it_had_done_loses_nobody() -> None:
    with faulty(on_error="restart", batch_size=4) as pool:
        pool.reset()
        board, pid = pool._board, pool.worker_pids[0]
        beats = int(board.beats[0, 0])
        pool.send([0, fault("hang"), 0, 0])
        wait_until(lambda: board.beats[0, 0] > beats and board.beats[0, 1] == 1, 5)
        os.kill(pid, signal.SIGSTOP)
        board.pending[:2] = 0  # as if its step were done, and not told yet
        board.finished[:2] = 0
        os.kill(pid, signal.SIGKILL)
        *_, truncated, infos = pool.recv(timeout=10)
        assert infos["env_id"].tolist() == [0, 1, 2, 3]
        assert truncated.tolist() == [True, True, False, False]
        pool.send(actions(4))
        assert pool.recv(timeout=10)[0][:, 2].tolist() == [0, 0, 2, 2]


@pytest.mark.parametrize("episode_seeds", [False, True])
def test_a_worker_killed_in_a_masked_reset_takes_no_other_environment_along(
    episode_seeds: bool, tmp_path: Path
) -> None:
    own = [each | {"once": str(tmp_path / "killed")} for each in NUMBERED]
    given: dict[str, Any] = {"num_workers": 2, "on_error": "restart", "episode_seeds": episode_seeds}
    pool: Any = python_pool(Faulty, 4, env_kwargs=own, **given)
    pool.reset(seed=1)
    for _ in range(3):
        pool.step(actions(4))
    mask = np.array([True, False, True, False])
    obs, _ = pool.reset(options={"env": 2, "fault": "kill", "reset_mask": mask})
    assert pool.restarts == 1
    assert obs[:, 2].tolist() == [0, 3, 0, 3]
    obs, rewards, _, truncated, infos = pool.step(actions(4))
    if episode_seeds:  # it was played again
        assert obs[:, 2].tolist() == [1, 4, 1, 4]
    else:
        assert "SIGKILL" in infos["fault"][3]
        assert (obs[:, 2].tolist(), rewards.tolist()) == ([1, 4, 1, 3], [1, 1, 1, 0])
    assert truncated.tolist() == [False, False, False, not episode_seeds]
    assert pool.faults.tolist() == [0, 0, 0, int(not episode_seeds)]
    assert pool.step(actions(4))[0][:, 2].tolist() == [2, 5, 2, 5 if episode_seeds else 0]
    pool.close()


@pytest.mark.parametrize("autoreset", ["next_step", "same_step"])
def test_observations_of_no_fixed_shape_outlive_the_worker(autoreset: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pool = raceway.make(Listing, 2, lane="process", num_workers=2, on_error="restart", autoreset=autoreset)
    pool.reset()
    for _ in range(2):
        pool.step([0, 0])
    obs, _, _, truncated, infos = pool.step([0, 1])
    assert truncated.tolist() == [False, True]
    if autoreset == "same_step":
        assert infos["final_obs"][1] == (0, 1, 2)
        assert obs == ((0, 1, 2, 3), (0,))
    else:
        assert obs == ((0, 1, 2, 3), (0, 1, 2))
        assert pool.step([0, 0])[0] == ((0, 1, 2, 3, 4), (0,))
    pool.close()


def test_the_time_of_a_worker_is_counted_for_each_of_its_environments() -> None:
    pool = raceway.make(Counting, 8, lane="process", num_workers=1, worker_timeout=0.7)
    pool.reset()
    start = time.perf_counter()
    assert pool.step([150] * 8)[0][:, 2].tolist() == [1] * 8
    assert time.perf_counter() - start > 1
    pool.close()


# --- Ctrl-C

INTERRUPTED = """
    import signal, sys
    from pathlib import Path
    import numpy as np
    from gymnasium.error import ResetNeeded
    import raceway
    from raceway.errors import EnvError
    from tests.envs.python.odd import Interrupting

    def made(**given):
        numbers = [{"number": env} for env in range(4)]
        pool = raceway.make(Interrupting, 4, lane="process", num_workers=2, env_kwargs=numbers, **given)
        pool.reset()
        return pool

    def told(call):
        try:
            return call()
        except (KeyboardInterrupt, ResetNeeded, EnvError) as error:
            return type(error).__name__

    def masked():
        return pool.reset(options={"reset_mask": np.array([True, True, False, True])})

    def afterwards():
        print(told(lambda: pool.step([0] * 4)), told(lambda: pool.send([0], [2])), told(masked))
        print(told(lambda: pool.reset()[0][:, 2].tolist()))
        obs, *_, infos = pool.step([0] * 4)
        print(obs[:, 2].tolist(), infos)
        pool.close()
"""

AFTERWARDS = ["ResetNeeded ResetNeeded ResetNeeded", "[0.0, 0.0, 0.0, 0.0]", "[1.0, 1.0, 1.0, 1.0] {}"]


def test_after_ctrl_c_in_a_quick_step_only_a_whole_reset_goes_on() -> None:
    script = f"""{INTERRUPTED}
    pool = made()
    pool.step([0] * 4)
    print(told(lambda: pool.step([0, 0, 0, 1])))
    afterwards()
    """
    with running(script) as started:
        code, output, errors = started.end(20)
        assert (code, errors) == (0, "")
        assert output.splitlines() == ["KeyboardInterrupt", *AFTERWARDS]


def test_after_ctrl_c_while_a_worker_comes_back_a_reset_goes_on(tmp_path: Path) -> None:
    script = f"""{INTERRUPTED}
    import os
    file = Path({str(tmp_path / "trouble")!r})
    for trouble in ("none", "exit"):
        pool = made(on_error="restart", trouble=str(file))
        pool.step([0] * 4)
        file.write_text("interrupt")
        os.kill(pool.worker_pids[0], signal.SIGKILL)
        print(told(lambda: pool.step([0] * 4)))
        file.write_text(trouble)
        if trouble == "none":
            afterwards()
        else:
            print(told(pool.reset), told(pool.reset), told(lambda: pool.step([0] * 4)))
            pool.close()
        file.unlink()
    """
    with running(script) as started:
        code, output, errors = started.end(20)
        assert (code, errors) == (0, "")
        lost = ["KeyboardInterrupt", "EnvError EnvError EnvError"]
        assert output.splitlines() == ["KeyboardInterrupt", *AFTERWARDS, *lost]


def test_in_this_process_only_a_whole_reset_goes_on_after_ctrl_c() -> None:
    with faulty(lane="inline") as pool:
        pool.reset()
        with pytest.raises(KeyboardInterrupt):
            pool.step(actions(4, 2, "interrupt"))  # two have stepped, two have not
        with pytest.raises(ResetNeeded):
            pool.step(actions(4))
        with pytest.raises(ResetNeeded):
            pool.reset(options={"reset_mask": np.arange(4) == 2})
        pool.reset()
        assert pool.step(actions(4))[0][:, 2].tolist() == [1] * 4


# --- states


def in_place(lane: str, **kwargs: Any) -> Any:
    given: dict[str, Any] = {"num_workers": 2, "autoreset": "same_step", "on_error": "restart", "kwargs": kwargs}
    pool = python_pool(InPlace, 4, lane=lane, episode_seeds=True, **given)
    pool.reset(seed=1)
    return pool


STILL = np.zeros((4, 2), np.float32)


@pytest.mark.parametrize("lane", LANES)
def test_a_state_does_not_change_with_the_environments_that_share_its_arrays(lane: str) -> None:
    pool = in_place(lane)
    pool.step(STILL)
    state = pool.state()
    before = copy.deepcopy(state)
    for _ in range(2):
        pool.step(STILL)
        assert_same(state, before)
    for _ in range(2):
        assert pool.set_state(state) == []
        for place in (2, 3):
            assert pool.step(STILL)[0].tolist() == [[place] * 2] * 4
        assert_same(state, before)
    pool.close()


def test_an_environment_that_keeps_the_array_of_its_state_goes_on_after_its_worker_is_killed() -> None:
    pool = in_place("process")
    pool.install(Roller())
    progress = [0, 0]
    for rounds in (1, 2, 3):
        obs, ended = pool.empty((2, 4, 2), np.float64), pool.empty((2, 4), np.bool_)
        pids = pool.empty((4,), np.int64)
        progress = pool.run((np.stack([STILL] * 2), obs, ended, pids), progress)
        assert obs[:, :, 0].tolist() == [[2 * rounds - 1] * 4, [2 * rounds] * 4]
        pool.record(np.stack([STILL] * 2), ended)
        os.kill(pids[3], signal.SIGKILL)
    assert pool.restarts == 2
    assert pool.faults.tolist() == [0] * 4
    pool.close()


def test_a_restored_episode_is_not_cut_off_for_one_that_was_lost_before() -> None:
    pool = in_place("process", drifts=True)
    pool.step(STILL)
    state, expected = pool.state(), pool.step(STILL)[0].copy()
    os.kill(pool.worker_pids[0], signal.SIGKILL)
    time.sleep(0.05)
    pool.get_attr("place")  # its worker comes back, the episodes do not
    assert pool.restarts == 1
    assert pool.set_state(state) == []
    obs, _, _, truncated, infos = pool.step(STILL)
    assert (truncated.tolist(), infos) == ([False] * 4, {})
    assert obs.tolist() == expected.tolist()
    pool.close()


# --- starts that fail


@pytest.mark.alone
def test_workers_that_cannot_all_be_started_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[FreshProcess] = []

    def failing(*args: Any, **kwargs: Any) -> Any:
        if len(started) % 3 == 2:
            started.clear()
            raise OSError("no more processes")
        started.append(FreshProcess(*args, **kwargs))
        return started[-1]

    def refuse() -> None:
        with pytest.raises(OSError, match="no more processes"):
            raceway.make(Counting, 3, lane="process", num_workers=3)

    monkeypatch.setattr(crew, "FreshProcess", failing)
    refuse()
    gc.collect()
    before = holdings()
    refuse()
    gc.collect()
    assert not grown(before)


def test_a_worker_that_cannot_start_is_told_as_such() -> None:
    module = ModuleType("only_in_this_process")
    exec("def make():\n    raise AssertionError", module.__dict__)
    sys.modules[module.__name__] = module
    try:
        with pytest.raises(EnvError, match=r"(?s)A worker of .*ModuleNotFoundError.*only_in_this_process") as raised:
            raceway.make(module.make, 2, lane="process", num_workers=2)
    finally:
        del sys.modules[module.__name__]
    assert "-1" not in str(raised.value).splitlines()[0]


@pytest.mark.parametrize("collector", ["worker", "central"])
def test_a_collector_that_cannot_be_opened_leaves_no_worker_behind(collector: str) -> None:
    home = os.getpid()
    setup = set_up(lambda: Unwilling(home), lane="process", collector=collector)
    training = build(setup, None)
    before = children()
    opened = Collector(lambda env_args, purpose: training_sampler(setup, training.layout))
    with pytest.raises(EnvError, match="not here") as raised:
        opened.open()
    wait_until(lambda: children() <= before, 10)
    assert raised.value.__traceback__ is not None  # who keeps it, keeps all that was half made
