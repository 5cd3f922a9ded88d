"""What comes after something went wrong, and messages of every kind: each call gives what it should, and no other."""

from __future__ import annotations

import bdb
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import permutations
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded

import raceway
from raceway.envs.python.faults import hung_error, lost_error
from raceway.errors import EnvError
from raceway.messages import traceback_of
from tests.envs.python.faulty import NUMBERED, actions, fault, faulty
from tests.envs.python.odd import Keeping, Telling, Unsteady
from tests.envs.python.scripted import Counting
from tests.envs.python.scripts import run_file

LANES = ["inline", "process"]


# --- after an error


@pytest.fixture(scope="module")
def shared() -> Iterator[Any]:
    with faulty(batch_size=1) as pool:
        yield pool


@pytest.fixture(params=LANES)
def either(request: pytest.FixtureRequest, shared: Any) -> Iterator[Any]:
    """A pool of either lane."""
    if request.param == "process":
        yield shared
    else:
        with faulty(lane="inline", batch_size=1) as pool:
            yield pool


class Refusing:
    """A runner that runs only if it is told to."""

    def open(self, env: Any, first: int) -> None:
        self.first = first

    def run(self, progress: int, runs: bool) -> int:
        if not runs:
            raise LookupError("nothing to run")
        return progress + self.first


def assert_is_right(pool: Any) -> None:
    """Nothing is left of what went wrong before."""
    assert pool.get_attr("number") == (0, 1, 2, 3)
    obs, infos = pool.reset(options={"env": 1, "fault": "wait"})  # slow, so that nobody is done early by luck
    assert obs[:, 0].tolist() == [0, 1, 2, 3]
    assert obs[:, 1].tolist() == list(pool.get_attr("episode"))
    assert obs[:, 2].tolist() == [0] * 4
    assert infos["_pid"].all()
    pool.set_attr("mark", ["a", "b", "c", "d"])
    for step in (1, 2):
        assert pool.step(actions(4))[0][:, 2].tolist() == [step] * 4
    assert pool.get_attr("mark") == ("a", "b", "c", "d")


WRONG: dict[str, tuple[type[Exception], Callable[[Any], Any]]] = {
    "call": (AttributeError, lambda pool: pool.call("nosuch")),
    "set_attr": (AttributeError, lambda pool: pool.set_attr("unwrapped", 3)),
    "reset": (EnvError, lambda pool: pool.reset(options={"env": 2, "fault": "raise"})),
    "step": (EnvError, lambda pool: pool.step(actions(4, 1, "raise"))),
    "run": (LookupError, lambda pool: pool.run((False,), [1, 1])),
}


@pytest.mark.parametrize("name", WRONG)
def test_after_an_error_in_a_call_the_next_ones_give_their_own_results(shared: Any, name: str) -> None:
    kind, call = WRONG[name]
    shared.reset()
    shared.install(Refusing())
    for _ in range(2):
        if name in ("step", "run"):
            shared.reset()
        with pytest.raises(kind):
            call(shared)
    if name == "run":
        assert shared.run((True,), [10, 20]) == [10, 22]
    assert_is_right(shared)


def test_after_a_failed_reset_all_that_it_was_for_must_be_reset(either: Any) -> None:
    either.reset()
    either.step(actions(4))
    with pytest.raises(EnvError):
        either.reset(options={"env": 2, "fault": "raise"})
    with pytest.raises(ResetNeeded):  # the others' observations are of episodes that are over
        either.reset(options={"reset_mask": np.arange(4) == 2})
    assert either.reset()[0][:, 2].tolist() == [0] * 4


@pytest.mark.parametrize("lane", LANES)
def test_a_failed_reset_does_not_use_up_the_seeds(lane: str) -> None:
    drawn = []
    for fails in (True, False):
        with faulty(lane=lane, seed=5) as pool:
            if fails:
                with pytest.raises(EnvError):
                    pool.reset(options={"env": 0, "fault": "raise"})
            pool.reset()
            drawn.append([each.bit_generator.state["state"]["state"] for each in pool.get_attr("np_random")])
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("lane", LANES)
def test_failed_resets_do_not_add_up_over_good_episodes(lane: str, tmp_path: Path) -> None:
    pool = raceway.make(Unsteady, 1, lane=lane, num_workers=1, on_error="restart", file=str(tmp_path / "count"))
    pool.reset()
    for _ in range(70):
        pool.step([0])
    assert pool.faults[0] > 11  # so many in a row would end it
    pool.close()


def test_an_environment_that_never_begins_says_so_once() -> None:
    with faulty(lane="inline", on_error="restart") as pool, pytest.raises(EnvError) as raised:
        pool.reset(options={"env": 1, "fault": "raise"})
    assert str(raised.value).count("without one good step in between") == 1
    assert "on_error" not in str(raised.value)  # it is "restart"


def test_whoever_leaves_the_debugger_wants_no_new_environment() -> None:
    class Watched(Counting):
        def step(self, action: Any) -> Any:
            raise bdb.BdbQuit

    pool = raceway.make(Watched, 2, lane="inline", on_error="restart")
    pool.reset()
    with pytest.raises(bdb.BdbQuit):
        pool.step([0, 0])
    assert pool.faults.tolist() == [0, 0]
    pool.close()


# --- send and recv


def test_environments_are_sent_in_any_order() -> None:
    pool = raceway.make(Counting, 8, lane="process", num_workers=2, batch_size=3)
    pool.reset()
    steps = np.zeros(8)
    for order in [*permutations([0, 5, 1]), *permutations([6, 2, 7])]:
        time.sleep(0.01)  # the workers sleep now
        pool.send([0, 0, 0], list(order))
        obs, *_, infos = pool.recv(timeout=5)
        steps[list(order)] += 1
        assert infos["env_id"].tolist() == sorted(order)
        assert obs[:, 2].tolist() == steps[sorted(order)].tolist()
    pool.close()


@pytest.mark.parametrize("lane", LANES)
def test_an_error_by_recv_leaves_the_others_their_infos(lane: str) -> None:
    with faulty(lane=lane, batch_size=2, autoreset="same_step", own=[{}, {"length": 1}, {}, {"length": 1}]) as pool:
        pool.reset()
        pool.send([0], [1])
        with pytest.raises(TimeoutError):
            pool.recv(timeout=0.2)  # it is done, and nobody has it yet
        pool.send([fault("raise")], [2])
        with pytest.raises(EnvError, match="Environment 2"):
            pool.recv(timeout=5)
        pool.send([0], [3])
        obs, _, terminated, _, infos = pool.recv(timeout=5)
        assert infos["env_id"].tolist() == [1, 3]
        assert obs.tolist() == [[1, 1, 0], [3, 1, 0]]
        assert terminated.all()
        assert [each.tolist() for each in infos["final_obs"]] == [[1, 0, 1], [3, 0, 1]]
        assert infos["final_info"]["_pid"].all()


def test_an_environment_that_failed_is_never_received(shared: Any) -> None:
    for _ in range(60):
        shared.reset()
        shared.send([fault("raise"), 0], [0, 2])
        received, errors = [], []
        for _ in range(2):
            try:
                received += shared.recv(timeout=5)[4]["env_id"].tolist()
            except EnvError as error:
                errors.append(error.env)
        assert (received, errors) == ([2], [0])
        time.sleep(0.001)
        shared.send([0], [3])
        assert shared.recv(timeout=5)[4]["env_id"].tolist() == [3]
        with pytest.raises(ResetNeeded, match="environment 0"):
            shared.send([0], [0])


def test_after_an_error_by_recv_the_others_are_received(either: Any) -> None:
    either.reset()
    either.send(actions(4, 1, "raise"))
    received, errors = [], 0
    for _ in range(4):
        try:
            received += either.recv(timeout=5)[4]["env_id"].tolist()
        except EnvError:
            errors += 1
    assert (sorted(received), errors) == ([0, 2, 3], 1)


def test_a_call_that_fails_meanwhile_does_not_hide_an_error_by_recv() -> None:
    with faulty(batch_size=1) as pool:
        pool.reset()
        pool.send([fault("raise")], [0])
        time.sleep(0.1)
        told: list[type[BaseException]] = []
        with pytest.raises((AttributeError, EnvError)) as raised:
            pool.call("nosuch")
        told.append(raised.type)
        with pytest.raises((RuntimeError, TimeoutError)) as later:
            pool.recv(timeout=1)
        told.append(later.type)
        assert EnvError in told
        pool.reset()


def test_a_reset_drops_the_errors_of_what_it_drops(either: Any) -> None:
    either.reset()
    for name in ("none", "wait"):
        either.send([fault("raise"), 0, fault(name), fault("raise")])
        assert either.reset()[0][:, 2].tolist() == [0] * 4
        assert either.step(actions(4))[0][:, 2].tolist() == [1] * 4


# --- what is sent to workers


@pytest.fixture(scope="module")
def keeping() -> Iterator[Any]:
    pool = raceway.make(Keeping, 4, lane="process", num_workers=2, env_kwargs=NUMBERED)
    pool.reset()
    yield pool
    pool.close()


def test_an_array_in_options_is_the_environments_to_write_to(keeping: Any) -> None:
    mine = np.zeros(3)
    keeping.reset(options={"array": mine, "reset_mask": np.array([True, False, True, False])})
    _, infos = keeping.reset(options={"array": mine, "reset_mask": np.array([True, False, True, False])})
    assert infos["array"].tolist() == [[1] * 3, [0] * 3, [1] * 3, [0] * 3]
    assert mine.tolist() == [0] * 3


def test_an_array_as_an_attribute_is_the_environments_to_write_to(keeping: Any) -> None:
    mine = [np.full(3, env) for env in range(4)]
    keeping.set_attr("weights", mine)
    for times in (1, 2):
        grown = keeping.call("grown", "weights")
        assert [each.tolist() for each in grown] == [[env + times] * 3 for env in range(4)]
    assert [each.tolist() for each in mine] == [[env] * 3 for env in range(4)]


def test_an_observation_that_is_given_back_stays_what_it_was(keeping: Any) -> None:
    keeping.reset()
    for _ in range(3):
        obs = keeping.step([0] * 4)[0]
    expected = obs.copy()
    keeping.set_attr("goal", list(obs))
    keeping.set_attr("own", list(obs))
    keeping.call("grown", "own")
    assert obs.tolist() == expected.tolist()
    del obs
    for _ in range(6):
        keeping.step([0] * 4)
        assert [each.tolist() for each in keeping.get_attr("goal")] == expected.tolist()


def test_classes_of_the_main_script_are_sent_to_workers(tmp_path: Path) -> None:
    ended = run_file(
        tmp_path,
        """
        import raceway

        class Goal:
            def __init__(self, far):
                self.far = far

        if __name__ == "__main__":
            pool = raceway.make("tests.envs.python.odd:Keeping", 2, lane="process", num_workers=2)
            pool.reset(options={"array": 0, "goal": Goal(2)})
            pool.set_attr("goal", [Goal(3), Goal(4)])
            print([each.far for each in pool.get_attr("goal")])
            pool.set_attr("double", lambda number: 2 * number)
            print(pool.call("double", 4), pool.step([0, 0])[0][:, 2].tolist())
            pool.close()
        """,
    )
    assert (ended.code, ended.errors) == (0, ""), ended
    assert ended.output.splitlines() == ["[3, 4]", "(8, 8) [1.0, 1.0]"]


# --- what workers send


@pytest.fixture(scope="module")
def telling() -> Iterator[Any]:
    pool = raceway.make(Telling, 4, lane="process", num_workers=2, batch_size=1, env_kwargs=NUMBERED)
    yield pool
    pool.close()


def test_infos_that_cannot_be_read_are_an_error_and_nothing_else_is_lost(telling: Any) -> None:
    for _ in range(2):
        telling.reset()
        assert telling.step([0] * 4)[0][:, 2].tolist() == [1] * 4
        telling.set_attr("garbles", [False, False, False, True])
        with pytest.raises(
            EnvError, match=r"(?s)^Environment 3 .*worker 1 .*info\['error'\].*UnreadableError.*step 2 "
        ):
            telling.step([0] * 4)
        telling.set_attr("garbles", False)
        with pytest.raises(ResetNeeded):
            telling.step([0] * 4)
    obs, infos = telling.reset()
    assert (obs[:, 2].tolist(), infos) == ([0] * 4, {})
    assert "error" not in telling.step([0] * 4)[4]


def test_a_result_that_cannot_be_read_is_an_error_and_the_next_is_right(telling: Any) -> None:
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"(?s)cannot be read.*UnreadableError"):
            telling.call("told")
        assert telling.get_attr("number") == (0, 1, 2, 3)


@pytest.mark.parametrize("lane", LANES)
def test_an_environments_own_info_named_fault_is_no_fault(lane: str, telling: Any) -> None:
    pool = telling if lane == "process" else raceway.make(Telling, 4, lane=lane)
    pool.reset()
    for step in range(1, 4):
        infos = pool.step([0] * 4)[4]
        assert infos["fault"].tolist() == [step % 2 == 0] * 4
    assert pool.faults.tolist() == [0] * 4


def test_in_training_an_environments_own_info_named_fault_is_no_fault() -> None:
    from tests.training.small_runs import collected

    for lane in LANES:
        ((_, episodes),) = collected(Telling, rounds=1, lane=lane, collector="central")
        assert episodes.faults == type(episodes.faults)(), lane


def _raised(text: str) -> Exception:
    try:
        try:
            raise KeyError("first")
        except KeyError as error:
            raise RuntimeError(text) from error
    except RuntimeError as error:
        return error


def test_a_traceback_is_cut_before_millions_of_lines_are_formatted(monkeypatch: pytest.MonkeyPatch) -> None:
    short, long = _raised("why"), _raised("ab\n" * 3_000_000)
    assert traceback_of(short, 10_000) == "".join(traceback.format_exception(short)).rstrip()
    monkeypatch.setattr(traceback, "format_exception", None)
    said = traceback_of(long, 10_000)
    assert len(said) <= 10_000
    parts = (
        "KeyError: 'first'",
        "direct cause",
        "raise RuntimeError(text)",
        "RuntimeError: ab",
        "(9,000,000 characters)",
    )
    places = [said.index(part) for part in parts]
    assert places == sorted(places)


def test_a_pool_that_restarts_is_not_told_to_restart() -> None:
    for restarts in (False, True):
        gone = lost_error("It", 0, range(2), "killed", None, restarts=restarts)
        hung = hung_error("It", 0, 1, 0, 5.0, restarts=restarts)
        assert ["on_error" in str(each) for each in (gone, hung)] == [not restarts] * 2


class Returning(gymnasium.Env[Any, Any]):
    """Returns what it is told to."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, of_step: Any = None, of_reset: Any = None) -> None:
        self.of_step = of_step
        self.of_reset = of_reset

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return (np.zeros(2, np.float32), {}) if self.of_reset is None else self.of_reset

    def step(self, action: Any) -> Any:
        return self.of_step


OBS = np.zeros(2, np.float32)


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ({"of_step": (OBS, "x", False, False, {})}, r"step\(\) gave the reward 'x', which is not a number"),
        (
            {"of_step": (OBS, 1.0, False, {})},
            r"step\(\) returned 4 values, where Gymnasium expects 5: observation, rew",
        ),
        ({"of_step": OBS}, r"step\(\) returned a ndarray, where Gymnasium expects 5"),
        ({"of_step": None}, r"step\(\) returned None, where Gymnasium expects 5"),
        ({"of_step": (np.zeros(3, np.float32), 1.0, False, False, {})}, r"the observation has shape \(3,\)"),
        ({"of_reset": OBS}, r"reset\(\) returned a ndarray, where Gymnasium expects 2: observation, info"),
    ],
    ids=["text", "old API", "no tuple", "None", "shape", "reset"],
)
@pytest.mark.parametrize("lane", ["inline", "process"])
def test_what_cannot_be_used_is_told_without_a_traceback_of_ours(lane: Any, returned: Any, said: str) -> None:
    with closing(raceway.make(Returning, 1, lane=lane, **returned)) as pool:
        if "of_step" in returned:
            pool.reset()
        with pytest.raises(EnvError, match=said) as raised:
            pool.step([0]) if "of_step" in returned else pool.reset()
    assert "Traceback" not in str(raised.value)
