from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from raceway.algos import counted


def _words(*values: int) -> Any:
    return tuple(np.array([value], np.uint32) for value in values)


@pytest.mark.parametrize(
    ("key", "counter", "expected"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry_gives_the_known_answers_of_its_authors(key, counter, expected):
    found = counted.threefry(_words(*key), _words(*counter))
    assert tuple(int(word[0]) for word in found) == expected


def test_words_are_two_applications_of_threefry():
    seed = 0x0123456789ABCDEF
    key = counted.threefry(_words(0x89ABCDEF, 0x01234567), _words(1, 5))
    expected = counted.threefry(key, _words(11, 13))
    a, b = counted.words(counted.split_seed(seed), 1, 5, *_words(11, 13))
    assert (int(a[0]), int(b[0])) == (int(expected[0][0]), int(expected[1][0]))


def test_uniform_numbers_lie_strictly_between_0_and_1():
    least, most = _words(0, 0xFFFFFFFF)
    assert counted.uniform(least).tolist() == [2**-24]
    assert counted.uniform(most).tolist() == [1 - 2**-24]


def test_uniform_numbers_are_uniform():
    a, b = counted.words(counted.split_seed(3), 1, 0, jnp.arange(50_000), jnp.uint32(9))
    for word in (a, b):
        counts, _ = np.histogram(np.asarray(counted.uniform(word)), bins=20, range=(0, 1))
        assert np.all(np.abs(counts - 2500) < 5 * np.sqrt(2500))
    assert abs(np.corrcoef(np.asarray(counted.uniform(a)), np.asarray(counted.uniform(b)))[0, 1]) < 0.02
