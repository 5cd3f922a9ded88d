"""Counted randomness: every random number is a function of (seed, purpose, draw, env, step).

The words are Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"), bit for bit
those of core/random.hpp. No generator has a position that timing could move.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

Array: TypeAlias = jax.Array
Words: TypeAlias = tuple[Array, Array]

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)


class Purpose(IntEnum):
    """What a number is drawn for: the same seed gives unrelated numbers for each."""

    ACTIONS = 1
    MINIBATCHES = 2
    PARAMETERS = 3


def split_seed(seed: int) -> np.ndarray:
    """A seed of 64 bits as the two words of a key, low word first."""
    return np.array([seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF], np.uint32)


def threefry(key: Words, counter: Words) -> Words:
    """Threefry-2x32 with 20 rounds; keys and counters are uint32 and broadcast."""
    keys = (*key, key[0] ^ key[1] ^ _PARITY)
    a, b = counter[0] + keys[0], counter[1] + keys[1]
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            a = a + b
            b = ((b << np.uint32(distance)) | (b >> np.uint32(32 - distance))) ^ a
        a = a + keys[(group + 1) % 3]
        b = b + keys[(group + 2) % 3] + np.uint32(group + 1)
    return a, b


def words(seed: Array | np.ndarray, purpose: int, draw: Array | int, env: Array, step: Array) -> Words:
    """The two words of a draw; `seed` as split_seed gives it, the others broadcast."""
    purpose_word, draw_word = jnp.uint32(purpose), jnp.asarray(draw, jnp.uint32)
    key = threefry((jnp.asarray(seed[0]), jnp.asarray(seed[1])), (purpose_word, draw_word))
    return threefry(key, (jnp.asarray(env, jnp.uint32), jnp.asarray(step, jnp.uint32)))


def uniform(word: Array) -> Array:
    """A float32 strictly between 0 and 1."""
    return (word >> np.uint32(9)).astype(jnp.float32) * np.float32(2**-23) + np.float32(2**-24)
