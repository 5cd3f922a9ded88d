"""What a compiler has to say about a header, in the few lines that matter to whoever wrote it."""

from __future__ import annotations

import os
import re
from pathlib import Path

_PLACE = re.compile(r"^(?P<file>/[^:\n]+):(?P<line>\d+):")
_ERROR = re.compile(r"\b(?:fatal )?error: (?P<text>.*)")
_LINKER = re.compile(r"undefined reference to .*|cannot find -l.*|undefined symbol: .*")


def complaint(output: str, header: Path, log: Path) -> str:
    """The first error, at its line of the user's header; the whole output is in `log`."""
    lines = output.splitlines()
    errors = [i for i, line in enumerate(lines) if _ERROR.search(line)]
    # An error in the user's own file says more than one in what it uses, though that may come first.
    own = [i for i in errors if _own_place(lines[i], header.parent)]
    first = next(iter(own or errors), None)
    said = [f"{shown(header)} does not compile."]
    linker = next((found[0] for line in lines if (found := _LINKER.search(line))), None)
    if first is not None and not (linker and lines[first].startswith(("collect2", "clang"))):
        error = _ERROR.search(lines[first])
        assert error is not None
        text = error["text"].removeprefix("static assertion failed: ")
        said += _at(_place(lines, first, header.parent), text)
    elif linker:
        said += [linker]
    else:
        said += [line for line in lines if line.strip()][-3:]
    return "\n".join([*said, f"All that the compiler says: {log}"])


def shown(path: Path) -> str:
    """A path as one would write it here."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def _at(place: tuple[Path, int] | None, text: str) -> list[str]:
    if place is None:
        return [text]
    path, number = place
    try:
        source = path.read_text(encoding="utf-8", errors="replace").splitlines()[number - 1]
    except (OSError, IndexError):
        source = ""
    return [f"{shown(path)}:{number}: {text}", *([f"{number:6} | {source}"] if source.strip() else [])]


def _place(lines: list[str], first: int, home: Path) -> tuple[Path, int] | None:
    """Where the error is in the user's own files: there itself, or where what has it was used."""
    end = next((i for i in range(first + 1, len(lines)) if _ERROR.search(lines[i])), len(lines))
    for line in [lines[first], *lines[:first], *lines[first + 1 : end]]:
        if place := _own_place(line, home):
            return place
    return None


def _own_place(line: str, home: Path) -> tuple[Path, int] | None:
    found = _PLACE.match(line)
    return (Path(found["file"]), int(found["line"])) if found and Path(found["file"]).is_relative_to(home) else None
