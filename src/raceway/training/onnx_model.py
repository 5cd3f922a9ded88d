"""A policy as an ONNX model: raw observations in, actions as the environment takes them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from raceway.algos.distributions import MASKED
from raceway.algos.networks import OBSERVATION_LIMIT
from raceway.errors import MissingPackageError
from raceway.training.blueprint import Blueprint, Entry, Layer, Memory

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto, ValueInfoProto

OPSET = 17
"""Of 2022, as its IR: old enough for every runtime that is in use."""
IR_VERSION = 8
_ACTIVATIONS = {"tanh": "Tanh", "relu": "Relu"}


def onnx_model(blueprint: Blueprint, facts: Mapping[str, str], about: str) -> bytes:
    """The model's file. `facts` become its metadata."""
    try:
        import onnx
    except ImportError:
        raise MissingPackageError(
            "ONNX models are written by the onnx package, which is not installed. pip install 'raceway[onnx]'"
        ) from None
    from raceway import __version__

    writer = Writer(blueprint)
    outputs = writer.write()
    graph = onnx.helper.make_graph(
        writer.nodes, "policy", writer.inputs(), outputs, initializer=writer.constants, doc_string=about
    )
    model = onnx.helper.make_model(
        graph,
        ir_version=IR_VERSION,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        producer_name="raceway",
        producer_version=__version__,
        doc_string=about,
    )
    onnx.helper.set_model_props(model, dict(facts))
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString(deterministic=True))


class Writer:
    """Writes down the nodes of a graph. Methods give the name of what they compute."""

    def __init__(self, blueprint: Blueprint) -> None:
        self._blueprint = blueprint
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []

    def write(self) -> list[ValueInfoProto]:
        """All nodes; what the graph gives."""
        blueprint = self._blueprint
        features = [self._features(entry) for entry in blueprint.features]
        x = features[0] if len(features) == 1 else self._node("Concat", *features, axis=1)
        memory = [] if blueprint.gru is None else [_info("next_memory", np.float32, (blueprint.gru.width,))]
        if blueprint.gru is not None:
            x = self._remember(blueprint.gru, x)
        x = self._run(blueprint.trunk, x)
        inputs = self._run(blueprint.actor, x)
        kinds = {"categorical": self._categorical, "bernoulli": self._bernoulli, "gaussian": self._gaussian}
        outputs = kinds[blueprint.action.kind](inputs)
        if blueprint.critic:
            self._node("Reshape", self._run(blueprint.critic, x), self._shape(()), output="value")
        else:
            self._node("ReduceMax", "q_values", axes=[1], keepdims=0, output="value")
        return [*outputs, _info("value", np.float32, ()), *memory]

    def inputs(self) -> list[ValueInfoProto]:
        """What the graph takes."""
        blueprint = self._blueprint
        found = [_info(entry.name, entry.dtype, entry.shape) for entry in blueprint.inputs]
        if blueprint.has_masks:
            found.append(_info("action_mask", np.bool_, (blueprint.action.num_logits,)))
        if blueprint.gru is not None:
            found.append(_info("memory", np.float32, (blueprint.gru.width,)))
        return found

    # From observations to features.

    def _features(self, entry: Entry) -> str:
        """[B, ...] to [B, F]."""
        if entry.kind == "choices":
            return self._one_hot(entry)
        x = self._cast(entry.name, np.float32)
        if entry.mean is not None and entry.rate is not None:
            x = self._node("Sub", x, self._array(entry.mean))
            x = self._node("Mul", x, self._array(entry.rate))
            limits = [self._constant(np.float32(end)) for end in (-OBSERVATION_LIMIT, OBSERVATION_LIMIT)]
            x = self._node("Clip", x, *limits)
        if entry.scale is not None:
            x = self._node("Mul", x, self._constant(np.float32(entry.scale)))
        return self._encode(entry, x) if entry.kind == "image" else self._node("Flatten", x, axis=1)

    def _one_hot(self, entry: Entry) -> str:
        """Each component beside every choice it has: is it this one?"""
        x = self._node("Flatten", self._cast(entry.name, np.int64), axis=1)
        if any(entry.start):
            x = self._node("Sub", x, self._constant(np.array(entry.start, np.int64)))
        x = self._node("Gather", x, self._constant(_owners(entry.nvec)), axis=1)
        choices = np.concatenate([np.arange(n, dtype=np.int64) for n in entry.nvec])
        return self._cast(self._node("Equal", x, self._constant(choices)), np.float32)

    def _encode(self, entry: Entry, x: str) -> str:
        """The convolutions of ONNX have channels first, the dense layer after them has channels last."""
        if len(entry.shape) == 2:
            x = self._node("Unsqueeze", x, self._constant(np.array([1])))
        elif not entry.channels_first:
            x = self._node("Transpose", x, perm=[0, 3, 1, 2])
        *convolutions, dense = entry.layers
        for layer in convolutions:
            weights = self._blueprint.arrays[layer.weights].transpose(3, 2, 0, 1)
            arrays = self._constant(weights, layer.weights), self._array(layer.bias)
            x = self._node("Conv", x, *arrays, strides=[layer.stride, layer.stride])
            x = self._activate(layer, x)
        x = self._node("Transpose", x, perm=[0, 2, 3, 1])
        return self._run([dense], self._node("Flatten", x, axis=1))

    def _remember(self, gru: Memory, x: str) -> str:
        """The next memory: r and z from both, the candidate n from what r lets through, then (1 - z) n + z h."""
        driven = self._node("Gemm", x, self._array(gru.weights), self._array(gru.bias))
        recalled = self._node("MatMul", "memory", self._array(gru.memory_weights))
        sizes = (2 * gru.width, gru.width)
        (driven, new), (recalled, old) = self._split(driven, sizes), self._split(recalled, sizes)
        gates = self._node("Sigmoid", self._node("Add", driven, recalled))
        reset, keep = self._split(gates, (gru.width, gru.width))
        old = self._node("Mul", reset, self._node("Add", old, self._array(gru.memory_bias)))
        candidate = self._node("Tanh", self._node("Add", new, old))
        fresh = self._node("Mul", self._node("Sub", self._constant(np.float32(1)), keep), candidate)
        return self._node("Add", fresh, self._node("Mul", keep, "memory"), output="next_memory")

    def _run(self, layers: Sequence[Layer], x: str) -> str:
        for layer in layers:
            x = self._node("Gemm", x, self._array(layer.weights), self._array(layer.bias))
            if layer.scale is not None and layer.shift is not None:
                norm = self._array(layer.scale), self._array(layer.shift)
                x = self._node("LayerNormalization", x, *norm, epsilon=1e-6)
            x = self._activate(layer, x)
        return x

    def _activate(self, layer: Layer, x: str) -> str:
        return x if layer.activation is None else self._node(_ACTIVATIONS[layer.activation], x)

    # From the network's outputs to actions.

    def _categorical(self, logits: str) -> list[ValueInfoProto]:
        blueprint = self._blueprint
        nvec = blueprint.action.nvec
        if blueprint.has_masks:
            logits = self._masked(logits, self._allowed(nvec))
        parts = [logits] if len(nvec) == 1 else self._split(logits, nvec)
        choices = [self._node("ArgMax", part, axis=1, keepdims=1) for part in parts]
        x = choices[0] if len(choices) == 1 else self._node("Concat", *choices, axis=1)
        if blueprint.action_start.any():
            x = self._node("Add", x, self._constant(blueprint.action_start))
        return [self._action(x), self._output("logits" if blueprint.critic else "q_values", logits)]

    def _bernoulli(self, logits: str) -> list[ValueInfoProto]:
        if self._blueprint.has_masks:
            logits = self._masked(logits, "action_mask")
        x = self._node("Greater", logits, self._constant(np.float32(0)))
        return [self._action(x), self._output("logits", logits)]

    def _gaussian(self, mean: str) -> list[ValueInfoProto]:
        space, arrays = self._blueprint.action_space, self._blueprint.arrays
        shape, wide = space.shape or (), np.promote_types(np.float32, arrays["action.low"].dtype)
        self._node("Reshape", mean, self._shape(shape), output="mean")
        x = self._cast("mean", wide)
        for operation, end in (("Max", "action.low"), ("Min", "action.high")):
            x = self._node(operation, x, self._constant(arrays[end].astype(wide), end))
        log_std = self._constant(arrays["log_std"].reshape(shape))
        self._node("Expand", log_std, self._node("Shape", "mean"), output="log_std")
        return [self._action(x), _info("mean", np.float32, shape), _info("log_std", np.float32, shape)]

    def _allowed(self, nvec: Sequence[int]) -> str:
        """The mask; where it allows nothing of a component, all of it."""
        owners = _owners(nvec)
        sums = (owners[:, None] == np.arange(len(nvec))).astype(np.float32)
        counts = self._node("MatMul", self._cast("action_mask", np.float32), self._constant(sums))
        nothing = self._node("Less", counts, self._constant(np.float32(0.5)))
        return self._node("Or", "action_mask", self._node("Gather", nothing, self._constant(owners), axis=1))

    def _masked(self, logits: str, allowed: str) -> str:
        return self._node("Where", allowed, logits, self._constant(np.float32(MASKED)))

    def _action(self, x: str) -> ValueInfoProto:
        space = self._blueprint.action_space
        x = self._node("Reshape", x, self._shape(space.shape or ()))
        self._cast(x, space.dtype, output="action")
        return _info("action", space.dtype, space.shape or ())

    def _output(self, name: str, x: str) -> ValueInfoProto:
        self._node("Identity", x, output=name)
        return _info(name, np.float32, (self._blueprint.action.num_logits,))

    # Nodes and constants.

    def _node(self, operation: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        from onnx import helper

        name = f"{operation}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operation, inputs, [output or name], name, **attributes))
        return output or name

    def _split(self, x: str, sizes: Sequence[int]) -> list[str]:
        from onnx import helper

        name = f"Split_{len(self.nodes)}"
        parts = [f"{name}.{index}" for index in range(len(sizes))]
        self.nodes.append(helper.make_node("Split", [x, self._constant(np.array(sizes))], parts, name, axis=1))
        return parts

    def _cast(self, x: str, dtype: Any, output: str | None = None) -> str:
        return self._node("Cast", x, output=output, to=_element(dtype))

    def _shape(self, shape: Sequence[int]) -> str:
        """To reshape to: the batch axis stays as it is."""
        return self._constant(np.array([0, *shape], np.int64))

    def _array(self, name: str) -> str:
        return self._constant(self._blueprint.arrays[name], name)

    def _constant(self, array: Any, name: str | None = None) -> str:
        from onnx import numpy_helper

        name = name or f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(np.shape(array)), name))
        return name


def _owners(nvec: Sequence[int]) -> np.ndarray:
    """For each choice of all components, side by side: of which component it is."""
    return np.repeat(np.arange(len(nvec)), nvec)


def _info(name: str, dtype: Any, shape: Sequence[int]) -> ValueInfoProto:
    from onnx import helper

    return helper.make_tensor_value_info(name, _element(dtype), ["batch", *shape])


def _element(dtype: Any) -> int:
    from onnx import helper

    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
