"""`import raceway` is quick and brings in nothing heavy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import raceway
from tests.envs.processes import output_of, run_script

HEAVY = ["jax", "jaxlib", "torch", "pygame", "moviepy", "matplotlib", "scipy", "pandas"]


@pytest.mark.alone
def test_import_adds_less_than_two_tenths_of_a_second_to_that_of_numpy_and_gymnasium() -> None:
    script = """
        import time
        import gymnasium, numpy
        start = time.process_time()  # whatever else the machine does
        import raceway
        print(time.process_time() - start)
    """
    assert min(float(output_of(script)) for _ in range(3)) < 0.2


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


APART = """
    import sys
    sys.meta_path = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]
    sys.path[:0] = {paths}
    import raceway
    print(raceway.make("Hopper-v5", 1).reset(seed=1)[0].shape, raceway.__file__)
"""


@pytest.fixture
def copied_package(tmp_path: Path) -> Path:
    """Raceway in a folder of its own, away from MuJoCo."""
    package = tmp_path / "raceway"
    shutil.copytree(Path(raceway.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(raceway._core.__file__, package)
    return tmp_path


def test_mujoco_is_found_where_it_is_not_beside_us(copied_package: Path) -> None:
    assert output_of(APART.format(paths=[str(copied_package)])) == f"(1, 11) {copied_package}/raceway/__init__.py"


def test_another_mujoco_is_named_with_the_way_out(copied_package: Path) -> None:
    (copied_package / "mujoco").mkdir()
    (copied_package / "mujoco/__init__.py").touch()
    ended = run_script(APART.format(paths=[str(copied_package)]))
    assert "built for another MuJoCo" in ended.errors
    assert "pip install" in ended.errors


SUBINTERPRETER = """
    import sys
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters

    def rewards():
        import raceway
        envs = raceway.make("CartPole-v1", 2)
        envs.reset(seed=0)
        return envs.step([0, 1])[1].tolist()

    if sys.argv[1] == "before":
        print(rewards())
    for attempt in ("import raceway", "import raceway.graph", "from raceway import _core"):
        other = interpreters.create()
        script = f"try:\\n    {attempt}\\nexcept ImportError as error:\\n    print(error)\\n"
        interpreters.run_string(other, script + "import sys; print('numpy' in sys.modules, flush=True)")
        interpreters.destroy(other)
    print(rewards())
"""


@pytest.mark.parametrize("first_use", ["before", "after"])
def test_a_subinterpreter_is_refused_and_the_main_one_goes_on(first_use: str) -> None:
    lines = output_of(SUBINTERPRETER, first_use).splitlines()
    if first_use == "before":
        assert lines.pop(0) == "[1.0, 1.0]"
    assert lines.pop() == "[1.0, 1.0]"
    assert lines[1::2] == ["False"] * 3
    for refusal in lines[::2]:
        assert "cannot be imported in a subinterpreter" in refusal
        assert "Import it in the main interpreter, or use a process of its own" in refusal
