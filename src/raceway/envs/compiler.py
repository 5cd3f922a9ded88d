"""Compiles a header with a native environment to a library: once for what it is made of, whoever asks."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import glob
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from raceway import _core
from raceway.cache import is_private, private_folder
from raceway.envs.compile_errors import complaint, shown
from raceway.errors import NativeEnvError, RunFolderError
from raceway.files import open_to_append, read_json, read_whole, sync, write_json

# Those of the built-in tasks (CMakeLists.txt says why). Nothing but the one symbol is seen from outside, or an
# environment that was changed would be given functions of the one before.
FLAGS = (
    *("-std=c++20", "-O3", "-DNDEBUG", "-ffp-contract=off", "-fno-math-errno", "-fno-tree-slp-vectorize"),
    *("-fPIC", "-shared", "-fvisibility=hidden", "-Wl,-z,defs"),
)
_KEPT = 100
"""How many libraries are kept; the ones that nobody has used for longest go."""
_ATTEMPTS = 5
_LARGEST = 1 << 28
"""Bytes of a file that is read: a header, or a library."""
_COMPILERS = ("c++", "g++", "clang++")
_BEGUN = ".begun-"
"""How folders in the cache begin in which something is being compiled."""
_ABANDONED_S = 3600.0


class Library(NamedTuple):
    """What became of a header."""

    path: Path
    is_new: bool
    """Whether it was compiled just now, and not found in the cache."""


def compiled(header: Path, *, anew: bool = False) -> Library:
    """The library of a header, which an absolute path leads to. It is compiled if no such library is there yet.

    What decides is the content of the header and of what it includes, raceway's headers, the compiler and the flags. A
    library in the cache that is not the one that was made is made again, and so is any with `anew`.
    """
    compiler = find_compiler()
    # The lock and the log are the header's; what is compiled is that of its content too.
    own = cache_directory() / f"{header.stem}-{hashlib.sha256(os.fsencode(header)).hexdigest()[:8]}"
    for _ in range(_ATTEMPTS):
        entry = own.with_name(f"{own.name}-{_key(header, compiler)[:24]}")
        if not anew and (there := _hit(entry)) is not None:
            return Library(there, is_new=False)
        try:
            with _locked(own.with_name(f"{own.name}.lock")):
                if not anew and (there := _hit(entry)) is not None:  # somebody else was quicker
                    return Library(there, is_new=False)
                library = _compile(header, compiler, entry, log=own.with_name(f"{own.name}.log"))
        except OSError as error:
            raise NativeEnvError(
                f"{shown(header)} cannot be compiled in {own.parent}: {error.strerror or error}. Name another place: "
                "XDG_CACHE_HOME=..."
            ) from None
        if library is not None:
            _prune(own.parent)
            return Library(library, is_new=True)
    raise NativeEnvError(f"{shown(header)}, or what it includes, is changed again and again while it is compiled.")


def includes_of(library: Path) -> dict[str, str]:
    """The files of the user's own that a library was made of beside its header, and the digest of what each said."""
    entry = library.with_name(library.name.rpartition("-")[0])
    made = _record(entry).get(library.name)
    return {} if made is None else dict(made.includes)


def include_directory() -> Path:
    """Where `#include <raceway/native.hpp>` is found: beside the core, whose headers these are."""
    return Path(_core.__file__).parent / "include"


def find_compiler() -> tuple[str, ...]:
    """The command of the system's C++ compiler: CXX, if it is set."""
    named = shlex.split(os.environ.get("CXX", ""))
    for command in [named] if named else [[name] for name in _COMPILERS]:
        if path := shutil.which(command[0]):
            return (path, *command[1:])
    tried = f"CXX={shlex.join(named)} is not there" if named else f"no {', '.join(_COMPILERS)} on the PATH"
    raise NativeEnvError(
        f"A native environment of your own needs a C++ compiler, and none was found: {tried}. Install one: apt install "
        "g++ (Debian, Ubuntu), dnf install gcc-c++ (Fedora), conda install -c conda-forge gxx; or name it: CXX=..."
    )


def cache_directory() -> Path:
    """Where libraries are kept: in the cache, or where there is none of this user's own, while this process lives."""
    return private_folder("native") or _passing_directory()


@functools.cache
def _passing_directory() -> Path:
    place = tempfile.mkdtemp(prefix="raceway-native-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return Path(place)


def _key(header: Path, compiler: Sequence[str]) -> str:
    machine = [platform.machine(), *platform.libc_ver()]
    parts = [str(header), _digest(header), _version(tuple(compiler)), *_flags(), _own_headers(), *machine]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _flags() -> list[str]:
    """Ours, and after them the user's, who may know better."""
    return [*FLAGS, *shlex.split(os.environ.get("CXXFLAGS", ""))]


@functools.cache
def _version(compiler: tuple[str, ...]) -> str:
    told = subprocess.run([*compiler, "--version"], capture_output=True, check=False).stdout
    return shlex.join(compiler) + told.decode(errors="replace")


@functools.cache
def _own_headers() -> str:
    whole = hashlib.sha256()
    for path in sorted(include_directory().rglob("*.h*")):
        whole.update(str(path.relative_to(include_directory())).encode() + path.read_bytes())
    return whole.hexdigest()


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(read_whole(path, _LARGEST)).hexdigest()
    except RunFolderError as error:
        raise NativeEnvError(str(error)) from None


@dataclass(frozen=True)
class _Made:
    """A library as it was made: what is not so any more is not used."""

    sha256: str
    includes: Mapping[str, str]
    """The files of the user's own that it was made of beside the header, with the digest of what each said."""

    @classmethod
    def of(cls, told: Any) -> _Made | None:
        """As a record has it; None if it is not one."""
        if not isinstance(told, dict) or not isinstance(told.get("sha256"), str):
            return None
        includes = told.get("includes")
        if not isinstance(includes, dict) or not all(isinstance(digest, str) for digest in includes.values()):
            return None
        return cls(told["sha256"], includes)


def _hit(entry: Path) -> Path | None:
    """The library that was made from these very files, if it is there as it was made."""
    for name, made in _record(entry).items():
        library = entry.with_name(name)
        with contextlib.suppress(OSError, NativeEnvError):  # something is not there any more
            is_current = all(_digest(Path(path)) == digest for path, digest in made.includes.items())
            if is_current and is_private(library) and _digest(library) == made.sha256:
                os.utime(library)  # it is of use
                return library
    return None


def _record(entry: Path) -> dict[str, _Made]:
    """The libraries that were made from one header. What is no such record is as good as none."""
    path = entry.with_name(f"{entry.name}.json")
    if not is_private(path):
        return {}
    try:
        told = read_json(path)
    except RunFolderError:
        return {}
    found = {name: _Made.of(each) for name, each in told.items()} if isinstance(told, dict) else {}
    return {
        name: made for name, made in found.items() if made is not None and name == _library_name(entry, made.includes)
    }


def _library_name(entry: Path, includes: Mapping[str, str]) -> str:
    return f"{entry.name}-{hashlib.sha256(json.dumps(includes).encode()).hexdigest()[:16]}.so"


def _compile(header: Path, compiler: Sequence[str], entry: Path, log: Path) -> Path | None:
    """None: the files were changed meanwhile, and nobody knows what was compiled."""
    started = time.time()
    with tempfile.TemporaryDirectory(dir=entry.parent, prefix=_BEGUN) as aside:
        made, listed = Path(aside) / "library.so", Path(aside) / "includes"
        command = [*compiler, "-x", "c++", "-include", str(header), "-", "-x", "none"]
        command += ["-isystem", str(include_directory()), *_flags(), "-MMD", "-MF", str(listed), "-o", str(made)]
        # In English: the output is read.
        environment = {**os.environ, "LC_ALL": "C"}
        done = subprocess.run(command, input=b"\n", capture_output=True, env=environment, check=False)
        output = (done.stderr + done.stdout).decode(errors="replace")
        if done.returncode != 0 or not made.is_file():
            log.write_text(f"{shlex.join(command)}\n\n{output}", encoding="utf-8")
            raise NativeEnvError(complaint(output, header, log))
        files = _included(listed.read_text(encoding="utf-8"), header)
        includes = {str(path): _digest(path) for path in files}
        if any(started <= path.stat().st_mtime <= time.time() for path in (header, *files)):
            return None
        library = entry.with_name(_library_name(entry, includes))
        made.chmod(0o600)
        sync(made)  # or a power cut could leave an empty library under its name
        record = {**_record(entry), library.name: _Made(_digest(made), includes)}
        _make_way(library)
        made.replace(library)
    told = {name: asdict(each) for name, each in record.items()}
    path = entry.with_name(f"{entry.name}.json")
    _make_way(path)
    write_json(path, told, mode=0o600)
    return library


def _included(rule: str, header: Path) -> list[Path]:
    """What a make rule of the compiler's says that the header includes, but for the system's headers and ours."""
    text = rule.partition(": ")[2].replace("\\\n", " ")
    names = [re.sub(r"\\([ #\\])", r"\1", name).replace("$$", "$") for name in re.findall(r"(?:\\.|[^\s\\])+", text)]
    paths = [Path(os.path.abspath(name)) for name in names if name != "-"]
    return [path for path in paths if path != header]


def _make_way(path: Path) -> None:
    """Removes what is not a file that this user can write. Its folder is the cache's own: nothing of value is lost."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif not is_private(path) or not os.access(path, os.R_OK | os.W_OK):
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One at a time: others wait, and find what was made. A process that dies lets go."""
    _make_way(path)
    with open_to_append(path) as file:
        with contextlib.suppress(OSError):  # a file system without locks: then some is made twice
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _prune(places: Path) -> None:
    with contextlib.suppress(OSError):  # others may be at it too
        for begun in places.glob(f"{_BEGUN}*"):
            if time.time() - begun.lstat().st_mtime > _ABANDONED_S:  # by one that was killed
                shutil.rmtree(begun)
        libraries = sorted(places.glob("*.so"), key=lambda path: path.stat().st_mtime)
        for library in libraries[:-_KEPT]:
            library.unlink(missing_ok=True)
            entry = library.name.rpartition("-")[0]
            if not any(places.glob(f"{glob.escape(entry)}-*.so")):
                library.with_name(f"{entry}.json").unlink(missing_ok=True)
