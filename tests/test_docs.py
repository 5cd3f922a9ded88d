"""What the documents show is tried: Python examples are run, the C++ example is compiled, links lead somewhere."""

from __future__ import annotations

import ctypes.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of one language on a page."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("index", range(len(blocks(ROOT / "README.md", "python"))))
def test_examples_of_the_readme_run(index: int, tmp_path: Path) -> None:
    code = blocks(ROOT / "README.md", "python")[index]
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=tmp_path, timeout=60, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""


@pytest.mark.skipif(ctypes.util.find_library("EGL") is None, reason="one of them draws: apt install libegl1 libgl1")
def test_examples_of_the_mujoco_page_run(tmp_path: Path) -> None:
    page = ROOT / "docs/mujoco.md"
    (tmp_path / "robot.xml").write_text(blocks(page, "xml")[0])
    for code in blocks(page, "python"):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, timeout=60, capture_output=True
        )
        assert done.returncode == 0, done.stderr.decode()
        assert done.stderr == b""


def test_the_example_of_the_graph_page_runs_and_its_picture_is_the_one_shown(tmp_path: Path) -> None:
    code = blocks(ROOT / "docs/graph.md", "python")[0] + '\nprogram.draw().save("graph.svg")\n'
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=tmp_path, timeout=60, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    first, *_ = done.stdout.decode().splitlines()
    numbers = [float(number) for number in first.strip("[]").split()]
    assert numbers == pytest.approx([3, 4], abs=0.5)
    drawn, shown = tmp_path / "graph.svg", ROOT / "docs/images/graph.svg"
    assert drawn.read_text() == shown.read_text(), "run the example and put its picture to docs/images/graph.svg"


def test_the_native_environment_of_the_docs_compiles_and_makes_a_table(tmp_path: Path) -> None:
    compiler = shutil.which("c++") or shutil.which("g++")
    assert compiler, "no C++ compiler"
    header = blocks(ROOT / "docs/native-environments.md", "cpp")[0]
    (tmp_path / "core/envs/mine").mkdir(parents=True)
    for part in ("adapter.hpp", "env.hpp", "random.hpp", "table.h"):
        shutil.copy(ROOT / "core" / part, tmp_path / "core")
    (tmp_path / "core/envs/mine/random_walk.hpp").write_text(header)
    program = tmp_path / "program.cpp"
    program.write_text(
        '#include "core/envs/mine/random_walk.hpp"\n#include "core/adapter.hpp"\n'
        "int main() { return raceway::Adapter<raceway::RandomWalk>::table()->num_parameters == 1 ? 0 : 1; }\n"
    )
    command = [
        compiler,
        "-std=c++20",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-fsyntax-only",
        "-I",
        str(tmp_path),
        str(program),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


def test_code_names_in_how_it_works_exist() -> None:
    for name in re.findall(r"`((?:core|src)/[\w./*]+)`", (ROOT / "docs/how-it-works.md").read_text()):
        assert list(ROOT.glob(name)) or (ROOT / name).exists(), f"{name} is not there"
