from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from raceway.algos.convolution import NatureCNN, convolve, convolve_patches


@pytest.mark.parametrize(("kernel", "stride", "size"), [(8, 4, (20, 23)), (4, 2, (9, 10)), (3, 1, (7, 5))])
def test_patches_times_a_matrix_are_the_convolution(kernel, stride, size):
    rng = np.random.default_rng(0)
    images: Any = rng.normal(size=(3, *size, 2)).astype(np.float32)
    weights: Any = (rng.normal(size=(kernel, kernel, 2, 5)) / kernel).astype(np.float32)
    expected = np.asarray(convolve(images, weights, stride))
    np.testing.assert_allclose(np.asarray(convolve_patches(images, weights, stride)), expected, atol=1e-5)


@pytest.mark.parametrize("shape", [(40, 37, 3), pytest.param((36, 36), marks=pytest.mark.slow)])
def test_both_forms_of_the_network_give_the_same_features_and_gradients(shape):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, size=(34, *shape)).astype(np.uint8)  # two chunks of 17
    direction = rng.normal(size=(34, 512)).astype(np.float32)
    outputs = []
    for patches in (True, False):
        network = NatureCNN(shape, patches=patches)
        params = network.init(np.random.default_rng(1))

        def features(params, images, network=network):
            found = network.apply(params, network.prepare(images))
            return (found * direction).mean(), found

        (_, found), gradient = jax.jit(jax.value_and_grad(features, has_aux=True))(params, images)
        outputs.append((np.asarray(found), {name: np.asarray(part) for name, part in gradient.items()}))
    (ours, our_gradient), (theirs, their_gradient) = outputs
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    assert np.abs(theirs).max() > 0.1
    for name, part in their_gradient.items():
        np.testing.assert_allclose(our_gradient[name], part, atol=1e-5 * max(1.0, np.abs(part).max()))


def test_channels_first_and_last_are_the_same_picture():
    picture: Any = np.random.default_rng(0).integers(0, 256, size=(2, 40, 44, 3)).astype(np.uint8)
    first, last = NatureCNN((3, 40, 44), patches=True), NatureCNN((40, 44, 3), patches=True)
    np.testing.assert_array_equal(
        np.asarray(first.prepare(jnp.moveaxis(picture, -1, 1))), np.asarray(last.prepare(picture))
    )
