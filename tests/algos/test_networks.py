from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import Space, spaces

from raceway.algos.configs import NetworkConfig
from raceway.algos.networks import Network, Scales, UserNetwork, build_network
from raceway.algos.spaces import flatten
from tests.algos.rollouts import random_obs

FLAT = spaces.Tuple((spaces.Box(-1, 1, (2, 3)), spaces.Discrete(4), spaces.Box(-1, 1, (2,))))


def _apply(network: Network, space: Space, obs: Any, scales: Scales | None) -> tuple[np.ndarray, np.ndarray]:
    params = network.unravel(jnp.asarray(network.init(1)))
    leaves = [jnp.asarray(leaf) for leaf in flatten(space, obs)]
    inputs, values = network.apply(params, network.prepare(leaves, scales))
    return np.asarray(inputs), np.asarray(values)


def _native_forward(
    layout: dict[str, Any], flat: np.ndarray, obs: Any, mean: np.ndarray, rate: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The network as its description says, in NumPy."""
    features = []
    for part, leaf in zip(layout["inputs"], obs, strict=True):
        features.append(
            np.eye(part["n"])[leaf] if part["kind"] == "discrete" else leaf.reshape(len(leaf), part["size"])
        )
    boxes = np.concatenate(
        [part for part, of in zip(features, layout["inputs"], strict=True) if of["kind"] == "box"], 1
    )
    boxes = np.clip((boxes - mean) * rate, -10, 10)
    x = np.concatenate([boxes[:, :6], features[1], boxes[:, 6:]], axis=1)
    activations: dict[str, Any] = {"tanh": np.tanh, "relu": lambda z: np.maximum(z, 0)}
    activation = activations[layout["activation"]]

    def run(layers: list[dict[str, int]], x: np.ndarray, linear_end: bool) -> np.ndarray:
        for depth, layer in enumerate(layers):
            size = layer["inputs"] * layer["outputs"]
            weights = flat[layer["weights"] : layer["weights"] + size].reshape(layer["inputs"], layer["outputs"])
            x = x @ weights + flat[layer["bias"] : layer["bias"] + layer["outputs"]]
            x = x if linear_end and depth == len(layers) - 1 else activation(x)
        return x

    x = run(layout["trunk"], x, linear_end=False)
    return run(layout["actor"], x, linear_end=True), run(layout["critic"], x, linear_end=True)[:, 0]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_the_native_description_is_the_network(shared, activation):
    action_space = spaces.Box(-1, 1, (3,))
    config = NetworkConfig(hidden=(8, 5), activation=activation, shared=shared, log_std_init=-0.5)
    network = build_network(config, FLAT, action_space)
    layout = network.native_layout()
    assert layout is not None
    assert layout["inputs"] == [{"kind": "box", "size": 6}, {"kind": "discrete", "n": 4}, {"kind": "box", "size": 2}]
    rng = np.random.default_rng(0)
    flat = network.init(1) + rng.normal(0, 0.1, network.num_params).astype(np.float32)
    obs = random_obs(FLAT, (9,), rng)
    mean, rate = rng.normal(size=8).astype(np.float32), rng.uniform(0.5, 2, 8).astype(np.float32)
    scales = Scales((mean[:6].reshape(2, 3), None, mean[6:]), (rate[:6].reshape(2, 3), None, rate[6:]))
    params = network.unravel(jnp.asarray(flat))
    inputs, values = network.apply(params, network.prepare([jnp.asarray(leaf) for leaf in obs], scales))
    expected_inputs, expected_values = _native_forward(layout, flat, obs, mean, rate)
    np.testing.assert_allclose(np.asarray(inputs)[:, :3], expected_inputs, atol=1e-5)
    np.testing.assert_allclose(np.asarray(values), expected_values, atol=1e-5)
    log_std = layout["action"]["log_std"]
    np.testing.assert_array_equal(np.asarray(inputs)[:, 3:], np.tile(flat[log_std : log_std + 3], (9, 1)))


def test_what_native_code_cannot_run_has_no_description():
    for space in (spaces.Box(0, 255, (40, 40), np.uint8), spaces.MultiBinary(3), spaces.MultiDiscrete([2, 2])):
        assert build_network(NetworkConfig(), space, spaces.Discrete(2)).native_layout() is None


def test_first_weights_are_orthogonal_with_the_usual_gains():
    network = build_network(NetworkConfig(), FLAT, spaces.Discrete(5))
    arrays = {name: np.asarray(part) for name, part in network.unravel(jnp.asarray(network.init(1))).items()}
    for name, gain in (("actor1.weights", np.sqrt(2)), ("actor2.weights", 0.01), ("critic2.weights", 1.0)):
        gram = arrays[name].T @ arrays[name]
        np.testing.assert_allclose(gram, gain**2 * np.eye(len(gram)), atol=1e-5 * gain)
    assert not arrays["actor0.bias"].any()
    np.testing.assert_array_equal(network.init(1), network.init(1))
    assert not np.array_equal(network.init(1), network.init(2))
    assert not np.array_equal(network.init(1), network.init(1 + 2**40))


def test_nested_observations_with_images_reach_the_network():
    space = spaces.Dict(
        {
            "cameras": spaces.Tuple(
                (spaces.Box(0, 255, (36, 40, 3), np.uint8), spaces.Box(0, 255, (36, 36), np.uint8))
            ),
            "inner": spaces.Dict({"goal": spaces.Discrete(3), "flags": spaces.MultiBinary(2)}),
            "memory": spaces.Box(0, 255, (5,), np.uint8),
            "place": spaces.Box(-1, 1, (2,)),
        }
    )
    network = build_network(NetworkConfig(hidden=(4,)), space, spaces.MultiDiscrete([2, 3]))
    rng = np.random.default_rng(0)
    obs = random_obs(space, (3,), rng)
    params = network.unravel(jnp.asarray(network.init(1)))

    @jax.jit
    def apply(leaves):
        return network.apply(params, network.prepare(leaves, None))

    inputs, values = apply(flatten(space, obs))
    assert inputs.shape == (3, 5)
    assert values.shape == (3,)
    changed = [
        obs | {"cameras": (255 - obs["cameras"][0], obs["cameras"][1])},
        obs | {"cameras": (obs["cameras"][0], 255 - obs["cameras"][1])},
        obs | {"inner": obs["inner"] | {"goal": (obs["inner"]["goal"] + 1) % 3}},
        obs | {"inner": obs["inner"] | {"flags": 1 - obs["inner"]["flags"]}},
        obs | {"memory": 255 - obs["memory"]},
        obs | {"place": obs["place"] + 1},
    ]
    for other in changed:
        assert np.abs(apply(flatten(space, other))[1] - values).min() > 0


def test_an_image_alone_goes_straight_to_the_heads_unless_flattened():
    space = spaces.Box(0, 255, (40, 40, 3), np.uint8)
    cnn = build_network(NetworkConfig(), space, spaces.Discrete(3))
    assert cnn.name_of(cnn.num_params - 1) == "critic0.bias"
    mlp = build_network(NetworkConfig(kind="mlp"), space, spaces.Discrete(3))
    assert mlp.name_of(0) == "actor0.weights"
    with pytest.raises(ValueError, match="kind='cnn' needs an image"):
        build_network(NetworkConfig(kind="cnn"), spaces.Box(-1, 1, (3,)), spaces.Discrete(3))


def _user_pair(outputs: int) -> UserNetwork:
    def init(key, obs):
        width = obs["a"].shape[-1]
        return {"actor": jax.random.normal(key, (width, outputs)), "critic": {"w": jnp.ones(width)}}

    def apply(params, obs):
        return obs["a"] @ params["actor"], obs["a"] @ params["critic"]["w"] + obs["n"]

    return UserNetwork(init, apply)


USER_SPACE = spaces.Dict({"a": spaces.Box(-1, 1, (3,)), "n": spaces.Discrete(5)})


def test_a_users_own_network_is_taken_as_it_is():
    network = build_network(_user_pair(4), USER_SPACE, spaces.Discrete(4))
    assert network.num_params == 15
    assert network.name_of(14) == "params['critic']['w']"
    obs = random_obs(USER_SPACE, (6,), np.random.default_rng(0))
    scales = Scales((np.ones(3, np.float32), None), (np.full(3, 2, np.float32), None))
    _, values = _apply(network, USER_SPACE, obs, scales)
    np.testing.assert_allclose(values, ((obs["a"] - 1) * 2).sum(axis=1) + obs["n"], atol=1e-5)
    flat = jnp.asarray(network.init(3))
    np.testing.assert_array_equal(network.ravel(network.unravel(flat)), flat)


def test_a_users_network_of_the_wrong_width_is_refused():
    with pytest.raises(ValueError, match=r"\(1, 4\).*must give a pair.*\(1, 6\)"):
        build_network(_user_pair(4), USER_SPACE, spaces.Box(-1, 1, (3,)))
