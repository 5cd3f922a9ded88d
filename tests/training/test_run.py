"""A whole run: the folder it leaves, what can be done with it, and how it ends when something is wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import raceway
from raceway.errors import SettingError, UserError
from raceway.graph import ReactionError
from raceway.training.outcome import Run
from tests.training.probes import Everything, Probe
from tests.training.small_runs import SMALL


def train(env: Any, directory: Path, **settings: Any) -> Run:
    quiet = {"directory": str(directory), "quiet": True}
    return raceway.train(env, **{**SMALL, "total_steps": 32 * 6, "log": quiet, **settings})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One with evaluation in its own process."""
    directory = tmp_path_factory.mktemp("runs")
    return train("CartPole-v1", directory, total_steps=32 * 40, evaluation={"times": 4, "episodes": 3})


def rows_of(run: Run) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run.directory / "metrics.jsonl").read_text().splitlines()]


def test_the_folder_has_everything(run: Run) -> None:
    names = {path.name for path in run.directory.iterdir()}
    assert names >= {"config.json", "system.json", "metrics.jsonl", "chain.jsonl"}
    assert names >= {"graph.svg", "tensorboard", "best", "final"}
    assert json.loads((run.directory / "config.json").read_text())["num_envs"] == 4
    assert (run.directory / "graph.svg").read_text().startswith("<svg")
    assert any((run.directory / "tensorboard").iterdir())


def test_every_round_is_in_the_chain(run: Run) -> None:
    lines = [json.loads(line) for line in (run.directory / "chain.jsonl").read_text().splitlines()]
    assert [line["round"] for line in lines] == list(range(40))
    assert [line["lag"] for line in lines] == [0] + [1] * 39
    assert lines[-1]["sha256"] == run.digest


def test_metrics_tell_of_training_episodes_time_and_evaluation(run: Run) -> None:
    rows = rows_of(run)
    names = set().union(*rows)
    assert names >= {"step", "lag", "train/policy_loss", "train/entropy", "episode/return", "time/steps_per_second",
                     "time/collect", "time/learn", "time/wait", "evaluation/return"}  # fmt: skip
    assert rows[-1]["evaluation/return"] == run.evaluation.mean if run.evaluation else False
    assert all(row["lag"] <= 1 for row in rows if "lag" in row)


def test_the_run_tells_what_it_did(run: Run) -> None:
    assert run.steps == 32 * 40
    assert run.seconds > 0
    assert run.evaluation is not None
    assert len(run.evaluation.returns) == 3
    assert run.best_return is not None
    assert run.best_return >= run.evaluation.mean


def test_a_policy_acts_on_one_observation_and_on_many(run: Run) -> None:
    policy = raceway.load(run.directory)
    assert policy.env == "CartPole-v1"
    one = policy.act(np.zeros(4, np.float32))
    assert one in (0, 1)
    many = policy.act(np.zeros((5, 4), np.float32))
    assert many.shape == (5,)
    assert (many == one).all()
    with pytest.raises(ValueError, match="neither one of"):
        policy.act(np.zeros(3))


def test_drawn_actions_vary_and_greedy_ones_do_not(run: Run) -> None:
    policy = raceway.load(run.directory, "final")
    obs = np.zeros((64, 4), np.float32)
    assert len({int(a) for a in policy.act(obs)}) == 1
    assert len({int(a) for a in policy.act(obs, greedy=False)}) == 2


def test_an_evaluation_can_be_repeated_to_the_bit(run: Run) -> None:
    first = raceway.evaluate(run.directory, episodes=5, which="final")
    assert first == raceway.evaluate(run.directory, episodes=5, which="final")
    assert len(first.returns) == 5


def test_a_policy_plays_in_gymnasiums_own_environment(run: Run) -> None:
    policy = raceway.load(run.directory)
    env = gymnasium.make("CartPole-v1")
    obs, _ = env.reset(seed=1)
    for _ in range(10):
        obs, _, terminated, truncated, _ = env.step(policy.act(obs))
        if terminated or truncated:
            break


def test_two_runs_have_the_same_chain_and_policy(run: Run, tmp_path: Path) -> None:
    again = train("CartPole-v1", tmp_path, total_steps=32 * 40, evaluation={"enabled": False}, num_workers=1)
    assert (again.directory / "chain.jsonl").read_text() == (run.directory / "chain.jsonl").read_text()
    ours, theirs = (raceway.load(each.directory, "final").weights.params for each in (run, again))
    np.testing.assert_array_equal(ours, theirs)


def test_infos_are_logged(tmp_path: Path) -> None:
    rows = rows_of(train("HalfCheetah-v5", tmp_path, evaluation={"enabled": False}))
    assert {"info/x_velocity", "info/reward_ctrl"} <= set(rows[-1])


@pytest.mark.parametrize(
    "action",
    [
        "discrete",
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("box", "multi_discrete", "multi_binary")),
    ],
)
def test_environments_of_the_users_own(tmp_path: Path, action: str) -> None:
    run = train(partial(Everything, action), tmp_path, evaluation={"times": 2, "episodes": 2})
    policy = raceway.load(run.directory)
    env = Everything(action)
    obs, info = env.reset(seed=3)
    env.step(policy.act(obs, action_mask=info.get("action_mask")))
    assert "info/height" in rows_of(run)[0]


def test_a_network_of_the_users_own(tmp_path: Path) -> None:
    import jax
    import jax.numpy as jnp

    def init(key: Any, obs: Any) -> Any:
        return {"w": 0.1 * jax.random.normal(key, (obs.shape[-1], 3))}

    def apply(params: Any, obs: Any) -> Any:
        out = jnp.tanh(obs) @ params["w"]
        return out[:, :2], out[:, 2]

    run = train("CartPole-v1", tmp_path, network=(init, apply), evaluation={"times": 2, "episodes": 2})
    assert run.evaluation is not None
    with pytest.raises(UserError, match="network of your own"):
        raceway.load(run.directory)
    assert raceway.load(run.directory, network=(init, apply)).act(np.zeros(4, np.float32)) in (0, 1)


class Poisoned(Probe):
    """Gives NaN after a while."""

    def __init__(self) -> None:
        super().__init__("both", length=5)
        self.count = 0

    def step(self, action: int) -> Any:
        obs, reward, *rest = super().step(action)
        self.count += 1
        return obs, np.nan if self.count > 20 else reward, *rest


def test_nan_stops_with_the_round_the_culprit_and_a_dump(tmp_path: Path) -> None:
    with pytest.raises(ReactionError, match=r"Round 2: .*rewards.*What went in is in .*round-2.npz") as caught:
        train(Poisoned, tmp_path, evaluation={"enabled": False})
    path = str(caught.value).split("What went in is in ")[1].split(".npz")[0] + ".npz"
    dump = np.load(path)
    assert np.isnan(dump["rollout.rewards"]).any()
    assert "params" in dump


class Infinite(Probe):
    """Its observations are infinite once: normalised and clipped, that would pass for a number."""

    def __init__(self) -> None:
        super().__init__("both", length=5)
        self.count = 0

    def step(self, action: int) -> Any:
        obs, *rest = super().step(action)
        self.count += 1
        return obs * np.inf if self.count == 22 else obs, *rest


def test_statistics_that_are_not_finite_stop_the_run_where_it_happened(tmp_path: Path) -> None:
    with pytest.raises(ReactionError, match=r"Round \d: .*obs"):
        train(Infinite, tmp_path, evaluation={"enabled": False}, normalize_observations=True)


def test_an_error_does_not_lose_what_was_learnt(tmp_path: Path) -> None:
    with pytest.raises(ReactionError):
        train(Poisoned, tmp_path, evaluation={"enabled": False})
    (directory,) = (tmp_path / "tests.training.test_run-Poisoned").iterdir()
    assert raceway.load(directory, "final").weights.version == 2


def test_an_environment_without_an_end_is_given_up(tmp_path: Path) -> None:
    endless = partial(Probe, "both", length=10**9)
    run = train(endless, tmp_path, evaluation={"times": 1, "episodes": 2, "max_steps": 200})
    assert run.evaluation is not None
    assert run.evaluation.returns == ()


def test_arguments_of_any_kind(tmp_path: Path) -> None:
    class Argued(Probe):
        def __init__(self, numbers: Any, function: Any, bound: float) -> None:
            super().__init__("both")

    args = {"numbers": np.arange(3), "function": len, "bound": np.inf}
    run = train(Argued, tmp_path, env_args=args, evaluation={"enabled": False})
    saved = json.loads((run.directory / "config.json").read_text())["env_args"]
    assert saved == {
        "numbers": [0, 1, 2],
        "function": {"not saved": "<built-in function len>"},
        "bound": {"number": "inf"},
    }


def test_unknown_environments_are_told_with_a_near_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Did you mean 'CartPole-v1'"):
        train("CartPool-v1", tmp_path)
    with pytest.raises(ValueError, match="no_such_module"):
        train("no_such_module:make", tmp_path)


def test_wrong_settings_are_told_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="learning_rate"):
        train("CartPole-v1", tmp_path, learning_rte=1e-3)
    with pytest.raises(SettingError, match="doctor"):
        train("CartPole-v1", tmp_path, device="gpu")
    assert not any(tmp_path.iterdir())


def test_a_memory_for_a_network_of_ones_own_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"network\.gru=8 is for the built-in network"):
        train("CartPole-v1", tmp_path, network=(lambda *_: None, lambda *_: None), gru=8)


_SCRIPT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import raceway
raceway.train("CartPole-v1", total_steps=100_000_000, log={"directory": sys.argv[1], "interval_s": 0.2})
"""


@contextmanager
def started(directory: Path) -> Iterator[subprocess.Popen[str]]:
    """A long run in a process of its own, when it has told of its first rounds."""
    process = subprocess.Popen(
        [sys.executable, "-c", _SCRIPT, str(directory)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    timer = threading.Timer(120, process.kill)
    timer.start()
    try:
        assert process.stdout is not None
        assert any("steps/s" in line for line in process.stdout), process.stderr and process.stderr.read()
        yield process
    finally:
        timer.cancel()
        process.kill()


def test_ctrl_c_keeps_the_policy(tmp_path: Path) -> None:
    with started(tmp_path) as process:
        process.send_signal(signal.SIGINT)
        told, _ = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "Interrupted" in told
    (directory,) = (tmp_path / "CartPole-v1").iterdir()
    assert raceway.load(directory, "final").weights.version > 0


def test_an_evaluator_that_is_killed_is_noticed(tmp_path: Path) -> None:
    """It is a part of the run: without it the best policy would silently be an old one."""
    with started(tmp_path) as process:
        tasks = Path(f"/proc/{process.pid}/task").glob("*/children")  # of each thread
        children = [pid for task in tasks for pid in task.read_text().split()]
        worker = next(pid for pid in children if b"raceway" in Path(f"/proc/{pid}/cmdline").read_bytes())
        os.kill(int(worker), signal.SIGKILL)
        began = time.monotonic()
        _, errors = process.communicate(timeout=60)
    assert time.monotonic() - began < 30
    assert process.returncode != 0
    assert "PlaceLostError" in errors
