"""An environment that fails: the error says where, and by choice the run stops or the environment is made anew."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ResetNeeded

import raceway
from raceway.errors import EnvError
from tests.envs.python.faulty import NUMBERED, Faulty, actions, fault, faulty
from tests.envs.python.watching import children, wait_until

RAISED = {
    "raise": "ZeroDivisionError: environment number {env} divides by zero",
    "raise what cannot be pickled": "LockedUpError: locked up",
    "exit": "SystemExit: 3",
    "interrupt": "KeyboardInterrupt|SIGINT",
    "wrong shape": r"\(2,\)",
    "wrong dtype": "",
    "no observation": "",
    "no info": "",
    "four values": "",
}
"""What goes wrong in a step, and what is said of it."""


def assert_tells(error: EnvError, env: int, said: str) -> None:
    """The message has environment, worker, step and the traceback down to the line that failed."""
    assert re.search(rf"Environment {env}\b", str(error), re.IGNORECASE), error
    assert re.search(said.format(env=env), str(error)), error
    assert error.env == env
    assert isinstance(error, RuntimeError)


@pytest.mark.parametrize("env", [0, 3])
@pytest.mark.parametrize("name", [name for name in RAISED if name != "interrupt"])
def test_an_error_in_a_step_names_environment_and_cause(name: str, env: int) -> None:
    with faulty(lane="inline") as pool:
        pool.reset()
        pool.step(actions(4))
        with pytest.raises(EnvError) as raised:
            pool.step(actions(4, env, name))
    assert_tells(raised.value, env, RAISED[name])
    assert re.search(r"step 2\b", str(raised.value))


def test_in_this_process_ctrl_c_is_the_users_and_no_fault_of_the_environment() -> None:
    with faulty(lane="inline", on_error="restart") as pool:
        pool.reset()
        with pytest.raises(KeyboardInterrupt):
            pool.step(actions(4, 1, "interrupt"))
        assert pool.faults.tolist() == [0] * 4
        assert pool.reset()[0][:, 2].tolist() == [0] * 4


@pytest.mark.parametrize(("name", "env"), [("raise", 0), ("raise", 2), ("raise what cannot be pickled", 3)])
def test_an_error_in_another_process_comes_with_worker_step_and_traceback(name: str, env: int) -> None:
    with faulty() as pool:
        pool.reset()
        for _ in range(4):
            pool.step(actions(4))
        with pytest.raises(EnvError) as raised:
            pool.step(actions(4, env, name))
    assert_tells(raised.value, env, RAISED[name])
    assert raised.value.worker == env // 2
    assert re.search(rf"worker {env // 2}\b", str(raised.value), re.IGNORECASE)
    assert re.search(r"step 5\b", str(raised.value))
    assert "faulty.py" in str(raised.value)
    assert "_fault(name)" in str(raised.value)


@pytest.mark.parametrize("name", ["exit", "interrupt", "wrong shape", "no info", "four values"])
def test_other_errors_in_another_process_are_told_too(name: str) -> None:
    with faulty() as pool:
        pool.reset()
        with pytest.raises(EnvError) as raised:
            pool.step(actions(4, 1, name))
    assert_tells(raised.value, 1, RAISED[name])


@pytest.mark.parametrize("lane", ["inline", "process"])
def test_after_an_error_a_reset_begins_anew(lane: str) -> None:
    with faulty(lane=lane) as pool:
        pool.reset()
        with pytest.raises(EnvError):
            pool.step(actions(4, 2, "raise"))
        with pytest.raises(ResetNeeded):
            pool.step(actions(4))
        obs, _ = pool.reset()
        assert obs[:, 0].tolist() == [0, 1, 2, 3]
        assert pool.step(actions(4))[0][:, 2].tolist() == [1] * 4


@pytest.mark.parametrize("lane", ["inline", "process"])
def test_an_error_by_send_is_told_by_recv(lane: str) -> None:
    with faulty(lane=lane, batch_size=2) as pool:
        pool.reset()
        with pytest.raises(EnvError) as raised:  # noqa: PT012 (inline, send may tell)
            pool.send([0, fault("raise")], [1, 3])
            pool.recv(timeout=5)
        assert_tells(raised.value, 3, RAISED["raise"])


@pytest.mark.parametrize("lane", ["inline", "process"])
@pytest.mark.parametrize("name", ["raise", "raise what cannot be pickled"])
def test_an_error_in_a_reset(name: str, lane: str) -> None:
    with faulty(lane=lane) as pool:
        with pytest.raises(EnvError, match="reset") as raised:
            pool.reset(options={"env": 2, "fault": name})
        assert_tells(raised.value, 2, RAISED[name])


@pytest.mark.parametrize("env", [0, 1, 3])
@pytest.mark.parametrize("lane", ["inline", "process"])
def test_an_error_in_a_constructor_leaves_no_process_behind(lane: str, env: int) -> None:
    before = children()
    own = [{"constructor": "raise"} if each == env else {} for each in range(4)]
    with pytest.raises(EnvError) as raised, faulty(lane=lane, own=own):
        pass
    assert_tells(raised.value, env, RAISED["raise"])
    wait_until(lambda: children() <= before, 10)


def test_a_worker_that_dies_while_environments_are_made_is_told() -> None:
    before = children()
    start = time.perf_counter()
    with pytest.raises(EnvError, match=r"(?i)worker 1.*SIGKILL"), faulty(own=[{}, {}, {}, {"constructor": "kill"}]):
        pass
    assert time.perf_counter() - start < 10
    wait_until(lambda: children() <= before, 10)


@pytest.mark.parametrize("lane", ["inline", "process"])
def test_an_error_in_close_does_not_keep_the_others_from_closing(lane: str) -> None:
    before = children()
    with faulty(lane=lane, own=[{}, {"close_": "raise"}, {"close_": "exit"}, {}]) as pool:
        pool.reset()
    wait_until(lambda: children() <= before, 10)


def test_an_environment_that_hangs_in_close_is_not_waited_for() -> None:
    with faulty(own=[{"close_": "hang deaf"}, {}, {}, {}]) as pool:
        pool.reset()
        start = time.perf_counter()
        pool.close()
        assert time.perf_counter() - start < 6


@pytest.mark.parametrize("lane", ["inline", "process"])
@pytest.mark.parametrize("name", ["not a number", "no reward"])
def test_a_reward_that_is_no_number_is_passed_on_as_gymnasium_does(name: str, lane: str) -> None:
    with faulty(lane=lane) as pool:
        pool.reset()
        _, rewards, *_ = pool.step(actions(4, 1, name))
        assert np.isnan(rewards).tolist() == [False, True, False, False]


def test_what_environments_print_disturbs_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with faulty() as pool:
        pool.reset()
        for step in range(1, 4):
            obs, *_ = pool.step(np.full(4, fault("print")))
            assert obs[:, 2].tolist() == [step] * 4
    said = capfd.readouterr()
    assert said.out.count("out ") == said.err.count("err ") == 3 * 4 * 50_000


# --- environments that differ, or are none


@pytest.mark.parametrize("lane", ["inline", "process"])
def test_environments_with_other_spaces_are_refused(lane: str) -> None:
    from tests.envs.python.scripted import OBSERVATIONS, maker

    before = children()
    makers = [maker(), maker(), maker(observation=OBSERVATIONS["image"])]
    with pytest.raises(ValueError, match=r"(?i)environment 2 has another observation.*equal"):
        raceway.make(makers, 3, lane=lane, num_workers=2)
    wait_until(lambda: children() <= before, 10)


def _three() -> Any:
    return 3


@pytest.mark.parametrize("lane", ["inline", "process"])
def test_a_callable_that_makes_no_environment_is_told(lane: str) -> None:
    with pytest.raises((TypeError, EnvError), match=r"int.*(Env|environment)"):
        raceway.make(_three, 2, lane=lane)


# --- made anew


RESTARTED = ["raise", "raise what cannot be pickled", "exit", "wrong shape", "no observation", "no info"]


@pytest.mark.parametrize("lane", ["inline", "process"])
def test_by_choice_a_failed_environment_is_made_anew_and_its_episode_truncated(lane: str) -> None:
    with faulty(lane=lane, on_error="restart") as pool:
        pool.reset()
        for count, name in enumerate(RESTARTED, 1):
            pool.reset()
            pool.step(actions(4))
            obs, rewards, terminated, truncated, infos = pool.step(actions(4, 2, name))
            assert pool.faults.tolist() == [0, 0, count, 0]
            assert pool.faults.dtype == np.int64
            assert obs[:, 2].tolist() == [2, 2, 1, 2], name  # the last good one
            assert rewards.tolist() == [1, 1, 0, 1]
            assert truncated.tolist() == [False, False, True, False]
            assert not terminated.any()
            assert infos["_fault"].tolist() == [False, False, True, False]
            assert re.search(RAISED[name].format(env=2), infos["fault"][2])
            obs, rewards, _, truncated, _ = pool.step(actions(4))
            assert obs[2].tolist() == [2, 0, 0]  # a new one: its first episode
            assert not truncated.any()
            assert pool.step(actions(4))[0][:, 2].tolist() == [4, 4, 1, 4]


@pytest.mark.parametrize("lane", ["inline", "process"])
def test_a_failed_episode_has_its_last_good_observation_in_final_obs(lane: str) -> None:
    with faulty(lane=lane, on_error="restart", autoreset="same_step", record_episodes=True) as pool:
        pool.reset()
        for _ in range(3):
            pool.step(actions(4))
        obs, rewards, terminated, truncated, infos = pool.step(actions(4, 1, "raise"))
        assert obs[:, 2].tolist() == [4, 0, 4, 4]
        assert infos["final_obs"][1].tolist() == [1, 0, 3]
        assert (rewards.tolist(), truncated.tolist()) == ([1, 0, 1, 1], [False, True, False, False])
        assert not terminated.any()
        told = infos if "fault" in infos else infos["final_info"]
        assert "ZeroDivisionError" in told["fault"][1]
        assert told["_fault"].tolist() == [False, True, False, False]
        assert infos["episode"]["l"].tolist() in ([0, 3, 0, 0], [0, 4, 0, 0])
        assert infos["episode"]["r"].tolist() == [0, 3, 0, 0]
        assert pool.step(actions(4))[0][:, 2].tolist() == [5, 1, 5, 5]


@pytest.mark.parametrize("lane", ["inline", "process"])
def test_without_autoreset_a_failed_environment_waits_for_its_reset(lane: str) -> None:
    with faulty(lane=lane, on_error="restart", autoreset="disabled") as pool:
        pool.reset()
        _, _, _, truncated, _ = pool.step(actions(4, 3, "raise"))
        obs, _ = pool.reset(options={"reset_mask": truncated, "env": -1, "fault": "none"})
        assert obs[:, 2].tolist() == [1, 1, 1, 0]
        assert pool.step(actions(4))[0][:, 2].tolist() == [2, 2, 2, 1]


def test_by_send_and_recv_a_failed_environment_is_made_anew_too() -> None:
    with faulty(on_error="restart", batch_size=2) as pool:
        pool.reset()
        pool.send([fault("raise"), 0, 0, 0])
        seen: dict[int, bool] = {}
        for _ in range(2):
            *_, truncated, infos = pool.recv(timeout=5)
            seen |= dict(zip(infos["env_id"].tolist(), truncated.tolist(), strict=True))
        assert seen == {0: True, 1: False, 2: False, 3: False}
        assert pool.faults.tolist() == [1, 0, 0, 0]
        pool.step(actions(4))


@pytest.mark.parametrize("lane", ["inline", "process"])
def test_a_failed_reset_is_tried_again_with_a_new_environment(lane: str, tmp_path: Path) -> None:
    own = [{}, {}, {"once": str(tmp_path / "failed")}, {}]
    with faulty(lane=lane, on_error="restart", own=own) as pool:
        obs, _ = pool.reset(options={"env": 2, "fault": "raise"})
        assert obs[:, 1].tolist() == [0] * 4
        assert pool.faults.tolist() == [0, 0, 1, 0]
        pool.step(actions(4))


@pytest.mark.parametrize("lane", ["inline", "process"])
def test_an_environment_that_can_never_be_made_or_reset_ends_the_run(lane: str) -> None:
    with faulty(lane=lane, on_error="restart") as pool:
        with pytest.raises(EnvError) as raised:
            pool.reset(options={"env": 1, "fault": "raise"})
        assert_tells(raised.value, 1, RAISED["raise"])
    with pytest.raises(EnvError), faulty(lane=lane, on_error="restart", own=[{"constructor": "raise"}, {}, {}, {}]):
        pass


def test_the_number_of_workers_changes_nothing_about_a_restart() -> None:
    from tests.envs.python.failing_at_random import roll

    inline = roll(lane="inline")
    assert inline == roll(lane="process", num_workers=1) == roll(lane="process", num_workers=3)


def test_an_unknown_choice_is_refused() -> None:
    with pytest.raises(ValueError, match=r"on_error='retry'.*raise.*restart"):
        raceway.make(Faulty, 4, env_kwargs=NUMBERED, on_error="retry")
    wrong: list[Any] = [0, -1, "soon", float("nan")]
    for timeout in wrong:
        with pytest.raises((TypeError, ValueError), match="worker_timeout"):
            raceway.make(Faulty, 4, env_kwargs=NUMBERED, worker_timeout=timeout)
