"""Spoiled caches of compiled headers: each is healed, and no library is opened that was not made here.

`python -m tests.envs.fuzz_cache FIRST COUNT` tries cases by number.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from raceway.envs import compiler
from tests.training.fuzz_run_folders import BYTES, at_most, is_plain, mutate_json

LONGEST_S = 10.0
# Stands for a compiler that takes seconds: the "library" is a copy of the header, which is all that is looked at here.
_COMPILER = """#!/bin/sh
[ "$1" = --version ] && { echo "copying compiler 1"; exit; }
while [ $# -gt 0 ]; do
  case "$1" in
    -o) out=$2; shift;;
    -MF) list=$2; shift;;
    -include) header=$2; shift;;
  esac
  shift
done
cp "$header" "$out" && printf 'x: - %s %s\\n' "$header" "$(dirname "$header")/beside.hpp" > "$list"
"""


def set_up(place: Path) -> Path:
    """A header, and the compiler that everybody is given."""
    place.mkdir()
    header, beside, program = place / "task.hpp", place / "beside.hpp", place / "copying-compiler"
    header.write_text("// a header\n" * 50)
    beside.write_text("// beside it\n")
    program.write_text(_COMPILER)
    program.chmod(0o700)
    old = time.time() - 100
    for file in (header, beside):
        os.utime(file, (old, old))
    return header


def _json_record(cache: Path, rng: random.Random) -> None:
    path = rng.choice(sorted(filter(is_plain, cache.glob("*.json"))))
    path.write_text(json.dumps(mutate_json(json.loads(path.read_text()), rng)))


def _bytes_of_a_file(cache: Path, rng: random.Random) -> None:
    path = rng.choice(sorted(filter(is_plain, cache.iterdir())))
    path.write_bytes(rng.choice(BYTES)(path.read_bytes(), rng))


def _forged_pair(cache: Path, rng: random.Random) -> None:
    """A foreign library with a record that is right about it, where others could have written both."""
    (library,), (record,) = (filter(is_plain, cache.glob(each)) for each in ("*.so", "*.json"))
    library.write_bytes(rng.randbytes(50))
    told = json.loads(record.read_text())
    told[library.name]["sha256"] = compiler._digest(library)
    record.write_text(json.dumps(told))
    os.chmod(rng.choice([cache, library, record]), rng.choice([0o777, 0o666, 0o720, 0o702]))


def _place(cache: Path, rng: random.Random) -> None:
    path = rng.choice(sorted(cache.iterdir()))
    path.unlink()
    how = rng.randrange(6)
    if how == 0:
        path.mkdir()
    elif how == 1:
        os.mkfifo(path)
    elif how == 2:
        path.symlink_to(rng.choice(["/etc/passwd", "nowhere", path.name, "/dev/zero", "."]))
    elif how == 3:
        path.touch()
        os.truncate(path, 20 * 10**9)
    elif how == 4:
        path.write_bytes(b"x")
        path.chmod(0)


def _modes(cache: Path, rng: random.Random) -> None:
    os.chmod(rng.choice([cache, *cache.iterdir()]), rng.choice([0, 0o400, 0o500, 0o644, 0o666, 0o777, 0o200]))


def _gone(cache: Path, rng: random.Random) -> None:
    shutil.rmtree(cache)


SPOILERS: list[Callable[[Path, random.Random], Any]] = [
    _json_record, _json_record, _json_record, _bytes_of_a_file, _bytes_of_a_file, _forged_pair, _place, _modes, _gone,
]  # fmt: skip


def try_cases(scratch: Path, numbers: range) -> list[str]:
    """What went wrong. XDG_CACHE_HOME is to be a folder that is of no use otherwise."""
    header = set_up(scratch / "fuzz")
    os.environ["CXX"] = str(header.parent / "copying-compiler")
    faults = []
    try:
        for number in numbers:
            faults += _try_case(header, random.Random(number), number)
    finally:
        del os.environ["CXX"]
    return faults


def _try_case(header: Path, rng: random.Random, number: int) -> list[str]:
    cache = compiler.compiled(header).path.parent
    changes = []
    for _ in range(rng.choice([1, 1, 2])):
        spoiler = rng.choice(SPOILERS)
        changes.append(spoiler.__name__)
        try:
            spoiler(cache, rng)
        except (LookupError, ValueError, TypeError, OSError, RecursionError):  # spoiled already
            break
        if spoiler is _forged_pair:
            break  # what marks it as somebody else's must stay
    try:
        with at_most(LONGEST_S):
            library = compiler.compiled(header).path
            if not is_plain(library) or library.read_bytes() != header.read_bytes():
                return [f"case {number} ({changes}): a foreign library would be opened"]
            if not compiler.includes_of(library):
                return [f"case {number} ({changes}): it has no record"]
    except BaseException as error:  # whatever it says: a cache heals
        shutil.rmtree(cache, ignore_errors=True)
        return [f"case {number} ({changes}): {type(error).__name__}: {str(error)[:200]}"]
    return []


def main(first: int, count: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        os.environ["XDG_CACHE_HOME"] = directory
        began = time.monotonic()
        faults = try_cases(Path(directory), range(first, first + count))
        print("\n".join(faults[:20]))
        print(f"{count} cases in {time.monotonic() - began:.0f} s, {len(faults)} faults")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
