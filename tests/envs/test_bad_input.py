"""What a pool refuses once it is there: each refusal says what is wrong, moves nothing, and leaves the pool usable."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.spaces import Box
from hypothesis import given, settings
from hypothesis import strategies as st

import raceway
from raceway.envs import NativePool
from tests.envs.transitions import PATIENCE_S, action_plan, same_state, step_all
from tests.examples import examples

NAN, INF = float("nan"), float("inf")


def started(task: str, num_envs: int = 3, **kwargs: Any) -> NativePool:
    """A pool in the middle of its episodes."""
    pool = raceway.make(task, num_envs, seed=7, **kwargs)
    pool.reset()
    step_all(pool, action_plan(pool, 3, seed=1))
    return pool


def assert_refused(
    pool: NativePool, twin: NativePool, call: Callable[[NativePool], object], error: Any, message: str
) -> None:
    """`call` raises, nothing has moved by it, and the pool goes on as its twin does, on which it was not made."""
    before = pool.state()
    with pytest.raises(error, match=message):
        call(pool)
    assert same_state(pool.state(), before)
    plan = action_plan(pool, 20, seed=2)
    assert step_all(pool, plan) == step_all(twin, plan)


# --- actions

WHOLE = r"CartPole-v1 takes whole numbers, such as int64"
BAD_DISCRETE = [
    ([0, 1, 2], ValueError, r"actions\[2\] is 2: CartPole-v1 takes 0 to 1\. No environment was stepped"),
    ([0, -1, 0], ValueError, r"actions\[1\] is -1: CartPole-v1 takes 0 to 1"),
    ([2**62, 0, 0], ValueError, r"actions\[0\] is 4611686018427387904: CartPole-v1 takes 0 to 1"),
    ([0, -(2**63), 0], ValueError, r"actions\[1\] is -9223372036854775808: CartPole-v1 takes 0 to 1"),
    (np.array([0, 255, 0], np.uint8), ValueError, r"actions\[1\] is 255: CartPole-v1 takes 0 to 1"),
    (np.array([0, 0, 2**64 - 1], np.uint64), ValueError, r"actions\[2\] is 18446744073709551615: CartPole-v1 takes"),
    ([0, 1], ValueError, r"shape \(2,\): expected \(3,\), one action for each of 3 environments"),
    ([[0, 1, 0]], ValueError, r"shape \(1, 3\): expected \(3,\)"),
    (np.zeros((3, 1), int), ValueError, r"shape \(3, 1\): expected \(3,\)"),
    (0, ValueError, r"shape \(\): expected \(3,\)"),
    ([0.0, 1.0, 0.0], TypeError, f"actions have dtype float64: {WHOLE}"),
    (np.zeros(3, np.float32), TypeError, f"actions have dtype float32: {WHOLE}"),
    ([0, 1j, 0], TypeError, f"actions have dtype complex128: {WHOLE}"),
    (["0", "1", "0"], TypeError, f"actions have dtype <U1: {WHOLE}"),
    ("010", TypeError, WHOLE),
    (b"010", TypeError, WHOLE),
    (None, TypeError, WHOLE),
    ([None, 0, 1], TypeError, f"actions have dtype object: {WHOLE}"),
    (np.array([0, 1, 0], object), TypeError, f"actions have dtype object: {WHOLE}"),
    ([10**30, 0, 0], TypeError, f"actions have dtype object: {WHOLE}"),
    (np.zeros(3, "m8[s]"), TypeError, WHOLE),
    (np.zeros(3, [("a", int)]), TypeError, WHOLE),
    ({0: 1}, TypeError, WHOLE),
    pytest.param(iter([0, 0, 0]), TypeError, WHOLE, id="iterator"),
    ([[0], [1, 0], [0]], ValueError, "inhomogeneous"),
]


@pytest.mark.parametrize(("actions", "error", "message"), BAD_DISCRETE, ids=lambda value: repr(value)[:40])
def test_a_bad_discrete_action_steps_nothing(actions: Any, error: type[Exception], message: str) -> None:
    pool, twin = started("CartPole-v1"), started("CartPole-v1")
    assert_refused(pool, twin, lambda pool: pool.step(actions), error, message)


NUMBERS = r"Pendulum-v1 takes numbers, such as float32"
BAD_CONTINUOUS = [
    ([[0.0], [NAN], [0.0]], ValueError, r"actions\[1, 0\] is nan: Pendulum-v1 takes numbers"),
    (np.full((3, 1), NAN), ValueError, r"actions\[0, 0\] is nan"),
    ([0.0, 0.0, 0.0], ValueError, r"shape \(3,\): expected \(3, 1\)"),
    (np.zeros((3, 2)), ValueError, r"shape \(3, 2\): expected \(3, 1\)"),
    ([["a"], ["b"], ["c"]], TypeError, f"actions have dtype <U1: {NUMBERS}"),
    ([[1j], [0], [0]], TypeError, f"actions have dtype complex128: {NUMBERS}"),
    (np.zeros((3, 1), object), TypeError, f"actions have dtype object: {NUMBERS}"),
    (None, TypeError, NUMBERS),
    ([[0.0], [], [0.0]], ValueError, "inhomogeneous"),
]


@pytest.mark.parametrize(("actions", "error", "message"), BAD_CONTINUOUS, ids=lambda value: repr(value)[:40])
def test_a_bad_continuous_action_steps_nothing(actions: Any, error: type[Exception], message: str) -> None:
    pool, twin = started("Pendulum-v1"), started("Pendulum-v1")
    assert_refused(pool, twin, lambda pool: pool.step(actions), error, message)


@pytest.mark.parametrize(("task", "bad", "good"), [("CartPole-v1", 99, 0), ("Pendulum-v1", [NAN], [0.0])])
def test_an_environment_about_to_be_reset_ignores_its_action(task: str, bad: Any, good: Any) -> None:
    limits = [{"max_episode_steps": 2}, {"max_episode_steps": 3}]
    pools = [raceway.make(task, 2, seed=0, env_kwargs=limits) for _ in range(2)]
    for pool in pools:
        pool.reset()
        for _ in range(2):
            pool.step([good, good])
    with pytest.raises(ValueError, match=r"actions\[1(, 0)?\] is"):
        pools[0].step([bad, bad])
    disturbed, undisturbed = pools[0].step([bad, good]), pools[1].step([good, good])
    assert disturbed[0].tobytes() == undisturbed[0].tobytes()
    assert disturbed[1].tolist() == [0.0, undisturbed[1][1]]
    with pytest.raises(ValueError, match=r"actions\[0(, 0)?\] is"):
        pools[0].step([bad, bad])


@pytest.mark.parametrize("autoreset", ["same_step", "disabled"])
def test_without_a_pending_reset_every_action_counts(autoreset: str) -> None:
    pool = raceway.make("CartPole-v1", 2, seed=0, autoreset=autoreset, max_episode_steps=1)
    pool.reset()
    pool.step([0, 0])
    with pytest.raises(ValueError, match=r"actions\[0\] is 5"):
        pool.step([5, 0])


DISCRETE_CASTS: list[Callable[[np.ndarray], Any]] = [
    lambda actions: actions.tolist(),
    lambda actions: tuple(actions.tolist()),
    lambda actions: list(actions),
    lambda actions: actions.astype(np.int32),
    lambda actions: actions.astype(np.uint8),
    lambda actions: actions.astype(np.uint64),
    lambda actions: actions.astype(np.longlong),
    lambda actions: actions.astype(bool),
    lambda actions: actions.astype(">i8"),
    lambda actions: actions.astype(">i2"),
    lambda actions: np.repeat(actions, 3)[::3],
    lambda actions: actions[::-1].copy()[::-1],
    lambda actions: _read_only(actions),
    lambda actions: _unaligned(actions),
    lambda actions: np.ma.masked_array(actions),
    lambda actions: memoryview(actions.data),
]
CONTINUOUS_CASTS: list[Callable[[np.ndarray], Any]] = [
    lambda actions: actions.tolist(),
    lambda actions: actions.astype(np.float64),
    lambda actions: actions.astype(np.longdouble),
    lambda actions: actions.astype(">f4"),
    lambda actions: actions.astype(">f8"),
    lambda actions: np.asfortranarray(actions),
    lambda actions: np.repeat(actions, 2, axis=0)[::2],
    lambda actions: np.hstack([actions, actions])[:, :1],
    lambda actions: _read_only(actions),
    lambda actions: _unaligned(actions),
]


def _read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


def _unaligned(array: np.ndarray) -> np.ndarray:
    memory = bytearray(array.nbytes + 1)
    shifted = np.frombuffer(memory, dtype=array.dtype, offset=1).reshape(array.shape)
    shifted[...] = array
    return shifted


@pytest.mark.parametrize(
    ("task", "cast"),
    [("CartPole-v1", cast) for cast in DISCRETE_CASTS] + [("Pendulum-v1", cast) for cast in CONTINUOUS_CASTS],
)
def test_actions_of_other_types_and_layouts_are_cast(task: str, cast: Callable[[np.ndarray], Any]) -> None:
    pool, twin = started(task, 5), started(task, 5)
    plan = action_plan(pool, 10)
    given = [cast(actions) for actions in plan]
    for kept, actions in zip(given, plan, strict=True):
        assert pool.step(kept)[0].tobytes() == twin.step(actions)[0].tobytes()


def test_whole_numbers_are_fine_for_a_continuous_action() -> None:
    pool, twin = started("Pendulum-v1"), started("Pendulum-v1")
    for actions in ([[1], [0], [-2]], np.array([[1], [0], [1]], np.int8), np.array([[True], [False], [True]])):
        expected = twin.step(np.array(actions, np.float32))
        assert pool.step(actions)[0].tobytes() == expected[0].tobytes()


@pytest.mark.parametrize("task", ["Pendulum-v1", "MountainCarContinuous-v0"])
def test_infinite_actions_act_as_the_bounds_do(task: str) -> None:
    pool, twin = started(task), started(task)
    assert isinstance(pool.single_action_space, Box)
    bound = float(pool.single_action_space.high[0])
    assert pool.step([[INF], [-INF], [0.0]])[0].tobytes() == twin.step([[bound], [-bound], [0.0]])[0].tobytes()


# --- calls out of turn


@pytest.mark.parametrize("autoreset", ["next_step", "same_step", "disabled"])
def test_step_before_reset_asks_for_it(autoreset: str) -> None:
    pool, twin = (raceway.make("CartPole-v1", 2, seed=1, autoreset=autoreset) for _ in range(2))
    with pytest.raises(ResetNeeded, match=r"environments 0 and 1 have not been reset\. Call reset\(\) first"):
        pool.step([0, 0])
    assert pool.reset()[0].tobytes() == twin.reset()[0].tobytes()


def test_without_autoreset_an_ended_environment_asks_for_its_reset() -> None:
    limits = [{"max_episode_steps": 2 if env == 1 else 50} for env in range(3)]
    pool, twin = (raceway.make("CartPole-v1", 3, seed=1, autoreset="disabled", env_kwargs=limits) for _ in range(2))
    for each in (pool, twin):
        each.reset()
        step_all(each, action_plan(each, 2))
    before = pool.state()
    with pytest.raises(ResetNeeded, match=r"environment 1 has ended an episode and autoreset is disabled.*reset_mask"):
        pool.step([0, 0, 0])
    assert same_state(pool.state(), before)
    mask = np.array([False, True, False])
    assert (
        pool.reset(options={"reset_mask": mask})[0].tobytes() == twin.reset(options={"reset_mask": mask})[0].tobytes()
    )
    assert step_all(pool, action_plan(pool, 1)) == step_all(twin, action_plan(twin, 1))


@pytest.mark.timeout(20)
@pytest.mark.parametrize("high", [1e3, 1e17, 1e300])
def test_angles_from_very_far_away_are_brought_back(high: float) -> None:
    pool = raceway.make("Acrobot-v1", 2)
    pool.reset(seed=0, options={"low": high / 2, "high": high})
    for _ in range(3):
        observations = pool.step([0, 1])[0]
    assert (np.isnan(observations) | (np.abs(observations) <= 9 * np.pi + 1e-3)).all()


def test_a_negative_spread_of_the_pendulum_is_refused() -> None:
    with pytest.raises(ValueError, match=r"options\['x_init'\]=-1 is not from 0 to"):
        raceway.make("Pendulum-v1", 2).reset(options={"x_init": -1})


BAD_RESETS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"seed": -1}, ValueError, "seed -1 is negative. Use a number from 0 up"),
    ({"seed": 1.5}, TypeError, r"seed=1\.5 is not a whole number or a list of them"),
    ({"seed": "one"}, TypeError, "seed='one' is not a whole number or a list of them"),
    ({"seed": True}, TypeError, "seed=True is not a whole number"),
    ({"seed": [1, 2]}, ValueError, r"seed has 2 entries for num_envs=3\. Give one per environment"),
    ({"seed": [1, 2, -3]}, ValueError, "seed -3 is negative"),
    ({"seed": [1, 2, "x"]}, TypeError, "seed 'x' is not a whole number"),
    ({"seed": np.array(1)}, TypeError, "seed.* is not a whole number or a list of them"),
    ({"options": 5}, TypeError, "options"),
    ({"options": "reset_mask"}, TypeError, "options"),
    ({"options": {"low": "a"}}, ValueError, r"options\['low'\]='a' is not a number"),
    ({"options": {"low": NAN}}, ValueError, r"options\['low'\]=nan is not finite"),
    ({"options": {"low": 1, "high": 0}}, ValueError, r"options\['low'\]=1\.0 is above options\['high'\]=0\.0"),
    ({"options": {"reset_mask": [True] * 3}}, TypeError, "must be a NumPy array of bool, not list"),
    ({"options": {"reset_mask": np.ones(3)}}, TypeError, "must be a NumPy array of bool, not float64"),
    ({"options": {"reset_mask": np.ones(2, bool)}}, ValueError, r"shape \(2,\): expected \(3,\)"),
    ({"options": {"reset_mask": np.ones((3, 1), bool)}}, ValueError, r"shape \(3, 1\): expected \(3,\)"),
    ({"options": {"reset_mask": np.zeros(3, bool)}}, ValueError, "marks no environment. Mark one or more"),
    ({"seed": 1, "options": {"reset_mask": np.zeros(3, bool)}}, ValueError, "marks no environment"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), BAD_RESETS, ids=lambda value: repr(value)[:50])
def test_a_bad_reset_resets_nothing(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    pool, twin = started("CartPole-v1"), started("CartPole-v1")
    assert_refused(pool, twin, lambda pool: pool.reset(**arguments), error, message)


def test_a_mask_on_a_pool_never_reset_is_refused_and_seeds_nothing() -> None:
    pool, twin = (raceway.make("CartPole-v1", 3, seed=1) for _ in range(2))
    with pytest.raises(
        ResetNeeded,
        match=r"leaves out .*environments 1 and 2 have not been reset\. Call reset\(\) without a mask first",
    ):
        pool.reset(seed=9, options={"reset_mask": np.array([True, False, False])})
    assert pool.reset()[0].tobytes() == twin.reset()[0].tobytes()


CALLS: dict[str, Callable[[NativePool], object]] = {
    "reset": lambda pool: pool.reset(),
    "seeded reset": lambda pool: pool.reset(seed=1),
    "step": lambda pool: pool.step([0, 0, 0]),
    "async_reset": lambda pool: pool.async_reset(),
    "send": lambda pool: pool.send([0, 0, 0]),
    "recv": lambda pool: pool.recv(),
    "recv with a timeout": lambda pool: pool.recv(timeout=1.0),
    "observe": lambda pool: pool.observe(),
    "state": lambda pool: pool.state(),
    "set_state": lambda pool: pool.set_state(started("CartPole-v1").state()),
    "render": lambda pool: pool.render(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_every_call_on_a_closed_pool_says_that_it_is_closed(call: Callable[[NativePool], object]) -> None:
    pool = started("CartPole-v1", render_mode="rgb_array")
    pool.close()
    for _ in range(2):
        with pytest.raises(ClosedEnvironmentError, match=r"this pool is closed\. Make a new one"):
            call(pool)
        pool.close()
    assert pool.closed
    assert "CartPole-v1" in repr(pool)


# --- anything at all

_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.complex_numbers(),
    st.text(max_size=3),
    st.binary(max_size=3),
)
_OBJECTS = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=6,
)
_ARRAYS = hnp.arrays(
    hnp.scalar_dtypes() | hnp.unicode_string_dtypes(max_len=3), hnp.array_shapes(min_dims=0, min_side=0, max_side=4)
)
GARBAGE = _OBJECTS | _ARRAYS | st.lists(st.integers(-1, 2), min_size=3, max_size=3)


def refusal_of(call: Callable[[], object], *errors: type[Exception]) -> str | None:
    """What a call says that may be refused by these errors and no others; None if it is not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of NumPy, about casts
        try:
            call()
        except errors as refusal:
            return str(refusal)
    return None


@settings(max_examples=examples(300))
@given(garbage=GARBAGE)
@pytest.mark.parametrize("task", ["CartPole-v1", "Pendulum-v1", "Blackjack-v1"])
def test_whatever_is_given_to_step_is_a_step_or_a_refusal(task: str, garbage: Any) -> None:
    pool = started(task)
    before = pool.state()
    refusal = refusal_of(lambda: pool.step(garbage), TypeError, ValueError, OverflowError)
    if refusal is None:
        assert pool.observe() in pool.observation_space
    else:
        assert len(refusal) > 20  # it says why
        assert same_state(pool.state(), before)


@settings(max_examples=examples(300))
@given(actions=GARBAGE, env_ids=GARBAGE | st.lists(st.integers(-1, 3), max_size=3))
def test_whatever_is_given_to_send_is_sent_once_or_refused(actions: Any, env_ids: Any) -> None:
    pool = raceway.make("CartPole-v1", 3, batch_size=1, seed=0)
    pool.reset()
    refusal = refusal_of(lambda: pool.send(actions, env_ids), TypeError, ValueError, OverflowError, RuntimeError)
    if refusal is None:
        sent = 3 if env_ids is None else len(env_ids)
        received = {int(pool.recv(timeout=PATIENCE_S)[4]["env_id"][0]) for _ in range(sent)}
        assert len(received) == sent
    else:
        assert len(refusal) > 20
    pool.step([0, 0, 0])
