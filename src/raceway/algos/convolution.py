"""The convolutional encoder of "Human-level control through deep reinforcement learning" (Mnih et al., 2015).

XLA's convolutions are slow on CPUs, its matrix products are not. There each layer is written as patches times a matrix:
blocks of stride x stride pixels become channels first (so that a kernel of 8 and stride 4 is one of 2 and stride 1 with
16 times the channels: four large slices, not sixty-four small ones), and batches go through in chunks that stay in the
cache. Accelerators get the convolution itself. Both read the same parameters and agree up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from raceway.algos.counted import Array
from raceway.algos.parameters import orthogonal
from raceway.algos.platform import computes_on_cpu
from raceway.algos.spaces import channels_first, image_size

# Kernel, stride and channels of each layer; every kernel is a multiple of its stride.
LAYERS = ((8, 4, 32), (4, 2, 64), (3, 1, 64))
NUM_FEATURES = 512
CHUNK = 32


class NatureCNN:
    """Three convolutions and a dense layer, rectified: images [B, *shape] of bytes to [B, 512] features."""

    def __init__(self, shape: tuple[int, ...], *, patches: bool | None = None) -> None:
        self._shape = shape
        self._patches = computes_on_cpu() if patches is None else patches
        height, width, channels = image_size(shape)
        self._sizes = []
        for kernel, stride, outputs in LAYERS:
            height, width = (height - kernel) // stride + 1, (width - kernel) // stride + 1
            self._sizes.append((height, width, channels, outputs))
            channels = outputs
        self._dense_inputs = height * width * channels

    def shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """The names and shapes of its arrays."""
        found: list[tuple[str, tuple[int, ...]]] = []
        for index, ((kernel, _, outputs), (_, _, channels, _)) in enumerate(zip(LAYERS, self._sizes, strict=True)):
            found += [(f"conv{index}.weights", (kernel, kernel, channels, outputs)), (f"conv{index}.bias", (outputs,))]
        return [*found, ("dense.weights", (self._dense_inputs, NUM_FEATURES)), ("dense.bias", (NUM_FEATURES,))]

    def init(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Orthogonal weights, no biases."""
        arrays = {}
        for name, shape in self.shapes():
            fan_in = math.prod(shape[:-1])
            bias = name.endswith("bias")
            arrays[name] = np.zeros(shape) if bias else orthogonal(rng, fan_in, shape[-1], math.sqrt(2)).reshape(shape)
        return arrays

    def prepare(self, images: Array) -> Array:
        """What does not depend on parameters, done once a round: channels last, and for patches the first blocks."""
        if len(self._shape) == 2:
            images = images[..., None]
        elif channels_first(self._shape):
            images = jnp.moveaxis(images, -3, -1)
        return _blocks(images, *LAYERS[0][:2]) if self._patches else images

    def apply(self, params: Mapping[str, Array], images: Array) -> Array:
        """Features of prepared images."""
        batch = len(images)
        chunk = next(size for size in range(min(CHUNK, batch), 0, -1) if batch % size == 0)
        if self._patches and 1 < chunk < batch:  # a loop over single images would gain nothing
            chunks = images.reshape(-1, chunk, *images.shape[1:])
            x = jax.lax.map(lambda part: self._convolutions(params, part), chunks)
        else:
            x = self._convolutions(params, images)
        return jax.nn.relu(x.reshape(batch, -1) @ params["dense.weights"] + params["dense.bias"])

    def _convolutions(self, params: Mapping[str, Array], images: Array) -> Array:
        x = images.astype(jnp.float32) * np.float32(1 / 255)
        for index, (kernel, stride, _) in enumerate(LAYERS):
            weights, bias = params[f"conv{index}.weights"], params[f"conv{index}.bias"]
            if self._patches:
                x = _convolve_patches(x if index == 0 else _blocks(x, kernel, stride), weights, stride)
            else:
                x = convolve(x, weights, stride)
            x = jax.nn.relu(x + bias)
        return x


def convolve(x: Array, weights: Array, stride: int) -> Array:
    """XLA's own convolution: [B, H, W, C] with [k, k, C, O], no padding."""
    layouts = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, weights, (stride, stride), "VALID", dimension_numbers=layouts)


def convolve_patches(x: Array, weights: Array, stride: int) -> Array:
    """The same as patches times a matrix."""
    return _convolve_patches(_blocks(x, weights.shape[0], stride), weights, stride)


def _blocks(x: Array, kernel: int, stride: int) -> Array:
    """[B, H, W, C] to [B, H/s, W/s, s*s*C], less the pixels at the far edges that no patch reaches."""
    if stride == 1:
        return x
    batch, height, width, channels = x.shape
    rows, columns = ((size - kernel) // stride + kernel // stride for size in (height, width))
    x = x[:, : rows * stride, : columns * stride]
    x = x.reshape(batch, rows, stride, columns, stride, channels)
    return x.transpose(0, 1, 3, 2, 4, 5).reshape(batch, rows, columns, stride * stride * channels)


def _convolve_patches(blocks: Array, weights: Array, stride: int) -> Array:
    kernel, _, channels, outputs = weights.shape
    reach = kernel // stride
    rows, columns = blocks.shape[1] - reach + 1, blocks.shape[2] - reach + 1
    slices = [blocks[:, i : i + rows, j : j + columns] for i in range(reach) for j in range(reach)]
    patches = jnp.concatenate(slices, axis=-1)
    # The matrix's rows in the order of a patch's numbers: which block, then which pixel within it, then channel.
    matrix = weights.reshape(reach, stride, reach, stride, channels, outputs).transpose(0, 2, 1, 3, 4, 5)
    return patches @ matrix.reshape(-1, outputs)
