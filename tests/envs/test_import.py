"""`import raceway` is quick and brings in nothing heavy."""

from __future__ import annotations

import pytest

from tests.envs.processes import output_of

HEAVY = ["jax", "jaxlib", "torch", "pygame", "moviepy", "matplotlib", "scipy", "pandas"]


def test_import_takes_less_than_three_tenths_of_a_second() -> None:
    script = """
        import time
        start = time.perf_counter()
        import raceway
        print(time.perf_counter() - start)
    """
    assert min(float(output_of(script)) for _ in range(5)) < 0.3


@pytest.mark.parametrize("use", ["", "raceway.make('CartPole-v1', 4).reset()"])
def test_neither_import_nor_use_brings_in_heavy_packages(use: str) -> None:
    output = output_of(f"""
        import sys
        import raceway
        {use}
        print([name for name in {HEAVY} if name in sys.modules])
    """)
    assert output == "[]"


def test_import_starts_no_thread_and_opens_no_file() -> None:
    output = output_of("""
        from tests.envs.processes import open_files, threads
        import numpy, gymnasium
        before = len(threads()), open_files()
        import raceway
        print((len(threads()), open_files()) == before)
    """)
    assert output == "True"
