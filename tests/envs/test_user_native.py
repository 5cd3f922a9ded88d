"""A native environment from the user's own header: a task like those that are built in."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import raceway
from raceway.envs import NativePool, compiler
from raceway.envs.bare import bare_loop
from raceway.envs.compiler import include_directory
from raceway.envs.user_native import fingerprint
from raceway.errors import NativeEnvError
from tests.envs import own_headers
from tests.training.native_policies import Net, assert_same_bits, collected
from tests.training.native_policies import make as make_for_rollouts

LOAD = "import sys, raceway; print(raceway.load_native(sys.argv[1]))"


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(place))
        yield place / "raceway/native"


@pytest.fixture(scope="module")
def pole(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    header = own_headers.cart_pole(tmp_path_factory.mktemp("pole"))
    assert raceway.load_native(header) == "MyPole-v0"
    return header


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler takes half the time."""
    monkeypatch.setenv("CXXFLAGS", "-O0")


@pytest.fixture(scope="module")
def noise_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("noise")


@pytest.fixture
def noise(noise_place: Path, quick: None) -> Path:
    return own_headers.noise(noise_place)


def native(target: str | Path, num_envs: int, **kwargs: object) -> NativePool:
    pool = raceway.make(target, num_envs, **kwargs)  # type: ignore[arg-type]
    assert isinstance(pool, NativePool)
    return pool


@pytest.mark.parametrize("autoreset", ["next_step", "same_step"])
def test_a_copy_of_a_built_in_task_gives_the_same_bits(pole: Path, autoreset: str) -> None:
    own = native(pole, 16, seed=3, autoreset=autoreset, num_workers=2, record_episodes=True)
    built_in = native("CartPole-v1", 16, seed=3, autoreset=autoreset)
    np.testing.assert_array_equal(own.reset()[0], built_in.reset()[0])
    actions = np.random.default_rng(0).integers(0, 2, (600, 16))
    for action in actions:
        for one, other in zip(own.step(action)[:4], built_in.step(action)[:4], strict=True):
            np.testing.assert_array_equal(one, other)


def test_the_policy_in_the_worker_gives_the_same_bits_too(pole: Path) -> None:
    own, built_in = make_for_rollouts("MyPole-v0"), make_for_rollouts("CartPole-v1")
    net = Net(own)
    for one, other in zip(collected(own, net, 3), collected(built_in, net, 3), strict=True):
        assert_same_bits(one, other)


def test_it_is_known_wherever_tasks_are(pole: Path) -> None:
    assert "MyPole-v0" in raceway.list_envs()
    for pool in (
        native("MyPole-v0", 2),
        native(pole, 2),
        native(str(pole), 2),
        gymnasium.make_vec("raceway/MyPole-v0", 2),
    ):
        assert pool.spec is not None
        assert pool.spec.id == "raceway/MyPole-v0"
        assert pool.spec.max_episode_steps == 500
    assert native(pole, 2, sutton_barto_reward=True).reset()[0].shape == (2, 4)
    with pytest.raises(TypeError, match="It takes: sutton_barto_reward=False"):
        native(pole, 2, suton=1)


def test_its_state_is_saved_and_restored(pole: Path) -> None:
    one, other = native(pole, 8, seed=1), native(pole, 8, seed=2)
    one.reset(), other.reset()
    other.set_state(one.state())
    action = np.ones(8, np.int64)
    np.testing.assert_array_equal(one.step(action)[0], other.step(action)[0])


def test_its_bare_loop_runs(pole: Path) -> None:
    actions = np.zeros((50, 8), np.int64)
    assert bare_loop("MyPole-v0", 8, actions, num_threads=2) > 0


def test_it_draws_the_numbers_that_numpy_draws(noise: Path) -> None:
    generator = np.random.default_rng(7)
    pool = native(noise, 1, seed=7)
    rows = [pool.reset()[0][0], *(pool.step(np.zeros(1, np.int64))[0][0] for _ in range(200))]
    for normal, uniform in rows:
        assert normal == generator.standard_normal()
        assert uniform == generator.random()


def test_without_a_picture_it_says_so(noise: Path) -> None:
    with pytest.raises(ValueError, match="Noise-v0 has no render_mode 'rgb_array'"):
        native(noise, 1, render_mode="rgb_array")


def test_infos_that_its_spaces_do_not_name_are_refused(tmp_path: Path, quick: None) -> None:
    header = tmp_path / "infos.hpp"
    header.write_text(own_headers.INFOS)
    pool = native(header, 4, num_workers=2)
    pool.reset()
    assert pool.step(np.zeros(4, np.int64))[4]["mask"].tolist() == [[0, 0, 1]] * 4
    wrong = {
        1: r"info\(\) fills column 2, counted from 0, with 1 number, but spaces\(\) names 2 columns",
        2: r"fills column 0, .* with 1 number, but spaces\(\) names 'chance' there: 1, of the type that its entry<T>",
        3: r"fills column 1, .* with 4 numbers, but spaces\(\) names 'mask' there: 3, of the type",
        4: r"fills column 18446744073709551615, .* names 2 columns",
    }
    for how, said in wrong.items():
        with pytest.raises(RuntimeError, match=rf"(?s)environment 3\b.*{said}"):
            pool.step(np.array([0, 0, 0, how]))
        pool.reset()
    state = pool.state()
    state["env.how"] = np.ones(4, np.int64)
    pool.set_state(state)
    pool.observe()  # nobody dies of it
    with pytest.raises(RuntimeError, match="environment 0"):
        pool.step(np.ones(4, np.int64))


def test_what_was_changed_is_compiled_again_for_new_pools(noise: Path) -> None:
    before, action = native(noise, 1), np.zeros(1, np.int64)
    before.reset()
    own_headers.change_reward(noise.parent, 5.0)
    after = native(noise, 1)
    after.reset()
    assert (before.step(action)[1][0], after.step(action)[1][0]) == (1.0, 5.0)
    assert native("Noise-v0", 1).task_id == "Noise-v0"
    own_headers.change_reward(noise.parent, 1.0)
    again = native(noise, 1)
    again.reset()
    assert again.step(action)[1][0] == 1.0


def test_its_fingerprint_is_of_what_it_includes_too(noise: Path) -> None:
    def found(reward: float) -> str | None:
        own_headers.change_reward(noise.parent, reward)
        raceway.load_native(noise)
        return fingerprint(str(noise))

    first = found(1.0)
    assert found(5.0) != first
    assert found(1.0) == first


def test_a_fingerprint_compiles_nothing_that_is_not_loaded(tmp_path: Path, cache: Path) -> None:
    header = own_headers.noise(tmp_path)
    before = set(cache.iterdir())
    assert fingerprint(str(header)) is not None
    assert set(cache.iterdir()) == before


def test_what_is_changed_while_it_is_compiled_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: None
) -> None:
    place = tmp_path / 'a "place" with $pecial letters'
    place.mkdir()
    header = own_headers.noise(place)
    header.write_text(own_headers.NOISE.replace("Noise-v0", "Restless-v0"))
    script = tmp_path / "meddling"
    new = f'echo "#pragma once" > "$1"; echo "constexpr double kReward = 3.0;" >> "$1"; rm {script}.once'
    script.write_text(
        f'#!/bin/sh\nc++ "$@" || exit 1\nmeddle() {{ {new}; }}\n'
        f"if [ -f {script}.once ] && [ \"$*\" != --version ]; then meddle '{place}/parts.hpp'; fi\n"
    )
    script.chmod(0o755)
    Path(f"{script}.once").touch()
    monkeypatch.setenv("CXX", str(script))
    pool = native(header, 1)
    pool.reset()
    assert pool.step(np.zeros(1, np.int64))[1][0] == 3.0


# --- the cache


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: None) -> Path:
    """A compiler that writes a line for each time it is called, but for its version."""
    calls, script = tmp_path / "calls", tmp_path / "counting"
    script.write_text(f'#!/bin/sh\ncase "$*" in *--version*) ;; *) echo called >> {calls};; esac\nexec c++ "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    return calls


def test_processes_at_once_compile_once_and_then_nobody_does(counted: Path, tmp_path: Path) -> None:
    header = own_headers.noise(tmp_path)

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-c", LOAD, str(header)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    together = [start() for _ in range(3)]
    assert [process.communicate(timeout=60)[0] for process in together] == ["Noise-v0\n"] * 3
    assert start().communicate(timeout=60)[0] == "Noise-v0\n"
    assert counted.read_text() == "called\n"


def test_a_cache_that_cannot_be_written_is_done_without(noise: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file in its place")
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", LOAD, str(noise)], env=environment, capture_output=True, timeout=60)
    assert done.stdout == b"Noise-v0\n", done.stderr.decode()


# --- what is refused


def refused(header: Path, content: str) -> str:
    header.write_text(content)
    with pytest.raises(NativeEnvError) as raised:
        raceway.load_native(header)
    return str(raised.value)


def test_a_compile_error_is_told_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.chdir(tmp_path)
    broken = own_headers.NOISE.replace("random.normal()", "random.nomal()")
    line = broken[: broken.index("random.nomal()")].count("\n") + 1
    own_headers.change_reward(tmp_path, 1.0)
    said = refused(tmp_path / "broken.hpp", broken).splitlines()
    assert said[0] == "broken.hpp does not compile."
    assert said[1].startswith(f"broken.hpp:{line}: ")
    assert "nomal" in said[1]
    assert said[2] == f"{line:6} |     normal_ = random.nomal();"
    assert len(said) == 4
    log = Path(said[3].partition(": ")[2])
    assert log.parent == cache
    assert "error:" in log.read_text()


@pytest.mark.parametrize(
    ("there", "instead", "told"),
    [
        ("void observe(Scalar* row) const {", "void show(Scalar* row) const {", "Noise needs `void observe("),
        ('RACEWAY_ENV(Noise, "Noise-v0", 0)', "", "Its last line should be RACEWAY_ENV(MyTask"),
        ('"Noise-v0"', '"Noise"', "'Noise' is no id. Use a name with a version"),
        pytest.param('"Noise-v0"', '"CartPole-v1"', "'CartPole-v1' is a task of raceway's", marks=pytest.mark.slow),
        pytest.param('"Noise-v0", 0', '"Noise-v0", -5', "max_episode_steps is -5", marks=pytest.mark.slow),
        ("std::int64_t;", "std::int64_t;\n  double helper() const;\n  double x_ = helper();", "undefined reference"),
    ],
    ids=["no observe", "no RACEWAY_ENV", "no version", "a task of ours", "no limit", "not defined"],
)
def test_a_header_that_is_no_environment_is_refused_in_words(
    tmp_path: Path, quick: None, there: str, instead: str, told: str
) -> None:
    assert there in own_headers.NOISE
    own_headers.change_reward(tmp_path, 1.0)
    said = refused(tmp_path / "odd.hpp", own_headers.NOISE.replace(there, instead))
    assert said.count("\n") <= 3
    assert told in said


def test_sizes_that_do_not_fit_the_spaces_are_refused(tmp_path: Path, quick: None) -> None:
    header = own_headers.noise(tmp_path)
    header.write_text(own_headers.NOISE.replace("kObsSize = 2", "kObsSize = 9").replace("Noise-v0", "Misfit-v0"))
    with pytest.raises(ValueError, match=r"Misfit-v0: kObsSize is 9, but spaces\(\) says that an observation has 2"):
        raceway.make(str(header))


def test_without_a_compiler_it_says_what_to_install(
    tmp_path: Path, noise: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(NativeEnvError, match=r"no c\+\+, g\+\+, clang\+\+ on the PATH. Install one: apt install g\+\+"):
        raceway.load_native(noise)
    monkeypatch.setenv("CXX", "nonesuch -v")
    with pytest.raises(NativeEnvError, match="CXX=nonesuch -v is not there"):
        raceway.load_native(noise)


def test_what_is_not_there_or_no_header_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NativeEnvError, match=r"There is no file .*nowhere\.hpp"):
        raceway.make(str(tmp_path / "nowhere.hpp"))
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(NativeEnvError, match=r"neither a C\+\+ header"):
        raceway.load_native(tmp_path / "notes.txt")


# --- libraries that come from elsewhere


def library(place: Path, code: str) -> Path:
    source, made = place / "other.cpp", place / "other.so"
    source.write_text(f"#include <raceway/table.h>\n{code}")
    command = ["c++", "-shared", "-fPIC", "-isystem", str(include_directory()), str(source), "-o", str(made)]
    subprocess.run(command, check=True, timeout=60)
    return made


def test_a_library_of_another_version_is_refused_with_both_numbers(tmp_path: Path) -> None:
    made = library(
        tmp_path,
        "static const unsigned words[2] = {RACEWAY_TABLE_VERSION + 70, 4};\n"
        'extern "C" const unsigned* raceway_native_library(const void*) { return words; }',
    )
    with pytest.raises(NativeEnvError, match=r"against version 7\d of raceway's table, this is version \d\. Compile"):
        raceway.load_native(made)


def test_a_library_without_the_symbol_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NativeEnvError, match=r"it has no raceway_native_library\(\), which RACEWAY_ENV"):
        raceway.load_native(library(tmp_path, "int answer() { return 42; }"))


def test_a_file_that_is_no_library_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("nothing to load")
    with pytest.raises(NativeEnvError, match=r"text\.so is refused"):
        raceway.load_native(tmp_path / "text.so")


def test_an_id_belongs_to_one_header(pole: Path, cache: Path, tmp_path: Path) -> None:
    (made,) = cache.glob("my_pole-*.so")
    (tmp_path / "copy.so").write_bytes(made.read_bytes())
    with pytest.raises(NativeEnvError, match=r"'MyPole-v0' was loaded from .*my_pole.hpp"):
        raceway.load_native(tmp_path / "copy.so")


def test_a_library_that_was_replaced_is_refused_unless_the_first_was(tmp_path: Path, pole: Path, cache: Path) -> None:
    made = library(tmp_path, "int answer() { return 42; }")
    with pytest.raises(NativeEnvError, match="it has no raceway_native_library"):
        raceway.load_native(made)
    (good,) = cache.glob("my_pole-*.so")
    made.unlink()
    made.write_bytes(good.read_bytes())
    with pytest.raises(NativeEnvError, match="'MyPole-v0' was loaded from"):  # the refused one is not in its way
        raceway.load_native(made)
    made.unlink()
    made.write_bytes(good.read_bytes() + b"newer")
    with pytest.raises(NativeEnvError, match="Start Python again"):
        raceway.load_native(made)


def test_of_what_is_pruned_only_that_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "_KEPT", 2)
    for age, name in enumerate(["a-2.so", "a-1.so", "b-1.so"]):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    for record in ("a.json", "b.json"):
        (tmp_path / record).touch()
    compiler._prune(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"a-1.so", "a-2.so", "a.json"}
    os.utime(tmp_path / "a-1.so", (1, 1))
    (tmp_path / "c-1.so").touch()
    compiler._prune(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"a-2.so", "a.json", "c-1.so"}
