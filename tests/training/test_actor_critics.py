"""A2C, IMPALA and PQN in whole runs: what they learn, how old their rounds are, and that they can go on."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import raceway
from raceway.errors import SettingError
from raceway.graph import Snapshot
from raceway.training.callbacks import Callback, Control, Round
from raceway.training.programs import build
from tests.training.probes import Forever, Probe
from tests.training.small_runs import chain, random_delays, run, set_up, values_of

WAYS: dict[str, dict[str, Any]] = {
    "a2c serial": {"algo": "a2c", "schedule": "serial"},
    "a2c delayed": {"algo": "a2c", "schedule": "concurrent", "correction": "delayed"},
    "a2c ratio": {"algo": "a2c", "schedule": "async", "correction": "ratio"},
    "impala": {"algo": "impala"},
}
PROBE: dict[str, Any] = {"num_envs": 8, "n_steps": 16, "learning_rate": 1e-2, "optimizer": "adam", "gamma": 0.5}


def quickly(*names: str) -> pytest.MarkDecorator:
    """All ways, of which only these are for the quick tests."""
    params = [
        pytest.param(way, id=name, marks=[] if name in names else [pytest.mark.slow]) for name, way in WAYS.items()
    ]
    return pytest.mark.parametrize("way", params)


def _learned_values(env: Any, obs: list[float], way: dict[str, Any]) -> np.ndarray:
    settings = {**PROBE, **way}
    _, training = run(env, 200, **settings)
    return values_of(training, set_up(env, **settings), np.array(obs, np.float32)[:, None])


@quickly("a2c delayed")
def test_a_later_reward_is_discounted(way: dict[str, Any]) -> None:
    assert _learned_values(partial(Probe, "two steps"), [-1.0, 1.0], way) == pytest.approx([0.5, 1.0], abs=0.1)


@quickly("impala")
def test_the_right_action_is_found(way: dict[str, Any]) -> None:
    assert _learned_values(partial(Probe, "both"), [-1.0, 1.0], way) == pytest.approx([1.0, 1.0], abs=0.2)


@quickly("a2c delayed", "impala")
def test_an_episode_that_was_cut_off_goes_on_in_its_value(way: dict[str, Any]) -> None:
    """1 + 0.5 + 0.25 + ... = 2; taken for an end, the last step would be worth 1."""
    assert _learned_values(Forever, [0.0], way) == pytest.approx([2.0], abs=0.1)


def test_at_lag_1_the_delayed_gradient_is_taken_where_the_round_was_collected() -> None:
    settings: dict[str, Any] = {"algo": "a2c", "schedule": "concurrent", "learning_rate": 1e-2}
    for correction, is_exact in (("delayed", True), ("ratio", False), ("none", False)):
        told, _ = run("HalfCheetah-v5", 5, correction=correction, normalize_observations=True, **settings)
        assert [progress.lag for progress in told] == [0, 1, 1, 1, 1]
        distances = [progress.values["ratio_first"] for progress in told]
        assert distances[0] < 1e-5
        assert [distance < 1e-5 for distance in distances[1:]] == [is_exact] * 4


def test_the_delayed_gradient_is_refused_where_rounds_may_be_older() -> None:
    with pytest.raises(SettingError, match=r"correction='delayed' .* Use correction='ratio'"):
        set_up("CartPole-v1", algo="a2c", schedule="async")
    set_up("CartPole-v1", algo="a2c", schedule="async", correction="ratio")


@pytest.mark.parametrize("queue", [1, 3])
def test_no_round_is_older_than_the_queue_is_long(queue: int) -> None:
    told, _ = run("CartPole-v1", 60, algo="impala", queue=queue, perturb=random_delays())
    assert 0 < max(progress.lag for progress in told) <= queue


@pytest.mark.parametrize(
    ("algo", "schedule"),
    [
        ("a2c", "concurrent"),
        ("impala", "concurrent"),
        ("pqn", "serial"),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in (("a2c", "serial"), ("impala", "serial"))),
        pytest.param("pqn", "concurrent", marks=pytest.mark.slow),
    ],
)
def test_in_step_with_its_collector_it_gives_the_same_bits_every_time(algo: str, schedule: str) -> None:
    settings: dict[str, Any] = {"algo": algo, "schedule": schedule, "rounds": 6}
    undisturbed = chain("CartPole-v1", **settings)
    assert chain("CartPole-v1", perturb=random_delays(), num_workers=1, **settings) == undisturbed


@pytest.mark.parametrize("algo", ["a2c", "impala", "pqn"])
def test_its_metrics_are_those_of_the_metrics_page(algo: str) -> None:
    told, _ = run("CartPole-v1", 2, algo=algo)
    page = (Path(__file__).parents[2] / "docs/metrics.md").read_text()
    assert [name for name in told[0].values if f"`train/{name}`" not in page] == []


@pytest.mark.parametrize("algo", ["a2c", "impala", "pqn"])
def test_it_goes_on_from_a_snapshot_as_if_nothing_had_been(algo: str) -> None:
    setup = set_up("CartPole-v1", algo=algo, schedule="concurrent", normalize_rewards=True)
    snapshots: list[Snapshot] = []
    build(setup, None).program.run(5, snapshot_at_end=True, on_snapshot=snapshots.append)
    whole, later = build(setup, None), build(setup, None)
    later.program.restore(snapshots[-1])
    later.program.run(4)
    whole.program.run(9)
    assert later.learner.digest == whole.learner.digest


class StopAt(Callback):
    """Ends the run at a mean return."""

    def __init__(self, wanted: float) -> None:
        self.wanted = wanted
        self.is_reached = False

    def on_round(self, told: Round, control: Control) -> None:
        if told.return_mean is not None and told.return_mean >= self.wanted:
            self.is_reached = True
            control.stop()


@pytest.mark.parametrize("algo", ["a2c", "impala", "pqn"])
def test_its_preset_learns_to_balance_a_pole(algo: str, tmp_path: Path) -> None:
    goal = StopAt(100.0)
    log = {"directory": str(tmp_path), "quiet": True}
    raceway.train("CartPole-v1", algo=algo, log=log, evaluation={"enabled": False}, callbacks=[goal])
    assert goal.is_reached


@pytest.mark.slow
@pytest.mark.parametrize("algo", ["a2c", "impala", "pqn"])
def test_its_preset_solves_cartpole(algo: str, tmp_path: Path) -> None:
    run = raceway.train("CartPole-v1", algo=algo, log={"directory": str(tmp_path), "quiet": True})
    assert raceway.evaluate(run.directory, episodes=100).mean >= 475
