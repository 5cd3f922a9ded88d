"""Snapshots as arrays and text: what a file can hold without any code."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from raceway.graph import Effect, GraphError, Input, Output, Program, Reactor, Snapshot, Timer, reaction

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
ARRAYS = npst.arrays(st.sampled_from(["f4", "i8", "u1", "?"]), npst.array_shapes(min_dims=0, max_dims=3, max_side=4))
PLAIN = st.recursive(
    SCALARS | ARRAYS | st.floats(width=32, allow_nan=False).map(np.float32),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.lists(inner).map(tuple),
    max_leaves=10,
)


def same(one: object, other: object) -> bool:
    if isinstance(one, (np.ndarray, np.generic)):
        return (
            type(one) is type(other)
            and one.dtype == other.dtype
            and one.tobytes() == other.tobytes()
            and one.shape == other.shape
        )
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return isinstance(other, dict) and list(one) == list(other) and all(same(one[k], other[k]) for k in one)
    return type(one) is type(other) and one == other


@given(st.dictionaries(st.text(), PLAIN), st.lists(PLAIN))
def test_plain_values_come_back_as_they_were(state, values):
    snapshot = Snapshot(4, {"a": 4}, {"a": state}, {"a.x -> a.y": values})
    arrays, text = snapshot.pack()
    json.loads(text)
    again = Snapshot.unpack({name: array.copy() for name, array in arrays.items()}, text)
    assert same(vars(again), vars(snapshot))


@dataclass(frozen=True)
class Weights:
    layers: list[Layer]
    version: int


class Layer(NamedTuple):
    matrix: np.ndarray
    bias: float | None


class Teacher(Reactor):
    tick = Timer()
    weights = Output[Weights]()

    @reaction(tick, effects=weights)
    def teach(self) -> Effect[Weights]:
        return self.weights(Weights([Layer(np.full(3, self.round), 0.5), Layer(np.zeros(1), None)], self.round))


class Pupil(Reactor):
    inp = Input[Any]()

    @reaction(inp)
    def take(self, weights: Any) -> None: ...


def school() -> tuple[Program, Pupil]:
    program = Program()
    teacher, pupil = program.add(Teacher()), program.add(Pupil())
    program.connect(teacher.weights, pupil.inp, after=2)
    return program, pupil


class TypedPupil(Reactor):
    inp = Input[Weights]()

    def __init__(self) -> None:
        self.sums: list[float] = []

    @reaction(inp)
    def take(self, weights: Weights) -> None:
        assert type(weights) is Weights
        assert all(type(layer) is Layer for layer in weights.layers)
        self.sums.append(weights.version + float(weights.layers[0].matrix.sum()))


def typed_school() -> tuple[Program, TypedPupil]:
    program = Program()
    teacher, pupil = program.add(Teacher()), program.add(TypedPupil())
    program.connect(teacher.weights, pupil.inp, after=2)
    return program, pupil


def test_dataclasses_on_their_way_are_made_again_from_the_type_of_the_port(tmp_path):
    program, whole = typed_school()
    program.run(9)
    program, _ = typed_school()
    snapshot = program.run(4, snapshot_at_end=True).snapshot
    assert snapshot is not None
    arrays, text = snapshot.pack()
    np.savez(tmp_path / "arrays.npz", *arrays.values())
    loaded = np.load(tmp_path / "arrays.npz", allow_pickle=False)
    again = Snapshot.unpack({name: loaded[f"arr_{i}"] for i, name in enumerate(arrays)}, text)
    program, pupil = typed_school()
    program.restore(again)
    program.run(5)
    assert pupil.sums == whole.sums


def test_a_record_without_a_type_to_make_it_from_is_refused():
    program, _ = school()
    snapshot = program.run(4, snapshot_at_end=True).snapshot
    assert snapshot is not None
    program, _ = school()
    program.restore(Snapshot.unpack(*snapshot.pack()))
    with pytest.raises(GraphError, match="layers, version"):
        program.run(1)


def test_what_cannot_be_packed_is_named():
    snapshot = Snapshot(0, {"a": 0}, {"a": {}}, {"a.x -> a.y": [object()]})
    with pytest.raises(GraphError, match=r"values/a\.x -> a\.y/0 is a object"):
        snapshot.pack()


def text_with(**changes: Any) -> str:
    _, text = Snapshot(4, {"a": 4}, {"a": {}}, {"a.x -> a.y": []}).pack()
    return json.dumps(json.loads(text) | changes)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "an object with ends, reactors, round, rounds, values is wanted"),
        (text_with(more=1), "an object with"),
        (text_with(round=-2), "the round of 'round' is -2"),
        (text_with(round=True), "the round of 'round' is True"),
        (text_with(rounds={"$dict": [["b", 4]]}), "not of the same reactors"),
        (text_with(rounds={"$dict": [["a", 2**80]]}), "the round of 'a' is"),
        (text_with(values=[]), "values is"),
        (text_with(values={"$dict": [["a.x -> a.y", 1]]}), "a list is wanted"),
        (text_with(ends={"a": 1}), "stands for no value"),
        (text_with(ends={"$code": "print()"}), "stands for no value"),
        (text_with(ends={"$dict": [[["a"], 1]]}), "for a name, or has it twice"),
        (text_with(ends={"$dict": [["a", 1], ["a", 2]]}), "for a name, or has it twice"),
        (text_with(ends={"$dict": [["a"]]}), "a name and its value"),
        (text_with(ends={"$array": "none"}), "wants an array 'none'"),
        (text_with(ends={"$array": [[]]}), "wants an array"),
    ],
)
def test_texts_that_are_no_snapshot_are_refused(text: str, told: str):
    with pytest.raises(GraphError) as raised:
        Snapshot.unpack({}, text)
    assert told in str(raised.value)


def test_each_array_belongs_to_one_value():
    arrays, text = Snapshot(0, {"a": 0}, {"a": {"x": np.zeros(2), "n": np.int64(3), "b": b"01"}}, {}).pack()
    x, n, b = arrays
    for spoiled, told in (
        (arrays | {"more": np.zeros(1)}, "nothing in the text wants the array 'more'"),
        ({x: arrays[x], n: arrays[n]}, "wants an array"),
        (arrays | {n: np.zeros(2)}, "cannot be made of float64"),
        (arrays | {b: np.zeros(2)}, "cannot be made of float64"),
    ):
        with pytest.raises(GraphError, match=told):
            Snapshot.unpack(spoiled, text)
    with pytest.raises(GraphError, match="not a second time"):
        Snapshot.unpack(arrays, text.replace(json.dumps(n), json.dumps(x)))


def test_values_within_values_have_a_bottom():
    deep: Any = []
    for _ in range(200):
        deep = [deep]
    with pytest.raises(GraphError, match="within each other"):
        Snapshot(0, {"a": 0}, {"a": {"x": deep}}, {}).pack()
    with pytest.raises(GraphError, match="within each other"):
        Snapshot.unpack({}, text_with(ends=deep))


def test_an_unpacked_snapshot_can_be_packed_again():
    program, _ = typed_school()
    snapshot = program.run(4, snapshot_at_end=True).snapshot
    assert snapshot is not None
    arrays, text = snapshot.pack()
    assert Snapshot.unpack(arrays, text).pack()[1] == text


@pytest.mark.parametrize(
    ("old", "new"), [('["version", 2]', '["version", "2"]'), ('["layers", [', '["layers", ["x", ')]
)
def test_values_of_another_type_than_the_ports_are_refused(old: str, new: str):
    program, _ = typed_school()
    snapshot = program.run(4, snapshot_at_end=True).snapshot
    assert snapshot is not None
    arrays, text = snapshot.pack()
    assert old in text
    program, _ = typed_school()
    program.restore(Snapshot.unpack(arrays, text.replace(old, new)))
    with pytest.raises(GraphError, match="but its input has the type"):
        program.run(1)
