"""What MuJoCo's tasks refuse to be made of, and what many of them cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box

import raceway
from tests.envs.gymnasium_twin import MUJOCO
from tests.envs.mujoco_models import ASSETS, write_model
from tests.envs.processes import output_of, run_script

NAN, INF = float("nan"), float("inf")

REFUSED: list[tuple[str, dict[str, Any], Any, str]] = [
    (
        "Ant-v5",
        {"forward_reward_wieght": 1.0},
        TypeError,
        r"Ant-v5 takes no keyword argument 'forward_reward_wieght'\. Did you mean 'forward_reward_weight'\? It takes: "
        r"xml_file='ant\.xml', frame_skip=5, .*healthy_z_range=\(0\.2, 1\.0\)",
    ),
    ("Reacher-v5", {"healthy_reward": 1.0}, TypeError, "Reacher-v5 takes no keyword argument 'healthy_reward'"),
    ("Ant-v5", {"forward_reward_weight": "fast"}, TypeError, "Ant-v5: forward_reward_weight='fast' is not a number"),
    (
        "Ant-v5",
        {"forward_reward_weight": None, "ctrl_cost_weight": [1.0]},
        TypeError,
        r"ctrl_cost_weight=\[1\.0\] is no",
    ),
    ("Ant-v5", {"healthy_reward": True}, TypeError, "Ant-v5: healthy_reward=True is not a number"),
    ("Ant-v5", {"healthy_reward": NAN}, (TypeError, ValueError), "healthy_reward=nan is not a number"),
    ("Ant-v5", {"healthy_reward": INF}, ValueError, "Ant-v5: healthy_reward=inf is not finite"),
    ("Ant-v5", {"terminate_when_unhealthy": "no"}, TypeError, "='no' is not a flag. Use True or False"),
    ("Humanoid-v5", {"include_cvel_in_observation": 2}, TypeError, "include_cvel_in_observation=2 is not a flag"),
    ("Ant-v5", {"healthy_z_range": 1.0}, TypeError, "Ant-v5: healthy_z_range=1.0 is not a sequence of numbers"),
    ("Ant-v5", {"healthy_z_range": "ab"}, TypeError, "healthy_z_range='ab' is not a sequence of numbers"),
    ("Ant-v5", {"healthy_z_range": (0.1, "x")}, TypeError, "healthy_z_range.*'x' is not a number"),
    ("Ant-v5", {"healthy_z_range": (0.1, NAN)}, (TypeError, ValueError), "healthy_z_range.*nan is not a number"),
    ("Ant-v5", {"healthy_z_range": (0.1,)}, ValueError, "Ant.*healthy_z_range has 1 number.*Give two: the lowest and"),
    ("Ant-v5", {"contact_force_range": (0, 1, 2)}, ValueError, "contact_force_range has 3 numbers. Give two"),
    ("Hopper-v5", {"healthy_state_range": []}, ValueError, "healthy_state_range has 0 numbers. Give two"),
    ("Hopper-v5", {"healthy_angle_range": [0.1]}, ValueError, "healthy_angle_range has 1 number"),
    ("Humanoid-v5", {"contact_cost_range": [0.1]}, ValueError, "contact_cost_range has 1 number"),
    ("HumanoidStandup-v5", {"impact_cost_range": [0.1]}, ValueError, "impact_cost_range has 1 number"),
    ("Ant-v5", {"frame_skip": 0}, ValueError, "Ant.*: frame_skip=0 is out of range. Use"),
    ("Ant-v5", {"frame_skip": -3}, ValueError, "frame_skip=-3 is out of range. Use"),
    ("Ant-v5", {"frame_skip": 10**8}, ValueError, "frame_skip=100000000 is out of range. Use"),
    ("Ant-v5", {"frame_skip": 2.0}, TypeError, "Ant-v5: frame_skip=2.0 is not a whole number"),
    ("Ant-v5", {"frame_skip": True}, TypeError, "frame_skip=True is not a whole number"),
    ("Ant-v5", {"main_body": "torse"}, ValueError, "no body.*'torse'.* There are: world, torso, front_left_leg, aux_1"),
    ("Ant-v5", {"main_body": 14}, ValueError, "main_body=14: the model has bodies 0 to 13"),
    ("Ant-v5", {"main_body": -1}, ValueError, "main_body=-1: the model has bodies 0 to 13"),
    ("Ant-v5", {"main_body": 1.5}, TypeError, "Ant-v5: main_body=1.5 is not a whole number"),
    ("Ant-v5", {"xml_file": "nope.xml"}, FileNotFoundError, r"Ant-v5: xml_file='nope\.xml': there is no file /.*nope"),
    ("Ant-v5", {"xml_file": Path("/no/a.xml")}, FileNotFoundError, r"there is no file /no/a\.xml"),
    ("Ant-v5", {"xml_file": ASSETS}, OSError, r"assets.*that is not a file"),
    ("Ant-v5", {"xml_file": ""}, (OSError, ValueError), "xml_file"),
    ("Ant-v5", {"xml_file": 5}, TypeError, "Ant-v5: xml_file=5 is not a string"),
    ("Ant-v5", {"xml_file": b"ant.xml"}, TypeError, r"xml_file=b'ant\.xml' is not a string"),
    ("Ant-v5", {"xml_file": "inverted_pendulum.xml"}, ValueError, "2 positions and 2 velocities.*a free joint comes"),
    ("Reacher-v5", {"xml_file": "ant.xml"}, ValueError, "Reacher.*no body.*'fingertip'. There are: world, torso,"),
    ("Pusher-v5", {"xml_file": "reacher.xml"}, ValueError, "no body.*'tips_arm'. There are: world, body0"),
    (
        "InvertedPendulum-v5",
        {"xml_file": "ant.xml"},
        ValueError,
        "15 positions and 14 velocities.* a slider joint, then",
    ),
    (
        "InvertedDoublePendulum-v5",
        {"xml_file": "hopper.xml"},
        ValueError,
        "6 positions.* a slider joint, then two hing",
    ),
    ("Hopper-v5", {"xml_file": "inverted_pendulum.xml"}, ValueError, "2 positions.*joints along x, along z and around"),
    ("Walker2d-v5", {"xml_file": "inverted_pendulum.xml"}, ValueError, "2 positions.*joints along x, along z"),
    ("HumanoidStandup-v5", {"xml_file": "swimmer.xml"}, ValueError, "5 positions and 5 velocities.*a free joint comes"),
    ("Humanoid-v5", {"xml_file": "point.xml"}, ValueError, "3 positions and 3 velocities.*a free joint comes first"),
]


@pytest.mark.parametrize(("task", "kwargs", "error", "message"), REFUSED, ids=lambda value: repr(value)[:40])
def test_a_bad_keyword_argument_is_refused(task: str, kwargs: Any, error: Any, message: str):
    with pytest.raises(error, match=message):
        raceway.make(task, 2, **kwargs)
    with pytest.raises(error, match=message):
        raceway.make(task, 2, env_kwargs=[{}, kwargs])


@pytest.mark.parametrize("name", ["frame_skip", "main_body"])
def test_a_whole_number_beyond_64_bits_is_refused(name: str):
    kwargs: dict[str, Any] = {name: 10**30}
    with pytest.raises((ValueError, TypeError, OverflowError), match=f"{name}=1000"):
        raceway.make("Ant-v5", 2, **kwargs)


@pytest.mark.parametrize("task", [task for task in MUJOCO if task not in ("Pusher-v5", "Reacher-v5")])
def test_a_negative_scale_of_noise_is_refused(task: str):
    with pytest.raises(ValueError, match=r"reset_noise_scale=-0\.1"):
        raceway.make(task, 2, reset_noise_scale=-0.1).reset(seed=0)


@pytest.mark.parametrize("task", MUJOCO)
def test_every_task_refuses_what_it_does_not_know_and_what_is_not_there(task: str):
    with pytest.raises(TypeError, match=f"{task} takes no keyword argument 'frameskip'. Did you mean 'frame_skip'"):
        raceway.make(task, 2, frameskip=3)
    with pytest.raises(ValueError, match=r"frame_skip=0 is out of range"):
        raceway.make(task, 2, frame_skip=0)
    with pytest.raises(FileNotFoundError, match="no file"):
        raceway.make(task, 2, xml_file="./missing.xml")


BODY = '<worldbody><body><freejoint/><geom size="1"/></body></worldbody>'
BROKEN = {
    "unclosed": ("<mujoco><worldbody><body></worldbody></mujoco>", "XML_ERROR_MISMATCHED_ELEMENT"),
    "empty": ("", "empty file"),
    "binary": ("\0\1\2", "XML"),
    "unknown attribute": ('<mujoco><worldbody><body posn="0 0 0"/></worldbody></mujoco>', "attribute: 'posn'"),
    "unknown joint": (
        f'<mujoco>{BODY}<actuator><motor joint="nope"/></actuator></mujoco>',
        "unknown transmission target 'nope'",
    ),
    "missing mesh": (
        '<mujoco><asset><mesh name="a" file="nowhere.obj"/></asset><worldbody><geom type="mesh" mesh="a"/></worldbody>'
        "</mujoco>",
        r"nowhere\.obj",
    ),
    "massless": (
        '<mujoco><worldbody><body><freejoint/><site name="s"/></body></worldbody>'
        '<actuator><motor site="s"/></actuator></mujoco>',
        "mass and inertia of moving bodies must be larger",
    ),
    "no actuator": ("<mujoco/>", "no actuator"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_model_that_mujoco_cannot_read_is_refused_with_its_reason(name: str, tmp_path: Path):
    text, reason = BROKEN[name]
    path = tmp_path / "broken.xml"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"(?s){reason}") as refusal:
        raceway.make("Ant-v5", 2, xml_file=path)
    assert str(path) in str(refusal.value)


def test_a_model_without_actuators_is_refused(tmp_path: Path):
    path = tmp_path / "still.xml"
    path.write_text(f"<mujoco>{BODY}</mujoco>")
    with pytest.raises(ValueError, match="actuator"):
        raceway.make("Ant-v5", 2, xml_file=path)


def test_a_model_that_lets_bodies_sleep_is_refused():
    model = write_model("Ant-v5", "sleeping", flags={"sleep": "enable"})
    with pytest.raises(ValueError, match=r"lets bodies sleep.*Remove the flag sleep"):
        raceway.make("Ant-v5", 2, xml_file=model)


@pytest.mark.parametrize(
    "other", [{"exclude_current_positions_from_observation": False}, {"xml_file": "humanoid.xml"}], ids=str
)
def test_environments_with_other_spaces_are_refused(other: dict[str, Any]):
    with pytest.raises(ValueError, match=r"environment 2 has another observation than environment 0 \(Box.*105.*pool"):
        raceway.make("Ant-v5", 3, env_kwargs=[{}, {"frame_skip": 1}, other])


@pytest.mark.parametrize("task", MUJOCO)
def test_actions_that_are_not_numbers_step_nothing(task: str):
    pool, twin = raceway.make(task, 3, seed=1), raceway.make(task, 3, seed=1)
    pool.reset()
    twin.reset()
    assert isinstance(pool.single_action_space, Box)
    (size,) = pool.single_action_space.shape
    spoiled = np.zeros((3, size), np.float32)
    spoiled[1, size - 1] = NAN
    with pytest.raises(ValueError, match=rf"actions\[1, {size - 1}\] is nan: {task} takes numbers"):
        pool.step(spoiled)
    with pytest.raises(ValueError, match=rf"shape \(3, {size + 1}\): expected \(3, {size}\)"):
        pool.step(np.zeros((3, size + 1)))
    actions = np.ones((3, size), np.float32)
    assert pool.step(actions)[0].tobytes() == twin.step(actions)[0].tobytes()


def test_refusals_print_nothing_and_write_no_log(tmp_path: Path):
    (tmp_path / "broken.xml").write_text(BROKEN["unclosed"][0])
    (tmp_path / "warned.xml").write_bytes((ASSETS / "half_cheetah.xml").read_bytes())  # settotalmass is deprecated
    ended = run_script(f"""
        import os, raceway
        os.chdir({str(tmp_path)!r})
        raceway.make("HalfCheetah-v5", 2, xml_file="./warned.xml").reset()
        for kwargs in ({{"xml_file": "./broken.xml"}}, {{"frame_skip": 0}}, {{"main_body": "x"}}):
            try:
                raceway.make("Ant-v5", 2, **kwargs)
                print("taken", kwargs)
            except ValueError:
                pass
    """)
    assert (ended.code, ended.output, ended.errors) == (0, "", "")
    assert {path.name for path in tmp_path.iterdir()} == {"broken.xml", "warned.xml"}


# --- many of them


def test_four_thousand_ants_take_little_memory_and_time():
    took, grown = output_of("""
        import time
        import numpy as np, raceway
        from tests.envs.processes import resident_kib
        raceway.make("Ant-v5", 1, seed=0).reset()  # what is loaded once
        before, start = resident_kib(), time.perf_counter()
        pool = raceway.make("Ant-v5", 4096, seed=0)
        took = time.perf_counter() - start
        pool.reset()
        for _ in range(2):
            pool.step(np.ones(pool.action_space.shape, np.float32))
        print(took, resident_kib() - before)
    """).split()
    assert float(took) < 5.0
    assert int(grown) < 1_000_000


@pytest.mark.parametrize("task", ["Hopper-v5", pytest.param("Humanoid-v5", marks=pytest.mark.slow)])
def test_pools_made_and_closed_leave_memory_where_it_was(task: str):
    script = """
        import gc, sys
        import numpy as np, raceway
        from tests.envs.processes import resident_kib, threads
        def cycle():
            own = [{"frame_skip": 1 + i % 2} for i in range(4)]
            pool = raceway.make(sys.argv[1], 4, num_workers=2, seed=0, env_kwargs=own)
            pool.reset()
            state = pool.state()
            state["env.carried"][1] = np.nan  # a fault throws its workspace away
            pool.set_state(state)
            for _ in range(2):
                pool.step(np.ones(pool.action_space.shape, np.float32))
            pool.close()
            try:
                raceway.make(sys.argv[1], 2, xml_file="reacher.xml", frame_skip=0)
            except ValueError:
                pass
        for _ in range(40):
            cycle()
        gc.collect()
        before, alive = resident_kib(), len(threads())
        for _ in range(120):
            cycle()
        gc.collect()
        print(resident_kib() - before, len(threads()) - alive)
    """
    grown, more_threads = (int(each) for each in output_of(script, task, timeout_s=120).split())
    assert grown < 4000  # one workspace lost per pool would be more
    assert more_threads == 0
