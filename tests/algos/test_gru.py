from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from raceway.algos.gru import GRU

T, B, F, H = 7, 3, 4, 5


def _params(seed: int = 0) -> Any:
    """Random biases too: those of init() are zero, and could stand anywhere."""
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in GRU(F, H).shapes()}


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _by_hand(params: dict[str, np.ndarray], x: np.ndarray, h: np.ndarray) -> np.ndarray:
    """The paper's equations, one environment and one step at a time."""
    double = {name: array.astype(np.float64) for name, array in params.items()}
    w, u = (np.split(double[name], 3, axis=1) for name in ("weights", "memory_weights"))
    b = np.split(double["bias"], 3)
    r = _sigmoid(x @ w[0] + b[0] + h @ u[0])
    z = _sigmoid(x @ w[1] + b[1] + h @ u[1])
    n = np.tanh(x @ w[2] + b[2] + r * (h @ u[2] + double["memory_bias"]))
    return (1 - z) * n + z * h


def _inputs() -> Any:
    rng = np.random.default_rng(1)
    features, memory = rng.normal(size=(T, B, F)), rng.normal(size=(B, H))
    return features.astype(np.float32), memory.astype(np.float32), rng.random((T, B)) < 0.3


def test_a_run_is_step_after_step_of_the_equations_and_begins_anew_with_an_episode():
    params, (features, memory, begins) = _params(), _inputs()
    assert begins.any()
    found = GRU(F, H).run(params, features, memory, begins)
    for env in range(B):
        h = memory[env].astype(np.float64)
        for t in range(T):
            h = _by_hand(params, features[t, env], np.zeros(H) if begins[t, env] else h)
            np.testing.assert_allclose(found[t, env], h, atol=1e-5)


def test_one_step_is_a_run_of_one():
    params, (features, memory, _) = _params(), _inputs()
    gru = GRU(F, H)
    one = gru.step(params, features[0], memory)
    np.testing.assert_allclose(gru.run(params, features[:1], memory, jnp.zeros((1, B), bool))[0], one, atol=1e-6)


def test_gradients_reach_back_through_time_to_the_episodes_first_step():
    params, (features, memory, _) = _params(), _inputs()
    begins: Any = np.zeros((T, B), bool)
    begins[3, 1] = True
    gru = GRU(F, H)

    def last(params, features, memory):
        return jnp.sum(jnp.square(gru.run(params, features, memory, begins)[-1]))

    def last_in_a_loop(params, features, memory):
        for t in range(T):
            memory = gru.step(params, features[t], jnp.where(begins[t][:, None], 0.0, memory))
        return jnp.sum(jnp.square(memory))

    found = jax.grad(last, argnums=(0, 1, 2))(params, features, memory)
    wanted = jax.grad(last_in_a_loop, argnums=(0, 1, 2))(params, features, memory)
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5), found, wanted)
    by_features, by_memory = np.abs(found[1]).max(axis=-1), np.abs(found[2]).max(axis=-1)
    assert (by_features[:3, 1] == 0).all()
    assert by_memory[1] == 0
    assert (by_features[:, [0, 2]] > 0).all()
    assert (by_memory[[0, 2]] > 0).all()


@pytest.mark.parametrize(("inputs", "width"), [(2, 6), (6, 2)])
def test_the_first_matrices_are_orthogonal(inputs: int, width: int):
    arrays = GRU(inputs, width).init(np.random.default_rng(0))
    assert {name: array.shape for name, array in arrays.items()} == dict(GRU(inputs, width).shapes())
    for part in np.split(arrays["memory_weights"], 3, axis=1):
        np.testing.assert_allclose(part @ part.T, np.eye(width), atol=1e-6)
    for part in np.split(arrays["weights"], 3, axis=1):
        product = part @ part.T if inputs < width else part.T @ part
        np.testing.assert_allclose(product, 2 * np.eye(min(inputs, width)), atol=1e-6)
