"""What the documents show is tried: Python examples are run, C++ is compiled, tables and pictures are true."""

from __future__ import annotations

import ctypes.util
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import raceway
from raceway.cli import main
from raceway.cli.options import parse
from raceway.cli.train import take_options
from raceway.envs.new import new
from raceway.envs.user_native import is_path
from raceway.errors import NativeEnvError
from raceway.training.resolve import resolve
from tests.report.logged import line, log_run

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SHORT_RUN = """
import raceway
raceway.train("CartPole-v1", total_steps=4096, log={"quiet": True, "directory": ".", "name": "run"})
"""


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of one language on a page."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)


EXAMPLES = [
    pytest.param(code, id=f"{page}-{index}", marks=[] if page == "README.md" else [pytest.mark.slow])
    for page in (
        "README.md",
        "docs/training.md",
        "docs/determinism.md",
        "docs/metrics.md",
        "docs/recurrent.md",
        "docs/resuming.md",
        "docs/callbacks.md",
        "docs/process-lane.md",
        "docs/inline-lane.md",
    )
    for index, code in enumerate(blocks(ROOT / page, "python"))
]


@pytest.fixture(scope="module")
def short_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a short run with evaluation."""
    place = tmp_path_factory.mktemp("short")
    subprocess.run([sys.executable, "-c", SHORT_RUN], cwd=place, timeout=120, check=True)
    return place / "CartPole-v1/run"


@pytest.mark.parametrize("code", EXAMPLES)
def test_examples_run(code: str, tmp_path: Path) -> None:
    if "from my_task import" in code:
        new("env", "MyTask", tmp_path)
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=tmp_path, timeout=120, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""


def test_the_settings_file_of_the_training_page_is_understood(tmp_path: Path) -> None:
    (file,) = blocks(ROOT / "docs/training.md", "toml")
    (tmp_path / "settings.toml").write_text(file)
    config = resolve(config_file=tmp_path / "settings.toml")
    assert (config.env, config.num_envs, config.ppo.n_steps) == ("CartPole-v1", 16, 64)


def test_every_metric_of_a_run_is_on_its_page_and_no_other(short_run: Path) -> None:
    page = (ROOT / "docs/metrics.md").read_text()
    documented = set(re.findall(r"^\| `([\w/*]+)` \|", page, flags=re.MULTILINE))
    rows = [json.loads(line) for line in (short_run / "metrics.jsonl").read_text().splitlines()]
    written = {re.sub(r"^info/.*", "info/*", name) for row in rows for name in row}
    # CartPole has no infos, and nothing goes wrong with it.
    assert documented == written | {"info/*", "faults/round", "faults/total", "faults/workers"}


def test_the_picture_of_training_is_the_one_shown(short_run: Path) -> None:
    drawn, shown = short_run / "graph.svg", ROOT / "docs/images/training.svg"
    hint = "put the graph.svg of a run of CartPole-v1 there: raceway graph RUN"
    assert drawn.read_text() == shown.read_text(), f"{shown} is out of date: {hint}"


def test_the_commands_of_the_pages_are_understood() -> None:
    for page in PAGES:
        for command in re.findall(r"^raceway train (.*)$", page.read_text(), flags=re.MULTILINE):
            rest, _ = take_options(shlex.split(command, comments=True), ("seeds", "jobs"))
            options = parse(rest)
            if options.config_file is None and ":" not in str(options.env) and not is_path(options.env):
                resolve(options.env, **options.settings)


def test_the_folder_on_the_training_page_is_the_one_that_a_run_leaves(short_run: Path) -> None:
    table = (ROOT / "docs/training.md").read_text().partition("## The folder")[2].partition("\n## ")[0]
    cells = "".join(re.findall(r"^\| (`.*?) \|", table, flags=re.MULTILINE))
    named = {name.rstrip("/") for name in re.findall(r"`([^`]+)`", cells)}
    assert named - {"dumps", "initial", "resumed.jsonl"} == {path.name for path in short_run.iterdir()}


@pytest.mark.slow
def test_the_commands_and_examples_of_the_exporting_page_run(
    short_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = ROOT / "docs/exporting.md"
    shutil.copytree(short_run, tmp_path / "runs/CartPole-v1/run")
    monkeypatch.chdir(tmp_path)
    for command in re.findall(r"^raceway (export .*)$", page.read_text(), flags=re.MULTILINE):
        assert main(shlex.split(command, comments=True)) == 0
    for code in blocks(page, "python"):
        done = subprocess.run([sys.executable, "-W", "error", "-c", code], timeout=120, capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
        assert done.stderr == b""


@pytest.mark.parametrize(("call", "package"), [("onnxruntime.", "onnxruntime"), (".serialize()", "flatbuffers")])
def test_the_exporting_page_names_the_packages_that_its_examples_need(call: str, package: str) -> None:
    page = ROOT / "docs/exporting.md"
    assert any(call in code for code in blocks(page, "python"))
    assert f"`pip install {package}`" in page.read_text()


@pytest.mark.slow
def test_the_commands_and_examples_of_the_plotting_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = ROOT / "docs/plotting.md"
    monkeypatch.chdir(tmp_path)
    for name, rate in (("usual", 1e-3), ("slow", 2e-4)):
        for seed in (1, 2, 3):
            path = Path(f"runs/CartPole-v1/{name}-seed{seed}")
            log_run(path, line(0.5), [(900, 1.0)], seed=seed, ppo={"learning_rate": rate})
    commands = re.findall(r"^raceway ((?:plot|compare) .*)$", page.read_text(), flags=re.MULTILINE)
    assert len(commands) > 5
    for command in commands:
        assert main(shlex.split(command, comments=True)) == 0, command
    for code in blocks(page, "python"):
        done = subprocess.run([sys.executable, "-W", "error", "-c", code], timeout=120, capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
        assert done.stderr == b""


@pytest.mark.slow
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
    for part in ("adapter.hpp", "env.hpp", "parts.hpp", "picture.hpp", "random.hpp", "table.h"):
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


@pytest.mark.slow
def test_the_page_on_ones_own_native_environment_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = ROOT / "docs/own-native-environment.md"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (header,), (code,) = blocks(page, "cpp"), blocks(page, "python")
    (tmp_path / "random_walk.hpp").write_text(header)
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], timeout=120, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""
    (command,) = re.findall(r"^raceway (new .*)$", page.read_text(), flags=re.MULTILINE)
    assert main(shlex.split(command, comments=True)) == 0
    written = tmp_path / "ice_rink.hpp"
    written.write_text(written.read_text().replace("    speed_ += (force", "    sped_ += (force"))
    with pytest.raises(NativeEnvError) as raised:
        raceway.load_native(written)
    told = "\n".join(str(raised.value).splitlines()[:3])
    assert told in page.read_text(), told


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


def test_code_names_in_how_it_works_exist() -> None:
    for name in re.findall(r"`((?:core|src)/[\w./*]+)`", (ROOT / "docs/how-it-works.md").read_text()):
        assert list(ROOT.glob(name)) or (ROOT / name).exists(), f"{name} is not there"
