import numpy as np
import pytest
from gymnasium import spaces

from raceway.algos.spaces import action_parts, environment_actions, flatten, observation_leaves, unflatten

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
