"""Snapshots: a run after a certain round, as plain arrays and text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from raceway.graph.cuts import Part
from raceway.graph.errors import GraphError
from raceway.graph.plan import Plan
from raceway.graph.values import Plain, field_names, hand_out, is_record, make_record


@dataclass(frozen=True)
class Snapshot:
    """Every reactor's state right after its last reaction of a round, and what was on its way to later rounds."""

    round: int
    """The last round that is in it."""
    rounds: dict[str, int]
    """The same for each reactor: in a program with `queue` or `latest` connections they differ."""
    reactors: dict[str, Plain]
    """What each reactor's save() gave."""
    values: dict[str, list[Any]]
    """By connection: the values for rounds after its reader's last one, None where absent."""
    ends: dict[str, int] = field(default_factory=dict)
    """By reactor that has asked for an end of the run that is still ahead: its last round."""

    def pack(self) -> tuple[dict[str, np.ndarray], str]:
        """As named arrays and a JSON text, which files can hold without any code in them."""
        arrays: dict[str, np.ndarray] = {}
        return arrays, json.dumps({name: _packed(value, name, arrays) for name, value in vars(self).items()})

    @classmethod
    def unpack(cls, arrays: Mapping[str, np.ndarray], text: str) -> Snapshot:
        return cls(**{name: _unpacked(value, arrays) for name, value in json.loads(text).items()})


def assemble(plan: Plan, parts: Mapping[int, Part]) -> Snapshot:
    """The whole of a cut."""
    names = {member.id: member.name for member in plan.members}
    leading = [part.round for part in parts.values() if plan.domains[part.member] in plan.leaders]
    return Snapshot(
        round=min(leading, default=max(part.round for part in parts.values())),
        rounds={names[part.member]: part.round for part in parts.values()},
        reactors={names[part.member]: part.state for part in parts.values()},
        values={
            plan.connections[connection].key(plan.members): hand_out(values)
            for part in parts.values()
            for connection, values in part.values.items()
        },
        ends={names[part.member]: part.stops_at for part in parts.values() if part.stops_at is not None},
    )


def _packed(value: Any, path: str, arrays: dict[str, np.ndarray]) -> Any:
    """JSON for a plain value. What JSON has no word for is an object with one key that begins with a dollar sign."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, (np.ndarray, np.generic, bytes)):
        name = f"{len(arrays)}:{path}"
        arrays[name] = np.frombuffer(value, np.uint8) if isinstance(value, bytes) else np.asarray(value)
        kind = "$bytes" if isinstance(value, bytes) else "$array" if isinstance(value, np.ndarray) else "$number"
        return {kind: name}
    if type(value) is list:
        return [_packed(item, f"{path}/{i}", arrays) for i, item in enumerate(value)]
    if type(value) is tuple:
        return {"$tuple": [_packed(item, f"{path}/{i}", arrays) for i, item in enumerate(value)]}
    if type(value) is dict:
        items = [[_packed(key, path, arrays), _packed(item, f"{path}/{key}", arrays)] for key, item in value.items()]
        return {"$dict": items}
    record: Any = type(value)
    if is_record(record):
        names = field_names(record)
        return {"$record": [[name, _packed(getattr(value, name), f"{path}/{name}", arrays)] for name in names]}
    raise GraphError(
        f"{path} is a {type(value).__name__}, which cannot be packed. On connections with a delay, send "
        "arrays, numbers, strings, and lists, tuples, dicts and dataclasses of them."
    )


def _unpacked(value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    if isinstance(value, list):
        return [_unpacked(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, what),) = value.items()
    if kind == "$array":
        return arrays[what]
    if kind == "$number":
        return arrays[what][()]
    if kind == "$bytes":
        return arrays[what].tobytes()
    items = [_unpacked(item, arrays) for item in what]
    if kind == "$tuple":
        return tuple(items)
    return Record(items) if kind == "$record" else dict(items)


class Record(dict[str, Any]):
    """The fields of a dataclass or named tuple whose class is not known here: a file names no code."""


def fitted(value: Any, type_: Any) -> Any:
    """The value with its records made what the port's type says they are."""
    if type(value) is Record:
        kinds = [get_origin(kind) or kind for kind in _alternatives(type_)]
        kind = next(
            (k for k in kinds if isinstance(k, type) and is_record(k) and set(field_names(k)) == {*value}), None
        )
        if kind is None:
            raise GraphError(
                f"A saved value has the fields {', '.join(value)}, but its input has the type {type_}, so it cannot be "
                "made again. Give the input the type of the dataclass: Input[Weights]()."
            )
        hints = get_type_hints(kind)
        return make_record(kind, {name: fitted(item, hints.get(name, Any)) for name, item in value.items()})
    arguments = next((get_args(k) for k in _alternatives(type_) if get_origin(k) is type(value)), None) or (Any,)
    if type(value) is list:
        return [fitted(item, arguments[0]) for item in value]
    if type(value) is tuple:
        types = arguments if len(arguments) == len(value) and ... not in arguments else arguments[:1] * len(value)
        return tuple(fitted(item, kind) for item, kind in zip(value, types, strict=True))
    if type(value) is dict:
        return {key: fitted(item, arguments[-1]) for key, item in value.items()}
    return value


def _alternatives(type_: Any) -> tuple[Any, ...]:
    return get_args(type_) if get_origin(type_) in (Union, UnionType) else (type_,)
