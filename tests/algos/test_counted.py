import numpy as np
import pytest

from raceway.algos import counted


@pytest.mark.parametrize(
    ("key", "counter", "expected"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry_gives_the_known_answers_of_its_authors(key, counter, expected):
    as_words = [tuple(np.array([word], np.uint32) for word in pair) for pair in (key, counter)]
    assert tuple(int(word[0]) for word in counted.threefry(*as_words)) == expected


def test_words_are_two_applications_of_threefry():
    seed = 0x0123456789ABCDEF
    key = counted.threefry(
        (np.array([0x89ABCDEF], np.uint32), np.array([0x01234567], np.uint32)),
        (np.array([1], np.uint32), np.array([5], np.uint32)),
    )
    expected = counted.threefry(key, (np.array([11], np.uint32), np.array([13], np.uint32)))
    a, b = counted.words(counted.split_seed(seed), 1, 5, np.array([11]), np.array([13]))
    assert (int(a[0]), int(b[0])) == (int(expected[0][0]), int(expected[1][0]))


def test_uniform_numbers_lie_strictly_between_0_and_1():
    ends = counted.uniform(np.array([0, 0xFFFFFFFF], np.uint32))
    assert float(ends[0]) == 2**-24
    assert float(ends[1]) == 1 - 2**-24


def test_uniform_numbers_are_uniform():
    a, b = counted.words(counted.split_seed(3), 1, 0, np.arange(50_000), np.uint32(9))
    for word in (a, b):
        counts, _ = np.histogram(np.asarray(counted.uniform(word)), bins=20, range=(0, 1))
        assert np.all(np.abs(counts - 2500) < 5 * np.sqrt(2500))
    assert abs(np.corrcoef(np.asarray(counted.uniform(a)), np.asarray(counted.uniform(b)))[0, 1]) < 0.02
