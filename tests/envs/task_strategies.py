"""Hypothesis strategies for what a task can be made, seeded and reset with."""

from __future__ import annotations

from typing import Any

from gymnasium.envs.toy_text.frozen_lake import generate_random_map
from hypothesis import strategies as st

Kwargs = dict[str, Any]

PROBABILITIES = st.floats(0, 1)
SEEDS = st.one_of(st.integers(0, 2**32), st.integers(2**64, 2**200))

_FREE: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "Blackjack": {"natural": st.booleans(), "sab": st.booleans()},
    "CartPole": {"sutton_barto_reward": st.booleans()},
    "CliffWalking": {"is_slippery": st.booleans()},
    "FrozenLake": {
        "is_slippery": st.booleans(),
        "success_rate": PROBABILITIES,
        "reward_schedule": st.tuples(*[st.integers(-3, 3) | st.floats(-10, 10)] * 3),
    },
    "MountainCar": {"goal_velocity": st.floats(-0.08, 0.08) | st.just(0)},
    "MountainCarContinuous": {"goal_velocity": st.floats(-0.08, 0.08) | st.just(0)},
    "Pendulum": {"g": st.floats(-50, 50) | st.just(9.81)},
    "Taxi": {
        "is_rainy": st.booleans(),
        "fickle_passenger": st.booleans(),
        "rainy_probability": PROBABILITIES,
        "fickle_probability": PROBABILITIES,
    },
}


def frozen_lake_maps(rows: int, columns: int) -> st.SearchStrategy[list[str]]:
    """Maps of any tiles with a start, and Gymnasium's own random maps where they are square."""
    any_tiles = st.lists(st.text("SFHG", min_size=columns, max_size=columns), min_size=rows, max_size=rows)
    with_start = any_tiles.filter(lambda lines: any("S" in line for line in lines))
    if rows != columns or rows < 2:
        return with_start
    return with_start | st.builds(generate_random_map, st.just(rows), st.floats(0.5, 1), st.integers(0, 1000))


def free_kwargs(task: str) -> st.SearchStrategy[Kwargs]:
    """Keyword arguments that leave the task's spaces as they are: environments of one pool may differ in them."""
    # Gymnasium 1.4 can be asked for Taxi-v3's own rain and passengers no more.
    choices = (
        {} if task == "Taxi-v3" else _FREE.get(task.split("-")[0].removesuffix("8x8").removesuffix("Slippery"), {})
    )
    return st.fixed_dictionaries({}, optional=choices)


def shared_kwargs(task: str) -> st.SearchStrategy[Kwargs]:
    """Any keyword arguments, those that shape the observation space among them."""
    if not task.startswith("FrozenLake"):
        return free_kwargs(task)
    sizes = st.tuples(st.integers(1, 6), st.integers(2, 6))  # Gymnasium cannot read a map of one column
    maps = st.one_of(
        st.fixed_dictionaries({"desc": sizes.flatmap(lambda size: frozen_lake_maps(*size))}),
        st.fixed_dictionaries({}, optional={"map_name": st.sampled_from(["4x4", "8x8"])}),
    )
    return st.builds(lambda free, shape: free | shape, free_kwargs(task), maps)


def reset_options(task: str) -> st.SearchStrategy[Kwargs]:
    """What `reset(options=...)` may hold for a task; an empty dict for none."""
    if task == "Pendulum-v1":
        return st.fixed_dictionaries({}, optional={"x_init": st.floats(0, 7), "y_init": st.floats(0, 9)})
    if task.startswith(("Acrobot", "CartPole", "MountainCar")):
        bounds = st.tuples(st.floats(-0.9, 0.3), st.floats(-0.9, 0.3))
        return st.just({}) | bounds.map(lambda pair: {"low": min(pair), "high": max(pair)})
    return st.just({})
