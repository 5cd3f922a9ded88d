"""A whole run: the folder it leaves, what can be done with it, and how it ends when something is wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import raceway
from raceway.errors import DivergedError, SettingError, UserError
from raceway.graph import ReactionError
from raceway.training.evaluation import Trial, evaluate_weights
from raceway.training.outcome import Run
from tests.training.probes import Everything, Probe
from tests.training.small_runs import SMALL


def train(env: Any, directory: Path, **settings: Any) -> Run:
    quiet = {"directory": str(directory), "quiet": True}
    return raceway.train(env, **{**SMALL, "total_steps": 32 * 6, "log": quiet, **settings})


class Scaled(gymnasium.Env[np.ndarray, Any]):
    """Random rewards of up to `scale`."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, scale: float) -> None:
        self._scale = scale
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._steps = 0
        return self.np_random.random(2, np.float32), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        reward = self._scale * self.np_random.uniform(0.5, 1.0)
        return self.np_random.random(2, np.float32), reward, False, self._steps == 9, {}


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


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")  # of rewards to float32, and of their sums
def test_returns_that_overflow_do_not_end_the_run(tmp_path: Path) -> None:
    evaluation = {"times": 2, "episodes": 3}
    env = partial(Scaled, 3e38)
    found = train(env, tmp_path, lane="inline", normalize_rewards=True, evaluation=evaluation)
    assert found.evaluation is not None
    assert not np.isfinite(found.evaluation.mean)
    told = json.loads((found.directory / "outcome.json").read_text())
    assert None in told["evaluation"]["returns"]
    assert found.best_return is None
    again = raceway.resume(found.directory, env=env).evaluation
    assert again is not None
    assert again.lengths == found.evaluation.lengths


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
    with pytest.raises(ReactionError, match=r"Round 2: environment \d gave the reward nan .*round-2.npz") as caught:
        train(Poisoned, tmp_path, evaluation={"enabled": False})
    path = str(caught.value).split("The data of the update is in ")[1].split(".npz")[0] + ".npz"
    dump = np.load(path)
    assert np.isnan(dump["rollout.rewards"]).any()
    assert "params" in dump


class Faulty(gymnasium.Env):
    """Gives a number that is not finite in one of its steps."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, what: str, when: int) -> None:
        self.what, self.when, self.count = what, when, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action: int) -> Any:
        self.count += 1
        is_now = self.count == self.when
        obs = np.array([0.0, np.nan if is_now and self.what in ("obs", "last obs") else 0.0], np.float32)
        reward = 1e300 if is_now and self.what == "reward" else 1.0  # infinite as float32
        return obs, reward, False, is_now and self.what == "last obs", {}


@pytest.mark.filterwarnings("error:overflow")
@pytest.mark.parametrize("when", [3, 12])
@pytest.mark.parametrize("collector", ["worker", "central"])
@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("reward", "environment \\d gave the reward inf .*the largest float32\\) in step {step} of the round"),
        ("obs", "environment \\d gave nan in obs\\[1\\] before step {next} of the round"),
        (
            "last obs",
            "environment \\d gave a last observation, .* truncated in step {step} of the round, whose value is",
        ),
    ],
)
def test_numbers_that_an_environment_gives_are_blamed_on_it(
    tmp_path: Path, what: str, message: str, collector: str, when: int
) -> None:
    step = (when - 1) % 8
    expected = (
        rf"Round {(when - 1) // 8}: " + message.format(step=step, next=step + 1) + r".*\. Correct the environment;"
    )
    settings = {"collector": collector, "evaluation": {"enabled": False}, "lane": "inline"}
    with pytest.raises(ReactionError, match=expected) as caught:
        train(partial(Faulty, what, when), tmp_path, n_steps=8, batch_size=8, **settings)
    assert "learning_rate" not in str(caught.value)


def test_numbers_in_an_evaluation_are_blamed_on_the_environment_too(tmp_path: Path) -> None:
    run = train("CartPole-v1", tmp_path, total_steps=512, evaluation={"enabled": False})
    weights = raceway.load(run.directory).weights

    class Sampling:
        def restart(self) -> None: ...

        def collect(self, *_: Any) -> Any:
            raise FloatingPointError("environment 0 gave nan")

    with pytest.raises(DivergedError, match=rf"Evaluation after {weights.version} updates: environment 0 gave nan"):
        evaluate_weights(Sampling(), weights, Trial(1, 1, 10), 0)  # type: ignore[arg-type]


class Pixels(Probe):
    """Observations too small for the CNN."""

    def __init__(self) -> None:
        super().__init__("both", length=5)
        self.observation_space = gymnasium.spaces.Box(0, 255, (8, 8, 3), np.uint8)

    def reset(self, **kwargs: Any) -> Any:
        super().reset(**kwargs)
        return np.zeros((8, 8, 3), np.uint8), {}

    def step(self, action: int) -> Any:
        _, *rest = super().step(action)
        return np.zeros((8, 8, 3), np.uint8), *rest


def test_small_images_that_are_flattened_are_told_at_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {"lane": "inline", "evaluation": {"enabled": False}, "log": {"directory": str(tmp_path)}}
    train(Pixels, tmp_path, **settings)
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("Pixels  ppo")
    assert second.startswith("obs is an image of 8x8 pixels, smaller than the 36x36 that the CNN needs")
    train(Pixels, tmp_path, **settings, kind="mlp")
    assert "is an image" not in capsys.readouterr().out


def test_an_old_version_of_a_native_task_is_told_at_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {"num_workers": 1, "evaluation": {"enabled": False}, "log": {"directory": str(tmp_path)}}
    train("InvertedPendulum-v4", tmp_path, **settings)
    assert (
        "InvertedPendulum-v4 runs in Python; InvertedPendulum-v5, a newer version, runs natively"
        in capsys.readouterr().out
    )
    for env, lane in (("InvertedPendulum-v4", "inline"), ("CartPole-v0", "auto")):
        train(env, tmp_path, **settings, lane=lane)
        assert "runs natively" not in capsys.readouterr().out


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


def test_an_evaluation_waits_once_for_an_episode_without_an_end(tmp_path: Path) -> None:
    class Counted(Probe):
        steps = 0

        def step(self, action: Any) -> Any:
            Counted.steps += 1
            return super().step(action)

    endless = partial(Counted, "both", length=10**9)
    run = train(endless, tmp_path, lane="inline", evaluation={"enabled": False, "max_steps": 200})
    Counted.steps = 0
    found = raceway.evaluate(run.directory, 20, env=endless, num_envs=1)
    assert found.returns == ()
    assert Counted.steps == 256


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


def test_an_evaluator_that_is_killed_is_started_again(tmp_path: Path) -> None:
    with started(tmp_path) as process:
        tasks = Path(f"/proc/{process.pid}/task").glob("*/children")  # of each thread
        children = [pid for task in tasks for pid in task.read_text().split()]
        worker = next(pid for pid in children if b"raceway" in Path(f"/proc/{pid}/cmdline").read_bytes())
        os.kill(int(worker), signal.SIGKILL)
        assert process.stdout is not None
        assert any("the evaluator is started again" in line and "SIGKILL" in line for line in process.stdout)
        process.send_signal(signal.SIGINT)
        told, errors = process.communicate(timeout=60)
    assert "Interrupted" in told
    assert "PlaceLostError" not in errors
