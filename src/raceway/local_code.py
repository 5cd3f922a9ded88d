"""Modules in the folder that a command is given in.

On `sys.path` every file of that folder could stand in for a package. Here only a module that was asked for by its name
is found there, after all that are installed, and what such a module imports from beside itself.

What is asked for by name is compiled from its source: Python would believe a planted file in `__pycache__`, which can
say anything about the source that it claims to be made from.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import pickle
import pkgutil
import sys
from collections.abc import Iterable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import IO

from raceway.errors import RunFolderError
from raceway.files import read_whole

_LARGEST = 1 << 26
"""Bytes of a file of code."""
_folder: str | None = None
"""Where modules are looked for that are asked for by name; None: nowhere beside `sys.path`."""
_allowed: dict[str, str] = {}
"""The modules that may be imported from such a folder, packages by their first name, and the folder of each."""
_named: set[str] = set()
"""The modules that were asked for by name, and the packages that they are in."""


def look_in(folder: str | None) -> None:
    """Sets the folder in which `import_named` looks for what is not installed."""
    global _folder
    _folder = folder


def import_named(name: str) -> ModuleType:
    """Imports `package.module`, from the folder if it is not installed. Its code runs: it is asked for."""
    top = name.partition(".")[0]
    if _folder is not None and _find(top) is None and PathFinder.find_spec(top, [_folder]) is not None:
        _allow({top: _folder})
    _read_source_of({".".join(name.split(".")[:count]) for count in range(1, name.count(".") + 2)})
    return importlib.import_module(name)


def files_of(name: str) -> list[str]:
    """The files whose code would run to import `package.module`, its packages first. Nothing is imported for it.

    Those that have none, such as built-in modules, are told by what they are. Empty if there is no such module.
    """
    files: list[str] = []
    spec: ModuleSpec | None = None
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        whole = ".".join(parts[:count])
        within = None if spec is None else spec.submodule_search_locations
        if count > 1 and within is None:
            return []  # not a package
        spec = _find(whole) if within is None else _find_within(whole, within)
        if spec is None and count == 1 and _folder is not None:
            spec = PathFinder.find_spec(whole, [_folder])
        if spec is None:
            return []
        if spec.origin is not None:
            files.append(os.path.realpath(spec.origin) if spec.has_location else spec.origin)
    return files


def digests(files: Iterable[str]) -> dict[str, str | None] | None:
    """Digests of files, None for a module without one, such as a built-in. None if a file cannot be read."""
    found: dict[str, str | None] = {}
    for file in files:
        found[file] = None
        if not os.path.isabs(file):  # "built-in", "frozen"
            continue
        try:
            found[file] = hashlib.sha256(read_whole(_on_disk(Path(file)), _LARGEST)).hexdigest()
        except RunFolderError:
            return None
    return found


def digest_of(name: str) -> str | None:
    """A digest of the code of a module and the packages that it is in, wherever it lies; None if it is not found."""
    found = digests(files_of(name))
    return hashlib.sha256(repr([*found.values()]).encode()).hexdigest()[:16] if found else None


def _on_disk(file: Path) -> Path:
    """The file itself, or the archive that it is in."""
    return next((each for each in (file, *file.parents) if each.is_file()), file)


def shared_imports() -> bytes:
    """What another process needs, by `adopt_imports`, to import what this one does."""
    return pickle.dumps((sys.path, _allowed, _named, _folder))


def adopt_imports(stream: IO[bytes]) -> None:
    """Takes over what `shared_imports` gave, in a process that was started with it."""
    sys.path[:], allowed, named, folder = pickle.load(stream)
    _allow(allowed)
    _read_source_of(named)
    look_in(folder)


def _allow(modules: dict[str, str]) -> None:
    _allowed.update(modules)
    if _allowed and _finder not in sys.meta_path:
        sys.meta_path.append(_finder)


def _read_source_of(names: set[str]) -> None:
    _named.update(names)
    if _named and _source_finder not in sys.meta_path:
        sys.meta_path.insert(0, _source_finder)


def _find(name: str) -> ModuleSpec | None:
    """A module that is in no package, as an import would find it."""
    if name in sys.modules:
        return sys.modules[name].__spec__
    found = (finder.find_spec(name, None) for finder in sys.meta_path)
    return next((spec for spec in found if spec is not None), None)


def _find_within(name: str, places: Sequence[str]) -> ModuleSpec | None:
    """A module of a package that need not have been imported, as `importlib.util.find_spec` would have it."""
    portions: list[str] = []
    for place in places:
        importer = pkgutil.get_importer(place)
        spec = importer.find_spec(name) if importer is not None else None
        if spec is not None and spec.loader is not None:
            return spec
        portions += (spec.submodule_search_locations or []) if spec is not None else []
    if not portions:
        return None
    namespace = ModuleSpec(name, None, is_package=True)
    namespace.submodule_search_locations = portions
    return namespace


class _SourceLoader(SourceFileLoader):
    """Neither reads nor writes compiled files."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _from_source(spec: ModuleSpec | None) -> ModuleSpec | None:
    """The same module, compiled from its source. What has another loader, such as a library, has no such file."""
    if spec is not None and type(spec.loader) is SourceFileLoader:
        spec.loader = _SourceLoader(spec.loader.name, spec.loader.path)
    return spec


class _SourceFinder(MetaPathFinder):
    """Finds modules that are asked for by name where the other finders do."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in _named:
            return None
        others = (each for each in sys.meta_path if each is not self)
        found = (each.find_spec(fullname, path, target) for each in others)
        return _from_source(next((spec for spec in found if spec is not None), None))


_source_finder = _SourceFinder()


class _LocalFinder(MetaPathFinder):
    """Finds allowed modules, and for their own code what lies beside them."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is not None:  # within a package, which has been found
            return None
        folder = _allowed.get(fullname) or _folder_of(_importer())
        return None if folder not in _allowed.values() else _from_source(PathFinder.find_spec(fullname, [folder]))


_finder = _LocalFinder()


def _importer() -> str:
    """The name of the module whose `import` statement is under way."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name.partition(".")[0] != "importlib":
            return name
        frame = frame.f_back
    return ""


def _folder_of(module: str) -> str:
    """The folder that a module, or the package that it is in, was found in; empty if it was in none."""
    spec = getattr(sys.modules.get(module.partition(".")[0]), "__spec__", None)
    if spec is None or not spec.has_location or spec.origin is None:
        return ""
    place = os.path.dirname(spec.origin)
    return place if spec.submodule_search_locations is None else os.path.dirname(place)
