"""What `make` refuses: each message names the argument, its value and what is allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gymnasium.error import NameNotFound

import raceway
from tests.envs.processes import run_script


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "CartPol-v1",
            r"No environment 'CartPol-v1'\. Did you mean 'CartPole-v1'\? All native names: raceway list envs",
        ),
        ("Pqng-v5", r"No environment 'Pqng-v5'\. All native names"),
        ("cartpole-v1", r"No environment 'cartpole-v1'\. Did you mean 'CartPole-v1'\?"),
        ("FrozenLake", r"No environment 'FrozenLake'\. Did you mean 'FrozenLake-v1'\?"),
        ("raceway/Taxi-v9", r"No environment 'raceway/Taxi-v9'\. Did you mean 'Taxi-v"),
        ("qqqq", r"'qqqq'\. All native names: raceway list envs\. Those of other packages: PACKAGE:ID; your own: MOD"),
        ("", r"No environment ''\. All native names"),
    ],
)
def test_an_unknown_id_is_refused_with_the_nearest_known_one(name: str, message: str) -> None:
    with pytest.raises(NameNotFound, match=message):
        raceway.make(name, 2)


@pytest.mark.parametrize("name", ["my_task", "my_task.py"])
def test_the_name_of_a_file_is_answered_with_how_to_name_what_is_in_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_task.py").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NameNotFound, match=r"For a class or function in my_task\.py: my_task:NAME\."):
        raceway.make(name, 2)


@pytest.mark.parametrize("name", [None, 3, ["CartPole-v1"], b"CartPole-v1"])
def test_what_makes_no_environment_is_refused(name: Any) -> None:
    with pytest.raises(ValueError, match=r"is no environment\. Give a name .*, a callable|num_envs=2, but the list"):
        raceway.make(name, 2)


def make_with(name: str, value: Any) -> None:
    arguments: dict[str, Any] = {"num_envs": 4, name: value}
    raceway.make("CartPole-v1", **arguments)


WHOLE_NUMBERS = ["num_envs", "batch_size", "num_workers", "max_episode_steps"]


@pytest.mark.parametrize("name", WHOLE_NUMBERS)
@pytest.mark.parametrize("value", [1.0, "2", [2], True], ids=repr)
def test_counts_must_be_whole_numbers(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=rf"{name}=.* is not a whole number"):
        make_with(name, value)


@pytest.mark.parametrize("name", WHOLE_NUMBERS)
@pytest.mark.parametrize("value", [0, -3, 2**31, 10**30])
def test_counts_must_be_in_range(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=rf"{name}={value} is out of range\. Use a number from 1 to \d+"):
        make_with(name, value)


def test_a_batch_cannot_be_larger_than_the_pool() -> None:
    with pytest.raises(ValueError, match=r"batch_size=5 is out of range\. Use a number from 1 to 4"):
        raceway.make("CartPole-v1", 4, batch_size=5)


BAD_SETTINGS: list[tuple[dict[str, Any], Any, str]] = [
    ({"seed": -1}, ValueError, "seed -1 is negative. Use a number from 0 up"),
    ({"seed": 0.5}, TypeError, r"seed=0\.5 is not a whole number or a list of them"),
    ({"seed": "x"}, TypeError, "seed='x' is not a whole number"),
    ({"seed": [1]}, ValueError, "seed has 1 entries for num_envs=2. Give one per environment"),
    ({"seed": [1, 0.5]}, TypeError, r"seed 0\.5 is not a whole number"),
    ({"autoreset": "nextstep"}, ValueError, r"No autoreset mode 'nextstep'\. Did you mean 'next_step'\? There are:"),
    (
        {"autoreset": None},
        (TypeError, ValueError),
        "No autoreset mode None.* There are: next_step, same_step, disabled",
    ),
    ({"autoreset": []}, (TypeError, ValueError), r"No autoreset mode \[\].* There are: next_step, same_step, disabled"),
    ({"lane": "nativ"}, ValueError, r"No lane 'nativ'\. Did you mean 'native'\? There are: auto, native"),
    ({"lane": None}, ValueError, r"No lane None\. There are: auto, native"),
    ({"render_mode": "rgb"}, ValueError, "CartPole-v1 has no render_mode 'rgb'. There are: rgb_array"),
    ({"render_mode": "human"}, ValueError, "no render_mode 'human'.* For a window, wrap the pool"),
    ({"env_kwargs": [{}]}, ValueError, "env_kwargs has 1 entries for num_envs=2. Give one dict per environment"),
    ({"env_kwargs": {}}, TypeError, "env_kwargs must be a list with one dict per environment"),
    ({"env_kwargs": [{}, None]}, TypeError, "env_kwargs must be a list with one dict per environment"),
    ({"env_kwargs": 5}, TypeError, "env_kwargs must be a list with one dict per environment"),
    ({"env_kwargs": map(dict, [[], []])}, TypeError, "env_kwargs must be a list with one dict per environment"),
    ({"env_kwargs": [{}, {1: 2}]}, TypeError, "CartPole-v1 takes no keyword argument 1"),
    ({"env_kwargs": [{}, {"max_episode_steps": 0}]}, ValueError, "max_episode_steps=0 is out of range"),
    ({"env_kwargs": [{}, {"sutton": True}]}, TypeError, r"no keyword argument 'sutton'"),
    ({"record_episodes": "no"}, TypeError, "record_episodes='no' is not a flag. Use True or False"),
    ({"copy": "no"}, TypeError, "copy='no' is not a flag. Use True or False"),
    ({"pin": "no"}, TypeError, "pin='no' is not a flag. Use True or False"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), BAD_SETTINGS, ids=lambda value: repr(value)[:22])
def test_a_bad_setting_is_refused(arguments: dict[str, Any], error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        raceway.make("CartPole-v1", 2, **arguments)


BAD_TASK_ARGUMENTS: list[tuple[str, dict[str, Any], Any, str]] = [
    (
        "CartPole-v1",
        {"sutton_barto": True},
        TypeError,
        "Did you mean 'sutton_barto_reward'.* It takes: sutton_barto_rew",
    ),
    ("CartPole-v1", {"zzz": 1}, TypeError, r"CartPole-v1 takes no keyword argument 'zzz'\. It takes: sutton_barto_rew"),
    ("CartPole-v1", {"sutton_barto_reward": 2}, TypeError, "sutton_barto_reward=2 is not a flag. Use True or False"),
    ("CartPole-v1", {"sutton_barto_reward": "yes"}, TypeError, "sutton_barto_reward='yes' is not a flag"),
    ("Pendulum-v1", {"g": "ten"}, TypeError, "Pendulum-v1: g='ten' is not a number"),
    ("Pendulum-v1", {"g": float("inf")}, ValueError, "Pendulum-v1: g=inf is not finite"),
    ("Pendulum-v1", {"g": True}, TypeError, "Pendulum-v1: g=True is not a number"),
    ("Pendulum-v1", {"g": 10**400}, (TypeError, ValueError), "Pendulum-v1: g=1000.* is not finite"),
    ("FrozenLake-v1", {"map_name": "5x5"}, ValueError, "no map '5x5'. Use map_name='4x4', map_name='8x8' or desc="),
    ("FrozenLake-v1", {"map_name": 4}, TypeError, "map_name=4 is not a string"),
    (
        "FrozenLake-v1",
        {"success_rate": 1.5},
        ValueError,
        "success_rate=1.5.* is not a probability. Use a number from 0",
    ),
    ("FrozenLake-v1", {"desc": ["SF", "G"]}, ValueError, "rows of desc differ in length or are empty"),
    ("FrozenLake-v1", {"desc": []}, ValueError, "desc"),
    ("FrozenLake-v1", {"desc": "SFFG"}, TypeError, "desc='SFFG' is not a list of strings"),
    ("FrozenLake-v1", {"desc": ["FF", "FG"]}, ValueError, "desc"),
    ("FrozenLake-v1", {"reward_schedule": [1, 0]}, ValueError, "reward_schedule"),
    ("FrozenLake-v1", {"reward_schedule": 1}, TypeError, "reward_schedule=1 is not a sequence of numbers"),
    ("Busy-v0", {"step_us": -1.0}, ValueError, "step_us=-1.0.* is not a time from 0 to 10 seconds"),
    ("Busy-v0", {"spread": "wide"}, ValueError, "no spread 'wide'. Use 'constant' or 'exponential'"),
]


@pytest.mark.parametrize(("task", "kwargs", "error", "message"), BAD_TASK_ARGUMENTS, ids=lambda value: repr(value)[:40])
def test_a_bad_keyword_argument_of_a_task_is_refused(task: str, kwargs: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        raceway.make(task, 2, **kwargs)
    with pytest.raises(error, match=message):
        raceway.make(task, 2, env_kwargs=[{}, kwargs])


def test_environments_with_different_spaces_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"environment 1 has another observation .*Discrete\(64\), not Discrete\(16\).* a pool"
    ):
        raceway.make("FrozenLake-v1", 2, env_kwargs=[{"map_name": "4x4"}, {"map_name": "8x8"}])


def test_environments_with_different_arguments_and_equal_spaces_are_fine() -> None:
    kwargs: list[dict[str, Any]] = [
        {"map_name": "4x4"},
        {"desc": ["SFFF"] + ["FFFF"] * 2 + ["FFFG"], "is_slippery": False},
    ]
    pool = raceway.make("FrozenLake-v1", 2, env_kwargs=kwargs, seed=0)
    pool.reset()
    _, _, terminated, _, infos = pool.step([1, 1])
    assert infos["prob"][1] == 1.0
    assert infos["prob"][0] < 1.0
    assert not terminated.any()


def test_a_refused_make_leaves_nothing_behind_and_nothing_on_stderr() -> None:
    ended = run_script("""
        import gc, raceway
        from tests.envs.processes import pool_threads
        for arguments in [("Nope", 2), ("CartPole-v1", 0), ("CartPole-v1", 2, -1)]:
            try:
                raceway.make(*arguments[:2], seed=arguments[2] if len(arguments) > 2 else 0)
            except Exception:
                pass
        gc.collect()
        print(pool_threads())
    """)
    assert (ended.code, ended.output, ended.errors) == (0, "[]", "")
