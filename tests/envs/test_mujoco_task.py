"""A user's own robot, and models that vary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from gymnasium.spaces import Box

import raceway
from tests.envs.processes import output_of

ROBOT = """
<mujoco model="cart">
  <option timestep="0.01"/>
  <worldbody>
    <site name="goal" pos="1 0 0"/>
    <body name="cart">
      <joint name="slide" type="slide" axis="1 0 0"/>
      <geom type="box" size="0.2 0.1 0.1" mass="1" contype="0" conaffinity="0"/>
      <site name="hook" pos="0 0 0.1"/>
      <body name="pole" pos="0 0 0.1">
        <joint name="hinge" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 0.6" size="0.05" mass="0.1" contype="0" conaffinity="0"/>
      </body>
      <body name="ball" pos="0 0.5 0">
        <joint name="ball" type="ball"/>
        <geom type="sphere" size="0.1" mass="0.1" contype="0" conaffinity="0"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="push" joint="slide" ctrlrange="-2 2"/>
    <motor name="twist" joint="hinge"/>
  </actuator>
  <sensor>
    <jointpos name="angle" joint="hinge"/>
    <accelerometer name="accelerometer" site="hook"/>
  </sensor>
  <keyframe>
    <key name="tilted" qpos="0.5 0.3 1 0 0 0" qvel="0.1 0 0 0 0" ctrl="0 0.25"/>
  </keyframe>
</mujoco>
"""


@pytest.fixture
def robot(tmp_path: Path) -> Path:
    path = tmp_path / "robot.xml"
    path.write_text(ROBOT)
    return path


class Reference:
    """The same robot, stepped by MuJoCo's own Python bindings."""

    def __init__(self, path: Path, frame_skip: int) -> None:
        self.model = mujoco.MjModel.from_xml_path(str(path))
        self.data = mujoco.MjData(self.model)
        self.frame_skip = frame_skip

    def start(self, qpos: np.ndarray, qvel: np.ndarray) -> None:
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:], self.data.qvel[:] = qpos, qvel
        mujoco.mj_forward(self.model, self.data)

    def step(self, ctrl: np.ndarray) -> None:
        self.data.ctrl[:] = ctrl
        mujoco.mj_step(self.model, self.data, nstep=self.frame_skip)
        mujoco.mj_rnePostConstraint(self.model, self.data)


def test_observations_and_rewards_are_what_mujoco_computes(robot: Path) -> None:
    weights = {
        "alive": 2.0,
        "x_velocity:cart": 1.0,
        "control_cost": -0.1,
        "distance:hook:goal": -0.5,
        "upright:pole": 0.3,
        "qpos:hinge": 0.7,
        "qvel:slide": 0.2,
        "sensor:accelerometer:2": 0.01,
        "z_position:pole": 0.4,
        "contact_cost": -0.25,
    }
    observe = [
        "qpos",
        "qvel",
        "sensor:accelerometer",
        "sensor:angle",
        "qpos:ball",
        "qvel:ball",
        "x_position:pole",
        "sensors",
    ]
    envs = raceway.make("MujocoTask-v0", 1, xml_file=robot, frame_skip=3, observe=observe, reward=weights, seed=4)
    assert envs.single_action_space.shape == (2,)
    assert envs.single_action_space == Box(np.array([-2, -np.inf], np.float32), np.array([2, np.inf], np.float32))
    observation, infos = envs.reset()
    assert infos == {}
    reference = Reference(robot, 3)
    model, data = reference.model, reference.data
    nq, nv = model.nq, model.nv
    reference.start(observation[0, :nq], observation[0, nq : nq + nv])

    def expected_observation() -> np.ndarray:
        acceleration, angle = data.sensor("accelerometer").data, data.sensor("angle").data
        ball = (data.joint("ball").qpos, data.joint("ball").qvel)
        pole = data.body("pole").xpos[:1]
        return np.concatenate([data.qpos, data.qvel, acceleration, angle, *ball, pole, data.sensordata])

    np.testing.assert_array_equal(observation[0], expected_observation())
    rng = np.random.default_rng(0)
    for _ in range(200):
        before = data.body("cart").xpos.copy()
        action = rng.uniform(-2, 2, (1, 2)).astype(np.float32)
        reference.step(action[0])
        observation, reward, terminated, _, infos = envs.step(action)
        terms = {
            "alive": 1.0,
            "x_velocity:cart": (data.body("cart").xpos[0] - before[0]) / (3 * model.opt.timestep),
            "control_cost": np.sum(np.square(data.ctrl)),
            "distance:hook:goal": np.linalg.norm(data.site("hook").xpos - data.site("goal").xpos),
            "upright:pole": data.body("pole").xmat[8],
            "qpos:hinge": data.joint("hinge").qpos[0],
            "qvel:slide": data.joint("slide").qvel[0],
            "sensor:accelerometer:2": data.sensor("accelerometer").data[2],
            "z_position:pole": data.body("pole").xpos[2],
            "contact_cost": np.sum(np.square(data.cfrc_ext)),
        }
        total = 0.0
        for name, value in terms.items():
            assert infos[f"reward_{name}"][0] == weights[name] * value, name
            total += weights[name] * value
        assert reward[0] == total
        np.testing.assert_array_equal(observation[0], expected_observation())
        assert not terminated[0]


def test_an_episode_ends_outside_of_a_range(robot: Path) -> None:
    envs = raceway.make(
        "MujocoTask-v0",
        8,
        xml_file=robot,
        observe=["qpos:hinge"],
        reward={"alive": 1.0},
        terminate={"qpos:hinge": (-0.4, np.inf), "upright:pole": (0.5, 1.0)},
        seed=1,
        autoreset="disabled",
        max_episode_steps=1000,
    )
    envs.reset()
    ended = np.zeros(8, dtype=bool)
    rng = np.random.default_rng(1)
    for _ in range(400):
        observation, reward, terminated, truncated, _ = envs.step(rng.uniform(-1, 1, (8, 2)).astype(np.float32))
        outside = observation[:, 0] < -0.4 - 0.2  # upright lags one substep behind, so a margin
        assert terminated[outside].all()
        np.testing.assert_array_equal(reward, np.where(terminated, 0.0, 1.0))
        ended |= terminated
        if (terminated | truncated).any():
            envs.reset(options={"reset_mask": terminated | truncated})
    assert ended.all()


def test_keyframe_actuators_and_noise(robot: Path) -> None:
    envs = raceway.make(
        "MujocoTask-v0",
        2,
        xml_file=robot,
        actuators=["push"],
        keyframe="tilted",
        reset_noise_scale=0.0,
        reward={"control_cost": 1.0},
    )
    assert envs.single_action_space.shape == (1,)
    observation, _ = envs.reset(seed=3)
    np.testing.assert_array_equal(observation[0], [0.5, 0.3, 1, 0, 0, 0, 0.1, 0, 0, 0, 0])
    for _ in range(3):  # the other actuator stays where the keyframe put it
        _, reward, *_ = envs.step(np.full((2, 1), 0.5, dtype=np.float32))
        np.testing.assert_array_equal(reward, 0.5**2 + 0.25**2)
    by_number = raceway.make("MujocoTask-v0", 1, xml_file=robot, keyframe=0, actuators=["1", "0"], seed=1)
    assert by_number.single_action_space == Box(np.array([-np.inf, -2], np.float32), np.array([np.inf, 2], np.float32))
    assert abs(by_number.reset()[0][0, 0] - 0.5) < 0.011


def test_a_model_in_the_working_directory_comes_first(robot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (robot.parent / "ant.xml").write_text(ROBOT)
    monkeypatch.chdir(robot.parent)
    assert raceway.make("MujocoTask-v0", 1, xml_file="ant.xml").single_action_space.shape == (2,)
    assert raceway.make("MujocoTask-v0", 1, xml_file="hopper.xml").single_action_space.shape == (3,)  # Gymnasium's
    assert raceway.make("MujocoTask-v0", 1, xml_file=Path("ant.xml")).single_action_space.shape == (2,)
    assert raceway.make("Ant-v5", 1, xml_file="ant.xml").single_action_space.shape == (8,)  # as Gymnasium finds it


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"observe": ["qpo"]}, "observe['qpo']: there is no quantity 'qpo'"),
        ({"observe": ["sensor:gyro"]}, "no sensor 'gyro'. There are: angle, accelerometer"),
        ({"observe": ["act"]}, "nothing that the model has"),
        ({"observe": "qpos"}, "not a list of strings"),
        ({"reward": {"x_velocity:cat": 1.0}}, "reward['x_velocity:cat']: the model has no body 'cat'"),
        ({"reward": {"sensor:accelerometer": 1.0}}, "has 3 numbers; say which"),
        ({"reward": {"sensor:accelerometer:3": 1.0}}, "has 3 numbers; say which"),
        ({"reward": {"qpos:ball": 1.0}}, "several numbers"),
        ({"reward": {"distance:hook": 1.0}}, "no quantity 'distance:hook'"),
        ({"reward": {"alive:cart": 1.0}}, "no quantity 'alive:cart'"),
        ({"reward": {"w_velocity:cart": 1.0}}, "no quantity"),
        ({"reward": {"alive": (0.0, 1.0)}}, "not one finite number"),
        ({"reward": {"alive": np.inf}}, "not one finite number"),
        ({"reward": ["alive"]}, "not a dict"),
        ({"terminate": {"upright:pole": (1.0, 0.0)}}, "(lowest, highest)"),
        ({"terminate": {"upright:pole": (1.0, 2.0, 3.0)}}, "(lowest, highest)"),
        ({"actuators": ["pull"]}, "no actuator 'pull'. There are: push, twist"),
        ({"actuators": ["push", "0"]}, "twice"),
        ({"keyframe": "standing"}, "no key 'standing'. There are: tilted"),
        ({"keyframe": 4}, "has 1 keyframes"),
        ({"xml_file": None}, "xml_file is missing"),
        ({"randomize": {"mass": "heavy"}}, "not a number"),
        ({"randomize": {"masss": 1.0}}, "no 'masss'"),
        ({"randomize": {"mass:world": 1.0}}, "the world has no mass"),
        ({"reward": {"alive\nalive": 1.0}}, "names as keys"),
        ({"observe": []}, "observe is empty"),
        ({"actuators": []}, "actuators is empty"),
    ],
)
def test_what_is_wrong_is_said(robot: Path, kwargs: dict, message: str) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        raceway.make("MujocoTask-v0", 1, **{"xml_file": robot, **kwargs})
    assert message in str(caught.value)


def test_state_of_a_robot_is_exact(robot: Path) -> None:
    kwargs: dict[str, Any] = {
        "xml_file": robot,
        "observe": ["qpos", "x_velocity:cart", "sensors"],
        "reward": {"forward_velocity": 1.0},
        "terminate": {"upright:pole": (0.2, 1.0)},
        "randomize": {"mass": (0.5, 2.0), "gain": (0.5, 1.5), "damping": (0.5, 1.5)},
    }
    envs = raceway.make("MujocoTask-v0", 5, seed=1, **kwargs)
    other = raceway.make("MujocoTask-v0", 5, num_workers=1, **kwargs)
    rng = np.random.default_rng(2)
    actions = rng.uniform(-2, 2, (120, 5, 2)).astype(np.float32)
    envs.reset()
    for action in actions[:60]:
        envs.step(action)
    other.set_state(envs.state())
    np.testing.assert_array_equal(other.observe(), envs.observe())
    for action in actions[60:]:
        for a, b in zip(envs.step(action)[:4], other.step(action)[:4], strict=True):
            np.testing.assert_array_equal(a, b)


def rewards_of(envs: raceway.envs.native.NativePool, steps: int = 30) -> np.ndarray:
    envs.reset(seed=7)
    rng = np.random.default_rng(3)
    return np.array(
        [envs.step(rng.uniform(-1, 1, envs.action_space.shape).astype(np.float32))[1] for _ in range(steps)]
    )


def test_factors_are_drawn_anew_at_every_reset_by_the_environment_itself() -> None:
    envs = raceway.make("Hopper-v5", 4, randomize={"mass": (0.5, 2.0), "gravity": (0.9, 1.1)}, num_workers=2)
    envs.reset(seed=1)
    first = envs.state()["env.factors"]
    assert first.shape == (4, 5)  # four bodies and gravity
    assert len(np.unique(first)) == first.size
    assert (first[:, :4] >= 0.5).all()
    assert (first[:, :4] <= 2.0).all()
    assert (abs(first[:, 4] - 1.0) <= 0.1).all()
    envs.reset()
    assert not np.isin(envs.state()["env.factors"], first).any()
    envs.reset(seed=1)
    np.testing.assert_array_equal(envs.state()["env.factors"], first)
    alone = raceway.make("Hopper-v5", 1, randomize={"mass": (0.5, 2.0), "gravity": (0.9, 1.1)})
    alone.reset(seed=3)
    np.testing.assert_array_equal(alone.state()["env.factors"][0], first[2])


def test_a_factor_of_one_changes_nothing() -> None:
    every = dict.fromkeys(
        ("mass", "friction", "gain", "damping", "stiffness", "armature", "frictionloss", "gravity"), 1.0
    )
    plain = rewards_of(raceway.make("Walker2d-v5", 3))
    np.testing.assert_array_equal(rewards_of(raceway.make("Walker2d-v5", 3, randomize=every)), plain)


@pytest.mark.parametrize("field", ["mass", "friction", "gain", "damping", "stiffness", "armature", "gravity"])
def test_a_factor_does_what_changing_the_model_does(field: str) -> None:
    """Against MuJoCo's bindings with the model's own arrays multiplied."""
    path = Path(raceway.envs.catalog.ASSETS) / "walker2d_v5.xml" if field != "stiffness" else None
    path = path or Path(raceway.envs.catalog.ASSETS) / "half_cheetah.xml"
    model = mujoco.MjModel.from_xml_path(str(path))
    if field == "mass":
        model.body_mass *= 1.5
        model.body_inertia *= 1.5
    elif field == "friction":
        model.geom_friction *= 1.5
    elif field == "gain":
        model.actuator_gainprm[:, :3] *= 1.5
        model.actuator_biasprm[:, :3] *= 1.5
    elif field == "stiffness":
        model.jnt_stiffness *= 1.5
    elif field == "gravity":
        model.opt.gravity *= 1.5
    else:
        getattr(model, f"dof_{field}")[:] *= 1.5
    data = mujoco.MjData(model)
    mujoco.mj_setConst(model, data)
    envs = raceway.make("MujocoTask-v0", 1, xml_file=path, frame_skip=2, randomize={field: 1.5}, seed=1)
    observation, _ = envs.reset()
    mujoco.mj_resetData(model, data)
    data.qpos[:], data.qvel[:] = observation[0, : model.nq], observation[0, model.nq :]
    mujoco.mj_forward(model, data)
    rng = np.random.default_rng(0)
    for _ in range(100):
        action = rng.uniform(-1, 1, (1, model.nu)).astype(np.float32)
        data.ctrl[:] = action[0]
        mujoco.mj_step(model, data, nstep=2)
        observation = envs.step(action)[0]
        np.testing.assert_array_equal(observation[0], np.concatenate([data.qpos, data.qvel]))


def test_each_environment_may_have_its_own_constants() -> None:
    own = [{"randomize": {"mass": 0.5}}, {}, {"randomize": {"mass": 2.0}}]
    with pytest.raises(ValueError, match="environment 1 has another state 'factors' than environment 0"):
        raceway.make("Swimmer-v5", 3, env_kwargs=own)
    own[1] = {"randomize": {"mass": 1.0}}
    rewards = rewards_of(raceway.make("Swimmer-v5", 3, env_kwargs=own))
    plain = rewards_of(raceway.make("Swimmer-v5", 3))
    np.testing.assert_array_equal(rewards[:, 1], plain[:, 1])
    assert (rewards[:, 0] != plain[:, 0]).any()
    assert (rewards[:, 2] != plain[:, 2]).any()


def test_environments_of_one_file_share_its_model_whatever_their_own_arguments() -> None:
    """A model of each one's own would take half a megabyte and five milliseconds each."""
    output = output_of("""
        import time
        import raceway
        from tests.envs.processes import resident_kib
        raceway.make("Ant-v5", 4).reset(seed=0)
        own = [{"randomize": {"mass": 1.0 + i / 10000}, "ctrl_cost_weight": i / 1000} for i in range(1000)]
        before, start = resident_kib(), time.perf_counter()
        pool = raceway.make("Ant-v5", 1000, env_kwargs=own)
        pool.reset(seed=0)
        print(time.perf_counter() - start, (resident_kib() - before) / 1024)
    """)
    seconds, megabytes = map(float, output.split())
    assert seconds < 5.0  # 0.4 s on an idle machine
    assert megabytes < 100.0


def test_higher_terms_of_damping_and_stiffness_are_scaled_too(tmp_path: Path) -> None:
    path = tmp_path / "robot.xml"
    path.write_text(ROBOT.replace('axis="1 0 0"/>', 'axis="1 0 0" damping="0 5 0" stiffness="0 50 0"/>'))
    observe = ["qpos", "qvel"]
    found = []
    for randomize in (None, {"damping": 1.0, "stiffness": 1.0}, {"damping": 3.0}, {"stiffness": 3.0}):
        envs = raceway.make("MujocoTask-v0", 1, xml_file=path, observe=observe, randomize=randomize)
        envs.reset(seed=1)
        rows = [envs.step(np.full((1, 2), 1.5, np.float32))[0].copy() for _ in range(20)]
        found.append(np.array(rows))
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != found[2]).any()
    assert (found[0] != found[3]).any()


def test_a_model_with_plugins_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "robot.xml"
    plugin = '<extension><plugin plugin="mujoco.pid"><instance name="pid"/></plugin></extension>'
    actuator = '<plugin joint="hinge" plugin="mujoco.pid" instance="pid"/>'
    text = ROBOT.replace("<worldbody>", f"{plugin}<worldbody>").replace("<actuator>", f"<actuator>{actuator}")
    path.write_text(text)
    with pytest.raises(ValueError, match="plugin"):  # by us, or by MuJoCo where its plugins were not loaded
        raceway.make("MujocoTask-v0", 1, xml_file=path)
