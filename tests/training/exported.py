"""Policies with random weights in run folders, observations for them, and what is exported of them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import onnxruntime
from gymnasium import Space, spaces
from hypothesis import strategies as st

import raceway
from raceway.algos.build import build_algorithm
from raceway.algos.configs import NetworkConfig
from raceway.algos.networks import ActorCritic, Scales
from raceway.algos.rollout import Scaling, Weights
from raceway.algos.spaces import flatten, observation_leaves, unflatten
from raceway.training.config import LogConfig, TrainConfig
from raceway.training.folder import RunFolder
from raceway.training.policy_files import PolicyFile

PAGE = Path(__file__).parents[2] / "docs/exporting.md"
NUM = 5
VECTOR = spaces.Box(-3.0, 3.0, (4,), np.float32)
Act = Callable[[dict[str, np.ndarray]], np.ndarray]

OBSERVATIONS: dict[str, Space] = {
    "float32": VECTOR,
    "float64": spaces.Box(-3.0, 3.0, (2, 3), np.float64),
    "float16": spaces.Box(-3.0, 3.0, (3,), np.float16),
    "a single number": spaces.Box(-3.0, 3.0, (), np.float32),
    "without bounds": spaces.Box(-np.inf, np.inf, (3,), np.float32),
    "int64": spaces.Box(-9, 9, (3,), np.int64),
    "uint16": spaces.Box(0, 1000, (3,), np.uint16),
    "few bytes": spaces.Box(0, 255, (5, 2), np.uint8),
    "discrete": spaces.Discrete(5),
    "discrete from -2": spaces.Discrete(5, start=-2),
    "multi_discrete": spaces.MultiDiscrete(np.array([[2, 3], [1, 4]]), start=np.array([[0, -1], [7, 2]])),
    "multi_binary": spaces.MultiBinary([2, 3]),
    "image": spaces.Box(0, 255, (40, 44, 3), np.uint8),
    "frames first": spaces.Box(0, 255, (4, 44, 40), np.uint8),
    "grey": spaces.Box(0, 255, (36, 40), np.uint8),
    "nested": spaces.Dict(
        {
            "vector": spaces.Box(-1.0, 1.0, (3,), np.float64),
            "camera": spaces.Box(0, 255, (36, 37, 1), np.uint8),
            "inner": spaces.Dict({"choice": spaces.Discrete(4, start=1), "flags": spaces.MultiBinary(3)}),
            "pair": spaces.Tuple([spaces.MultiDiscrete([2, 3]), spaces.Box(0, 255, (2, 2), np.uint8)]),
        }
    ),
}
ACTIONS: dict[str, Space] = {
    "discrete": spaces.Discrete(4),
    "discrete from 3": spaces.Discrete(4, start=3),
    "one choice": spaces.Discrete(1),
    "multi_discrete": spaces.MultiDiscrete([3, 2, 4]),
    "multi_discrete from elsewhere": spaces.MultiDiscrete(
        np.array([[3, 1], [2, 4]]), start=np.array([[1, -2], [0, 5]])
    ),
    "multi_binary": spaces.MultiBinary([2, 2]),
    "box": spaces.Box(-0.3, 0.5, (2, 2), np.float32),
    "box of float64": spaces.Box(np.array([-0.1, -np.inf]), np.array([0.1, 0.3]), dtype=np.float64),
    "box of float16": spaces.Box(-0.3, 0.4, (3,), np.float16),
    "box of a number": spaces.Box(-0.3, 0.4, (), np.float32),
}
NETWORKS = {
    "separate": NetworkConfig(hidden=(16, 8)),
    "shared relu": NetworkConfig(hidden=(16, 8), shared=True, activation="relu"),
    "linear": NetworkConfig(hidden=()),
    "deep": NetworkConfig(hidden=(8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8)),
}


@dataclass
class Exported:
    """The run of a policy with random weights, and observations for it."""

    path: Path
    observation_space: Space
    weights: Weights
    network: ActorCritic
    obs: Any
    """A batch, nested like the space."""
    leaves: dict[str, np.ndarray]
    """The same by the names that exports have for it."""

    def outputs(self, mask: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """What the ONNX model gives for all observations at once; for one at a time it must be the same."""
        session = onnxruntime.InferenceSession(raceway.export(self.path))
        feed = self.leaves if mask is None else self.leaves | {"action_mask": mask}
        names = [output.name for output in session.get_outputs()]
        assert [given.name for given in session.get_inputs()] == list(feed)
        together = dict(zip(names, session.run(None, feed), strict=True))
        for row in range(2):
            single = session.run(None, {name: leaf[row : row + 1] for name, leaf in feed.items()})
            for name, value in zip(names, single, strict=True):
                np.testing.assert_allclose(value[0], together[name][row], rtol=1e-5, atol=1e-5)
        return together

    def expected(self) -> tuple[np.ndarray, np.ndarray]:
        """What the network gives: the distribution's inputs, and values."""
        kinds = observation_leaves(self.observation_space)
        raw = flatten(self.observation_space, self.obs)
        leaves = [np.asarray(leaf - kind.start, kind.dtype) if kind.kind == "discrete" else leaf.astype(kind.dtype)
                  for leaf, kind in zip(raw, kinds, strict=True)]  # fmt: skip
        scaling, scales = self.weights.scaling, None
        if scaling is not None:
            scales = Scales(*(tuple(flatten(self.observation_space, part)) for part in (scaling.mean, scaling.rate)))
        network = self.network
        apply = jax.jit(lambda params, leaves: network.apply(network.unravel(params), network.prepare(leaves, scales)))
        inputs, values = apply(self.weights.params, leaves)
        return np.asarray(inputs), np.asarray(values)


def begun(config: TrainConfig) -> RunFolder:
    folder = RunFolder.at(config)
    folder.begin(config)
    return folder


def made(
    directory: Path,
    observation: Space = VECTOR,
    action: Space = ACTIONS["discrete"],
    network: NetworkConfig = NETWORKS["separate"],
    *,
    algo: str = "ppo",
    normalised: bool = False,
    seed: int = 0,
    name: str | None = "run",
    **facts: Any,
) -> Exported:
    config = TrainConfig("Made-v0", algo=algo, network=network, log=LogConfig(directory=str(directory), name=name))
    folder = begun(config)
    rng = np.random.default_rng(seed)
    built = build_algorithm(config.algorithm, observation, action, network).network
    assert isinstance(built, ActorCritic)
    weights = Weights(7, random_params(built, rng), random_scaling(observation, rng) if normalised else None)
    told = {"env": "Made-v0", "env_args": {"length": 3}, "algo": algo, "seed": 1, **facts}
    PolicyFile(folder.final, observation, action, told).write(weights)
    observation.seed(seed)
    samples = [flatten(observation, observation.sample()) for _ in range(NUM)]
    kinds = flatten(observation, observation)
    leaves = [np.stack(each).astype(kind.dtype) for each, kind in zip(zip(*samples, strict=True), kinds, strict=True)]
    names = [".".join(["obs", *map(str, leaf.path)]) for leaf in observation_leaves(observation)]
    obs = unflatten(observation, leaves)
    return Exported(folder.path, observation, weights, built, obs, dict(zip(names, leaves, strict=True)))


def random_params(network: ActorCritic, rng: np.random.Generator) -> np.ndarray:
    """Of a size that keeps what they make of each other near 1."""
    arrays = {}
    for block in network.layout.blocks.values():
        width = 1.0 if block.name.endswith("weights") else 0.1
        arrays[block.name] = rng.normal(size=block.shape) * width / math.sqrt(math.prod(block.shape[:-1]))
    return network.layout.assemble(arrays)


def random_scaling(space: Space, rng: np.random.Generator) -> Scaling:
    """With rates of which some reach the limit of 10."""
    means, rates = [], []
    for leaf in observation_leaves(space):
        normalised = leaf.kind == "box"
        means.append(rng.normal(size=leaf.shape).astype(np.float32) if normalised else None)
        rates.append(rng.choice([0.3, 1.0, 20.0], size=leaf.shape).astype(np.float32) if normalised else None)
    return Scaling(unflatten(space, means), unflatten(space, rates))


def assert_close(actions: np.ndarray, expected: np.ndarray) -> None:
    assert actions.dtype == expected.dtype
    assert actions.shape == expected.shape
    tolerance = 1e-3 if actions.dtype == np.float16 else 1e-5
    np.testing.assert_allclose(actions, expected, rtol=tolerance, atol=tolerance)


def code_of_the_page(path: Path) -> dict[str, Any]:
    """The NumPy of the documentation, for another file than the one that it names."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    for code in blocks:
        if "load_file" in code or "def remember" in code:
            exec(code.replace("cartpole.", f"{path.with_suffix('')}."), names)
    return names


def act_of_the_page(path: Path) -> Act:
    return code_of_the_page(path)["act"]


def boxes() -> st.SearchStrategy[Space]:
    shapes = st.lists(st.integers(1, 4), max_size=3).map(tuple)
    floats = st.sampled_from([np.float32, np.float64])
    real = st.builds(lambda shape, dtype: spaces.Box(-2.0, 2.0, shape, dtype), shapes, floats)
    whole = st.builds(
        lambda shape, dtype: spaces.Box(0, 100, shape, dtype), shapes, st.sampled_from([np.int32, np.uint8])
    )
    return st.one_of(real, whole)


def choices() -> st.SearchStrategy[Space]:
    one = st.builds(lambda n, start: spaces.Discrete(n, start=start), st.integers(1, 6), st.integers(-3, 3))
    parts = st.lists(st.tuples(st.integers(1, 5), st.integers(-3, 3)), min_size=1, max_size=4)
    many = parts.map(lambda each: spaces.MultiDiscrete([n for n, _ in each], start=[start for _, start in each]))
    binary = st.lists(st.integers(1, 3), min_size=1, max_size=2).map(spaces.MultiBinary)
    return st.one_of(one, many, binary)


def observations() -> st.SearchStrategy[Space]:
    keys = st.sampled_from(["a", "b", "camera 1", "é"])
    return st.recursive(
        st.one_of(boxes(), choices()),
        lambda inner: st.one_of(
            st.dictionaries(keys, inner, min_size=1, max_size=3).map(spaces.Dict),
            st.lists(inner, min_size=1, max_size=3).map(spaces.Tuple),
        ),
        max_leaves=4,
    )


def actions() -> st.SearchStrategy[Space]:
    shapes = st.lists(st.integers(1, 3), max_size=2).map(tuple)
    box = st.builds(
        lambda shape, high: spaces.Box(-0.4, high, shape, np.float32), shapes, st.sampled_from([0.3, np.inf])
    )
    return st.one_of(box, choices())


def networks() -> st.SearchStrategy[NetworkConfig]:
    widths = st.lists(st.integers(1, 9), max_size=3).map(tuple)
    return st.builds(NetworkConfig, widths, st.sampled_from(["tanh", "relu"]), st.booleans())
