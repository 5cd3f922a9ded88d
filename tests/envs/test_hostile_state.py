"""Whatever bytes a state is made of, it is refused in words or hurts nobody: nothing crashes, hangs or stays broken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import numpy as np
import pytest

import raceway
from raceway.envs import NativePool
from tests.envs.gymnasium_twin import LIGHT, MUJOCO, actions_of, assert_same, in_turn

NUM_ENVS, SICK = 3, 1
ALL = [name for name in raceway.list_envs() if name != "MujocoTask-v0"]  # which wants a model; see test_mujoco_state
EXTREMES: dict[str, list[Any]] = {
    "f": [np.nan, np.inf, -np.inf, 1e300, -1e300, 1e11, -1e9, 40_000.0, 5e-324, 0.0, -1.0, 1.0],
    "i": [-(2**63), 2**63 - 1, -1, 0, 1, 2, 3, 10, 15, 16, 31, 32, 47, 48, 63, 64, 499, 500, 2**31, 2**32 + 1],
    "u": [0, 1, 2, 2**32 - 1, 2**32, 2**63, 2**64 - 1],
    "b": [0, 1],
}

State = dict[str, Any]


def make(task: str, mode: str, **kwargs: Any) -> NativePool:
    if task == "Busy-v0":
        kwargs["step_us"] = 1.0
    return raceway.make(task, NUM_ENVS, autoreset=mode, record_episodes=True, seed=3, **kwargs)


def spoiled(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """`values` with one or all of the sick environment's numbers replaced, or with any bytes in it."""
    row = values[SICK].reshape(-1).copy()
    where = slice(None) if rng.integers(3) == 0 else rng.integers(max(row.size, 1), size=min(row.size, 1))
    if values.dtype.kind != "b" and rng.integers(3) == 0:
        row[where] = np.frombuffer(rng.bytes(row.nbytes), row.dtype)[where]
    else:
        choices = EXTREMES[values.dtype.kind]
        with np.errstate(over="ignore"):
            row[where] = np.array(choices[rng.integers(len(choices))]).astype(row.dtype)
    result = values.copy()
    result[SICK] = row.reshape(values[SICK].shape)
    return result


def hostile(saved: State, rng: np.random.Generator) -> State:
    """The state with one to three of its parts spoiled."""
    names = [name for name in saved if name != "id" and saved[name].size]
    parts = [name for name in names if name.startswith("env.")]
    chosen = [*rng.choice(parts, 1), *rng.choice(names, rng.integers(0, 3))]
    return {**saved, **{name: spoiled(saved[name], rng) for name in chosen}}


def without_clock(state: State) -> State:
    return {name: values for name, values in state.items() if name != "episode.seconds"}


def use(pool: NativePool, mode: str, rng: np.random.Generator) -> None:
    """All that can be asked of a pool, for a few steps."""
    for _ in range(3):
        status = pool.state()["episode.status"]
        waiting = (status == 0) | ((status == 2) & (mode == "disabled"))
        if waiting.any():
            pool.reset(options={"reset_mask": waiting})
        pool.observe()
        pool.step(actions_of(pool.single_action_space, NUM_ENVS, rng))
        assert (pool.faults >= 0).all()


def cases(task: str, count: int) -> Iterator[np.random.Generator]:
    for number in range(count):
        yield np.random.default_rng([number, *task.encode()])


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("task", "mode"), in_turn(ALL, ["next_step", "same_step", "disabled"]))
def test_a_state_of_any_bytes_is_refused_or_harmless(task: str, mode: str) -> None:
    with closing(make(task, mode)) as pool:
        pool.reset()
        use(pool, mode, np.random.default_rng(0))
        saved = pool.state()
        refused = 0
        for rng in cases(task, 20 if task in MUJOCO else 60):
            try:
                pool.set_state(hostile(saved, rng))
            except ValueError as refusal:
                refused += 1
                assert f"environment {SICK} is refused: " in str(refusal)  # noqa: PT017 (taking it would do as well)
                assert_same(without_clock(pool.state()), without_clock(saved))
                continue
            use(pool, mode, rng)
            pool.set_state(saved)
        assert refused > 0
        observed, _ = pool.reset(seed=4)
        pool.close()
        with closing(make(task, mode)) as fresh:
            assert_same(fresh.reset(seed=4)[0], observed)  # nothing of it has stayed


@pytest.mark.timeout(120)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("task", LIGHT)
def test_a_state_of_any_bytes_is_drawn_or_cannot_be(task: str) -> None:
    """Gymnasium, which draws them, may say of a cart that is not anywhere that it cannot: in an exception."""
    with closing(make(task, "next_step", render_mode="rgb_array")) as pool:
        pool.reset()
        use(pool, "next_step", np.random.default_rng(0))
        saved = pool.state()
        expected = pool.render()
        for rng in cases(task, 40):
            with suppress(Exception):
                pool.set_state(hostile(saved, rng))
                pool.render()
        pool.set_state(saved)
        assert_same(pool.render(), expected)


@pytest.mark.parametrize(
    ("task", "name", "value", "told"),
    [
        ("FrozenLake-v1", "env.state", 16, "state is 16, outside 0 to 15"),
        ("CliffWalking-v1", "env.state", -1, "state is -1, outside 0 to 47"),
        ("Taxi-v3", "env.last_action", 6, "last_action is 6, outside -1 to 5"),
        ("Blackjack-v1", "env.player_sum", 32, "player_sum is 32, outside 0 to 31"),
        ("Pendulum-v1", "env.torque", np.nan, "torque is nan, outside -2 to 2"),
        ("CartPole-v1", "episode.steps", -7, r"episode\.steps is -7, not a count"),
        ("CartPole-v1", "episode.number", -(2**63), r"episode\.number is -9223372036854775808, not a count"),
        ("CartPole-v1", "episode.status", 3, r"episode\.status is 3, not 0, 1 or 2"),
        ("CartPole-v1", "random.increment_low", 4, r"random\.increment_low is 4, not odd"),
    ],
)
def test_what_is_refused_is_told_with_environment_name_and_value(task: str, name: str, value: Any, told: str) -> None:
    with closing(make(task, "next_step")) as pool:
        pool.reset()
        state = pool.state()
        state[name][SICK] = value
        with pytest.raises(ValueError, match=f"the state of environment {SICK} is refused: {told}"):
            pool.set_state(state)


@pytest.mark.parametrize("task", ["FrozenLake-v1", "CliffWalking-v1", "Taxi-v3", "Taxi-v4", "Blackjack-v1"])
def test_every_state_that_is_taken_is_observed_within_the_space(task: str) -> None:
    """What follows looks observations up in tables."""
    with closing(make(task, "next_step")) as pool:
        pool.reset()
        saved = pool.state()
        taken = 0
        for rng in cases(task, 200):
            try:
                pool.set_state(hostile(saved, rng) | {"episode.status": saved["episode.status"]})
            except ValueError:
                continue
            taken += 1
            assert pool.observation_space.contains(pool.observe())
        assert taken > 0
