import re
import sys
from types import ModuleType

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from raceway.algos.spaces import (
    action_parts,
    different_spaces,
    environment_actions,
    flatten,
    flattened_images,
    observation_leaves,
    unflatten,
)

NESTED = spaces.Dict(
    {
        "z": spaces.Tuple((spaces.Box(-1, 1, (2, 2)), spaces.Discrete(3))),
        "a": spaces.MultiDiscrete([2, 4]),
        "m": spaces.Dict({"camera": spaces.Box(0, 255, (48, 40, 3), np.uint8), "flags": spaces.MultiBinary(5)}),
    }
)


def test_leaves_come_in_the_order_of_the_space_and_trees_return_to_it():
    names = [leaf.name for leaf in observation_leaves(NESTED)]
    inner = {"z": ["[0]", "[1]"], "a": [""], "m": ["['camera']", "['flags']"]}
    assert names == [f"obs['{key}']{rest}" for key in NESTED.spaces for rest in inner[key]]
    tree = NESTED.sample()
    leaves = flatten(NESTED, tree)
    assert len(leaves) == 5
    again = unflatten(NESTED, leaves)
    assert again["z"][1] is tree["z"][1]
    assert again["m"]["flags"] is tree["m"]["flags"]


def test_features_of_each_kind():
    by_kind = {leaf.name: (leaf.kind, leaf.num_features, leaf.is_image) for leaf in observation_leaves(NESTED)}
    assert by_kind["obs['z'][0]"] == ("box", 4, False)
    assert by_kind["obs['z'][1]"] == ("discrete", 3, False)
    assert by_kind["obs['a']"] == ("discrete", 6, False)
    assert by_kind["obs['m']['camera']"] == ("bytes", 48 * 40 * 3, True)
    assert by_kind["obs['m']['flags']"] == ("binary", 5, False)


@pytest.mark.parametrize(
    ("shape", "is_image"),
    [((84, 84), True), ((4, 84, 84), True), ((84, 84, 1), True), ((35, 84, 3), False), ((128,), False)],
)
def test_which_bytes_are_images(shape, is_image):
    assert observation_leaves(spaces.Box(0, 255, shape, np.uint8))[0].is_image == is_image


def test_observations_that_no_network_reads_are_refused():
    with pytest.raises(ValueError, match=r"obs\['words'\] is Text.*TransformObservation"):
        observation_leaves(spaces.Dict({"words": spaces.Text(5)}))


def test_actions_that_cannot_be_drawn_are_refused():
    with pytest.raises(ValueError, match="MultiDiscrete"):
        action_parts(spaces.Box(0, 3, (2,), np.int64))
    with pytest.raises(ValueError, match="TransformAction"):
        action_parts(spaces.Dict({"a": spaces.Discrete(2)}))


def test_the_environment_gets_actions_of_its_space():
    assert environment_actions(spaces.Discrete(3, start=5))(np.array([0, 2], np.int32)).tolist() == [5, 7]
    box = spaces.Box(np.array([[-1.0, 0.0]]), np.array([[1.0, 2.0]]), dtype=np.float64)
    given = environment_actions(box)(np.array([[-3, 3], [0.5, 0.5]], np.float32))
    assert given.shape == (2, 1, 2)
    assert given.dtype == np.float64
    assert given.reshape(-1).tolist() == [-1, 2, 0.5, 0.5]
    several = spaces.MultiDiscrete(np.array([[2, 3], [4, 5]]), start=np.array([[0, 1], [2, 3]]))
    assert environment_actions(several)(np.array([[1, 1, 1, 1]]))[0].tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("space", "notes"),
    [
        (spaces.Box(0, 255, (24, 30, 3), np.uint8), [r"obs is an image of 24x30 .*36x36 .*\(env, \(36, 36\)\)"]),
        (spaces.Box(0, 255, (84, 20, 4), np.uint8), [r"obs is an image of 84x20 .*Observation\(env, \(84, 36\)\)"]),
        (spaces.Box(0, 255, (4, 84, 20), np.uint8), [r"obs is an image of 84x20 .*make it 84x36 or larger\. To keep"]),
        (spaces.Box(0, 9, (8, 8), np.uint8), [r"obs is an image of 8x8 .*make it 36x36 or larger\. To keep"]),
        (spaces.Box(0, 255, (8, 8), np.uint8), ["obs is an image of 8x8 pixels, smaller"]),
        (spaces.Box(0, 1, (64, 64, 3), np.float32), ["obs is an image of 64x64 pixels, but not of bytes"]),
        (spaces.Dict({"a": spaces.Box(0, 255, (84, 84), np.uint8), "b": spaces.Box(0, 255, (9, 9), np.uint8)}),
         [r"obs\['b'\] is an image of 9x9 .*make it 36x36 or larger\. To keep"]),
        (spaces.Box(0, 255, (36, 36, 3), np.uint8), []),
        (spaces.Box(0, 255, (128,), np.uint8), []),
        (spaces.Box(-1, 1, (40, 40), np.float32), []),
        (spaces.Discrete(3), []),
    ],
)  # fmt: skip
def test_images_that_are_flattened_are_told(space: spaces.Space, notes: list[str]) -> None:
    found = flattened_images(space)
    assert len(found) == len(notes)
    for text, expected in zip(found, notes, strict=True):
        assert re.match(expected, text)
        assert text.endswith("--network.kind mlp")


def test_spaces_differ_if_a_network_can_tell_them_apart():
    def differ(one: spaces.Space, other: spaces.Space) -> list[str]:
        return [name for name, *_ in different_spaces((one, one), (other, other))]

    unit, text = spaces.Box(-1, 1, (3,)), spaces.Text(5)
    starts = [spaces.MultiDiscrete([2, 3], start=start) for start in ([0, 0], [0, 0], [1, 0])]
    assert "observation" not in differ(NESTED, NESTED)
    assert differ(unit, spaces.Box(-9, 9, (3,), np.float64)) == []
    assert differ(unit, spaces.Box(-1, 1, (4,))) == ["observation", "action"]
    assert "observation" in differ(spaces.Box(0, 255, (3,), np.uint8), spaces.Box(0, 255, (3,)))
    assert "observation" not in differ(starts[0], starts[1])
    assert "observation" in differ(starts[0], starts[2])
    assert "action" in differ(spaces.Discrete(2), spaces.Discrete(3))
    assert "action" in differ(spaces.Discrete(2), spaces.MultiBinary(2))
    assert differ(text, text) == differ(unit, text) == ["observation", "action"], "no policy can have it"


@pytest.mark.parametrize("shape", [(24, 30, 3), (84, 20, 4), (8, 8)])
def test_the_wrapper_that_is_advised_does_it(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cv2", ModuleType("cv2"))  # which only resizes

    class Small(gymnasium.Env):
        observation_space = spaces.Box(0, 255, shape, np.uint8)
        action_space = spaces.Discrete(2)

    (note,) = flattened_images(Small.observation_space)
    found = re.search(r"gymnasium\.wrappers\.ResizeObservation\(env, \((\d+), (\d+)\)\)", note)
    assert found is not None
    resized = gymnasium.wrappers.ResizeObservation(Small(), (int(found[1]), int(found[2])))
    assert flattened_images(resized.observation_space) == []
