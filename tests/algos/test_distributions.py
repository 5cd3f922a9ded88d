import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from raceway.algos.counted import split_seed
from raceway.algos.distributions import Bernoulli, Categorical, Draw, Gaussian

ROWS = 40_000


def _draw(rows: int = ROWS) -> Draw:
    return Draw(split_seed(5), jnp.arange(rows), jnp.full(rows, 17))


def _repeated(row: list[float], rows: int = ROWS) -> Any:
    return np.tile(np.array(row, np.float32), (rows, 1))


def _close(counts: np.ndarray, expected: np.ndarray) -> bool:
    return bool(np.all(np.abs(counts - expected) <= 5 * np.sqrt(np.maximum(expected, 1))))


def test_categorical_draws_follow_their_probabilities():
    logits = [0.0, 1.0, -1.0, 2.0, 0.5]
    actions = np.asarray(Categorical((3, 2)).sample(_repeated(logits), _draw()))
    for component, part in enumerate((logits[:3], logits[3:])):
        probabilities = np.exp(part) / np.exp(part).sum()
        assert _close(np.bincount(actions[:, component], minlength=len(part)), ROWS * probabilities)
    assert actions.dtype == np.int32


def test_categorical_log_probabilities_and_entropy():
    logits: Any = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
    actions: Any = np.array([[0, 1], [1, 0], [2, 1], [0, 0], [1, 1], [2, 0]], np.int32)
    log_prob: Any = np.zeros(6)
    entropy: Any = np.zeros(6)
    for component, part in enumerate((logits[:, :3], logits[:, 3:])):
        p = np.exp(part) / np.exp(part).sum(axis=1, keepdims=True)
        log_prob += np.log(p[np.arange(6), actions[:, component]])
        entropy -= (p * np.log(p)).sum(axis=1)
    distribution = Categorical((3, 2))
    np.testing.assert_allclose(np.asarray(distribution.log_prob(logits, actions)), log_prob, atol=1e-5)
    np.testing.assert_allclose(np.asarray(distribution.entropy(logits)), entropy, atol=1e-5)
    mode = np.stack([logits[:, :3].argmax(axis=1), logits[:, 3:].argmax(axis=1)], axis=1)
    np.testing.assert_array_equal(np.asarray(distribution.mode(logits)), mode)


def test_the_draw_is_the_first_whose_cumulative_probability_exceeds_the_number():
    logits: Any = np.random.default_rng(1).normal(size=(500, 7)).astype(np.float32)
    draw = _draw(500)
    word = np.asarray(draw.words(1)[0])[:, 0]
    u = (word >> 9) * 2.0**-23 + 2.0**-24
    p = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    expected = (np.cumsum(p, axis=1) <= (u * p.sum(axis=1))[:, None]).sum(axis=1)
    np.testing.assert_array_equal(np.asarray(Categorical((7,)).sample(logits, draw))[:, 0], expected)


def test_masked_choices_are_never_drawn_and_have_no_probability():
    distribution = Categorical((3, 4))
    rng = np.random.default_rng(2)
    inputs: Any = rng.normal(0, 20, size=(ROWS, 7)).astype(np.float32)
    mask: Any = rng.random((ROWS, 7)) < 0.4
    mask[:, 1] |= ~mask[:, :3].any(axis=1)
    mask[:, 6] |= ~mask[:, 3:].any(axis=1)
    masked = distribution.masked(inputs, mask)
    for actions in (distribution.sample(masked, _draw()), distribution.mode(masked)):
        assert mask[np.arange(ROWS), np.asarray(actions)[:, 0]].all()
        assert mask[np.arange(ROWS), 3 + np.asarray(actions)[:, 1]].all()
    forbidden: Any = np.stack([np.argmin(mask[:, :3], axis=1), np.argmax(mask[:, 3:], axis=1)], axis=1).astype(np.int32)
    has_forbidden = ~mask[:, :3].all(axis=1)
    probabilities = np.exp(np.asarray(distribution.log_prob(masked, forbidden)))
    assert np.all(probabilities[has_forbidden] == 0)
    assert np.all(np.isfinite(np.asarray(distribution.entropy(masked))))


def test_gaussian_draws_have_their_mean_and_deviation():
    distribution = Gaussian(3)
    inputs = _repeated([1.0, -2.0, 0.5, math.log(0.5), math.log(2.0), 0.0])
    actions = np.asarray(distribution.sample(inputs, _draw()))
    np.testing.assert_allclose(actions.mean(axis=0), [1, -2, 0.5], atol=0.05)
    np.testing.assert_allclose(actions.std(axis=0), [0.5, 2, 1], rtol=0.02)
    standard = (actions - [1, -2, 0.5]) / [0.5, 2, 1]
    np.testing.assert_allclose((standard**3).mean(axis=0), 0, atol=0.08)
    np.testing.assert_allclose((standard**4).mean(axis=0), 3, atol=0.15)
    np.testing.assert_allclose(np.corrcoef(standard.T), np.eye(3), atol=0.025)


def test_gaussian_draws_are_box_and_muller_of_the_words():
    draw = _draw(20)
    u1, u2 = ((np.asarray(word) >> 9) * 2.0**-23 + 2.0**-24 for word in draw.words(2))
    radius = np.sqrt(-2 * np.log(u1))
    noise = np.stack([radius * np.cos(2 * np.pi * u2), radius * np.sin(2 * np.pi * u2)], axis=-1).reshape(20, 4)[:, :3]
    inputs: Any = np.concatenate([np.full((20, 3), 2.0), np.full((20, 3), -1.0)], axis=1).astype(np.float32)
    np.testing.assert_allclose(np.asarray(Gaussian(3).sample(inputs, draw)), 2 + np.exp(-1) * noise, atol=1e-5)


def test_gaussian_log_probabilities_and_entropy():
    rng = np.random.default_rng(0)
    numbers: Any = rng.normal(size=(3, 5, 2))
    mean, log_std, actions = numbers
    std = np.exp(log_std)
    density = np.exp(-((actions - mean) ** 2) / (2 * std**2)) / (std * np.sqrt(2 * np.pi))
    inputs: Any = np.concatenate([mean, log_std], axis=1).astype(np.float32)
    distribution = Gaussian(2)
    found = distribution.log_prob(inputs, actions.astype(np.float32))
    np.testing.assert_allclose(np.asarray(found), np.log(density).sum(axis=1), atol=1e-4)
    entropy = 0.5 * np.log(2 * np.pi * np.e * std**2).sum(axis=1)
    np.testing.assert_allclose(np.asarray(distribution.entropy(inputs)), entropy, atol=1e-5)
    np.testing.assert_array_equal(np.asarray(distribution.mode(inputs)), inputs[:, :2])
    with pytest.raises(ValueError, match="none can be forbidden"):
        distribution.masked(inputs, inputs > 0)


def test_bernoulli_draws_probabilities_entropy_and_masks():
    distribution = Bernoulli(3)
    logits = [0.0, 2.0, -1.0]
    p = 1 / (1 + np.exp(-np.array(logits)))
    actions = np.asarray(distribution.sample(_repeated(logits), _draw()))
    assert _close(actions.sum(axis=0), ROWS * p)
    row = _repeated(logits, 1)
    np.testing.assert_allclose(
        np.asarray(distribution.log_prob(row, jnp.array([[1, 0, 1]]))), np.log(p[0] * (1 - p[1]) * p[2]), atol=1e-5
    )
    entropy = -(p * np.log(p) + (1 - p) * np.log(1 - p)).sum()
    np.testing.assert_allclose(np.asarray(distribution.entropy(row)), entropy, atol=1e-5)
    masked = distribution.masked(_repeated(logits), jnp.array([True, False, True]))
    assert np.asarray(distribution.sample(masked, _draw()))[:, 1].sum() == 0
    assert np.isfinite(np.asarray(distribution.entropy(masked))).all()
