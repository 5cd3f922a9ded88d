"""Settings shared by all tests: no screen, the same hypothesis examples every time, the same NumPy on every CPU."""

import gc
import os
import random
import signal
from collections.abc import Iterator

import tests.same_numpy  # noqa: F401  # before anything that imports NumPy

# isort: split
import pytest
from hypothesis import settings

from tests.envs.python.watching import children, command_of, is_alive, wait_until
from tests.examples import examples

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
# A shell has jobs in the background ignore Ctrl-C, and every process that they start. Tests send it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("raceway", deadline=None, derandomize=True, max_examples=examples(100))
settings.load_profile("raceway")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With RACEWAY_TEST_ORDER=7, say, files come in another order, and so do the tests of each: none needs another."""
    if seed := os.environ.get("RACEWAY_TEST_ORDER"):
        drawn = random.Random(seed)
        files = {item.path: drawn.random() for item in items}
        items.sort(key=lambda item: (files[item.path], drawn.random()))


@pytest.fixture(scope="module", autouse=True)
def garbage_is_looked_for_in_what_is_new() -> None:
    """What JAX keeps of all tests before is so much that each `gc.collect()` would take a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def no_process_is_left_running() -> Iterator[None]:
    """Otherwise it would be found by a test elsewhere, which has nothing to do with it."""
    before = children()

    def left() -> dict[int, str]:
        return {pid: command_of(pid) for pid in children() - before if is_alive(pid)}

    yield
    gc.collect()
    wait_until(lambda: not left(), 10, lambda: f"tests have left processes: {left()}")
