"""MuJoCo models for the tests: Gymnasium's own files, and copies of them with other settings."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import gymnasium

ASSETS = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"

_FILES = {
    "Ant-v5": "ant.xml",
    "HalfCheetah-v5": "half_cheetah.xml",
    "Hopper-v5": "hopper.xml",
    "Humanoid-v5": "humanoid.xml",
    "HumanoidStandup-v5": "humanoidstandup.xml",
    "InvertedDoublePendulum-v5": "inverted_double_pendulum.xml",
    "InvertedPendulum-v5": "inverted_pendulum.xml",
    "Pusher-v5": "pusher_v5.xml",
    "Reacher-v5": "reacher.xml",
    "Swimmer-v5": "swimmer.xml",
    "Walker2d-v5": "walker2d_v5.xml",
}


def own_model(task: str) -> Path:
    """The model that a task has by default."""
    return ASSETS / _FILES[task]


@functools.cache
def _folder() -> Path:
    """Where models are written that live as long as this process."""
    folder = tempfile.mkdtemp(prefix="raceway-models-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def write_model(
    task: str,
    name: str,
    *,
    options: Mapping[str, str] | None = None,
    flags: Mapping[str, str] | None = None,
    actuator: Mapping[str, str] | None = None,
    every_actuator: Mapping[str, str] | None = None,
) -> Path:
    """A copy of a task's model with other options and flags, and other attributes of its first or all actuators."""
    root = ElementTree.parse(own_model(task)).getroot()
    option = root.find("option")
    option = ElementTree.SubElement(root, "option") if option is None else option
    option.attrib.update(options or {})
    if flags:
        ElementTree.SubElement(option, "flag", dict(flags))
    actuators = root.find("actuator")
    assert actuators is not None
    for index, each in enumerate(actuators):
        if actuator and index == 0:
            each.tag = "general"
            each.attrib.update(actuator)
        each.attrib.update(every_actuator or {})
    path = _folder() / f"{task}-{name}.xml"
    ElementTree.ElementTree(root).write(path)
    return path


@functools.cache
def changed_model(task: str, timestep: float, integrator: str, solver: str, activated: bool) -> Path:
    """A copy of a task's model: its time step times `timestep`, other algorithms, an actuator with a state of its own.

    MuJoCo's own time step is 2 ms.
    """
    option = ElementTree.parse(own_model(task)).getroot().find("option")
    own = 0.002 if option is None else float(option.get("timestep", 0.002))
    return write_model(
        task,
        f"{timestep}-{integrator}-{solver}-{activated}",
        options={"timestep": str(own * timestep), "integrator": integrator, "solver": solver},
        actuator={"dyntype": "filter", "dynprm": "0.05"} if activated else None,
    )
