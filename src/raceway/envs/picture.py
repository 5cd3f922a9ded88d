"""How an environment with a MuJoCo model is drawn: Gymnasium's keyword arguments of the same names."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from raceway.envs.catalog import Task, flag, integer, is_sequence, positive, real, text
from raceway.names import did_you_mean

# MuJoCo's mjvCamera.
_CAMERA_FIELDS = (
    "type",
    "fixedcamid",
    "trackbodyid",
    "lookat",
    "distance",
    "azimuth",
    "elevation",
    "orthographic",
)
_WHOLE = ("type", "fixedcamid", "trackbodyid", "orthographic")

Camera = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Picture:
    """Size, camera and what is shown. Environments that share a model and one of these are drawn by one canvas."""

    width: int = 480
    height: int = 480
    camera_id: int | None = None
    camera_name: str | None = None
    camera: Camera | None = None
    """`default_camera_config`: what the free camera differs in from MuJoCo's."""
    tasks_own_camera: bool = True
    """Whether `camera` was not given, so that the task's own is used if it has one."""
    max_geom: int = 1000
    flags: tuple[tuple[int, bool], ...] = ()
    """`visual_options`: MuJoCo's mjtVisFlag, on or off."""

    @property
    def names_camera(self) -> bool:
        return self.camera_id is not None or self.camera_name is not None

    @property
    def names_parts(self) -> bool:
        """Whether it names cameras or flags, which may not be there."""
        return self.names_camera or bool(self.flags)


def picture_of(task: Task, kwargs: Mapping[str, Any]) -> Picture:
    """What `kwargs` of one environment say of its picture, checked. None means: as if not given."""
    given = {name: kwargs[name] for name in task.picture_arguments if kwargs.get(name) is not None}
    picked: dict[str, Any] = {"tasks_own_camera": "default_camera_config" not in kwargs}
    for name, value in given.items():
        field, convert = _CONVERSIONS[name]
        picked[field] = convert(f"{task.id}: {name}", value)
    if "camera_id" in given and "camera_name" in given:
        raise ValueError(
            f"{task.id}: both camera_id={given['camera_id']!r} and camera_name={given['camera_name']!r} are given. "
            "Give one of them."
        )
    return Picture(**picked)


def camera_from(name: str, value: Any) -> Camera:
    """A `default_camera_config` in a form that can be compared."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name}={value!r} is not a dict such as {{'distance': 4.0}}.")
    for field in value:
        if field not in _CAMERA_FIELDS:
            hint = did_you_mean(str(field), _CAMERA_FIELDS)
            raise ValueError(f"{name}: a camera has no {field!r}.{hint} It has: {', '.join(_CAMERA_FIELDS)}.")
    return tuple((field, _camera_value(f"{name}[{field!r}]", field, each)) for field, each in sorted(value.items()))


def _camera_value(name: str, field: str, value: Any) -> Any:
    if field == "lookat":
        if not is_sequence(value) or len(value) != 3:
            raise ValueError(f"{name}={value!r} is not a point. Give three numbers.")
        return tuple(real(name, each) for each in value)
    return _index(name, value) if field in _WHOLE else real(name, value)


def _flags(name: str, value: Any) -> tuple[tuple[int, bool], ...]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{name}={value!r} is not a dict such as {{mujoco.mjtVisFlag.mjVIS_CONTACTPOINT: True}}.")
    return tuple(sorted((_flag_number(name, key), flag(f"{name}[{key!r}]", on)) for key, on in value.items()))


def _flag_number(name: str, key: Any) -> int:
    # JSON, as which Gymnasium stores specs, makes strings of the numbers.
    number = int(key) if isinstance(key, str) and key.isdecimal() else _index(name, key)
    if number < 0:
        raise ValueError(f"{name}: there is no flag {number}. Use MuJoCo's mjtVisFlag.")
    return number


def _index(name: str, value: Any) -> int:
    """A whole number or one of MuJoCo's enumerations."""
    try:
        return integer(name, value if isinstance(value, bool) else operator.index(value))
    except TypeError:
        raise TypeError(f"{name}: {value!r} is not a whole number.") from None


_CONVERSIONS: Mapping[str, Any] = {
    "width": ("width", positive),
    "height": ("height", positive),
    "camera_id": ("camera_id", integer),
    "camera_name": ("camera_name", text),
    "default_camera_config": ("camera", camera_from),
    "max_geom": ("max_geom", positive),
    "visual_options": ("flags", _flags),
}
