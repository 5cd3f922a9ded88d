"""Snapshots: a run after a certain round, as plain arrays and text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from raceway.graph.cuts import Part
from raceway.graph.errors import GraphError
from raceway.graph.node import ENDLESS
from raceway.graph.packing import Record, Unpacking, packed, shown
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
        return arrays, json.dumps({name: packed(value, name, arrays) for name, value in vars(self).items()})

    @classmethod
    def unpack(cls, arrays: Mapping[str, np.ndarray], text: str) -> Snapshot:
        """What `pack` made these of. Whatever else they are, GraphError says why it is no snapshot."""
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise GraphError(f"the text is not JSON: {error}.") from None
        names = {field.name for field in fields(cls)}
        if not isinstance(found, dict) or found.keys() != names:
            raise GraphError(f"the text is {shown(found)}: an object with {', '.join(sorted(names))} is wanted.")
        unpacking = Unpacking(dict(arrays))
        snapshot = _checked({name: unpacking.value(value, name) for name, value in found.items()})
        if unpacking.arrays:
            raise GraphError(f"nothing in the text wants the array {shown(next(iter(unpacking.arrays)))}.")
        return snapshot


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


def _checked(values: Mapping[str, Any]) -> Snapshot:
    """A snapshot of these fields, if they are of the kinds that it has."""
    round_, rounds, states, waiting, ends = (values[field.name] for field in fields(Snapshot))
    for name, value in (("rounds", rounds), ("reactors", states), ("values", waiting), ("ends", ends)):
        if type(value) is not dict or any(type(key) is not str for key in value):
            raise GraphError(f"{name} is {shown(value)}: something for each name is wanted.")
    for name, number in (("round", round_), *rounds.items(), *ends.items()):
        if type(number) is not int or not -1 <= number < ENDLESS:
            raise GraphError(f"the round of {shown(name)} is {shown(number)}: a number from 0 on is wanted.")
    for name, value in waiting.items():
        if type(value) is not list:
            raise GraphError(f"what waits on {shown(name)} is {shown(value)}: a list is wanted.")
    if rounds.keys() != states.keys() or not ends.keys() <= states.keys():
        raise GraphError("its reactors, their rounds and their ends are not of the same reactors.")
    return Snapshot(**values)


def fitted(value: Any, type_: Any) -> Any:
    """The value with its records made what the port's type says they are."""
    if type(value) is Record:
        kinds = [get_origin(kind) or kind for kind in _alternatives(type_)]
        kind = next(
            (k for k in kinds if isinstance(k, type) and is_record(k) and set(field_names(k)) == {*value}), None
        )
        if kind is None:
            names = ", ".join(name if name.isidentifier() else shown(name) for name in value)
            raise GraphError(
                f"A saved value has the fields {names}, but its input has the type {type_}, so it cannot be "
                "made again. Give the input the type of the dataclass: Input[Weights]()."
            )
        hints = get_type_hints(kind)
        return make_record(kind, {name: fitted(item, hints.get(name, Any)) for name, item in value.items()})
    if not _is_of(value, type_):
        raise GraphError(f"A saved value is {shown(value)}, but its input has the type {type_}.")
    arguments = next((get_args(k) for k in _alternatives(type_) if get_origin(k) is type(value)), None) or (Any,)
    if type(value) is list:
        return [fitted(item, arguments[0]) for item in value]
    if type(value) is tuple:
        types = arguments if len(arguments) == len(value) and ... not in arguments else arguments[:1] * len(value)
        return tuple(fitted(item, kind) for item, kind in zip(value, types, strict=True))
    if type(value) is dict:
        return {key: fitted(item, arguments[-1]) for key, item in value.items()}
    return value


def _is_of(value: Any, type_: Any) -> bool:
    """Whether a plain value may stand where the type is wanted, as far as that can be told."""
    kinds = [get_origin(kind) or kind for kind in _alternatives(type_)]
    if Any in kinds or not all(isinstance(kind, type) for kind in kinds):
        return True
    if isinstance(value, (bool, int, float, np.generic)):
        return any(issubclass(kind, (bool, int, float, complex, np.generic)) or kind is object for kind in kinds)
    try:
        return isinstance(value, tuple(kinds))
    except TypeError:  # a protocol that nobody can be asked about
        return True


def _alternatives(type_: Any) -> tuple[Any, ...]:
    return get_args(type_) if get_origin(type_) in (Union, UnionType) else (type_,)
