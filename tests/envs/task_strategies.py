"""Hypothesis strategies for what a task can be made, seeded and reset with."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.envs.toy_text.frozen_lake import generate_random_map
from hypothesis import strategies as st

from tests.envs.mujoco_models import ASSETS, changed_model, own_model

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

WEIGHTS = st.floats(-100, 100) | st.sampled_from([0.0, -0.0, 1.0, 1e-30, -5e-7])
ANY_NUMBERS = st.floats(allow_nan=False)


def ranges(low: float, high: float) -> st.SearchStrategy[Any]:
    """Pairs of numbers near what matters, infinities too, as any kind of sequence; some of them upside down."""
    ends = st.floats(low, high) | st.sampled_from([-math.inf, math.inf, low, high]) | ANY_NUMBERS
    pairs = st.tuples(ends, ends) | st.tuples(st.floats(-math.inf, low), st.floats(high, math.inf))
    return st.one_of(pairs, pairs.map(list), pairs.map(np.array))


_UPRIGHT: dict[str, st.SearchStrategy[Any]] = {
    "healthy_reward": WEIGHTS,
    "terminate_when_unhealthy": st.booleans(),
    "healthy_z_range": ranges(0.2, 1.5),
}
_WALKS: dict[str, st.SearchStrategy[Any]] = {"forward_reward_weight": WEIGHTS, "ctrl_cost_weight": WEIGHTS}
_NOISE: dict[str, st.SearchStrategy[Any]] = {"reset_noise_scale": st.floats(0, 0.3) | st.sampled_from([0.0, 5e-324])}
_MUJOCO_FREE: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "Ant": {
        **_WALKS,
        **_UPRIGHT,
        **_NOISE,
        "contact_cost_weight": WEIGHTS,
        "contact_force_range": ranges(-1, 1),
        "main_body": st.integers(0, 13) | st.just("torso"),
    },
    "HalfCheetah": {**_WALKS, **_NOISE},
    "Hopper": {
        **_WALKS,
        **_UPRIGHT,
        **_NOISE,
        "healthy_state_range": ranges(-10, 10),
        "healthy_angle_range": ranges(-0.2, 0.2),
    },
    "Humanoid": {
        **_WALKS,
        **_UPRIGHT,
        **_NOISE,
        "contact_cost_weight": WEIGHTS,
        "contact_cost_range": ranges(0, 10),
    },
    "HumanoidStandup": {
        **_NOISE,
        "uph_cost_weight": WEIGHTS,
        "ctrl_cost_weight": WEIGHTS,
        "impact_cost_weight": WEIGHTS,
        "impact_cost_range": ranges(0, 10),
    },
    "InvertedDoublePendulum": {**_NOISE, "healthy_reward": WEIGHTS},
    "InvertedPendulum": _NOISE,
    "Pusher": {"reward_near_weight": WEIGHTS, "reward_dist_weight": WEIGHTS, "reward_control_weight": WEIGHTS},
    "Reacher": {"reward_dist_weight": WEIGHTS, "reward_control_weight": WEIGHTS},
    "Swimmer": {**_WALKS, **_NOISE},
    "Walker2d": {**_WALKS, **_UPRIGHT, **_NOISE, "healthy_angle_range": ranges(-1, 1)},
}
_FREE |= {task: {"frame_skip": st.integers(1, 7), **own} for task, own in _MUJOCO_FREE.items()}

_WHERE = ["exclude_current_positions_from_observation"]
_BODY = [f"include_{name}_in_observation" for name in ("cinert", "cvel", "qfrc_actuator", "cfrc_ext")]
_MUJOCO_FLAGS = {
    "Ant": [*_WHERE, "include_cfrc_ext_in_observation"],
    "HalfCheetah": _WHERE,
    "Hopper": _WHERE,
    "Humanoid": [*_WHERE, *_BODY],
    "HumanoidStandup": [*_WHERE, *_BODY],
    "Swimmer": _WHERE,
    "Walker2d": _WHERE,
}
_OTHER_MODELS = {
    "Ant": ["humanoid.xml"],
    "HalfCheetah": ["walker2d.xml", "hopper.xml"],
    "Hopper": ["walker2d.xml", "half_cheetah.xml"],
    "Humanoid": ["humanoidstandup.xml", "ant.xml"],
    "HumanoidStandup": ["humanoid.xml"],
    "Pusher": ["pusher.xml"],
    "Swimmer": ["half_cheetah.xml", "reacher.xml"],
    "Walker2d": ["walker2d.xml", "hopper.xml"],
}
"""Models of Gymnasium's own, beside a task's own one, that fit it."""


def models(task: str) -> st.SearchStrategy[str | Path]:
    """Model files that fit a MuJoCo task: Gymnasium's by name or by path, and changed copies of the task's own."""
    named = st.sampled_from([own_model(task).name, *_OTHER_MODELS.get(task.split("-")[0], [])])
    changed = st.builds(
        changed_model,
        st.just(task),
        st.sampled_from([0.5, 1.0, 1.1]),
        st.sampled_from(["Euler", "RK4", "implicit", "implicitfast"]),
        st.sampled_from(["PGS", "CG", "Newton"]),
        st.booleans(),
    )
    return st.one_of(named, named.map(lambda name: ASSETS / name), named.map(lambda name: str(ASSETS / name)), changed)


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
    if task.endswith("-v5"):
        flags = dict.fromkeys(_MUJOCO_FLAGS.get(task.split("-")[0], []), st.booleans())
        shape = st.fixed_dictionaries({}, optional={"xml_file": models(task), **flags})
        return st.builds(lambda free, shape: free | shape, free_kwargs(task), shape)
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
